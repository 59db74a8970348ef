"""The table of an evaluation, from its run folder alone (paper, C.4 and C.5).

The score is the mean over cells (format × task × length, each cell and each format weighing the same), not over
examples. A failed or empty answer counts as 0 and stays in. The difference to `flat` is paired by example, with a 95
% interval by the normal approximation; calls and input tokens are ratios of the sums over the same pairs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from .store import Row, read_results, read_run

_Z95 = 1.959963984540054
_BASE = "flat"


@dataclass(frozen=True)
class Paired:
    """A condition against `flat`, over the `n` examples that both have. `half` is half the width of the 95 %
    interval, None for fewer than two pairs. The ratios are None where flat used nothing."""

    n: int
    difference: float
    half: float | None
    calls: float | None
    input_tokens: float | None


@dataclass(frozen=True)
class Line:
    """One condition: how many examples, mean score (0 to 1), sums over the examples, and the comparison with `flat`
    if there is one."""

    agent: str
    observer: str
    examples: int
    score: float
    calls: int
    input_tokens: int
    errors: int
    overflows: int
    empty: int
    cut_replies: int
    paired: Paired | None


def report(runs: Sequence[str], console: Console) -> None:
    """Prints one table a run folder. Raises RunError for a folder that holds no evaluation."""
    for run in runs:
        about, rows = read_run(Path(run)), read_results(Path(run))
        _print_whole(_table(run, summarise(rows, about.get("conditions", []))), console)
        owed = about.get("examples", 0) * len(about.get("conditions", [])) - len(rows)
        if owed > 0:
            console.print(f"unfinished: {owed} results are still owed; repeat the command to resume", highlight=False)


def summarise(rows: Iterable[Row], order: Sequence[Sequence[str]] = ()) -> list[Line]:
    """One line for each agent and observer with results, in the given order of `(agent, observer)`, others after it
    by name."""
    by_condition: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        by_condition[row["agent"], row["observer"]].append(row)
    known = [(agent, observer) for agent, observer in order if (agent, observer) in by_condition]
    names = known + sorted(by_condition.keys() - set(known))
    return [_line(name, by_condition[name], by_condition.get((name[0], _BASE))) for name in names]


def mean_of_cells(rows: Iterable[Row]) -> float:
    """The mean over formats of the mean over their task × length cells of the mean score."""
    cells: dict[str, dict[tuple[str, int], list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        cells[row["format"]][row["task"], row["length"]].append(row["score"])
    return fmean(fmean(fmean(scores) for scores in inner.values()) for inner in cells.values())


def paired(rows: Iterable[Row], base: Iterable[Row]) -> Paired | None:
    """Compares two conditions over the examples that both have; None if there are none."""
    others = {(row["key"], row["copy"]): row for row in base}
    pairs = [(row, others[row["key"], row["copy"]]) for row in rows if (row["key"], row["copy"]) in others]
    if not pairs:
        return None
    differences = [row["score"] - other["score"] for row, other in pairs]
    half = _Z95 * stdev(differences) / math.sqrt(len(pairs)) if len(pairs) > 1 else None
    return Paired(len(pairs), fmean(differences), half, _ratio(pairs, "calls"), _ratio(pairs, "input_tokens"))


def _ratio(pairs: Sequence[tuple[Row, Row]], key: str) -> float | None:
    base = sum(other[key] for _, other in pairs)
    return sum(row[key] for row, _ in pairs) / base if base else None


def _line(name: tuple[str, str], rows: Sequence[Row], base: Sequence[Row] | None) -> Line:
    agent, observer = name
    return Line(
        agent,
        observer,
        len(rows),
        mean_of_cells(rows),
        _sum(rows, "calls"),
        _sum(rows, "input_tokens"),
        sum(row["failure"] == "error" for row in rows),
        sum(row["failure"] == "overflow" for row in rows),
        sum(not row["failure"] and not row["values"] for row in rows),
        _sum(rows, "cut_replies"),
        paired(rows, base) if base is not None and observer != _BASE else None,
    )


def _sum(rows: Iterable[Mapping[str, Any]], key: str) -> int:
    return sum(row[key] for row in rows)


def _table(run: str, lines: Sequence[Line]) -> Table:
    table = Table(title=escape(run), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for column in ("agent", "observer"):
        table.add_column(column, no_wrap=True)
    for column in (
        "examples",
        "score %",
        "vs flat [95 %]",
        "calls",
        "×flat",
        "input tokens",
        "×flat",
        "failed",
        "empty",
        "cut",
    ):
        table.add_column(column, justify="right", no_wrap=True)
    for line in lines:
        table.add_row(*_cells(line))
    errors, overflows = sum(line.errors for line in lines), sum(line.overflows for line in lines)
    table.caption = (
        f"failed: {errors} errors, {overflows} beyond the request limit; empty: no answer found; all score 0. "
        "cut: replies that reached their token limit."
    )
    table.caption_justify = "left"
    return table


def _print_whole(table: Table, console: Console) -> None:
    """Where the console is too narrow, lines run over: better than columns without their numbers."""
    width = console.width
    needed = Measurement.get(console, console.options.update(max_width=10_000), table).maximum
    console.width = max(width, needed)
    try:
        console.print(table)
    finally:
        console.width = width


def _cells(line: Line) -> list[str]:
    pair = line.paired
    return [
        line.agent,
        line.observer,
        str(line.examples),
        f"{100 * line.score:.2f}",
        _difference(pair),
        f"{line.calls:,}",
        _times(pair.calls if pair else None),
        f"{line.input_tokens:,}",
        _times(pair.input_tokens if pair else None),
        str(line.errors + line.overflows),
        str(line.empty),
        str(line.cut_replies),
    ]


def _difference(pair: Paired | None) -> str:
    if pair is None:
        return ""
    middle = 100 * pair.difference
    if pair.half is None:
        return f"{middle:+.2f}"
    return f"{middle:+.2f} [{middle - 100 * pair.half:.2f}, {middle + 100 * pair.half:.2f}]"


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.3f}"
