"""vLLM in the trainer's own process as an engine: continuous batching without a thread.

`submit` hands a request to vLLM's scheduler at once; `flush` lets vLLM work until some reply is complete. A driver that
flushes when all its rollouts wait thus keeps every free place of the batch filled: a rollout asks its next question
while others are still being answered. Two-stage thinking takes a second request of the same reply. The weights are the
trainer's business.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from ..data.rollout import Reply, Request
from ..errors import one_line
from ..infer.engines import Engine, Sampling, chat

Params = Callable[..., Any]


def vllm_params(**settings: Any) -> Any:
    """vLLM's sampling parameters, for replies that come whole."""
    from vllm import SamplingParams  # pyright: ignore[reportMissingImports]
    from vllm.sampling_params import RequestOutputKind  # pyright: ignore[reportMissingImports]

    return SamplingParams(**settings, output_kind=RequestOutputKind.FINAL_ONLY)


@dataclass(frozen=True)
class _Job:
    """A reply in the making. `number` counts its requests."""

    exchange: chat.Exchange
    sampling: Sampling
    seed: int
    future: Future[Reply]
    number: int = 0


class Colocated(Engine):
    """An `LLM` of vLLM on one device, as TRL starts it. Replies carry the log-probabilities that vLLM sampled with."""

    def __init__(self, llm: Any, tokenizer: Any, ends: Sequence[int], params: Params = vllm_params) -> None:
        self._core, self._params = llm.llm_engine, params
        self._tokenizer, self._ends = tokenizer, tuple(ends)
        self.limit: int = self._core.model_config.max_model_len
        self._numbers = itertools.count()
        self._jobs: dict[str, _Job] = {}
        self._repeats: Counter[str] = Counter()
        self.seconds = 0.0  # that vLLM has worked

    @property
    def model(self) -> Any:
        """The module that holds vLLM's weights."""
        return self._core.model_executor.driver_worker.model_runner.model

    def submit(self, request: Request, sampling: Sampling) -> Future[Reply]:
        """Hands the request to vLLM; one that does not fit is answered at once."""
        prompt, future = chat.prompt_ids(self._tokenizer, request), Future[Reply]()
        if refused := chat.overflow(request, prompt, self.limit):
            future.set_result(refused)
        else:
            exchange = chat.exchange(self._tokenizer, request, prompt, self._ends)
            self._send(_Job(exchange, sampling, self._seed(prompt, sampling), future), next(exchange))
        return future

    def flush(self) -> None:
        """Lets vLLM work until a reply is complete."""
        began, complete = time.perf_counter(), 0
        while self._jobs and not complete:
            for output in self._core.step():
                if output.finished:
                    complete += self._heard(self._jobs.pop(output.request_id), output.outputs[0])
        self.seconds += time.perf_counter() - began

    def reset(self) -> None:
        """Forgets what was under way, and how often each prompt came: seeds repeat from here on."""
        if self._jobs:
            self._core.abort_request(list(self._jobs))
        self._jobs.clear()
        self._repeats.clear()

    def _seed(self, prompt: list[int], sampling: Sampling) -> int:
        """From the sampling's seed and the prompt; equal prompts differ in the order in which they come."""
        key = hashlib.sha256(repr((sampling.seed, prompt)).encode()).hexdigest()
        self._repeats[key] += 1
        return int.from_bytes(hashlib.sha256(f"{key} {self._repeats[key]}".encode()).digest()[:7])

    def _send(self, job: _Job, asked: chat.Asked) -> None:
        name, (ids, most) = str(next(self._numbers)), asked
        sampled = job.sampling.temperature > 0
        params = self._params(
            temperature=job.sampling.temperature,
            top_p=job.sampling.top_p if sampled else 1.0,
            top_k=job.sampling.top_k if sampled else 0,
            seed=job.seed + job.number if sampled else None,
            max_tokens=most,
            stop_token_ids=list(self._ends),
            ignore_eos=True,
            logprobs=0,
            detokenize=False,
        )
        try:
            self._core.add_request(name, {"prompt_token_ids": ids}, params)
        except ValueError as error:
            refused = chat.RefusedError(f"vLLM: {one_line(error)}")
            self._go_on(job, lambda: job.exchange.throw(refused))
        else:
            self._jobs[name] = job

    def _heard(self, job: _Job, said: Any) -> bool:
        """Whether that completes the reply; if not, its second request is under way."""
        ids = list(said.token_ids)
        logprobs = [_logprob(told, token) for told, token in zip(said.logprobs, ids, strict=True)]
        self._go_on(job, lambda: job.exchange.send((ids, logprobs)))
        return job.future.done()

    def _go_on(self, job: _Job, step: Callable[[], chat.Asked]) -> None:
        try:
            asked = step()
        except StopIteration as stop:
            job.future.set_result(stop.value)
        else:
            self._send(replace(job, number=job.number + 1), asked)


def _logprob(told: Any, token: int) -> float:
    """Of the sampled token; not a number where vLLM does not know, which the loss takes as no correction."""
    known = told.get(token)
    return math.nan if known is None or known.logprob is None else float(known.logprob)
