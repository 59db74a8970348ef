"""The half of the trainer that samples: rollouts from the model that is being trained.

By transformers, rollouts go in step: every generation call is collective (under ZeRO-3 it gathers the weights), so all
ranks make equally many. By vLLM beside the trainer, each rank drives its own rollouts with continuous batching; the
ranks meet once, when merged weights go to their samplers, before the first rollout after an optimiser step. What the
sampler then holds is compared with what the trainer sent, bit by bit in a checksum.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from accelerate.utils import gather_object
from transformers import GenerationConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from ..data.rollout import Example, Reply, Request, Rollout
from ..errors import ConfigError, RunError
from ..infer.engines import Sampling, chat, thinking
from ..infer.run import drive
from . import adapter
from .checksum import Watched
from .colocated import Colocated, Params, vllm_params
from .progress import Progress
from .rollouts import in_step

SENDS = "_iter_named_params"
"""The method of TRL's `VLLMGeneration` that gives names and values of the weights to send."""
_SEEDS_A_STEP = 1_000_003


class RolloutSource(Protocol):
    """What the trainer needs of an environment: an example as a generator of requests that ends in a rollout."""

    def rollout(self, example: Example) -> Generator[Request, Reply, Rollout]:
        """One rollout over one example."""
        ...


def check_arguments(args: Any) -> None:
    """Raises ConfigError for settings of TRL under which the trainer would be wrong or needlessly slow."""
    if args.gradient_accumulation_steps != 1 or args.steps_per_generation != 1:
        raise ConfigError("gradient_accumulation_steps and steps_per_generation must be 1: R bounds memory instead")
    if args.loss_type not in ("dapo", "cispo"):
        raise ConfigError(f"loss_type {args.loss_type!r} depends on padding and on how rows are grouped: dapo or cispo")
    if not args.use_vllm:
        return
    if args.vllm_mode != "colocate":
        raise ConfigError("vllm_mode must be colocate: rollouts by a server are not trained on")
    if args.vllm_tensor_parallel_size != 1:
        raise ConfigError("vllm_tensor_parallel_size must be 1: ranks have different numbers of prompts")
    if args.vllm_enable_sleep_mode:
        raise ConfigError("vllm_enable_sleep_mode must be off: all weights would be sent again at every call")


