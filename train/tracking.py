"""What a tracker is told besides the trainer's own values: rollouts turn by turn, and the best step so far.

`Tracker` tracks nothing. `Wandb` writes into the run that the trainer has begun; with WANDB_MODE=offline it stays in
files of the run folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from .recording import Turn

_STEP = "train/global_step"
"""The trainer's own name of the axis."""


class Tracker:
    """A tracker that tracks nothing."""

    def rollouts(self, step: int, turns: Sequence[Turn]) -> None:
        """Rollouts of a step, turn by turn."""

    def best(self, step: int, best: Mapping[str, Any]) -> None:
        """The best line of dev.jsonl after the evaluation at a step."""


class Wandb(Tracker):
    """Weights & Biases. Nothing is told before the trainer has begun its run."""

    def rollouts(self, step: int, turns: Sequence[Turn]) -> None:
        """A table of its own for each step, under the step's place on the axis."""
        import wandb

        if wandb.run is not None:
            columns: list[Any] = ["step", *(field.name for field in fields(Turn))]
            table = wandb.Table(columns=columns, data=[[step, *turn.as_dict().values()] for turn in turns])
            wandb.log({"rollouts": table, _STEP: step})

    def best(self, step: int, best: Mapping[str, Any]) -> None:
        """Two values a step, and two of the run's summary."""
        import wandb

        if wandb.run is not None:
            values = {"dev/best_step": best["step"], "dev/best_answer_score": best["rewards"]["answer_score"]}
            wandb.log(values | {_STEP: step})
            wandb.run.summary.update(values)
