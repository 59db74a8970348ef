"""`treeagent validate DATASET`: every example of a folder checked, in as many processes as asked, with bounded memory.

Also checked: that manifest and card agree with the files (rows, tasks, lengths, numbers of each, fingerprints,
licences). Failures are told one a line, the first few; any makes the command fail.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from ...errors import InputError, ModelError, RunError
from ...terminal import visible
from ..processes import end_with_parent
from ..tokens import Tokenizer, default_tokenizer, load_tokenizer
from .ledger import Ledger
from .row import Finding, Row, examine

SHOWN = 20
"""Failures that are told one by one."""
_AHEAD = 3  # examples a process that wait for it
_READ_ROWS = 4  # examples read at a time; one may hold megabytes
_MOST_CREDITS = 200  # rows of the card's table of licences


@dataclass
class _Tally:
    """What was checked, and what failed: where, and why."""

    ledger: Ledger = field(default_factory=Ledger)
    checked: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    failed: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    shown: list[str] = field(default_factory=list)
    failures: int = 0

    def fail(self, where: str, problem: str) -> None:
        """Counts a failure; keeps the first few."""
        self.failures += 1
        if len(self.shown) < SHOWN:
            self.shown.append(f"{where}: {problem}")

    def take(self, split: str, place: int, found: Finding) -> None:
        """Adds one example."""
        key = (split, found.task, found.length)
        self.checked[key] += 1
        problems = [*found.problems, *self.ledger.add(split, found)]
        self.failed[key] += bool(problems)
        for problem in problems:
            self.fail(f"{split} {place}: {found.base_id or found.task} of {found.length:,} tokens", problem)


def validate(folder: str, console: Console, *, tokenizers: Sequence[str] = (), num_proc: int = 1) -> None:
    """Checks the benchmark in `folder`; prints a table of what was checked and failed, and the first failures.

    Lengths are checked under those of the manifest's tokenizers that are named or installed; others are told. Raises
    InputError where the folder is no benchmark, RunError where anything failed."""
    place = Path(folder)
    manifest = _manifest(place)
    counters = _counters(manifest, tokenizers, console)
    tally = _Tally()
    with _examiners(num_proc, counters) as submit, _bar(console) as bar:
        for split, facts in sorted(manifest["splits"].items()):
            task = bar.add_task(escape(visible(split)), total=facts.get("rows"))
            _split(tally, place, split, facts, submit, num_proc, lambda task=task: bar.advance(task))
    for problem in (
        *_totals(manifest, tally),
        *tally.ledger.spread(),
        *_unnamed(place, manifest),
        *_card(place, manifest, tally),
    ):
        tally.fail("benchmark", problem)
    console.print(_table(tally))
    for line in tally.shown:
        console.print(visible(line), markup=False, highlight=False, soft_wrap=True)
    if tally.failures > len(tally.shown):
        console.print(f"and {tally.failures - len(tally.shown):,} more")
    if tally.failures:
        raise RunError(f"{folder}: {tally.failures:,} failures among {tally.checked.total():,} examples")
    console.print(f"{tally.checked.total():,} examples checked, none failed")


def _manifest(folder: Path) -> dict[str, Any]:
    """The manifest. Raises InputError for a folder without one that has what is needed."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{folder} is no benchmark (manifest.json: {type(error).__name__}: {error})") from None
    if not _is_sound(manifest):
        raise InputError(f"{folder}/manifest.json is not that of a benchmark")
    return manifest


def _is_sound(manifest: Any) -> bool:
    """Whether the manifest has what is compared, in the kinds that it should have."""
    identity, splits = (manifest.get(key) if isinstance(manifest, dict) else None for key in ("identity", "splits"))
    if not isinstance(identity, dict) or not isinstance(splits, dict) or not splits:
        return False
    recipes = [identity.get(name, {}) for name in ("train", "dev", "test")]
    lists = [identity.get("tasks", []), identity.get("tokenizers", [])]
    lists += [recipe.get("lengths", []) if isinstance(recipe, dict) else None for recipe in recipes]
    if not all(isinstance(one, list) and all(isinstance(item, str | int) for item in one) for one in lists):
        return False
    facts = [split if isinstance(split, dict) else {} for split in splits.values()]
    return all(isinstance(one.get("file"), str) and isinstance(one.get("rows"), int) for one in facts)


