"""Signs that a training run goes wrong, each told in one line when it begins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

Step = Mapping[str, Any]

COLLAPSED = 0.2
"""Entropy below this share of that of the first steps is called collapsing."""
FIRST_STEPS = 3
MOSTLY = 0.9
"""From this share of replies or rollouts on, nearly all of them."""
APART = 0.1
"""Mean difference of log-probabilities, in nats a token, from which on sampler and trainer disagree."""


def new_alarms(steps: Sequence[Step]) -> list[str]:
    """Lines for what is wrong with the last of these steps and was not wrong with the one before it."""
    before = set(alarms(steps[:-1])) if len(steps) > 1 else set[str]()
    return [f"warning: {line}" for name, line in alarms(steps).items() if name not in before]


def alarms(steps: Sequence[Step]) -> dict[str, str]:
    """What is wrong with the last of these steps, by name."""
    if not steps:
        return {}
    last, at = steps[-1], f"step {steps[-1]['step']}"
    checks = {
        "nan": (not_a_number(last), f"{at}: loss or gradient is not a number; lower optimizer.learning_rate"),
        "entropy": (
            _collapses(steps),
            (
                f"{at}: entropy fell to {_number(last, 'entropy'):.3f} from {_first_entropy(steps):.3f} at the start: "
                "the model repeats itself; lower optimizer.learning_rate or set loss.beta"
            ),
        ),
        "zero_variance": (
            _number(last, "zero_variance_share") == 1,
            (
                f"{at}: in every group all rollouts had the same reward, so nothing was learned; "
                "raise rollouts_per_prompt, or train on examples that are solved sometimes"
            ),
        ),
        "cut": (
            _number(last, "cut_share") >= MOSTLY,
            (
                f"{at}: {_number(last, 'cut_share'):.0%} of the replies were cut at their token limit; "
                "raise agent_options.max_tokens, or start from a model that ends its replies"
            ),
        ),
        "failed": (
            _number(last, "failed_share") >= MOSTLY,
            (
                f"{at}: {_number(last, 'failed_share'):.0%} of the rollouts ended in an error "
                "or beyond the request limit; lower budget"
            ),
        ),
        "apart": (
            _number(last, "logprob_difference") > APART,
            (
                f"{at}: sampler and trainer differ by {_number(last, 'logprob_difference'):.3f} nats a token; "
                "their weights or number formats are not the same"
            ),
        ),
    }
    return {name: line for name, (wrong, line) in checks.items() if wrong}


def not_a_number(step: Step) -> bool:
    """Whether loss or gradient norm of a step is NaN or infinite."""
    values = [step.get("loss"), step.get("grad_norm")]
    return any(value is not None and not math.isfinite(value) for value in values)


def _collapses(steps: Sequence[Step]) -> bool:
    entropies = _entropies(steps)
    if len(entropies) <= FIRST_STEPS or not _entropies(steps[-1:]):
        return False
    return entropies[-1] < COLLAPSED * _first_entropy(steps)


def _first_entropy(steps: Sequence[Step]) -> float:
    first = _entropies(steps)[:FIRST_STEPS]
    return fmean(first) if first else 0.0


def _entropies(steps: Sequence[Step]) -> list[float]:
    """Of the steps that learned from some reply; the others need not have gone through the model."""
    return [
        step["entropy"]
        for step in steps
        if step.get("entropy") is not None and _number(step, "zero_variance_share") != 1
    ]


def _number(step: Step, name: str) -> float:
    """The value, or NaN, which compares false with anything."""
    value = step.get(name)
    return math.nan if value is None else float(value)
