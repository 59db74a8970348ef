"""Tensors of a step cut into micro-batches, and one value per step out of many per micro-batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

Inputs = dict[str, Any]


def micro_batches(inputs: Inputs, size: int) -> list[Inputs]:
    """The rows in chunks of `size`, longest first, so that a chunk's rows are of like length. Scalars go to each."""
    lengths = inputs["prompt_mask"].sum(dim=1) + inputs["completion_mask"].sum(dim=1)
    order = lengths.argsort(descending=True, stable=True)
    return [
        {name: value[chosen] if torch.is_tensor(value) and value.ndim else value for name, value in inputs.items()}
        for chosen in order.split(size)
    ]


def trained_tokens(inputs: Inputs) -> float:
    """Tokens that enter the loss."""
    return float((inputs["completion_mask"] * inputs["tool_mask"]).sum())


def used_columns(mask: torch.Tensor, keep: int) -> tuple[int, int]:
    """First and past-the-last column that some row uses, with at least one column on either side of the prompt's end.

    `mask` has shape (rows, prompt + completion): prompts end, completions begin `keep` columns before its end.
    """
    border = mask.size(1) - keep
    used = mask.any(dim=0).nonzero().flatten()
    left = int(used[0]) if len(used) else border - 1
    right = int(used[-1]) + 1 if len(used) else border + 1
    return min(left, border - 1), max(right, border + 1)


def completion_logprobs(
    model: Any, ids: torch.Tensor, mask: torch.Tensor, keep: int, temperature: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities of the last `keep` tokens of each row and the entropies where they were chosen, (rows, keep).

    Only these positions go through the language-model head; the prompt's would be most of the work.
    """
    logits = model(input_ids=ids, attention_mask=mask, use_cache=False, logits_to_keep=keep + 1).logits[:, :-1]
    logps = (logits.float() / temperature).log_softmax(-1)
    chosen = logps.gather(-1, ids[:, -keep:, None]).squeeze(-1)
    with torch.no_grad():
        entropy = -(logps.exp() * logps).sum(-1)
    return chosen, entropy


def merged(name: str, values: Sequence[float], tokens: Sequence[float]) -> float:
    """One value for a metric that was logged once per micro-batch of so many tokens: least, greatest, or mean by
    tokens.

    A micro-batch of padding has no tokens and does not count, nor does a value that is not a number.
    """
    real = [(value, weight) for value, weight in zip(values, tokens, strict=True) if weight and not math.isnan(value)]
    if name.endswith("_min"):
        return min((value for value, _ in real), default=math.nan)
    if name.endswith("_max"):
        return max((value for value, _ in real), default=math.nan)
    if not real:
        return math.nan
    return sum(value * weight for value, weight in real) / sum(weight for _, weight in real)
