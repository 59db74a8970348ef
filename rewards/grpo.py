"""The three reward terms of the paper's fine-tuning (Appendix D), each a pure function of a rollout and its example.

The trainer weighs them 1, 0.05 and 0.05. The two auxiliary terms are flags that every agent sets: `valid_interaction`
(every action followed the agent's protocol) and `memory_complete` (every memory reply was finished, closed, not empty).
"""

from __future__ import annotations

from ..data.rollout import Example, Rollout
from .score import score_answer


def answer_score(rollout: Rollout, example: Example, answer_format: str = "the answer is") -> float:
    """The paper's answer score in [0, 1]; a rollout that failed has an empty answer and scores 0."""
    if rollout.failure:
        return 0.0
    return score_answer(rollout.outcome.answer_text, answer_format, example.reference).score


def valid_interaction(rollout: Rollout, example: Example) -> float:
    """1 if every action of the rollout followed the agent's protocol, else 0."""
    return _flag(rollout, "valid_interaction")


def memory_complete(rollout: Rollout, example: Example) -> float:
    """1 if every memory update of the rollout was completed, else 0."""
    return _flag(rollout, "memory_complete")


def _flag(rollout: Rollout, name: str) -> float:
    if name not in rollout.outcome.flags:
        raise KeyError(f"the agent set no flag {name!r}; it has {sorted(rollout.outcome.flags)}")
    return float(rollout.outcome.flags[name])
