"""Models through vLLM, in this program: continuous batching, prefix caching, LoRA adapters, several GPUs.

1. Prompts go in as token ids of our own chat template and replies come out as ids: vLLM gets no tokenizer, and ends a
   reply at the tokens where the transformers engine ends it.
2. vLLM's core runs in processes of its own and batches whatever is under way; this side only waits, so thousands of
   requests may be.
   They end with this one, even where it is killed.
3. A request that vLLM refuses becomes a reply with `finish="error"`. A core that dies is a ModelError for every request
   under way and every later one.
4. vLLM sends no usage statistics and logs only errors, unless the environment asks for more (`VLLM_LOGGING_LEVEL`).
"""

from __future__ import annotations

import hashlib
import importlib
import itertools
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from transformers import AutoConfig, GenerationConfig

from ...data.rollout import Reply, Request
from ...errors import ModelError, one_line
from ..models import DTYPES
from ..plain_model import plain_folder
from . import Background, Sampling, chat
from .lora import lora_rank
from .options import VllmOptions
from .orphans import Guard
from .transformers import end_ids

_ENVIRONMENT = {
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",  # stdout is the command's own
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # a fork would copy running threads
}
_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""What vLLM can be told to make room for."""


@dataclass(frozen=True)
class Library:
    """The parts of vLLM in use, and the kind of output that holds a whole reply. Tests give their own."""

    engine: Any
    arguments: Any
    sampling: Any
    lora: Any
    whole: Any
    dead: type[Exception]


class Vllm(Background):
    """A model that vLLM can run, and its transformers tokenizer (with a chat template), as an engine."""

    def __init__(
        self,
        model: str,
        tokenizer: Any,
        options: VllmOptions | None = None,
        *,
        dtype: str = "bf16",
        adapter: str | None = None,
        logprobs: bool = False,
        library: Callable[[], Library] | None = None,
    ) -> None:
        """`model`: a Hugging Face name, a folder, or a `.gguf` file; `adapter`: a folder with a LoRA adapter. Starting
        takes from half a minute to some minutes. `logprobs`: record for each generated token its log-probability under
        the model itself (temperature 1, no top_p or top_k).

        Raises ModelError if vLLM is missing, cannot start, or cannot run the adapter, and without a chat template.
        """
        chat.check(tokenizer)
        if dtype not in DTYPES:
            raise ModelError(f"unknown dtype {dtype!r}; known: {', '.join(DTYPES)}")
        rank = None if adapter is None else _room(adapter)
        self.tokenizer, self.logprobs = tokenizer, logprobs
        self._library = (library or _library)()
        folder = plain_folder(model, dtype)
        self._ends = _ends(folder, tokenizer)
        self._lora = None if adapter is None else self._library.lora("adapter", 1, str(Path(adapter).resolve()))
        self._core: Any = None
        self._guard: Guard | None = None
        self._dead = ""
        self._seeds = _Seeds()
        self._numbers = itertools.count()
        super().__init__()
        try:
            self.run(self._start(_settings(folder, options or VllmOptions(), dtype, rank))).result()
        except BaseException:
            self.close()
            raise
        self.limit: int = self._core.model_config.max_model_len

    async def answer(self, request: Request, sampling: Sampling) -> Reply:
        """Raises ModelError once vLLM is dead, and for sampling that it does not know."""
        prompt = chat.prompt_ids(self.tokenizer, request)
        if refused := chat.overflow(request, prompt, self.limit):
            return refused
        exchange = chat.exchange(self.tokenizer, request, prompt, self._ends)
        with self._seeds.seed(prompt, sampling) as seed:
            return await chat.carry_out(
                exchange, lambda ids, most, number: self._ask(ids, most, sampling, seed + number)
            )

    async def shut(self) -> None:
        """Ends vLLM's processes."""
        core, self._core = self._core, None
        if core is not None:
            core.shutdown()
        if self._guard is not None:
            self._guard.release()

    async def _start(self, settings: dict[str, Any]) -> None:
        """Blocks the loop, which has nothing else to do yet."""
        before = set(multiprocessing.active_children())
        try:
            self._core = self._library.engine.from_engine_args(self._library.arguments(**settings))
        except Exception as error:  # whatever a library of this size raises, the model cannot be used
            hint = "" if "VLLM_LOGGING_LEVEL" in os.environ else "; VLLM_LOGGING_LEVEL=INFO shows more"
            raise ModelError(f"vLLM cannot run model {settings['model']}: {one_line(error)}{hint}") from error
        started = [child.pid for child in multiprocessing.active_children() if child not in before]
        self._guard = Guard([pid for pid in started if pid is not None])
        if self._lora is None:
            return
        try:
            await self._core.add_lora(self._lora)
        except Exception as error:
            raise ModelError(f"adapter {self._lora.lora_path} does not fit the model: {one_line(error)}") from error

    async def _ask(self, ids: list[int], max_tokens: int, sampling: Sampling, seed: int) -> chat.Heard:
        if self._dead:
            raise ModelError(self._dead)
        params, last = self._params(sampling, max_tokens, seed), None
        outputs = self._core.generate(
            {"prompt_token_ids": ids}, params, str(next(self._numbers)), lora_request=self._lora
        )
        try:
            async for output in outputs:
                last = output
        except self._library.dead as error:
            self._dead = f"vLLM died: {one_line(error)}"
            raise ModelError(self._dead) from error
        except Exception as error:
            raise chat.RefusedError(f"vLLM: {one_line(error.__cause__ or error)}") from error
        return _said(last)

    def _params(self, sampling: Sampling, max_tokens: int, seed: int) -> Any:
        """Greedy decoding takes no seed. `ignore_eos` leaves the ends to `stop_token_ids` alone."""
        sampled = sampling.temperature > 0
        try:
            params = self._library.sampling(
                temperature=sampling.temperature,
                top_p=sampling.top_p if sampled else 1.0,
                top_k=sampling.top_k if sampled else 0,
                seed=seed if sampled else None,
                max_tokens=max_tokens,
                stop_token_ids=list(self._ends),
                ignore_eos=True,
                logprobs=0 if self.logprobs else None,
                detokenize=False,
                output_kind=self._library.whole,
            )
        except ValueError as error:
            raise ModelError(f"vLLM: {one_line(error)}") from error
        if params.temperature != sampling.temperature:
            raise ModelError(f"vLLM knows no temperature of {sampling.temperature}; the least above 0 is 0.01")
        return params