class SamplingTrainer(GRPOTrainer):
    """GRPOTrainer that runs an environment. `batch_size` bounds the prompts of one generation call of transformers (0:
    all). A request beyond its own limit or the model's positions is not sent."""

    def __init__(
        self,
        *,
        environment: RolloutSource,
        batch_size: int = 0,
        progress: Progress | None = None,
        params: Params = vllm_params,
        **trl: Any,
    ) -> None:
        check_arguments(trl["args"])
        self.environment, self.batch_size = environment, batch_size
        self.progress = progress or Progress()
        self.seconds: dict[str, float] = {}
        self._greedy = False
        super().__init__(**trl)
        self.positions: int | None = getattr(self.policy.config, "max_position_embeddings", None)
        self._eos: int = self.eos_token_ids[0]
        self.checksum: int | None = None
        self._served: Colocated | None = None
        if self.use_vllm:
            self._served = Colocated(self.vllm_generation.llm, self._tokenizer, self.eos_token_ids, params)
            setattr(self.vllm_generation, SENDS, self._weights_for_sampler)

    @property
    def policy(self) -> Any:
        """The model that is trained, unwrapped."""
        return self.model

    # Rollouts ------------------------------------------------------------------------------------------------------

    def roll_out(self, examples: Sequence[Example], *, greedy: bool = False) -> list[Rollout]:
        """Runs the environment over this rank's examples, in step with the other ranks."""
        rollouts = [self.environment.rollout(example) for example in examples]
        what = "evaluating" if greedy else "reading"
        if self._served is not None:
            return self._drive(self._served, rollouts, what, greedy=greedy)
        before = self._greedy
        self._greedy = greedy
        try:
            return in_step(
                rollouts,
                self.sample,
                most=self._most,
                batch_size=self.batch_size,
                on_turn=lambda turn, done: self.progress.show(
                    f"{what}: call {turn} of each rollout, {done} of {len(examples)} done"
                ),
            )
        finally:
            self._greedy = before

    # By vLLM -------------------------------------------------------------------------------------------------------

    def _drive(
        self, engine: Colocated, rollouts: list[Generator[Request, Reply, Rollout]], what: str, *, greedy: bool
    ) -> list[Rollout]:
        """All rollouts of this rank at once, after the sampler has this step's weights."""
        self._synchronise(engine)
        before, made = engine.seconds, {}
        try:
            for index, rollout in drive(rollouts, engine, self._sampling(greedy=greedy)):
                made[index] = rollout
                self.progress.show(f"{what}: {len(made)} of {len(rollouts)} rollouts done")
        finally:
            engine.reset()
        self.seconds["generate"] = self.seconds.get("generate", 0.0) + engine.seconds - before
        return [made[index] for index in range(len(rollouts))]

    def _sampling(self, *, greedy: bool) -> Sampling:
        """As TRL is told, with a seed of this step's and this rank's own."""
        if greedy:
            return Sampling()
        seed = self.args.seed + _SEEDS_A_STEP * self.state.global_step + self.accelerator.process_index
        return Sampling(self.temperature, self.top_p, self.top_k, seed)

    def _synchronise(self, engine: Colocated) -> None:
        """Sends the merged weights once per optimiser step. Collective. Raises RunError, on every rank, if some sampler
        holds others than were sent."""
        if self.state.global_step == self._last_loaded_step:
            return
        began = time.perf_counter()
        self.progress.show("sending the weights to the sampler")
        self.vllm_generation.sync_weights()
        self._last_loaded_step = self.state.global_step
        self.checksum = self._watched().served(engine.model)
        both: list[tuple[int, int | None]] = gather_object([(self._sent[-1], self.checksum)])
        if any(sent != served for sent, served in both):
            told = ", ".join(f"rank {rank}: sent {a}, served {b}" for rank, (a, b) in enumerate(both))
            raise RunError(
                f"the sampler does not hold the trainer's weights (checksums of the adapted matrices: {told})"
            )
        if self.policy.training:
            self._metrics["train"]["sampler/checksum"].append(float(self.checksum))
        self._spent("sync", began)

    def _weights_for_sampler(self) -> Iterator[tuple[str, torch.Tensor]]:
        """In place of TRL's, which merges the adapter into the base and takes it out again, rounding both times."""
        self._sent: list[int] = []
        assert self._served is not None
        weights = adapter.merged_parameters(self.vllm_generation.model, self.vllm_generation._dist.gather_params)
        return self._watched().passing(weights, next(self._served.model.parameters()).dtype, self._sent)

    def _watched(self) -> Watched:
        assert self._served is not None
        targets = {name.rpartition(".")[2] for name in adapter.adapted(self.vllm_generation.model)}
        return Watched(targets, getattr(self._served.model, "packed_modules_mapping", None) or {})

    # By transformers -----------------------------------------------------------------------------------------------

    def sample(self, requests: Sequence[Request]) -> list[Reply]:
        """One collective generation call, and one before it where a rank has requests that think. A request that does
        not fit is not sent."""
        began = time.perf_counter()
        prompts = [chat.prompt_ids(self._tokenizer, request) for request in requests]
        refused = [chat.overflow(r, ids, self.positions) for r, ids in zip(requests, prompts, strict=True)]
        replies = {i: reply for i, reply in enumerate(refused) if reply is not None}
        sent = [i for i, reply in enumerate(refused) if reply is None]
        openings = self._think({i: (prompts[i], requests[i].think_tokens) for i in sent if requests[i].think_tokens})
        begun = [prompts[i] + list(openings[i].ids if i in openings else ()) for i in sent]
        made = self._complete(begun, max((requests[i].max_tokens for i in sent), default=1))
        for i, (ids, logprobs) in zip(sent, made, strict=True):
            limits = {"max_tokens": requests[i].max_tokens, "ends": self.eos_token_ids}
            if i in openings:
                replies[i] = chat.two_stage_reply(self._tokenizer, prompts[i], openings[i], ids, logprobs, **limits)
            else:
                replies[i] = chat.reply(self._tokenizer, prompts[i], ids, logprobs, **limits)
        self._spent("generate", began)
        return [replies[i] for i in range(len(requests))]

    def _think(self, asked: dict[int, tuple[list[int], int]]) -> dict[int, thinking.Opening]:
        """The first stage of requests that think, by place: prompt ids and most tokens to think with."""
        if not self._most(len(asked)):
            return {}
        made = self._complete([ids for ids, _ in asked.values()], max((most for _, most in asked.values()), default=1))
        return {
            i: thinking.continue_ids(self._tokenizer, ids, logprobs, think_tokens=most, ends=self.eos_token_ids)
            for (i, (_, most)), (ids, logprobs) in zip(asked.items(), made, strict=True)
        }

    def _complete(self, prompts: list[list[int]], most: int) -> list[tuple[list[int], list[float] | None]]:
        """Completion ids of up to `most` tokens and their log-probabilities, if the sampler tells them. Collective: a
        rank without a prompt sends one of a single token and ignores the answer."""
        with self._decoding(most):
            completions, logprobs = self._generate_single_turn(prompts or [[self._eos]], None, {}, num_generations=1)
        told = [None] * len(completions) if logprobs is None else logprobs
        return list(zip(completions, told, strict=True))[: len(prompts)]

    @contextmanager
    def _decoding(self, max_new_tokens: int) -> Iterator[None]:
        """Generation up to `max_new_tokens` in the arithmetic of the loss, greedy in evaluation, without dropout."""
        config, kwargs, training = self.generation_config, self.generation_kwargs, self.policy.training
        changed = {**kwargs, "max_new_tokens": max_new_tokens}
        if self._greedy:
            changed |= {"do_sample": False, "temperature": None, "top_p": None, "top_k": None, "min_p": None}
        self.generation_kwargs = changed
        self.generation_config = GenerationConfig(**changed, disable_compile=True)
        self.policy.eval()
        try:
            with self.accelerator.autocast():
                yield
        finally:
            self.generation_config, self.generation_kwargs = config, kwargs
            self.policy.train(training)

    def _most(self, count: int) -> int:
        counts: Any = self.accelerator.gather(torch.tensor([count], device=self.accelerator.device))
        return int(counts.max())

    def _summed(self, values: Sequence[float]) -> list[float]:
        """Element-wise sums over all ranks."""
        local = torch.tensor([list(values)], dtype=torch.float64, device=self.accelerator.device)
        rows: Any = self.accelerator.gather(local)
        return rows.sum(dim=0).tolist()

    def _spent(self, phase: str, began: float) -> None:
        self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - began
