"""A run folder: results that survive anything.

`config.yaml`     the resolved recipe, ready to be run again
`run.json`        what identifies the run (settings, model, benchmark, prompts, ...) and a digest of it; written last,
                  so that its presence means that the folder is complete
`results.jsonl`   one finished example a line: appended in one write, flushed and synced
`failures.jsonl`  one line for each model call that could not be had, with the reason
`calls/`          optional traces, one file a rollout, written before its result

A kill at any moment loses at most the examples in flight: a torn last line is cut off when the folder is opened
again, and its example is owed again. A lock (`.lock`, held by the operating system, so that a killed run leaves none)
keeps a second writer out.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from ..config import differing
from ..errors import RunError

Row = Mapping[str, Any]

_STORED = ("results.jsonl", "failures.jsonl", "calls")
_OURS = {".lock", "config.yaml", "run.json", *_STORED}


def write_atomic(path: Path, text: str) -> None:
    """Writes the whole file or leaves it as it was: temporary file in the same folder, sync, rename."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def digest(identity: Mapping[str, Any]) -> str:
    """16 hexadecimal digits that two runs share if and only if nothing that identifies them differs."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]


def read_run(folder: Path) -> dict[str, Any]:
    """What `run.json` says. Raises RunError if the folder holds no run."""
    try:
        run = json.loads((folder / "run.json").read_text("utf-8"))
        if not isinstance(run, dict):
            raise ValueError("it is no mapping of keys to values")
        return run
    except FileNotFoundError as error:
        raise RunError(f"{folder} holds no evaluation run (no run.json there)") from error
    except (OSError, ValueError) as error:
        raise RunError(f"{folder / 'run.json'} cannot be read: {error}") from error


def read_results(folder: Path) -> list[dict[str, Any]]:
    """All whole lines of `results.jsonl`; a torn end is ignored."""
    return _whole_lines(folder / "results.jsonl")[0]


class Store:
    """A run folder opened for writing. Use it in a `with`: leaving releases the lock."""

    def __init__(
        self, folder: Path, identity: Mapping[str, Any], recipe: str, about: Mapping[str, Any] | None = None
    ) -> None:
        """Opens the folder, or makes it. `identity` is plain nested values; `about` is kept beside it and never
        compared.

        Raises RunError if the folder is in use, belongs to another run (naming the keys that differ), or is damaged.
        """
        self.folder = folder
        make_folder(folder)
        if not (folder / "run.json").exists():
            _refuse_strangers(folder)  # before the lock too, which leaves a file
        self._lock = lock_folder(folder)
        try:
            self._claim(identity, recipe, about or {})
            self.results = _mend(folder / "results.jsonl")
            _mend(folder / "failures.jsonl")
        except BaseException:
            self._lock.close()
            raise

    def append(self, row: Row) -> None:
        """Stores one finished example."""
        append_line(self.folder / "results.jsonl", row)
        self.results.append(dict(row))

    def fail(self, row: Row) -> None:
        """Stores why a call could not be had."""
        append_line(self.folder / "failures.jsonl", row)

    def trace(self, name: str, rows: Iterable[Row]) -> None:
        """Stores a rollout's calls as `calls/NAME.jsonl`."""
        folder = self.folder / "calls"
        folder.mkdir(exist_ok=True)
        write_atomic(folder / f"{name}.jsonl", "".join(_json(row) + "\n" for row in rows))

    def close(self) -> None:
        """Releases the lock."""
        self._lock.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _claim(self, identity: Mapping[str, Any], recipe: str, about: Mapping[str, Any]) -> None:
        """Makes the folder this run's, or checks that it is; a run that stored nothing yet may get other settings."""
        identity = json.loads(_json(identity))
        if (self.folder / "run.json").exists():
            run = read_run(self.folder)
            if run.get("digest") == digest(identity):
                return
            if any((self.folder / name).exists() for name in _STORED):
                differ = ", ".join(differing(run.get("identity", {}), identity)) or "digest"
                raise RunError(f"{self.folder} holds another run, with other {differ}: name another folder with --out")
        _refuse_strangers(self.folder)
        write_atomic(self.folder / "config.yaml", recipe)
        run = {"digest": digest(identity), "identity": identity, **about}
        write_atomic(self.folder / "run.json", json.dumps(run, indent=2, ensure_ascii=False) + "\n")


def make_folder(folder: Path) -> None:
    """Makes a run folder where there is none. Raises RunError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"run folder {folder} cannot be made: {error.strerror}") from error


def _refuse_strangers(folder: Path) -> None:
    """Raises RunError for a folder that holds something else, or results of nobody knows which run."""
    strangers = sorted(path.name for path in folder.iterdir() if not _is_ours(path))
    if strangers or (folder / "results.jsonl").exists():
        what = strangers[0] if strangers else "results.jsonl without run.json"
        raise RunError(f"{folder} is not empty and holds no run of this kind ({what}): name another folder")


def _is_ours(path: Path) -> bool:
    """Also the temporary files that a killed atomic write left."""
    return path.name in _OURS or path.name.startswith((".config.yaml.", ".run.json."))


def lock_folder(folder: Path) -> IO[str]:
    """An open file that holds the folder's lock, until it is closed or the process ends, and says whose it is. Raises
    RunError if another process has it."""
    try:
        file = (folder / ".lock").open("a+", encoding="ascii")
    except OSError as error:
        raise RunError(f"run folder {folder} cannot be written: {error.strerror}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.seek(0)
        holder = file.read().strip() or "unknown"
        file.close()
        raise RunError(
            f"{folder} is in use by process {holder}: wait for it, or name another folder with --out"
        ) from error
    file.seek(0)
    file.truncate()
    file.write(str(os.getpid()))
    file.flush()
    return file


def append_line(path: Path, row: Row) -> None:
    """One line of JSON in one write, synced. If the disk is full, the part that went through is taken back and RunError
    is raised."""
    line = (_json(row) + "\n").encode("utf-8")
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            size = os.fstat(handle).st_size
            if os.write(handle, line) != len(line):
                os.ftruncate(handle, size)
                raise RunError(f"{path} cannot be written: the disk is full; the run can be resumed")
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise RunError(f"{path} cannot be written: {error.strerror}; the run can be resumed") from error


def _mend(path: Path) -> list[dict[str, Any]]:
    """The whole lines of the file, with a torn end cut off."""
    rows, size = _whole_lines(path)
    if path.exists() and path.stat().st_size > size:
        os.truncate(path, size)
    return rows


def _whole_lines(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The rows and the size in bytes of all lines up to the torn end. Raises RunError for a bad line before a good
    one."""
    if not path.exists():
        return [], 0
    rows: list[dict[str, Any]] = []
    size = bad_at = 0
    for number, (line, row) in enumerate(_lines(path), 1):
        if row is None:
            bad_at = bad_at or number
        elif bad_at:
            raise RunError(
                f"{path} is damaged: line {bad_at} is not a result. Remove that line; its example will be done again"
            )
        else:
            rows.append(row)
            size += len(line)
    return rows, size


def _lines(path: Path) -> Iterator[tuple[bytes, dict[str, Any] | None]]:
    """Every line with its row, None where it is torn."""
    with path.open("rb") as file:
        for line in file:
            try:
                row = json.loads(line) if line.endswith(b"\n") else None
            except ValueError:
                row = None
            yield line, row if isinstance(row, dict) else None


def _json(value: Any) -> str:
    """One line, keys in the order given. Escapes beyond ASCII: a lone surrogate has no UTF-8."""
    return json.dumps(value, ensure_ascii=True)
