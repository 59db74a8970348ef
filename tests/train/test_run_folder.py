"""A training run's folder: one run's, one writer's, and resumed from whole checkpoints only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from treeagent.errors import RunError
from treeagent.infer.store import append_line
from treeagent.train.journal import best_line
from treeagent.train.run_folder import RunFolder, read_lines
from treeagent.train.summary import not_better, nothing_learned, summarise, summary_lines


def checkpoint(folder: RunFolder, step: int, *, state: bool = True, ranks: int = 1) -> Path:
    path = folder.checkpoints / f"checkpoint-{step}"
    path.mkdir(parents=True)
    for rank in range(ranks):
        (path / ("rng_state.pth" if ranks == 1 else f"rng_state_{rank}.pth")).touch()
    if state:
        (path / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    return path


def claimed(path: Path, identity: dict[str, object]) -> RunFolder:
    folder = RunFolder(path)
    folder.claim(identity, "recipe")
    folder.release()
    return folder


def test_another_recipe_is_refused_and_its_keys_are_named(tmp_path: Path) -> None:
    claimed(tmp_path, {"seed": 1, "loss": {"beta": 0.0}})
    claimed(tmp_path, {"seed": 1, "loss": {"beta": 0.0}})
    with pytest.raises(RunError, match=r"these differ: loss\.beta, seed"):
        RunFolder(tmp_path).claim({"seed": 2, "loss": {"beta": 0.1}}, "recipe")


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(RunError, match=r"thesis\.tex"):
        RunFolder(tmp_path).claim({}, "recipe")
    assert not (tmp_path / "run.json").exists()


def test_a_second_writer_is_kept_out(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.claim({}, "recipe")
    with pytest.raises(RunError, match="in use"):
        RunFolder(tmp_path).claim({}, "recipe")
    folder.release()
    claimed(tmp_path, {})


def test_the_newest_whole_checkpoint_counts(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.last_checkpoint(1) is None
    whole = checkpoint(folder, 10)
    checkpoint(folder, 5)
    checkpoint(folder, 15, state=False)
    (checkpoint(folder, 20) / "trainer_state.json").write_text('{"global_st')
    assert folder.last_checkpoint(1) == whole
    assert folder.last_checkpoint(2) is None
    two = checkpoint(folder, 4, ranks=2)
    assert folder.last_checkpoint(2) == two


def test_a_checkpoint_of_deepspeed_counts_only_with_the_states_of_all_processes(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    path = checkpoint(folder, 3, ranks=2)
    (path / "global_step3").mkdir()
    (path / "global_step3" / "zero_pp_rank_0_mp_rank_00_optim_states.pt").touch()
    assert folder.last_checkpoint(2) is None
    (path / "global_step3" / "zero_pp_rank_1_mp_rank_00_optim_states.pt").touch()
    assert folder.last_checkpoint(2) == path


def test_settings_that_do_not_identify_a_run_may_change_and_are_kept(tmp_path: Path) -> None:
    for recipe in ("conversations_per_micro_batch: 4", "conversations_per_micro_batch: 1"):
        folder = RunFolder(tmp_path)
        folder.claim({"seed": 1}, recipe)
        folder.release()
    assert (tmp_path / "config.yaml").read_text() == "conversations_per_micro_batch: 1"


def dev(*scores: float) -> list[dict[str, Any]]:
    return [{"step": 5 * i, "rewards": {"answer_score": score}} for i, score in enumerate(scores)]


def test_the_best_step_is_the_earliest_checkpoint_with_the_highest_score() -> None:
    assert best_line(dev(0.9, 0.2, 0.4, 0.4))["step"] == 10
    assert best_line(dev(0.9))["step"] == 0
    assert not_better(dev(0.4, 0.2, 0.4), 10)
    assert not not_better(dev(0.3, 0.2, 0.4), 10)
    assert not not_better(dev(), None)


def test_lines_of_steps_that_are_made_again_are_dropped(tmp_path: Path) -> None:
    folder = claimed(tmp_path, {})
    for step in range(1, 5):
        append_line(folder.steps, {"step": step})
    with folder.steps.open("a") as file:
        file.write('{"step": 5, "rew')
    folder.drop_lines_after(2)
    assert read_lines(folder.steps) == [{"step": 1}, {"step": 2}]


def step(norm: float, share: float) -> dict[str, object]:
    return {"reward": 0.5, "grad_norm": norm, "zero_variance_share": share, "seconds": {"learn": 2.0, "generate": 1.0}}


@pytest.mark.parametrize(
    ("steps", "change", "why"),
    [
        ([step(0.1, 0.5), step(0.0, 1.0)], 0.2, ""),
        ([step(0.0, 1.0), step(0.0, 1.0)], 0.0, "same reward"),
        ([step(0.0, 0.5), step(0.0, 0.0)], 0.0, "gradient was 0"),
        ([step(0.1, 0.5)], 0.0, "did not change"),
    ],
)
def test_a_run_that_could_learn_nothing_says_why(
    tmp_path: Path, steps: list[dict[str, object]], change: float, why: str
) -> None:
    assert why in nothing_learned(steps, change)
    summary = summarise(RunFolder(tmp_path), steps, [], change, None)
    lines = "\n".join(summary_lines(summary))
    assert ("Nothing could be learned" in lines) == bool(why)
    assert summary["seconds"] == 3.0 * len(steps)
    assert str(tmp_path / "adapter") in lines
