"""The reward terms of fine-tuning."""

from __future__ import annotations

import pytest
from treeagent.data.rollout import Example, Outcome, Reference, Rollout
from treeagent.rewards.grpo import answer_score, memory_complete, valid_interaction

EXAMPLE = Example("{}", "json", "How many?", Reference(("3",), "number"))


def rollout(answer: str, failure: str = "", **flags: bool) -> Rollout:
    return Rollout("key", (), Outcome(answer, "", None, flags), 1, failure)


def test_the_answer_term_is_the_answer_score() -> None:
    assert answer_score(rollout("the answer is 3."), EXAMPLE) == 1.0
    assert answer_score(rollout(r"\boxed{3}"), EXAMPLE, "boxed") == 1.0
    assert answer_score(rollout("the answer is 4."), EXAMPLE) == 0.0


def test_a_failed_rollout_has_no_answer() -> None:
    assert answer_score(rollout("the answer is 3.", failure="error"), EXAMPLE) == 0.0


def test_the_auxiliary_terms_are_the_flags_of_the_agent() -> None:
    done = rollout("", valid_interaction=True, memory_complete=False)
    assert (valid_interaction(done, EXAMPLE), memory_complete(done, EXAMPLE)) == (1.0, 0.0)


def test_a_missing_flag_is_an_error() -> None:
    with pytest.raises(KeyError, match="memory_complete"):
        memory_complete(rollout("", valid_interaction=True), EXAMPLE)
