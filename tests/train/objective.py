"""GRPO's whole objective in plain torch, over one un-padded conversation at a time: clipping against the policy that
sampled, a KL term to the base model, cut replies without weight, and correction for a sampler that is not the trainer.

It shares no code with the trainer and holds a model of its own, so it also judges trainers whose parameters are cut
into shards: there the gradient is the difference that a step of plain gradient descent makes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from train_harness import logprobs
from treeagent.data.rollout import Reply, Rollout

Values = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class Terms:
    """What the objective has beyond the policy gradient. `sampling` corrects for the sampler's own log-probabilities,
    in one of TRL's modes, between `least` and `most`; `masked_ends`: end tokens, if replies without one weigh
    nothing."""

    clip: float = 0.2
    beta: float = 0.0
    sampling: str = ""
    least: float | None = None
    most: float = 3.0
    masked_ends: tuple[int, ...] = ()


class Reference:
    """The objective of a step and its gradient, by a LoRA model of the harness's shape."""

    def __init__(self, model: Path, terms: Terms = Terms()) -> None:
        from peft import get_peft_model
        from train_harness import lora
        from transformers import AutoModelForCausalLM

        plain = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
        self.model: Any = get_peft_model(plain, lora()).eval()
        self.terms = terms

    def trained(self) -> dict[str, torch.nn.Parameter]:
        """The adapter's parameters by name."""
        return {name: p for name, p in self.model.named_parameters() if p.requires_grad}

    def set(self, values: Values) -> None:
        """Takes over the parameters of a trainer."""
        with torch.no_grad():
            for name, p in self.trained().items():
                p.copy_(values[name])

    def gradient(
        self, rollouts: Sequence[Rollout], advantages: Sequence[float], sampled_with: Values, now: Values
    ) -> dict[str, torch.Tensor]:
        """Gradient at the parameters `now` of rollouts that were sampled with other ones."""
        pairs = [
            (call.reply, advantage)
            for rollout, advantage in zip(rollouts, advantages, strict=True)
            for call in rollout.calls
            if call.reply.completion_ids
        ]
        self.set(sampled_with)
        old = [self._said(reply) for reply, _ in pairs]
        base = [self._said(reply, base=True) for reply, _ in pairs]
        self.set(now)
        masks = [self._mask(reply) for reply, _ in pairs]
        total = torch.zeros(())
        self.clipped = 0
        for (reply, advantage), mask, before, start in zip(pairs, masks, old, base, strict=True):
            new = logprobs(self.model, reply.prompt_ids, reply.completion_ids)
            total = total + (self._loss(new, before, start, reply, advantage, mask) * mask).sum()
        loss = total / sum(mask.sum() for mask in masks)
        trained = self.trained()
        return dict(zip(trained, torch.autograd.grad(loss, list(trained.values())), strict=True))

    def _said(self, reply: Reply, *, base: bool = False) -> torch.Tensor:
        without: AbstractContextManager[Any] = self.model.disable_adapter() if base else nullcontext()
        with torch.no_grad(), without:
            return logprobs(self.model, reply.prompt_ids, reply.completion_ids)

    def _mask(self, reply: Reply) -> torch.Tensor:
        cut = bool(self.terms.masked_ends) and reply.completion_ids[-1] not in self.terms.masked_ends
        start, end = reply.inserted
        return torch.tensor([float(not cut and not start <= i < end) for i in range(len(reply.completion_ids))])

    def _loss(
        self,
        new: torch.Tensor,
        old: torch.Tensor,
        base: torch.Tensor,
        reply: Reply,
        advantage: float,
        mask: torch.Tensor,
    ) -> torch.Tensor:
        ratio, clip = (new - old).exp(), self.terms.clip
        bounded = ratio.clamp(1 - clip, 1 + clip)
        self.clipped += int((((bounded - ratio) * advantage < 0) * mask).sum())
        objective = torch.minimum(ratio * advantage, bounded * advantage)
        if self.terms.sampling:
            objective = objective * self._correction(old, reply, mask)
        difference = base - new
        divergence = ratio * (difference.exp() - difference - 1)  # the ratio makes its gradient that of the reverse KL
        return -objective + self.terms.beta * divergence

    def _correction(self, old: torch.Tensor, reply: Reply, mask: torch.Tensor) -> torch.Tensor:
        """How much likelier the trainer finds what was sampled; 1 where the sampler could not tell."""
        assert reply.logprobs is not None
        difference = (old - torch.tensor(reply.logprobs)).nan_to_num(0.0) * mask
        level, _, what = self.terms.sampling.partition("_")
        weights = (difference.sum().expand_as(difference) if level == "sequence" else difference).exp()
        least, most = self.terms.least, self.terms.most
        if what == "truncate":
            return weights.clamp(min=least, max=most)
        outside = (weights > most) | (weights < (-math.inf if least is None else least))
        return torch.where(outside, torch.zeros_like(weights), weights)
