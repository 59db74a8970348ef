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
    """One line of train.jsonl from the values the trainer logs for a step. Values that were not logged are None, groups
    of them empty."""
    return {
        "step": step,
        "reward": logs.get("reward"),
        "rewards": _below(logs, "rewards/", "/mean"),
        "score_by_task": _below(logs, "score/"),
        "zero_variance_share": logs.get("frac_reward_zero_std"),
        "group_std": logs.get("group_std"),
        "reward_std": logs.get("reward_std"),
        "loss": logs.get("loss"),
        "grad_norm": logs.get("grad_norm"),
        "learning_rate": logs.get("learning_rate"),
        "entropy": logs.get("entropy"),
        "kl": logs.get("kl"),
        "clip_ratio": logs.get("clip_ratio/region_mean", logs.get("cispo_clip_ratio")),
        "logprob_difference": logs.get("sampling/sampling_logp_difference/mean"),
        "rollouts": logs.get("rollouts"),
        "failed_share": logs.get("rollouts/failed_share"),
        "early_stop_share": logs.get("rollouts/early_stop_share"),
        "conversations": logs.get("conversations"),
        "conversations_per_rollout": logs.get("conversations/per_rollout"),
        "prompt_tokens": logs.get("conversations/prompt_tokens"),
        "generated_tokens": logs.get("conversations/generated_tokens"),
        "generated_by_kind": _below(logs, "tokens/", "/generated"),
        "memory_tokens": logs.get("memory_tokens/mean"),
        "cut_share": logs.get("conversations/cut_share"),
        "forced_close_share": logs.get("calls/forced_close_share"),
        "padding_share": logs.get("conversations/padding_share"),
        "seconds": {phase: round(value, 3) for phase, value in _below(logs, "seconds/").items()},
    }


def _below(logs: Mapping[str, Any], prefix: str, suffix: str = "") -> dict[str, Any]:
    """The values whose names begin and end so, by what lies between."""
    return {
        name.removeprefix(prefix).removesuffix(suffix): value
        for name, value in logs.items()
        if name.startswith(prefix) and name.endswith(suffix)
    }


def step_lines(record: Mapping[str, Any], steps: int) -> list[str]:
    """Two lines that a person reads for one step: what it was worth, and what it was made of."""
    spent = ", ".join(f"{phase} {seconds:.0f}" for phase, seconds in record["seconds"].items())
    kinds = ", ".join(f"{kind} {tokens:,.0f}" for kind, tokens in record["generated_by_kind"].items())
    worth = [
        f"step {record['step']}/{steps}: reward {_shown(record, 'reward')} ({_listed(record['rewards'])})",
        f"within groups ±{_shown(record, 'group_std')}",
        f"zero-variance groups {_shown(record, 'zero_variance_share', '.0%')}",
        f"gradient norm {_shown(record, 'grad_norm', '.2e')}",
        f"{sum(record['seconds'].values()):.0f} s ({spent})",
    ]
    calls = f"  {_shown(record, 'conversations', '.0f')} conversations"
    tokens = f"generated {_shown(record, 'generated_tokens', ',.0f')} ({kinds})"
    made = [
        f"{calls}, {_shown(record, 'conversations_per_rollout', '.1f')} a rollout",
        f"tokens read {_shown(record, 'prompt_tokens', ',.0f')}, {tokens}",
        f"cut {_shown(record, 'cut_share', '.0%')}",
        f"closed by force {_shown(record, 'forced_close_share', '.0%')}",
        f"memory {_shown(record, 'memory_tokens', '.0f')} tokens",
        f"entropy {_shown(record, 'entropy')}",
        f"clipped {_shown(record, 'clip_ratio', '.1%')}",
    ]
    for name, words in (("kl", "KL"), ("logprob_difference", "sampler off by")):
        if record[name] is not None:
            made.append(f"{words} {record[name]:.4f}")
    return [", ".join(worth), ", ".join(made)]


def _shown(record: Mapping[str, Any], name: str, form: str = ".3f") -> str:
    return "–" if record[name] is None else format(record[name], form)


def _listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in values.items())
