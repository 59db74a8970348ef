"""A look that a person can take at examples: the support highlighted in its context (⟦so⟧), and what they are made of.

What documents say is shown as text: no markup, no control sequence of theirs reaches the terminal.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from statistics import mean, median
from typing import Any

import numpy as np
from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from ..terminal import visible
from .contexts import Counter as TokenCounter
from .examples import Row
from .formats import parse
from .tree import Document

_AROUND = 160  # characters shown before and after a support
_MOST_SHOWN = 1200  # characters of a support
_SHOWN_SUPPORTS = 4
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
    """What stands before, in and after each support (the first few). The support is the largest part of the document
    whose middle is where the row says; a long one is cut around its middle."""
    context, document = row["context"], parse(row["context"], row["format"])
    found = []
    for place in row["support"][:_SHOWN_SUPPORTS]:
        start, end = _part(document, place * len(context))
        middle = (start + end) // 2
        start, end = max(start, middle - _MOST_SHOWN // 2), min(end, middle + _MOST_SHOWN // 2)
        found.append((context[max(0, start - _AROUND) : start], context[start:end], context[end : end + _AROUND]))
    return found


def _part(document: Document, middle: float) -> tuple[int, int]:
    """The node on the way down to this character whose middle is nearest to it; the outermost of equally near ones."""
    node, best = document.root, (document.root.start, document.root.end)
    least = abs(sum(best) / 2 - middle)
    while node.n_children:
        starts, ends = document.spans(node)
        ordinal = max(0, int(np.searchsorted(starts, int(middle), side="right")) - 1)
        if ends[ordinal] < int(middle):
            break
        node = document.child(node, ordinal)
        distance = abs((node.content + node.end) / 2 - middle)
        if distance < least - 1:
            least, best = distance, (node.content, node.end)
    return best


def _example(row: Row) -> Text:
    text = Text()
    text.append("question  ", style="dim").append(visible(row["question"]) + "\n")
    text.append("answer    ", style="dim").append(visible(" | ".join(row["answers"])), style="bold green").append("\n")
    for place, (before, support, after) in zip(row["support"], excerpts(row), strict=False):
        text.append(f"at {place:.0%}".ljust(10), style="dim").append("…" + visible(before), style="dim")
        text.append(f"⟦{visible(support)}⟧", style="black on yellow")
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