def _counters(manifest: Mapping[str, Any], names: Sequence[str], console: Console) -> list[Tokenizer]:
    """The tokenizers of the manifest that are at hand; tells of the others."""
    wanted = manifest["identity"].get("tokenizers", [])
    found: dict[str, Tokenizer] = {}
    for tokenizer in map(load_tokenizer, names):
        if tokenizer.fingerprint not in wanted:
            raise InputError(f"tokenizers: the lengths were not measured with {tokenizer.name}")
        found[tokenizer.fingerprint] = tokenizer
    missing = [fingerprint for fingerprint in wanted if fingerprint not in found]
    for tokenizer in _installed() if missing else ():
        if tokenizer.fingerprint in missing:
            found[tokenizer.fingerprint] = tokenizer
            missing.remove(tokenizer.fingerprint)
    for fingerprint in missing:
        told = visible(f"The tokenizer {fingerprint} is not at hand, so lengths are not checked under it; name it")
        console.print(told, markup=False, highlight=False)
    return list(found.values())


def _installed() -> Iterator[Tokenizer]:
    try:
        yield load_tokenizer(default_tokenizer())
    except (ModelError, ImportError):
        return


def _split(
    tally: _Tally, folder: Path, split: str, facts: Mapping[str, Any], submit: Any, num_proc: int, done: Any
) -> None:
    """Checks the examples of a split, and what the manifest tells of its file."""
    path = folder / facts["file"]
    if not path.resolve().is_relative_to(folder.resolve()):
        tally.fail(split, f"its file {facts['file']} lies outside the folder")
        return
    content, rows = hashlib.sha256(), 0
    waiting: deque[tuple[int, Future[Finding]]] = deque()
    try:
        for row in _rows(path):
            content.update(json.dumps(row, sort_keys=True, ensure_ascii=True).encode())
            waiting.append((rows, submit(row)))
            rows += 1
            if len(waiting) > (_AHEAD * num_proc if num_proc > 1 else 0):
                number, future = waiting.popleft()
                tally.take(split, number, future.result())
                done()
    except (OSError, ValueError) as error:  # those of the library derive from these
        tally.fail(split, f"{facts['file']} cannot be read: {' '.join(str(error).split())[:160]}")
    for number, future in waiting:
        tally.take(split, number, future.result())
        done()
    for problem in _differences(tally, split, path, facts, content.hexdigest(), rows):
        tally.fail(split, problem)


def _rows(path: Path) -> Iterator[Row]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=_READ_ROWS):
            yield from batch.to_pylist()


def _differences(
    tally: _Tally, split: str, path: Path, facts: Mapping[str, Any], content: str, rows: int
) -> Iterator[str]:
    """What the manifest says of a split that its file does not."""
    keys = [key for key in tally.checked if key[0] == split]
    is_there = {
        "rows": rows,
        "tasks": sorted({task for _, task, _ in keys}),
        "lengths": sorted({length for _, _, length in keys}),
        "content": content,
        "sha256": _digest(path),
    }
    for name, value in is_there.items():
        if facts.get(name) != value:
            yield f"the manifest says {name} {facts.get(name)}, the file {value}"


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _totals(manifest: Mapping[str, Any], tally: _Tally) -> Iterator[str]:
    """What the recipe in the manifest promises and the examples do not keep."""
    identity, splits = manifest["identity"], manifest["splits"]
    contents = [(name, str(facts.get("content"))) for name, facts in sorted(splits.items())]
    whole = hashlib.sha256(json.dumps(dict(contents)).encode()).hexdigest()
    if manifest.get("content") != whole:
        yield f"the manifest says content {manifest.get('content')}, its splits {whole}"
    for name in ("train", "dev", "test"):
        recipe = identity.get(name)
        if not isinstance(recipe, dict) or not isinstance(recipe.get("per_task"), int):
            yield f"the manifest does not say how many examples {name} has"
            continue
        if bool(recipe["per_task"]) != (name in splits):
            yield f"the split {name} is {'missing' if recipe['per_task'] else 'not in the recipe'}"
            continue
        promised = {(name, task, length) for task in identity.get("tasks", ()) for length in recipe.get("lengths", ())}
        there = {key for key in tally.checked if key[0] == name}
        for key in sorted(promised | there) if recipe["per_task"] else ():
            wanted = recipe["per_task"] if key in promised else 0
            if tally.checked[key] != wanted:
                yield f"{tally.checked[key]} examples of {key[1]} with {key[2]:,} tokens in {name}, not {wanted}"


