"""The whole objective, on one process and with parameters cut into shards, against the same written out in torch."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
from objective import Terms
from step_harness import check_steps, trained
from train_harness import Questions, build_trainer, example, flat, half_flat, on_two_processes

TOLERANCE = 2e-5
needs_deepspeed = pytest.mark.skipif(
    importlib.util.find_spec("deepspeed") is None, reason="deepspeed is not installed: pip install deepspeed==0.19.8"
)


def assert_right(facts: dict[str, Any]) -> None:
    assert facts["errors"], "no optimiser step was taken"
    assert min(facts["norms"]) > 0, "a step had nothing to learn"
    assert max(facts["errors"]) <= TOLERANCE


@pytest.mark.slow
@needs_deepspeed
@pytest.mark.parametrize("stage", [2, 3])
def test_sharded_processes_with_ragged_counts_take_the_plain_step(tiny_model: Path, tmp_path: Path, stage: int) -> None:
    facts = on_two_processes("step_harness.py", tiny_model, tmp_path, stage=stage)
    assert facts["distributed"] == "DistributedType.DEEPSPEED"
    assert any(a != b for a, b in facts["calls"]), "the ranks were meant to differ in their number of conversations"
    assert_right(facts)


@pytest.mark.slow
def test_a_second_step_on_the_same_rollouts_is_clipped_against_the_first(tiny_model: Path, tmp_path: Path) -> None:
    facts = check_steps(
        tiny_model,
        tmp_path,
        terms=Terms(clip=0.02),
        trl_epsilon=0.02,
        trl_num_iterations=2,
        trl_max_steps=4,
        trl_per_device_train_batch_size=8,
    )
    assert_right(facts)
    first, second, third, fourth = facts["clipped"]
    assert (first, third) == (0, 0), "the first step on fresh rollouts has the ratio 1"
    assert min(second, fourth) > 10


@pytest.mark.slow
def test_the_divergence_from_the_base_model_enters_the_loss(tiny_model: Path, tmp_path: Path) -> None:
    facts = check_steps(tiny_model, tmp_path, terms=Terms(beta=1.0), trl_beta=1.0, trl_max_steps=3)
    assert_right(facts)
    assert facts["logs"][0]["kl"] == 0
    assert facts["logs"][1]["kl"] > 1e-5


@pytest.mark.slow
def test_cut_replies_weigh_nothing_where_asked(tiny_model: Path, tmp_path: Path) -> None:
    """TRL takes a padding token (1) at the end of a reply for an end as well."""
    facts = check_steps(
        tiny_model,
        tmp_path,
        terms=Terms(masked_ends=(0, 1)),
        environment=Questions(max_tokens=40),
        trl_mask_truncated_completions=True,
    )
    assert_right(facts)
    assert all(0 < log["conversations/cut_share"] < 1 for log in facts["logs"])


@pytest.mark.slow
@pytest.mark.parametrize("weighting", ["token", "rollout"])
def test_groups_without_a_difference_can_be_left_out(tiny_model: Path, tmp_path: Path, weighting: str) -> None:
    """The same step, bit by bit where sums are taken in the same order, with fewer rows."""
    options: dict[str, Any] = {
        "rewards": [half_flat],
        "weighting": weighting,
        "trl_per_device_train_batch_size": 16,
        "trl_max_steps": 1,
    }
    steps = [weights_after(tiny_model, tmp_path, drop_zero_advantage=drop, **options) for drop in (True, False)]
    (dropped, log), (whole, _) = steps
    assert 0 < log["conversations/dropped_share"] < 1
    assert all(torch.allclose(dropped[name], whole[name], rtol=1e-5, atol=1e-8) for name in whole)
    assert any((value != 0).any() for name, value in whole.items() if "lora_B" in name), "nothing was learned"


def weights_after(model: Path, out: Path, **options: Any) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    settings: dict[str, Any] = {"trl_optim": "sgd", "trl_learning_rate": 1.0, **options}
    trainer = build_trainer(model, out, Questions(), [example(i) for i in range(12)], **settings)
    trainer.train()
    return trained(trainer), trainer.state.log_history[0]


def test_a_step_without_any_difference_changes_nothing(tiny_model: Path, tmp_path: Path) -> None:
    after, log = weights_after(tiny_model, tmp_path, rewards=[flat], trl_max_steps=1)
    assert not any(value.any() for name, value in after.items() if "lora_B" in name)
    assert (log["conversations/dropped_share"], log["loss"], log["grad_norm"]) == (1, 0, 0)
    assert log["entropy"] is None


@pytest.mark.slow
def test_processes_that_drop_unequally_take_the_plain_step(tiny_model: Path, tmp_path: Path) -> None:
    facts = on_two_processes("step_harness.py", tiny_model, tmp_path, rewards=["half_flat"], trl_max_steps=3)
    assert_right(facts)
    assert all(0 < log["conversations/dropped_share"] < 1 for log in facts["logs"])


@pytest.mark.slow
def test_processes_with_samplers_of_their_own_take_the_corrected_step(tiny_model: Path, tmp_path: Path) -> None:
    facts = on_two_processes("step_harness.py", tiny_model, tmp_path, stub="token_truncate")
    assert_right(facts)
    assert facts["syncs"] == len(facts["errors"])


@pytest.mark.slow
@needs_deepspeed
def test_weights_that_are_cut_up_reach_every_sampler_whole(tiny_model: Path, tmp_path: Path) -> None:
    """The checksums are compared on the way."""
    facts = on_two_processes("step_harness.py", tiny_model, tmp_path, stage=3, stub="token_truncate")
    assert_right(facts)
    assert facts["syncs"] == len(facts["errors"])
