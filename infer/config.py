"""What `treeagent evaluate` can be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ..config import Budget, Positive, option
from ..errors import ConfigError
from . import agents
from .engines import Sampling
from .observe import KINDS, Kind


@dataclass(frozen=True)
class Benchmark:
    """Which examples are read."""

    folder: str = option(help="folder that `treeagent build` made")
    split: str = option("test", "split of the benchmark")
    tasks: tuple[str, ...] | None = option(None, "only these tasks; null: all")
    lengths: tuple[Positive, ...] | None = option(None, "only these lengths, in tokens; null: all")
    limit: Positive | None = option(None, "only the first examples; null: all")


@dataclass(frozen=True)
class EvaluateConfig:
    """One evaluation: every agent with every observer over every example."""

    out: str = option(help="run folder; repeating the command resumes what it holds")
    benchmark: Benchmark = option(help="the examples")
    model: str | None = option(
        None, "Hugging Face name, folder, or .gguf file; null: the demo model, if it is installed"
    )
    adapter: str | None = option(None, "folder with a PEFT adapter for the model")
    dtype: Literal["bf16", "fp32", "fp16"] = option("bf16", "number format of the weights")
    device: str = option("auto", "auto, cpu, cuda, cuda:1, ...")
    agents: dict[str, dict[str, Any]] = option(
        {"memagent": {}}, "agents by name, each with its options, as in {memagent: {max_tokens: 48}}"
    )
    observers: tuple[Kind, ...] = option(KINDS, "what the section slot of the prompts shows")
    budget: Budget = option(5000, "section budget C, in tokens of the model's tokenizer")
    batch_size: Positive = option(8, "examples read side by side, and requests in one batch")
    sampling: Sampling = option(Sampling(), "how tokens are chosen; the default is greedy")
    traces: bool = option(False, "also keep every prompt and reply, in calls/ in the run folder")

    def __post_init__(self) -> None:
        """Raises ConfigError for an unknown agent or agent option, and where there would be nothing to do."""
        for name, options in self.agents.items():
            agents.build(name, tokenizer=None, **options)
        for key in ("agents", "observers"):
            if not getattr(self, key):
                raise ConfigError(f"{key}: name at least one")
        if len(set(self.observers)) < len(self.observers):
            raise ConfigError("observers: one is named twice")
        if self.sampling.temperature == 0 and (self.sampling.top_p, self.sampling.top_k) != (1.0, 0):
            raise ConfigError("sampling.top_p and sampling.top_k do nothing without sampling.temperature")
