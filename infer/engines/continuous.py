"""Local models with continuous batching: a request joins the running batch as soon as another has left it, so that
nothing is padded and no short reply waits for a long one. The batches are transformers' own (its paged cache with
shared prefixes); an installed version without them is refused.

Decoding is greedy only: what a batch draws depends on who happens to be in it, so no seed could repeat it. Replies are
those of the padded engine up to rounding. Whatever stops the batches concerns all requests, and is raised for each.
"""

from __future__ import annotations

import asyncio
import itertools
from concurrent.futures import Future
from dataclasses import fields
from typing import Any

from ...data.rollout import Reply, Request
from ...errors import ConfigError, ModelError, one_line
from . import Background, Sampling, chat

_CACHE_TOKENS = 40_960  # holds the largest request that an agent makes
_TOKENS_PER_STEP = 1024  # bounds the mask, which has a row for each and a column for each cached token
_PULSE_SECONDS = 0.5


class Continuous(Background):
    """A causal language model and its transformers tokenizer (with a chat template) as an engine that never waits for
    a batch to end."""

    def __init__(
        self, model: Any, tokenizer: Any, *, slots: int = 16, cache_tokens: int | None = None, logprobs: bool = False
    ) -> None:
        """`slots`: the most requests that are decoded together. `cache_tokens`: the most tokens that the cache holds
        for all of them; by default what a GPU has room for, and 40,960 elsewhere. `logprobs`: record for each
        generated token its log-probability.

        Raises ModelError if the tokenizer has no chat template, or the model or the installed transformers cannot
        batch continuously.
        """
        chat.check(tokenizer)
        from .transformers import end_ids

        self.model, self.tokenizer = model, tokenizer
        self.slots, self.logprobs = slots, logprobs
        self.positions: int | None = getattr(model.config, "max_position_embeddings", None)
        self._ends = end_ids(model, tokenizer)
        self._names = itertools.count()
        self._pending: dict[str, asyncio.Future[Any]] = {}
        self._batches: Any = None
        self._fault = ""
        self._watch: asyncio.Task[None] | None = None
        super().__init__()
        try:
            self.run(self._start(cache_tokens)).result()
        except BaseException:
            self.close()
            raise

    def submit(self, request: Request, sampling: Sampling) -> Future[Reply]:
        """Raises ConfigError for sampling that is not greedy."""
        if sampling.temperature > 0:
            raise ConfigError(
                "continuous batching decodes greedily only (temperature 0): sampled replies could not be repeated"
            )
        return super().submit(request, sampling)

    async def answer(self, request: Request, sampling: Sampling) -> Reply:
        """The reply to one request. Raises ModelError once the batches have stopped."""
        prompt = chat.prompt_ids(self.tokenizer, request)
        if refused := chat.overflow(request, prompt, self.positions):
            return refused
        return await chat.carry_out(chat.exchange(self.tokenizer, request, prompt, self._ends), self._continued)

    async def shut(self) -> None:
        """Stops the batches and gives their cache back."""
        if self._batches is not None:
            self._batches.stop(block=True, hard_stop=True)
            self._batches = None

    async def _continued(self, ids: list[int], most: int, _: int) -> chat.Heard:
        """What the model says after these ids, and its log-probabilities if they are recorded."""
        name = f"{next(self._names)}"
        said = self._pending[name] = asyncio.get_running_loop().create_future()
        try:
            self._batches.register_result_handler(name, lambda output: said.done() or said.set_result(output))
            if self._batches.add_request(ids, request_id=name, max_new_tokens=most) is None:
                raise self._stopped()
            output = await said
        except asyncio.CancelledError:
            self._batches.cancel_request(name)
            raise
        finally:
            del self._pending[name]
        if output.error is not None:
            self._fault = self._fault or one_line(output.error)
            raise self._stopped()
        return output.generated_tokens, output.logprobs if self.logprobs else None

    async def _start(self, cache_tokens: int | None) -> None:
        """Begins the batches, in a thread that ends with the program as the loop's own does."""
        import torch

        try:
            with torch.inference_mode():
                self._batches = self._prepared(cache_tokens)
                self._batches.warmup()
                self._batches.start()
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(f"continuous batching is not possible for this model: {one_line(error)}") from error
        self._limit_to_cache()
        self._watch = asyncio.get_running_loop().create_task(self._watched())

    def _prepared(self, cache_tokens: int | None) -> Any:
        import transformers

        if not hasattr(self.model, "init_continuous_batching"):
            raise ModelError(
                f"transformers {transformers.__version__} has no continuous batching; the batched engine needs none"
            )
        from .transformers import generation_config, pad_id

        config = generation_config(Sampling(), self._ends, pad_id(self.tokenizer, self._ends), 1)
        return self.model.init_continuous_batching(
            generation_config=config, continuous_batching_config=self._batching(cache_tokens)
        )

    def _batching(self, cache_tokens: int | None) -> Any:
        """How to batch. The attention stays the model's own: another would be fetched, and would round differently."""
        from transformers import ContinuousBatchingConfig

        known = {field.name for field in fields(ContinuousBatchingConfig)}
        page = _page_size(ContinuousBatchingConfig())
        if cache_tokens is None and next(self.model.parameters()).device.type != "cuda":
            cache_tokens = min(_CACHE_TOKENS, self.slots * (self.positions or _CACHE_TOKENS))
        wanted = {
            "max_requests_per_batch": self.slots,
            "max_batch_tokens": _TOKENS_PER_STEP,
            "num_blocks": None if cache_tokens is None else -(-cache_tokens // page),
            "return_logprobs": self.logprobs,
            "auto_switch_to_flash": False,
        }
        return ContinuousBatchingConfig(**{name: value for name, value in wanted.items() if name in known})

    def _limit_to_cache(self) -> None:
        """A request that the whole cache could not hold would stop all others."""
        config = self._batches.continuous_batching_config
        held = config.num_blocks * _page_size(config)
        self.positions = min(held, self.positions or held)

    async def _watched(self) -> None:
        """Fails what still waits when the thread that makes the batches is gone."""
        while self._batches.is_running():
            await asyncio.sleep(_PULSE_SECONDS)
        for said in self._pending.values():
            if not said.done():
                said.set_exception(self._stopped())

    def _stopped(self) -> ModelError:
        return ModelError(f"continuous batching has stopped: {self._fault or 'its thread ended'}")


def _page_size(config: Any) -> int:
    """Tokens in a block of the cache; releases before 5.24 name it otherwise."""
    return getattr(config, "page_size", None) or config.block_size
