"""GRPO where one rollout is many conversations, on TRL's GRPOTrainer.

One trainer step is one generation batch and one optimiser step. TRL keeps rewards, group advantages, loss, reference,
buffering and checkpoints; five methods are replaced (training is by conversation rows, rewards by rollouts):
`_generate` runs the environment and flattens the rollouts; `_generate_and_score_completions` carries advantages from N
rollouts to M rows; `compute_loss` goes through R conversations at a time and synchronises on the last; the
log-probability pass is cut to each chunk's own length; `evaluate` is greedy rollouts and their rewards. These are
private methods of TRL: the version is pinned and a test guards their signatures.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any, Protocol

import torch
from accelerate.utils import DistributedType
from datasets import Dataset
from transformers import GenerationConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from ..data.rollout import Example, Reply, Request, Rollout
from ..infer.engines import chat, thinking
from . import rows as row_batch
from .batches import Inputs, completion_logprobs, merged, micro_batches, trained_tokens, used_columns
from .progress import Progress
from .recording import Recorder
from .rollouts import in_step
from .rows import Totals, Weighting

RewardFunction = Callable[[Rollout, Example], float]


class RolloutSource(Protocol):
    """What the trainer needs of an environment: an example as a generator of requests that ends in a rollout."""

    def rollout(self, example: Example) -> Generator[Request, Reply, Rollout]:
        """One rollout over one example."""
        ...


def as_dataset(examples: Sequence[Example], first: int = 0) -> Dataset:
    """The rows TRL samples from: the question and the example's place in the trainer's list (documents stay out of
    it)."""
    places = list(range(first, first + len(examples)))
    return Dataset.from_dict({"prompt": [example.question for example in examples], "example": places})


def _reward_of_batch(function: RewardFunction, examples: Sequence[Example]) -> Callable[..., list[float]]:
    @functools.wraps(function)
    def rewards(rollout: list[Rollout], example: list[int], **_: Any) -> list[float]:
        return [function(one, examples[place]) for one, place in zip(rollout, example, strict=True)]

    return rewards


class ConversationTrainer(GRPOTrainer):
    """GRPOTrainer over rollouts of many conversations. `per_micro_batch` (R) bounds the memory of a step;
    `batch_size` bounds the prompts of one generation call (0: all). A request beyond its own limit or the model's
    positions is not sent."""

    def __init__(
        self,
        *,
        environment: RolloutSource,
        examples: Sequence[Example],
        rewards: Sequence[RewardFunction],
        per_micro_batch: int,
        dev_examples: Sequence[Example] = (),
        batch_size: int = 0,
        weighting: Weighting = "token",
        progress: Progress | None = None,
        recorder: Recorder | None = None,
        **trl: Any,
    ) -> None:
        self.environment = environment
        self.train_examples, self.dev_examples = list(examples), list(dev_examples)
        self.rewards = list(rewards)
        self.per_micro_batch, self.batch_size = per_micro_batch, batch_size
        self.weighting: Weighting = weighting
        self.progress = progress or Progress()
        self.recorder = recorder or Recorder()
        self.seconds: dict[str, float] = {}
        self._greedy = False
        reward_funcs: list[Any] = [_reward_of_batch(function, self.train_examples) for function in rewards]
        super().__init__(
            reward_funcs=reward_funcs,
            train_dataset=as_dataset(self.train_examples),
            eval_dataset=as_dataset(self.dev_examples) if self.dev_examples else None,
            **trl,
        )
        self.positions: int | None = getattr(self.policy.config, "max_position_embeddings", None)
        self._eos: int = self.eos_token_ids[0]
        # TRL's fused head skips the prompt's positions on a GPU but scores all of them on a CPU.
        self.score_completions_only = self.accelerator.device.type == "cpu"

    @property
    def policy(self) -> Any:
        """The model that is trained, unwrapped."""
        return self.model

    # Rollouts ------------------------------------------------------------------------------------------------------

    def roll_out(self, examples: Sequence[Example], *, greedy: bool = False) -> list[Rollout]:
        """Runs the environment over this rank's examples, in step with the other ranks."""
        before = self._greedy
        self._greedy = greedy
        what = "evaluating" if greedy else "reading"
        try:
            return in_step(
                [self.environment.rollout(example) for example in examples],
                self.sample,
                most=self._most,
                batch_size=self.batch_size,
                on_turn=lambda turn, done: self.progress.show(
                    f"{what}: call {turn} of each rollout, {done} of {len(examples)} done"
                ),
            )
        finally:
            self._greedy = before

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

    # Rows ----------------------------------------------------------------------------------------------------------

    def _generate(self, prompts: list[Any]) -> tuple[Any, ...]:
        began, generated = time.perf_counter(), self.seconds.get("generate", 0.0)
        rollouts = self.roll_out([self.train_examples[task["example"]] for task in self._tasks])
        made = row_batch.from_rollouts(rollouts)
        count = row_batch.padded_count(self._most(len(made)), self.per_micro_batch)
        with_logprobs = bool(made) and all(row.logprobs is not None for row in made)
        self._rows = row_batch.pad(made, count, self._eos, logprobs=with_logprobs)
        self._totals = self._record(rollouts, made)
        self.seconds["read"] = time.perf_counter() - began - (self.seconds["generate"] - generated)
        return (
            [list(row.prompt_ids) for row in self._rows],
            [list(row.completion_ids) for row in self._rows],
            [list(row.mask) for row in self._rows],
            [rollout.outcome.answer_text for rollout in rollouts],
            [list(row.logprobs or ()) for row in self._rows] if with_logprobs else None,
            {"rollout": rollouts},
            None,
            [],
        )

    def _record(self, rollouts: Sequence[Rollout], made: Sequence[row_batch.Row]) -> Totals:
        """Logs what was generated, on real rows only, and returns the counts over all ranks."""
        cut = sum(row.completion_ids[-1] not in self.eos_token_ids for row in made)
        failed = sum(bool(rollout.failure) for rollout in rollouts)
        prompt_tokens = sum(len(row.prompt_ids) for row in made)
        trained = sum(row.trained_tokens for row in made)
        counts = [trained, len(made), len(rollouts), cut, failed, prompt_tokens, len(self._rows)]
        tokens, calls, n, all_cut, all_failed, all_prompt, with_padding = self._summed(counts)
        self.state.num_input_tokens_seen += int(all_prompt + tokens)
        metrics = self._metrics["train"]
        metrics["num_tokens"] = [self.state.num_input_tokens_seen]
        for name, value in {
            "conversations": calls,
            "conversations/per_rollout": calls / n,
            "conversations/padding_share": 1 - calls / with_padding,
            "conversations/prompt_tokens": all_prompt,
            "conversations/generated_tokens": tokens,
            "conversations/cut_share": all_cut / max(calls, 1.0),
            "rollouts": n,
            "rollouts/failed_share": all_failed / n,
        }.items():
            metrics[name].append(value)
        return Totals(int(tokens), int(calls), int(n))

    def _generate_and_score_completions(self, inputs: list[Inputs]) -> Inputs:
        self._tasks = inputs
        out = super()._generate_and_score_completions(inputs)
        advantages = row_batch.spread(out["advantages"].tolist(), self._rows, self._totals, self.weighting)
        out["advantages"] = torch.tensor(advantages, dtype=out["advantages"].dtype, device=out["advantages"].device)
        for task in inputs:
            task.pop("rollout", None)
        del self._rows, self._tasks
        return out

    def _calculate_rewards(self, inputs: list[Inputs], *args: Any, **kwargs: Any) -> torch.Tensor:
        began = time.perf_counter()
        rewards = super()._calculate_rewards(inputs, *args, **kwargs)
        examples = [self.train_examples[task["example"]] for task in inputs]
        mine = rewards[self.accelerator.process_index * len(inputs) :][: len(inputs)].tolist()
        told = self.recorder.step(self.state.global_step + 1, [task["rollout"] for task in inputs], examples, mine)
        for name, value in told.items():
            self._metrics["train"][name].append(value)
        self._spent("score", began)
        return rewards

    # Loss ----------------------------------------------------------------------------------------------------------

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> torch.Tensor:
        """One step with its seconds by phase: reading (agents, sections), generating, scoring, learning."""
        began, self.seconds = time.perf_counter(), {}
        loss = super().training_step(model, inputs, num_items_in_batch)
        self.seconds["learn"] = time.perf_counter() - began - sum(self.seconds.values())
        for phase, seconds in self.seconds.items():
            self._metrics["train"][f"seconds/{phase}"].append(seconds)
        return loss

    def compute_loss_context_manager(self) -> ExitStack:
        """None: the inner backward passes must stay outside autocast, which the log-probability pass enters itself."""
        return ExitStack()

    def compute_loss(
        self, model: Any, inputs: Inputs, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> torch.Tensor:
        """The loss over all rows, R conversations at a time. Backward runs here for all but the last, without
        synchronising; Trainer runs it for the last, so that ranks exchange gradients once. The value is the total
        loss."""
        state = self.accelerator.gradient_state
        deepspeed = self.accelerator.distributed_type == DistributedType.DEEPSPEED
        parts = micro_batches(inputs, self.per_micro_batch)
        before = {name: len(values) for name, values in self._metrics["train"].items()}
        boundary = state.sync_gradients
        done = torch.zeros((), device=self.accelerator.device)
        try:
            for index, part in enumerate(parts[:-1]):
                self.progress.show(f"learning: {index} of {len(parts)} micro-batches done")
                state._set_sync_gradients(False)
                with nullcontext() if deepspeed else self.accelerator.no_sync(model):
                    loss = super().compute_loss(model, part)
                    self.accelerator.backward(loss, **({"scale_wrt_gas": False} if deepspeed else {}))
                done += loss.detach()
        finally:
            state._set_sync_gradients(boundary)
        last = super().compute_loss(model, parts[-1]) + done
        self._merge_metrics(before, parts)
        return last

    def _merge_metrics(self, before: dict[str, int], parts: Sequence[Inputs]) -> None:
        """One value per step for what TRL logged once per micro-batch, so that neither padding nor the way rows are
        grouped shows in it."""
        tokens = self._summed([trained_tokens(part) for part in parts])
        for name, values in self._metrics["train"].items():
            new = values[before.get(name, 0) :]
            if len(new) == len(parts):
                values[before.get(name, 0) :] = [merged(name, new, tokens)]

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,
        compute_entropy: bool = False,
        compute_aux_loss: bool = False,
        **images: Any,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        """Log-probabilities of R conversations at a time, each chunk cut to the columns it uses. Shapes (rows,
        logits_to_keep)."""
        if compute_aux_loss:
            raise NotImplementedError("a balancing loss for experts depends on how rows are grouped")
        logps, entropies = [], []
        for start in range(0, len(input_ids), self.per_micro_batch):
            chunk = slice(start, start + self.per_micro_batch)
            left, right = used_columns(attention_mask[chunk], logits_to_keep)
            keep = logits_to_keep - (attention_mask.size(1) - right)
            ids, mask = input_ids[chunk, left:right], attention_mask[chunk, left:right]
            if self.score_completions_only:
                with self.accelerator.autocast():
                    logp, entropy = completion_logprobs(model, ids, mask, keep, self.temperature)
            else:
                logp, entropy, _ = super()._get_per_token_logps_and_entropies(
                    model, ids, mask, keep, compute_entropy=compute_entropy
                )
            fill = (0, logits_to_keep - keep)
            logps.append(torch.nn.functional.pad(logp, fill))
            if compute_entropy and entropy is not None:
                entropies.append(torch.nn.functional.pad(entropy, fill))
        return torch.cat(logps), torch.cat(entropies) if entropies else None, None

    # Evaluation ----------------------------------------------------------------------------------------------------

    def evaluate(
        self, eval_dataset: Any = None, ignore_keys: list[str] | None = None, metric_key_prefix: str = "eval"
    ) -> dict[str, float]:
        """Greedy rollouts over the dev examples and their mean rewards; each counts once on any number of ranks."""
        training = self.policy.training
        rank, world = self.accelerator.process_index, self.accelerator.num_processes
        began = time.perf_counter()
        self.policy.eval()
        try:
            mine = self.dev_examples[rank::world]
            rollouts = self.roll_out(mine, greedy=True)
            local = [sum(function(r, e) for r, e in zip(rollouts, mine, strict=True)) for function in self.rewards]
            *sums, count = self._summed([*local, len(mine)])
            names = [f"{metric_key_prefix}_rewards/{name}/mean" for name in self.reward_func_names]
            metrics = {name: total / count for name, total in zip(names, sums, strict=True)}
            metrics[f"{metric_key_prefix}_seconds"] = time.perf_counter() - began
            self.log(metrics)
        finally:
            self.policy.train(training)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """Nothing: a checkpoint is for resuming; the adapter's own folder says what it is."""
