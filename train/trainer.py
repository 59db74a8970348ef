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
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from typing import Any

import torch
from accelerate.utils import DistributedType
from datasets import Dataset

from ..data.rollout import Example, Rollout
from ..errors import ConfigError
from . import rows as row_batch
from .batches import Inputs, completion_logprobs, merged, micro_batches, trained_tokens, used_columns
from .recording import Recorder
from .rows import Totals, Weighting
from .sampling import SamplingTrainer

RewardFunction = Callable[[Rollout, Example], float]


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


class ConversationTrainer(SamplingTrainer):
    """GRPOTrainer over rollouts of many conversations. `per_micro_batch` (R) bounds the memory of a step.

    `drop_zero_advantage`: groups in which every rollout has the same reward have no gradient; their calls count in the
    step's number of tokens but do not go through the model again. It is left alone where they would have one (KL term,
    entropy bonus). Entropy and clip ratios are then means over the calls that were learned from.
    """

    def __init__(
        self,
        *,
        examples: Sequence[Example],
        rewards: Sequence[RewardFunction],
        per_micro_batch: int,
        dev_examples: Sequence[Example] = (),
        weighting: Weighting = "token",
        drop_zero_advantage: bool = True,
        recorder: Recorder | None = None,
        **sampling: Any,
    ) -> None:
        self.train_examples, self.dev_examples = list(examples), list(dev_examples)
        self.rewards = list(rewards)
        self.per_micro_batch = per_micro_batch
        self.weighting: Weighting = weighting
        self.recorder = recorder or Recorder()
        reward_funcs: list[Any] = [_reward_of_batch(function, self.train_examples) for function in rewards]
        super().__init__(
            reward_funcs=reward_funcs,
            train_dataset=as_dataset(self.train_examples),
            eval_dataset=as_dataset(self.dev_examples) if self.dev_examples else None,
            **sampling,
        )
        if self.mask_truncated_completions and weighting != "token":
            raise ConfigError("mask_truncated_completions needs weighting token: cut replies count in the others")
        summed = self.multi_objective_aggregation == "sum_then_normalize"
        self.drops = drop_zero_advantage and summed and not self.beta and not self._entropy_bonus_enabled
        # TRL's fused head skips the prompt's positions on a GPU but scores all of them on a CPU.
        self.score_completions_only = self.accelerator.device.type == "cpu"

    # Rows ----------------------------------------------------------------------------------------------------------

    def _generate(self, prompts: list[Any]) -> tuple[Any, ...]:
        began = time.perf_counter()
        rollouts = self.roll_out([self.train_examples[task["example"]] for task in self._tasks])
        self.seconds["read"] = time.perf_counter() - began - sum(self.seconds.values())
        answers = [rollout.outcome.answer_text for rollout in rollouts]
        self._rated = self._rate(prompts, answers, rollouts)
        made = row_batch.from_rollouts(rollouts)
        flat = self._flat_groups(self._rated)
        kept = [row for row in made if not flat[row.rollout]]
        count = row_batch.padded_count(self._most(len(kept)), self.per_micro_batch)
        # ranks must agree, also one that has no row; without vLLM nothing tells log-probabilities
        self._rows = row_batch.pad(kept, count, self._eos, logprobs=self.use_vllm)
        self._totals = self._record(rollouts, made, kept)
        return (
            [list(row.prompt_ids) for row in self._rows],
            [list(row.completion_ids) for row in self._rows],
            [list(row.mask) for row in self._rows],
            answers,
            [list(row.logprobs or ()) for row in self._rows] if self.use_vllm else None,
            {},
            None,
            [],
        )

    def _rate(self, prompts: list[Any], answers: list[str], rollouts: Sequence[Rollout]) -> torch.Tensor:
        """The reward's terms of all ranks' rollouts, (rollouts, terms), and what the recorder makes of this rank's."""
        began, first = time.perf_counter(), self.accelerator.process_index * len(rollouts)
        tasks: list[Inputs] = [{**task, "rollout": made} for task, made in zip(self._tasks, rollouts, strict=True)]
        rewards = super()._calculate_rewards(tasks, prompts, answers, [])
        examples = [self.train_examples[task["example"]] for task in tasks]
        mine = rewards[first : first + len(rollouts)].tolist()
        told = self.recorder.step(self.state.global_step + 1, rollouts, examples, mine)
        for name, value in told.items():
            self._metrics["train"][name].append(value)
        self._spent("score", began)
        return rewards

    def _calculate_rewards(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """They were known when the rollouts became rows."""
        return self._rated

    def _flat_groups(self, rewards: torch.Tensor) -> list[bool]:
        """Of each rollout of this rank: whether it is left out because its whole group has the same reward."""
        count = len(self._tasks)
        if not self.drops:
            return [False] * count
        size = int(self.num_generations or 1)
        groups = (rewards * self.reward_weights.to(rewards.device)).sum(dim=1).view(-1, size)
        flat = (groups == groups[:, :1]).all(dim=1).repeat_interleave(size)
        return flat[self.accelerator.process_index * count :][:count].tolist()

    def _record(
        self, rollouts: Sequence[Rollout], made: Sequence[row_batch.Row], kept: Sequence[row_batch.Row]
    ) -> Totals:
        """Logs what was generated, on real rows only, and returns the counts over all ranks, of all that was made."""
        cut = sum(row.completion_ids[-1] not in self.eos_token_ids for row in made)
        failed = sum(bool(rollout.failure) for rollout in rollouts)
        prompt_tokens = sum(len(row.prompt_ids) for row in made)
        trained = sum(row.trained_tokens for row in made)
        counts = [trained, len(made), len(rollouts), cut, failed, prompt_tokens, len(self._rows), len(kept)]
        tokens, calls, n, all_cut, all_failed, all_prompt, with_padding, all_kept = self._summed(counts)
        self.state.num_input_tokens_seen += int(all_prompt + tokens)
        metrics = self._metrics["train"]
        metrics["num_tokens"] = [self.state.num_input_tokens_seen]
        for name, value in {
            "conversations": calls,
            "conversations/per_rollout": calls / n,
            "conversations/padding_share": 1 - all_kept / with_padding,
            "conversations/dropped_share": 1 - all_kept / max(calls, 1.0),
            "conversations/prompt_tokens": all_prompt,
            "conversations/generated_tokens": tokens,
            "conversations/cut_share": all_cut / max(calls, 1.0),
            "rollouts": n,
            "rollouts/failed_share": all_failed / n,
        }.items():
            metrics[name].append(value)
        counted = [row.trained_tokens for row in made if not self._is_masked(row)]
        self._tokens = self._summed([sum(counted)])[0]
        return Totals(int(tokens), int(calls), int(n))

    def _is_masked(self, row: row_batch.Row) -> bool:
        """As TRL decides it, which takes a padding token at the end of a reply for an end."""
        ends = (*self.eos_token_ids, self._tokenizer.pad_token_id)
        return self.mask_truncated_completions and row.completion_ids[-1] not in ends

    def _generate_and_score_completions(self, inputs: list[Inputs]) -> Inputs:
        self._tasks = inputs
        out = super()._generate_and_score_completions(inputs)
        advantages = row_batch.spread(out["advantages"].tolist(), self._rows, self._totals, self.weighting)
        out["advantages"] = torch.tensor(advantages, dtype=out["advantages"].dtype, device=out["advantages"].device)
        # TRL counts the tokens of the rows that it was given; the denominator is of all that were generated
        out["num_items_in_batch"] = torch.full_like(out["num_items_in_batch"], int(self._tokens))
        del self._rows, self._tasks, self._rated
        return out

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
