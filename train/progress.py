"""What a person sees of a training run while it goes: where the step is, and one line when it is done.

`Progress` says nothing and is what other ranks and tests use; `ConsoleProgress` keeps one live line on a terminal and
prints a plain line now and then elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.status import Status

PLAIN_LINE_EVERY = 15.0  # seconds between progress lines where there is no terminal
PHASES = ("read", "generate", "score", "learn")


class Progress:
    """Progress that is shown nowhere."""

    def show(self, text: str) -> None:
        """Where the current step is."""

    def line(self, text: str) -> None:
        """A line that stays."""

    def stop(self) -> None:
        """Nothing more is to come."""


class ConsoleProgress(Progress):
    """Progress on a console: a live line on a terminal, else plain lines at most every `PLAIN_LINE_EVERY` seconds."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._status: Status | None = None
        self._last = time.monotonic()

    def show(self, text: str) -> None:
        """The live line on a terminal; elsewhere a plain line if the last one is old enough."""
        if self.console.is_terminal:
            if self._status is None:
                self._status = self.console.status(text)
                self._status.start()
            self._status.update(text)
        elif time.monotonic() - self._last >= PLAIN_LINE_EVERY:
            self.line(f"  {text}")

    def line(self, text: str) -> None:
        """Prints a line above the live one."""
        self._last = time.monotonic()
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def stop(self) -> None:
        """Removes the live line."""
        if self._status is not None:
            self._status.stop()
            self._status = None


def step_record(step: int, logs: Mapping[str, Any]) -> dict[str, Any]:
    """One line of train.jsonl from the values the trainer logs for a step."""
    rewards = {key.split("/")[1]: logs[key] for key in logs if key.startswith("rewards/") and key.endswith("/mean")}
    seconds = {phase: round(logs.get(f"seconds/{phase}", 0.0), 3) for phase in PHASES}
    return {
        "step": step,
        "reward": logs.get("reward"),
        "rewards": rewards,
        "zero_variance_share": logs.get("frac_reward_zero_std"),
        "reward_std": logs.get("reward_std"),
        "loss": logs.get("loss"),
        "grad_norm": logs.get("grad_norm"),
        "learning_rate": logs.get("learning_rate"),
        "entropy": logs.get("entropy"),
        "rollouts": logs.get("rollouts"),
        "failed_share": logs.get("rollouts/failed_share"),
        "conversations": logs.get("conversations"),
        "prompt_tokens": logs.get("conversations/prompt_tokens"),
        "generated_tokens": logs.get("conversations/generated_tokens"),
        "cut_share": logs.get("conversations/cut_share"),
        "padding_share": logs.get("conversations/padding_share"),
        "seconds": seconds,
    }


def step_line(record: Mapping[str, Any], steps: int) -> str:
    """The line a person reads for one step."""
    parts = ", ".join(f"{name} {value:.3f}" for name, value in record["rewards"].items())
    spent = ", ".join(f"{phase} {seconds:.0f}" for phase, seconds in record["seconds"].items())
    return (
        f"step {record['step']}/{steps}: reward {record['reward']:.3f} ({parts}), "
        f"gradient norm {record['grad_norm']:.2e}, zero-variance groups {record['zero_variance_share']:.0%}, "
        f"{record['conversations']:.0f} conversations, "
        f"{sum(record['seconds'].values()):.0f} s ({spent})"
    )
