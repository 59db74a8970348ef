"""Writes down what the trainer logs: a line of JSON and lines for a person, each step and each evaluation; alarms as
they arise; rollouts turn by turn. A tracker is told what the trainer does not tell it by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from ..infer.store import append_line
from .alarms import new_alarms
from .progress import Progress, step_lines, step_record
from .recording import Turn
from .run_folder import RunFolder, read_lines
from .tracking import Tracker


class Journal(TrainerCallback):
    """Runs on the first process only."""

    def __init__(self, folder: RunFolder, progress: Progress, steps: int, tracker: Tracker | None = None) -> None:
        self.folder, self.progress, self.steps = folder, progress, steps
        self.tracker = tracker or Tracker()

    def on_log(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, logs: Any = None, **kwargs: Any
    ) -> None:
        """A step has `grad_norm`, an evaluation begins with `eval_`; the rest is the trainer's own closing line."""
        if "grad_norm" in logs:
            record = step_record(state.global_step, logs)
            append_line(self.folder.steps, record)
            for line in (*step_lines(record, self.steps), *new_alarms(read_lines(self.folder.steps))):
                self.progress.line(line)
        elif any(name.startswith("eval_rewards/") for name in logs):
            rewards = {name.split("/")[1]: value for name, value in logs.items() if name.startswith("eval_rewards/")}
            append_line(self.folder.dev, {"step": state.global_step, "rewards": rewards})
            best = best_line(read_lines(self.folder.dev))
            self.tracker.best(state.global_step, best)
            shown = ", ".join(f"{name} {value:.3f}" for name, value in rewards.items())
            self.progress.line(f"dev after step {state.global_step}: {shown} (best: step {best['step']})")

    def rollouts(self, step: int, turns: Sequence[Turn]) -> None:
        """Keeps rollouts of a step: one line in `rollouts.jsonl`, one table of the tracker."""
        append_line(self.folder.rollouts, {"step": step, "turns": [turn.as_dict() for turn in turns]})
        self.tracker.rollouts(step, turns)


def best_line(dev: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The evaluation with the highest mean answer score; of equals the earliest. The model before training (step 0) is
    no checkpoint, and counts only until there is one."""
    candidates = [line for line in dev if line["step"]] or dev
    return max(candidates, key=lambda line: (line["rewards"]["answer_score"], -line["step"]))
