"""Stopping a run without losing what it made: at a signal, and before numbers that are none can be saved.

The first SIGINT (Ctrl-C), SIGTERM or SIGUSR1 lets the step in progress end, saves a checkpoint and stops; the second
stops at once. Processes agree at the end of each step, so one that got the signal is enough. Under a launcher, Ctrl-C
reaches the processes as SIGINT or SIGTERM and they are killed 30 seconds later; SIGUSR1 goes to them alone.
"""

from __future__ import annotations

import math
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from ..errors import RunError
from .alarms import not_a_number

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


def to_stderr(line: str) -> None:
    """A line on standard error, past all buffers: a signal may come in the middle of another line's printing."""
    os.write(2, f"\n{line}\n".encode())


class Stopper(TrainerCallback):
    """Ends the run after a step in which any process was signalled. `most` is the largest number over all processes;
    `say` tells the user."""

    def __init__(self, most: Callable[[int], int], say: Callable[[str], None]) -> None:
        self.most, self.say = most, say
        self.asked = False
        self.stopped_at: int | None = None
        self._step = self._saved = 0

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Signals are heard inside; outside they do what they did before. Elsewhere than in the main thread there are
        none to hear."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._heard) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _heard(self, number: int, frame: Any) -> None:
        if self.asked:
            lost = f"step {self._step + 1} is lost"
            if self._saved < self._step:
                lost = f"steps {self._saved + 1} to {self._step + 1} are lost"
            self.say(f"stopped at once: {lost}; the same command goes on after step {self._saved}")
            raise KeyboardInterrupt
        self.asked = True
        name = signal.Signals(number).name
        self.say(f"{name}: step {self._step + 1} will be finished and saved, then the run stops; once more: at once")

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Where the run goes on."""
        self._step = self._saved = state.global_step

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Asks for a checkpoint and the end. The last step ends the run anyway."""
        self._step = state.global_step
        if self.most(int(self.asked)) and state.global_step < state.max_steps:
            control.should_save = control.should_training_stop = True
            self.stopped_at = state.global_step

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """What is safe now."""
        self._saved = state.global_step


class NanGuard(TrainerCallback):
    """Raises RunError at a loss, gradient or adapter that is not a number, before a checkpoint could hold it."""

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, model: Any = None, **kwargs: Any
    ) -> None:
        """The adapter after the update. Of weights that are divided among processes, each looks at its own."""
        trained = [parameter.detach() for parameter in model.parameters() if parameter.requires_grad]
        norm = float(torch.nn.utils.get_total_norm(trained))
        if not math.isfinite(norm):
            raise _no_number(state.global_step, f"norm of the adapter {norm}")

    def on_log(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, logs: Any = None, **kwargs: Any
    ) -> None:
        """A step has `grad_norm`."""
        if "grad_norm" in logs and not_a_number(logs):
            raise _no_number(state.global_step, f"loss {logs.get('loss')}, gradient norm {logs['grad_norm']}")


def _no_number(step: int, what: str) -> RunError:
    return RunError(
        f"step {step}: {what}: not a number, so the run was stopped before this could be saved; lower "
        "optimizer.learning_rate or take dtype fp32, under another --out; what was saved before is whole"
    )
