"""The model card of a trained adapter, or of a model that it was merged into: base, data, recipe, curves.

Paths of the machine stay out of it: a model or benchmark in a folder is named by the folder's last part and identified
by its fingerprint.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..errors import RunError
from .run_folder import RunFolder, read_lines

_PATHS = ("out", "model", "benchmark.folder", "agent_options.prompts")


@dataclass(frozen=True)
class Training:
    """What a finished run says of itself: its settings, what identifies it, its summary, the lines of its steps."""

    settings: Mapping[str, Any]
    identity: Mapping[str, Any]
    summary: Mapping[str, Any]
    steps: Sequence[Mapping[str, Any]]


def of_run(path: Path) -> Training:
    """Reads a run's folder. Raises RunError if it holds no finished training run."""
    folder = RunFolder(path)
    try:
        run = json.loads((path / "run.json").read_text("utf-8"))
        settings = yaml.safe_load((path / "config.yaml").read_text("utf-8"))
        summary = json.loads(folder.summary.read_text("utf-8"))
    except FileNotFoundError as error:
        missing = Path(error.filename).name
        what = "is not finished: repeat its command" if missing == "summary.json" else "holds no training run"
        raise RunError(f"{path} {what} (no {missing} there)") from error
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise RunError(f"{path} cannot be read: {error}") from error
    return Training(settings, run["identity"], summary, read_lines(folder.steps))


def render(training: Training, *, merged: bool) -> str:
    """The text of README.md."""
    settings, identity, summary = training.settings, training.identity, training.summary
    base = _place_free(settings["model"]) if settings["model"] else "SmolLM2-135M-Instruct (the demo model)"
    hub = f"base_model: {settings['model']}\n" if _is_hub_name(settings["model"]) else ""
    kind = "A model with the adapter merged in" if merged else "A LoRA adapter"
    use = "--model THIS_FOLDER" if merged else f"--model {base} --adapter THIS_FOLDER"
    return f"""---
library_name: {"transformers" if merged else "peft"}
{hub}tags: [treeagent, grpo, structured-data, long-context]
---

# {base}, trained as {settings["agent"]} with {settings["observer"]} observations

{kind}, made by `treeagent train`: GRPO over rollouts of the agent `{settings["agent"]}`,
which reads documents section by section. It is meant for that agent and these observations:
`treeagent evaluate RECIPE {use} --agents '{{{settings["agent"]}: {{}}}}'`.

| | |
|---|---|
| base model | {base}, fingerprint `{identity["model"]}` |
| data | `{_place_free(settings["benchmark"]["folder"])}`, split {settings["benchmark"]["split"]}, fingerprint of its \
examples `{identity["examples"]}` |
| prompts | fingerprint `{identity["prompts"]}` |
| steps | {summary["steps"]} of {settings["prompts_per_step"]} questions x {settings["rollouts_per_prompt"]} rollouts, \
on {identity["processes"]} processes |
| kept | {_kept(summary)} |
| size of the change (norm) | {summary["adapter_change"]:.3e} |

## On the development split
{_dev_table(summary["dev"])}
## While training
{_step_table(training.steps)}
## Recipe

```yaml
{yaml.safe_dump(_without_places(settings), sort_keys=False, allow_unicode=True)}```
"""


def _kept(summary: Mapping[str, Any]) -> str:
    if summary["best_step"]:
        return f"step {summary['best_step']}, the best on the development split (mean answer score, greedy)"
    return "the last step"


def _dev_table(dev: Sequence[Mapping[str, Any]]) -> str:
    if not dev:
        return "\nThere was no evaluation on a development split.\n"
    rows = [[line["step"], *(f"{value:.4f}" for value in line["rewards"].values())] for line in dev]
    return _table(["step", *dev[0]["rewards"]], rows)


def _step_table(steps: Sequence[Mapping[str, Any]]) -> str:
    if not steps:
        return "\nNo steps.\n"
    rows = [
        [step["step"], f"{step['reward']:.4f}", *(f"{value:.4f}" for value in step["rewards"].values())]
        for step in steps
    ]
    return _table(["step", "reward", *steps[0]["rewards"]], rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n" + "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def _is_hub_name(model: str | None) -> bool:
    return bool(model) and str(model).count("/") == 1 and not Path(str(model)).exists()


def _place_free(name: str) -> str:
    """A Hub name as it is; of a path the last part."""
    return name if _is_hub_name(name) else Path(name).name


def _without_places(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The settings with every path reduced to its last part."""
    clean = dict[str, Any]()
    for key, value in settings.items():
        if isinstance(value, Mapping):
            clean[key] = _without_places(value, f"{prefix}{key}.")
        elif f"{prefix}{key}" in _PATHS and isinstance(value, str):
            clean[key] = _place_free(value)
        else:
            clean[key] = value
    return clean