class _Seeds:
    """Seeds by which a repeated request repeats its reply, while equal requests under way together all differ."""

    def __init__(self) -> None:
        self._taken: dict[str, set[int]] = {}

    @contextmanager
    def seed(self, prompt: Sequence[int], sampling: Sampling) -> Iterator[int]:
        key = hashlib.sha256(repr((sampling, prompt)).encode()).hexdigest()
        taken = self._taken.setdefault(key, set())
        place = next(i for i in itertools.count() if i not in taken)
        taken.add(place)
        try:
            yield int.from_bytes(hashlib.sha256(f"{key} {place}".encode()).digest()[:7])
        finally:
            taken.discard(place)
            if not taken:
                self._taken.pop(key, None)


def _settings(folder: str, options: VllmOptions, dtype: str, rank: int | None) -> dict[str, Any]:
    """Arguments of vLLM's engine. The model's own generation_config counts for nothing."""
    lora = {} if rank is None else {"enable_lora": True, "max_loras": 1, "max_lora_rank": rank}
    return {
        "model": folder,
        "dtype": DTYPES[dtype],
        "skip_tokenizer_init": True,
        "generation_config": "vllm",
        "enable_prefix_caching": True,
        "logprobs_mode": "raw_logprobs",
        "disable_log_stats": True,
        "use_tqdm_on_load": False,
        **asdict(options),
        **lora,
    }


def _ends(folder: str, tokenizer: Any) -> tuple[int, ...]:
    """The ids at which the transformers engine would end a reply of the model in this folder."""
    try:
        named = GenerationConfig.from_pretrained(folder)
    except OSError:
        try:
            named = GenerationConfig.from_model_config(AutoConfig.from_pretrained(folder))
        except (OSError, ValueError) as error:
            raise ModelError(f"model {folder} cannot be loaded: {one_line(error)}") from error
    return end_ids(SimpleNamespace(generation_config=named), tokenizer)


def _room(adapter: str) -> int:
    """The least rank that vLLM can be told to make room for and that holds the adapter."""
    rank = lora_rank(adapter)
    if rank > _RANKS[-1]:
        raise ModelError(f"adapter {adapter}: vLLM runs ranks up to {_RANKS[-1]}, this one is {rank}")
    return next(room for room in _RANKS if room >= rank)


def _said(output: Any) -> chat.Heard:
    """Raises RefusedError unless the output is that of a request that came to its end."""
    said = output.outputs[0] if output is not None else None
    if said is None or said.finish_reason not in ("stop", "length"):
        raise chat.RefusedError(f"vLLM ended the request: {said.finish_reason if said else 'no output'}")
    ids = list(said.token_ids)
    if said.logprobs is None:
        return ids, None
    return ids, [step[token].logprob for step, token in zip(said.logprobs, ids, strict=True)]


def _library() -> Library:
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        return Library(
            engine=_part("vllm.v1.engine.async_llm", "AsyncLLM"),
            arguments=_part("vllm.engine.arg_utils", "AsyncEngineArgs"),
            sampling=_part("vllm", "SamplingParams"),
            lora=_part("vllm.lora.request", "LoRARequest"),
            whole=_part("vllm.sampling_params", "RequestOutputKind").FINAL_ONLY,
            dead=_part("vllm.v1.engine.exceptions", "EngineDeadError"),
        )
    except Exception as error:  # a build that does not go with its torch fails in many ways
        if isinstance(error, ModuleNotFoundError) and error.name == "vllm":
            raise ModelError("engine vllm needs the package vllm: pip install 'treeagent[vllm]'") from error
        raise ModelError(f"the vllm that is installed cannot be used: {one_line(error)}") from error


def _part(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)
