"""Writes down what the trainer logs: a line of JSON and a line for a person, each step and each evaluation."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from ..infer.store import append_line
from .progress import Progress, step_line, step_record
from .run_folder import RunFolder


class Journal(TrainerCallback):
    """Runs on the first process only."""

    def __init__(self, folder: RunFolder, progress: Progress, steps: int) -> None:
        self.folder, self.progress, self.steps = folder, progress, steps

    def on_log(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, logs: Any = None, **kwargs: Any
    ) -> None:
        """A step has `grad_norm`, an evaluation begins with `eval_`; the rest is the trainer's own closing line."""
        if "grad_norm" in logs:
            record = step_record(state.global_step, logs)
            append_line(self.folder.steps, record)
            self.progress.line(step_line(record, self.steps))
        elif any(name.startswith("eval_rewards/") for name in logs):
            rewards = {name.split("/")[1]: value for name, value in logs.items() if name.startswith("eval_rewards/")}
            append_line(self.folder.dev, {"step": state.global_step, "rewards": rewards})
            shown = ", ".join(f"{name} {value:.3f}" for name, value in rewards.items())
            self.progress.line(f"dev after step {state.global_step}: {shown}")
