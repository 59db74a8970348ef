"""The end of a training run: what the gradient was, whether there was anything to learn, where everything lies."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..infer.store import write_atomic
from .run_folder import RunFolder

Step = Mapping[str, Any]


def summarise(
    folder: RunFolder, steps: Sequence[Step], dev: Sequence[Step], adapter_change: float, best_step: int | None
) -> dict[str, Any]:
    """Writes `summary.json` and returns it. `adapter_change` is the norm of what the adapter adds to the weights."""
    summary = {
        "steps": len(steps),
        "rewards": [step["reward"] for step in steps],
        "grad_norms": [step["grad_norm"] for step in steps],
        "zero_variance_shares": [step["zero_variance_share"] for step in steps],
        "adapter_change": adapter_change,
        "dev": list(dev),
        "best_step": best_step,
        "seconds": sum(sum(step["seconds"].values()) for step in steps),
        "nothing_learned": nothing_learned(steps, adapter_change),
        "adapter": str(folder.adapter),
        "log": str(folder.steps),
        "checkpoints": str(folder.checkpoints),
    }
    write_atomic(folder.summary, json.dumps(summary, indent=2) + "\n")
    return summary


def nothing_learned(steps: Sequence[Step], adapter_change: float) -> str:
    """Why nothing could be learned, or "" if something could."""
    if all(step["zero_variance_share"] == 1 for step in steps):
        return "in every group all rollouts had the same reward, so there was nothing to prefer"
    if all(not step["grad_norm"] for step in steps):
        return "the gradient was 0 in every step"
    return "" if adapter_change else "the adapter did not change"


def not_better(dev: Sequence[Mapping[str, Any]], best_step: int | None) -> bool:
    """Whether the model before training (step 0) has an answer score on the dev split that the best step does not
    exceed."""
    scores = {line["step"]: line["rewards"]["answer_score"] for line in dev}
    return 0 in scores and best_step in scores and scores[best_step] <= scores[0]


def summary_lines(summary: Mapping[str, Any]) -> list[str]:
    """The summary for a person."""
    norms = ", ".join(f"{norm:.2e}" for norm in summary["grad_norms"])
    shares = ", ".join(f"{share:.0%}" for share in summary["zero_variance_shares"])
    lines = [
        f"trained {summary['steps']} steps in {summary['seconds']:.0f} s",
        f"gradient norm by step: {norms}",
        f"zero-variance groups by step: {shares}",
        f"size of the adapter's change (norm of its delta): {summary['adapter_change']:.3e}",
    ]
    if summary["best_step"]:
        lines.append(f"best step on the dev split: {summary['best_step']}; the adapter is that step's")
    if not_better(summary["dev"], summary["best_step"]):
        lines.append("On the dev split the model before training scored as well as that, or better.")
    if summary["nothing_learned"]:
        lines.append(f"Nothing could be learned: {summary['nothing_learned']}.")
    return [
        *lines,
        f"adapter: {summary['adapter']}",
        f"steps: {summary['log']}",
        f"checkpoints: {summary['checkpoints']}",
    ]
