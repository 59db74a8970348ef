"""The folder of a training run: whose it is, what is in it, where it can go on.

`config.yaml`   the resolved recipe           `run.json`      what identifies the run, and a digest of it
`train.jsonl`   one line a step               `dev.jsonl`     one line an evaluation
`rollouts.jsonl`  some rollouts of each step, turn by turn
`checkpoints/`  where to resume               `adapter/`      the result          `summary.json`  the end

A checkpoint counts only when it is whole: its state file is written last. Lines of steps after the checkpoint that a
run resumes from are dropped, because those steps are made again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..config import differing
from ..errors import RunError
from ..infer.store import digest, lock_folder, make_folder, write_atomic

_OURS = (".lock", "wandb", "checkpoints", "adapter")
"""What may lie in a folder before a run has claimed it."""


class RunFolder:
    """A training run's folder. `claim` makes it this run's; only the first process writes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.adapter, self.checkpoints = path / "adapter", path / "checkpoints"
        self.steps, self.dev, self.summary = path / "train.jsonl", path / "dev.jsonl", path / "summary.json"
        self.rollouts = path / "rollouts.jsonl"

    def claim(self, identity: Mapping[str, Any], recipe: str) -> None:
        """Raises RunError if the folder is in use, holds something else, or a run that differs (naming the keys)."""
        make_folder(self.path)
        self._held = lock_folder(self.path)
        try:
            self._own(identity, recipe)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Lets others have the folder."""
        self._held.close()

    def _own(self, identity: Mapping[str, Any], recipe: str) -> None:
        """Makes the folder this run's, or checks that it is."""
        file = self.path / "run.json"
        if not file.exists():
            ours = (*_OURS, ".run.json.", ".config.yaml.")
            strangers = sorted(path.name for path in self.path.iterdir() if not path.name.startswith(ours))
            if strangers:
                raise RunError(
                    f"{self.path} is not empty and holds no training run ({strangers[0]}): name another with --out"
                )
            write_atomic(self.path / "config.yaml", recipe)
            write_atomic(file, json.dumps({"digest": digest(identity), "identity": identity}, indent=2) + "\n")
            return
        try:
            held = json.loads(file.read_text("utf-8"))
        except ValueError as error:
            raise RunError(f"{file} is damaged: {error}") from error
        if held.get("digest") != digest(identity):
            keys = ", ".join(differing(held.get("identity", {}), identity)) or "digest"
            raise RunError(
                f"{self.path} holds another run; these differ: {keys}. Name another folder with --out, or set them back"
            )
        write_atomic(self.path / "config.yaml", recipe)  # settings that do not identify a run may have changed

    def last_checkpoint(self, processes: int) -> Path | None:
        """The newest whole checkpoint, or None."""
        whole = {_step(path): path for path in self.checkpoints.glob("checkpoint-*") if _is_whole(path, processes)}
        return whole[max(whole)] if whole else None

    def drop_lines_after(self, step: int) -> None:
        """Keeps the lines of steps up to `step`; a torn last line goes too."""
        for file in (self.steps, self.dev, self.rollouts):
            if file.exists():
                write_atomic(file, "".join(json.dumps(row) + "\n" for row in read_lines(file) if row["step"] <= step))


def read_lines(file: Path) -> list[dict[str, Any]]:
    """The whole lines of a file of JSON objects; a torn end is left out."""
    rows = []
    for line in file.read_text("utf-8").splitlines() if file.exists() else ():
        try:
            rows.append(json.loads(line))
        except ValueError:
            break
    return rows


def _step(checkpoint: Path) -> int:
    name = checkpoint.name.removeprefix("checkpoint-")
    return int(name) if name.isdigit() else -1


def _is_whole(checkpoint: Path, processes: int) -> bool:
    """Whether state and random numbers of every process were written."""
    random = ["rng_state.pth"] if processes == 1 else [f"rng_state_{rank}.pth" for rank in range(processes)]
    try:
        state = json.loads((checkpoint / "trainer_state.json").read_text("utf-8"))
    except (OSError, ValueError):
        return False
    states = {path.parent: 0 for path in checkpoint.glob("global_step*/*_optim_states.pt")}  # of DeepSpeed
    for path in checkpoint.glob("global_step*/*_optim_states.pt"):
        states[path.parent] += 1
    return (
        state["global_step"] == _step(checkpoint)
        and all((checkpoint / name).is_file() for name in random)
        and all(count == processes for count in states.values())
    )
