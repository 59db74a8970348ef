"""What `treeagent ask` and `treeagent evaluate` can be told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

from annotated_types import Ge

from ..config import Budget, Positive, option
from ..errors import ConfigError
from . import agents
from .engines import Sampling
from .engines.options import OpenAIOptions, VllmOptions
from .observe import KINDS, Kind

EngineName = Literal["transformers", "vllm", "openai"]

_INERT = {
    "transformers": ("tokenizer", "openai", "vllm"),
    "vllm": ("tokenizer", "device", "batching", "openai"),
    "openai": ("adapter", "dtype", "device", "batching", "vllm"),
}
"""The keys that do nothing with an engine."""
_CAPPED = ("max_tokens", "controller_tokens", "think_tokens")
"""The limits of agents that `treeagent ask --max-tokens` lowers."""


@dataclass(frozen=True, kw_only=True)
class Inference:
    """A model, and how it is run."""

    model: str | None = option(
        None,
        "Hugging Face name, folder, or .gguf file; with engine openai the name that the server knows it by; null: the "
        "demo model, if it is installed, or the only one that the server has",
    )
    tokenizer: str | None = option(
        None,
        "with engine openai: what sections are counted with and raw prompts rendered by (Hugging Face name, folder, "
        ".gguf file, tiktoken:NAME); null: the model's",
    )
    adapter: str | None = option(None, "folder with a PEFT adapter for the model")
    engine: EngineName = option(
        "transformers",
        "transformers: in this process, CPU or GPU; vllm: in this process; openai: any server with that protocol",
    )
    dtype: Literal["bf16", "fp32", "fp16"] = option("bf16", "number format of the weights")
    device: str = option("auto", "auto, cpu, cuda, cuda:1, ... (engine transformers)")
    batching: Literal["padded", "continuous"] = option(
        "padded", "how transformers batches: padded repeats byte for byte, continuous keeps a GPU busier"
    )
    openai: OpenAIOptions = option(OpenAIOptions(), "the server")
    vllm: VllmOptions = option(VllmOptions(), "vLLM in this process")

    def __post_init__(self) -> None:
        """Raises ConfigError for a key that does nothing with this engine, and for one that it needs."""
        self._refuse(_INERT[self.engine], f"engine {self.engine}")
        if self.engine == "openai" and not (self.tokenizer or self.model):
            raise ConfigError(
                "engine openai needs a tokenizer to count sections with: set tokenizer, to the Hugging Face name of "
                "the server's model for example"
            )

    @property
    def padded(self) -> bool:
        """Whether the engine answers in padded batches."""
        return self.engine == "transformers" and self.batching == "padded"

    def _refuse(self, keys: Sequence[str], reason: str) -> None:
        for key in keys:
            if getattr(self, key) != getattr(type(self), key):  # the class holds the default
                raise ConfigError(f"{key} does nothing with {reason}")


@dataclass(frozen=True, kw_only=True)
class Ask(Inference):
    """How one question over one document is answered."""

    format: str | None = option(None, "format of the document; null: by its suffix, json for standard input")
    agent: str = option("memagent", f"who reads: {', '.join(agents.AGENTS)}")
    agent_options: dict[str, Any] = option({}, "the agent's options, as in {answer_format: boxed}")
    observe: Kind = option("treeagent", "what the section slot of the prompts shows")
    budget: Budget = option(5000, "section budget C, in tokens of the model's tokenizer")
    max_tokens: Positive | None = option(
        None, "cap on every reply, and on the thinking before it; null: the agent's own"
    )
    trace: bool = option(False, "print what the agent was shown, said and remembered at each step")

    def __post_init__(self) -> None:
        """Raises ConfigError for an unknown agent or agent option."""
        super().__post_init__()
        _check_agent(self.agent, self.options)

    @property
    def options(self) -> dict[str, Any]:
        """The agent's options, and the cap for those of its limits that they do not set."""
        known = {field.name for field in fields(agents.AGENTS[self.agent])} if self.agent in agents.AGENTS else set()
        caps = {} if self.max_tokens is None else dict.fromkeys(known & set(_CAPPED), self.max_tokens)
        return caps | self.agent_options


@dataclass(frozen=True)
class Benchmark:
    """Which examples are read."""

    folder: str = option(help="folder that `treeagent build` made")
    split: str = option("test", "split of the benchmark")
    tasks: tuple[str, ...] | None = option(None, "only these tasks; null: all")
    lengths: tuple[Positive, ...] | None = option(None, "only these lengths, in tokens; null: all")
    limit: Positive | None = option(None, "only the first examples; null: all")


@dataclass(frozen=True, kw_only=True)
class EvaluateConfig(Inference):
    """One evaluation: every agent with every observer over every example."""

    out: str = option(help="run folder; repeating the command resumes what it holds")
    benchmark: Benchmark = option(help="the examples")
    agents: dict[str, dict[str, Any]] = option(
        {"memagent": {}}, "agents by name, each with its options, as in {memagent: {max_tokens: 48}}"
    )
    observers: tuple[Kind, ...] = option(KINDS, "what the section slot of the prompts shows")
    budget: Budget = option(5000, "section budget C, in tokens of the model's tokenizer")
    batch_size: Positive = option(8, "with padded batches: examples read side by side, and requests in one batch")
    rollouts: Positive = option(256, "examples under way at once, where they are not read in padded batches")
    workers: Annotated[int, Ge(0)] = option(2, "processes that cut documents while the model works; 0: none")
    sampling: Sampling = option(Sampling(), "how tokens are chosen; the default is greedy")
    traces: bool = option(False, "also keep every prompt and reply, in calls/ in the run folder")

    def __post_init__(self) -> None:
        """Raises ConfigError for an unknown agent or agent option, and where there would be nothing to do."""
        super().__post_init__()
        for name, options in self.agents.items():
            _check_agent(name, options)
        _named("agents", list(self.agents))
        _named("observers", self.observers)
        if self.padded:
            self._refuse(("rollouts",), "padded batches: set batch_size")
        else:
            self._refuse(("batch_size",), "this engine: set rollouts")
        if self.sampling.temperature == 0 and (self.sampling.top_p, self.sampling.top_k) != (1.0, 0):
            raise ConfigError("sampling.top_p and sampling.top_k do nothing without sampling.temperature")


def _check_agent(name: str, options: Mapping[str, Any]) -> None:
    if "tokenizer" in options:
        raise ConfigError(f"agent {name}: tokenizer is no option; it is the model's")
    agents.build(name, tokenizer=None, **options)


def _named(key: str, names: Sequence[str]) -> None:
    if not names:
        raise ConfigError(f"{key}: name at least one")
    if len(set(names)) < len(names):
        raise ConfigError(f"{key}: one is named twice")
