"""Alarms: one line when something begins to go wrong, none while it goes on, none for a healthy run."""

from __future__ import annotations

import math
from typing import Any

import pytest
from treeagent.train.alarms import new_alarms
from treeagent.train.progress import step_lines, step_record


def step(number: int, **values: Any) -> dict[str, Any]:
    healthy = {
        "step": number, "loss": 0.1, "grad_norm": 0.2, "entropy": 0.5, "zero_variance_share": 0.4, "cut_share": 0.1,
        "failed_share": 0.0, "logprob_difference": None,
    }  # fmt: skip
    return healthy | values


HEALTHY = [step(n) for n in range(1, 6)]


def test_a_healthy_run_raises_none() -> None:
    assert [new_alarms(HEALTHY[:n]) for n in range(len(HEALTHY) + 1)] == [[]] * 6


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"loss": math.nan}, "step 6: loss or gradient is not a number"),
        ({"grad_norm": math.inf}, "optimizer.learning_rate"),
        ({"entropy": 0.09}, "entropy fell to 0.090 from 0.500"),
        ({"zero_variance_share": 1.0}, "all rollouts had the same reward"),
        ({"cut_share": 1.0}, "100% of the replies were cut"),
        ({"failed_share": 0.95}, "95% of the rollouts ended in an error"),
        ({"logprob_difference": 0.3}, "sampler and trainer differ by 0.300"),
    ],
)
def test_what_goes_wrong_is_told_in_one_line_and_once(values: dict[str, Any], words: str) -> None:
    (line,) = new_alarms([*HEALTHY, step(6, **values)])
    assert words in line
    assert "\n" not in line
    assert line.startswith("warning: ")
    assert new_alarms([*HEALTHY, step(6, **values), step(7, **values)]) == []
    assert len(new_alarms([*HEALTHY, step(6, **values), step(7), step(8, **values)])) == 1, "it began again"


def test_the_first_step_can_raise_an_alarm() -> None:
    assert "same reward" in new_alarms([step(1, zero_variance_share=1.0)])[0]


def test_a_step_that_learned_from_no_reply_has_no_entropy_to_collapse() -> None:
    (line,) = new_alarms([*HEALTHY, step(6, zero_variance_share=1.0, entropy=0.0)])
    assert "same reward" in line
    late = [step(n, zero_variance_share=1.0, entropy=0.0) for n in range(1, 6)]
    assert new_alarms([*late, step(6, entropy=0.5)]) == []


def test_entropy_may_be_low_from_the_start() -> None:
    assert new_alarms([step(n, entropy=0.01) for n in range(1, 6)]) == []


def test_a_step_is_shown_in_two_lines_with_all_that_was_logged_and_a_dash_for_the_rest() -> None:
    logs = {
        "reward": 0.55, "rewards/answer_score/mean": 0.5, "rewards/answer_score/std": 9.0, "score/find": 0.5,
        "frac_reward_zero_std": 0.25, "group_std": 0.125, "grad_norm": 0.0123, "conversations": 24.0,
        "conversations/per_rollout": 3.0, "conversations/prompt_tokens": 26522.0,
        "conversations/generated_tokens": 51.0, "tokens/memory/generated": 40.0, "tokens/answer/generated": 11.0,
        "tokens/memory/prompt": 9.0, "conversations/cut_share": 0.08, "calls/forced_close_share": 0.01,
        "memory_tokens/mean": 5.2, "entropy": 0.4, "kl": 0.002, "seconds/generate": 61.0, "seconds/sync": 2.0,
        "sampling/sampling_logp_difference/mean": 0.0105, "clip_ratio/region_mean": 0.003,
    }  # fmt: skip
    record = step_record(4, logs)
    assert record["rewards"] == {"answer_score": 0.5}
    assert record["score_by_task"] == {"find": 0.5}
    first, second = step_lines(record, 30)
    assert first == (
        "step 4/30: reward 0.550 (answer_score 0.500), within groups ±0.125, zero-variance groups 25%, "
        "gradient norm 1.23e-02, 63 s (generate 61, sync 2)"
    )
    assert second == (
        "  24 conversations, 3.0 a rollout, tokens read 26,522, generated 51 (memory 40, answer 11), cut 8%, "
        "closed by force 1%, memory 5 tokens, entropy 0.400, clipped 0.3%, KL 0.0020, sampler off by 0.0105"
    )
    assert "reward –" in step_lines(step_record(1, {}), 2)[0]
