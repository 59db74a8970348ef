"""The gradient that reaches the optimiser is that of a plain policy gradient over single conversations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from train_harness import check_gradient, on_two_processes

TOLERANCE = 2e-5


def assert_right(facts: dict[str, Any]) -> None:
    assert facts["errors"], "no optimiser step was taken"
    assert max(facts["errors"]) <= TOLERANCE
    assert facts["items"] == facts["tokens"]


@pytest.mark.parametrize("per_micro_batch", [1, 3, 64])
def test_the_gradient_is_the_plain_one_for_any_micro_batch(
    tiny_model: Path, tmp_path: Path, per_micro_batch: int
) -> None:
    facts = check_gradient(
        tiny_model, tmp_path, per_micro_batch=per_micro_batch, trl_max_steps=2, trl_per_device_train_batch_size=8
    )
    assert_right(facts)
    for (rows,), (calls,) in zip(facts["rows"], facts["calls"], strict=True):
        assert rows == -(-calls // per_micro_batch) * per_micro_batch


@pytest.mark.parametrize("weighting", ["call", "rollout"])
def test_calls_or_rollouts_weigh_alike_where_asked(tiny_model: Path, tmp_path: Path, weighting: str) -> None:
    facts = check_gradient(
        tiny_model, tmp_path, per_micro_batch=3, weighting=weighting, trl_per_device_train_batch_size=8
    )
    assert_right(facts)


@pytest.mark.slow
def test_two_processes_with_ragged_counts_give_the_plain_gradient(tiny_model: Path, tmp_path: Path) -> None:
    facts = on_two_processes("train_harness.py", tiny_model, tmp_path, per_micro_batch=3, trl_max_steps=3)
    assert_right(facts)
    assert any(a != b for a, b in facts["calls"]), "the ranks were meant to differ in their number of conversations"
    assert all(a == b for a, b in facts["rows"])
    first, second = facts["sampled"]
    assert first == second, "every rank takes part in every sampler call"
    assert facts["exchanged"] == len(facts["errors"]), "gradients are exchanged once a step (they fit in one bucket)"


@pytest.mark.slow
def test_a_group_split_over_two_processes_gives_the_plain_gradient(tiny_model: Path, tmp_path: Path) -> None:
    facts = on_two_processes(
        "train_harness.py", tiny_model, tmp_path, per_micro_batch=2, trl_max_steps=2, trl_per_device_train_batch_size=2
    )
    assert_right(facts)
    assert any(a != b for a, b in facts["calls"])