def _unnamed(folder: Path, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Files beside the examples that nothing accounts for."""
    files = {facts["file"] for facts in manifest["splits"].values()}
    for path in sorted((folder / "data").iterdir() if (folder / "data").is_dir() else ()):
        if f"data/{path.name}" not in files:
            yield f"the manifest does not name data/{path.name}"


def _card(folder: Path, manifest: Mapping[str, Any], tally: _Tally) -> Iterator[str]:
    """What the dataset card does not say."""
    try:
        card = (folder / "README.md").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        yield "there is no dataset card README.md"
        return
    config = manifest["identity"].get("format")
    if not re.search(rf"^- config_name: {re.escape(str(config))}$", card, re.MULTILINE):
        yield f"the card has no configuration {config}"
    for name, facts in sorted(manifest["splits"].items()):
        if f"- split: {name}\n    path: {facts['file']}\n" not in card:
            yield f"the card does not name the file of {name}"
        if f"| {name} | {facts.get('rows', 0):,} |" not in card:
            yield f"the card does not give the number of examples of {name}"
    licenses = {license.casefold() for _, license in tally.ledger.credits}
    stated = re.search(r"\A---\nlicense: (.+)$", card, re.MULTILINE)
    if stated is None or (stated[1] != "other" and licenses != {stated[1]}):
        yield "the card does not state the licence"
    if str(manifest.get("content")) not in card:
        yield "the card does not give the content fingerprint"
    lines = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in card.splitlines() if "|" in line]
    told = {(cells[0], cells[1]) for cells in lines if len(cells) > 1}
    if len(told) < _MOST_CREDITS:
        for source, license in sorted(tally.ledger.credits):
            if (_cell(source), _cell(license)) not in told:
                yield f"the card does not attribute {source} ({license})"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _table(tally: _Tally) -> Table:
    table = Table("split", "task", "length", "checked", "failed")
    for split, task, length in sorted(tally.checked):
        key = (split, task, length)
        table.add_row(
            Text(visible(split)),
            Text(visible(task)),
            f"{length:,}",
            f"{tally.checked[key]:,}",
            f"{tally.failed[key]:,}",
        )
    return table


def _bar(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


@contextmanager
def _examiners(number: int, counters: Sequence[Tokenizer]) -> Iterator[Any]:
    """What examines an example: this process, or so many others."""
    if number == 1:
        yield lambda row: _done(examine(row, counters))
        return
    pool = ProcessPoolExecutor(number, get_context("spawn"), initializer=_begin, initargs=(list(counters),))
    try:
        yield lambda row: pool.submit(_examine, row)
    except BrokenProcessPool:
        raise RunError("a process that checked examples was ended, perhaps for memory; give fewer") from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _done(found: Finding) -> Future[Finding]:
    future: Future[Finding] = Future()
    future.set_result(found)
    return future


_given: list[Tokenizer] = []


def _begin(counters: Iterable[Tokenizer]) -> None:
    end_with_parent()
    _given.extend(counters)


def _examine(row: Row) -> Finding:
    return examine(row, _given)
