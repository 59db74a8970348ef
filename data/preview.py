"""A look that a person can take at examples: the support highlighted in its context, and what the examples are made of.

What documents say is shown as text: no markup, no control sequence of theirs reaches the terminal.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from statistics import mean, median
from typing import Any

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from ..terminal import visible
from .contexts import Counter as TokenCounter
from .examples import Row

_AROUND = 160  # characters shown before and after a support
_SHOWN_SUPPORTS = 4
_HALF = 220  # characters to each side of a support's middle that count as the support itself
_BINS = 10
_BARS = " ▁▂▃▄▅▆▇█"


def show(rows: Sequence[Row], tokenizers: Sequence[TokenCounter], console: Console) -> None:
    """Prints the examples, then tables of answers, positions, lengths and tasks."""
    for number, row in enumerate(rows, 1):
        console.print(Rule(f"{number} of {len(rows)}: {row['task']}, {row['length']:,} tokens", style="dim"))
        console.print(_example(row))
    console.print(_by_task(rows, tokenizers))
    console.print(_positions(rows))


def excerpts(row: Row) -> list[tuple[str, str, str]]:
    """What stands before, in and after each support (the first few): cut at the lines or commas around its middle."""
    context, found = row["context"], []
    for place in row["support"][:_SHOWN_SUPPORTS]:
        middle = int(place * len(context))
        start, end = _edges(context, middle, [value for value in row["answers"] if value])
        found.append((context[max(0, start - _AROUND) : start], context[start:end], context[end : end + _AROUND]))
    return found


def _edges(context: str, middle: int, answers: Sequence[str]) -> tuple[int, int]:
    """The stretch around the middle that reaches to the nearest answer, if one is near, and to the breaks around."""
    low, high = max(0, middle - _HALF), min(len(context), middle + _HALF)
    start, end = max(low, middle - _HALF // 2), min(high, middle + _HALF // 2)
    for answer in answers:
        at = context.find(answer, low, high)
        if at >= 0:
            start, end = min(start, at), max(end, at + len(answer))
    before = max(context.rfind("\n", low, start), context.rfind("},", low, start))
    after = [place for place in (context.find("\n", end, high), context.find("},", end, high)) if place >= 0]
    return (before + 1 if before >= 0 else start), (min(after) if after else end)


def _example(row: Row) -> Text:
    text = Text()
    text.append("question  ", style="dim").append(visible(row["question"]) + "\n")
    text.append("answer    ", style="dim").append(visible(" | ".join(row["answers"])), style="bold green").append("\n")
    for place, (before, support, after) in zip(row["support"], excerpts(row), strict=False):
        text.append(f"at {place:.0%}".ljust(10), style="dim").append("…" + visible(before), style="dim")
        text.append(visible(support), style="black on yellow")
        text.append(visible(after) + "…\n", style="dim")
    hidden = len(row["support"]) - _SHOWN_SUPPORTS
    if hidden > 0:
        text.append(f"          and {hidden:,} more supporting records\n", style="dim")
    return text


def _by_task(rows: Sequence[Row], tokenizers: Sequence[TokenCounter]) -> Table:
    table = Table("task", "length", "examples", "filled", "answers", "most usual answer", "supports")
    cells: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        cells.setdefault((row["task"], row["length"]), []).append(row)
    for (task, length), group in cells.items():
        filled = [tokenizer.count(row["context"]) / length for row in group for tokenizer in tokenizers]
        values = Counter(value for row in group for value in row["answers"])
        usual, times = values.most_common(1)[0]
        kinds = Counter(_field(row) for row in group)
        table.add_row(
            task,
            f"{length:,}",
            f"{len(group):,}",
            f"{min(filled):.0%}-{max(filled):.0%}" if filled else "",
            f"{len(values):,} different, {len(kinds):,} fields",
            visible(f"{usual[:30]} ({times})"),
            f"{median(len(row['support']) for row in group):g}",
        )
    return table


def _field(row: Row) -> Any:
    spec = json.loads(row["spec"])
    return json.dumps(spec.get("fields") or spec.get("group") or spec.get("conditions"), sort_keys=True)


def _positions(rows: Sequence[Row]) -> Text:
    """How supports spread over the contexts, in tenths; each example counts once."""
    weights = [0.0] * _BINS
    for row in rows:
        for place in row["support"]:
            weights[min(_BINS - 1, int(place * _BINS))] += 1 / len(row["support"])
    top = max(weights, default=0.0) or 1.0
    bars = "".join(_BARS[round(weight / top * (len(_BARS) - 1))] for weight in weights)
    places = [place for row in rows for place in row["support"]]
    return Text(f"supports from begin to end of the contexts: |{bars}|, mean {mean(places) if places else 0:.2f}")
