"""The list of sections of a document, for people and for programs.

The table is written row by row in fixed columns, so that a document of a million sections prints at once. Paths
come from the document, so they pass `visible` first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace

from rich.cells import cell_len, set_cell_size
from rich.console import Console

from ..data.formats import format_of, read_text
from ..data.tokens import default_tokenizer, load_tokenizer
from ..data.tree import Document, Node
from ..errors import InputError
from ..terminal import console, visible
from . import Plan, Section, plan_sections

LINKS_SHOWN = 5
"""How many links a row of the table names; the rest are counted."""
LINKS_WIDTH = 24
"""Columns left for links beside the path."""


def sections(
    path: str, *, format: str | None, tokenizer: str | None, budget: int, exact_budget: int | None, as_json: bool
) -> None:
    """Lists the sections of a file on standard output: a table, or one JSON object a line with the totals last."""
    text, format = document(path, format)
    counter = load_tokenizer(tokenizer or default_tokenizer())
    with naming(path):
        plan = plan_sections(text, format=format, tokenizer=counter, budget=budget, exact_budget=exact_budget)
    if as_json:
        for section in plan.sections:
            print(json.dumps(copy(section).to_json()))  # the copy, not the plan, remembers the path, which may be long
        print(json.dumps(totals(plan)))
    else:
        table(plan, console())


def totals(plan: Plan) -> dict[str, int]:
    """The last line of `--json`: tokens of the document, flat windows of C tokens, C, the budget used, sections."""
    return {
        "document_tokens": plan.document_tokens,
        "flat_count": plan.flat_count,
        "base_budget": plan.base_budget,
        "budget": plan.budget,
        "count": len(plan.sections),
    }


def table(plan: Plan, out: Console) -> None:
    """Writes one line a section, and the totals."""
    columns = _Columns.of(plan, out.width)
    paths = ShortPaths(plan.document, columns.path)
    shown = [paths.of(section.place) if section.place else "" for section in plan.sections]
    columns = replace(columns, path=max(map(cell_len, [*shown, "path"])))
    out.print(columns.line("#", "path", "range", "tokens", "links"), style="bold", soft_wrap=True)
    for section, path in zip(plan.sections, shown, strict=True):
        out.print(columns.row(section, path), soft_wrap=True)
    out.print()
    for line in summary(plan):
        out.print(line, soft_wrap=True)


def summary(plan: Plan) -> list[str]:
    """The totals in words."""
    used = f"budget {plan.budget:,}"
    if plan.budget != plan.base_budget:
        used += f", chosen from {plan.base_budget:,} to {2 * plan.base_budget - 1:,}"
    size, flat = _count(plan.document_tokens, "token"), _count(plan.flat_count, "flat window")
    lines = [
        f"{_count(len(plan.sections), 'section')} ({used})",
        f"{size} in the document, {flat} of {plan.base_budget:,}",
    ]
    oversize = sum(section.oversize for section in plan.sections)
    if oversize:
        lines.append(f"! {_count(oversize, 'section')} over the budget: a value that must not be cut")
    lines += [f"note: {note}" for note in plan.document.notes]
    return lines


@dataclass(frozen=True)
class _Columns:
    """Widths of the table's columns, in terminal cells."""

    index: int
    path: int
    range: int
    tokens: int

    @classmethod
    def of(cls, plan: Plan, width: int) -> _Columns:
        index = len(str(len(plan.sections)))
        spans = max((len(_range(section)) for section in plan.sections), default=0)
        tokens = max((len(_tokens(section)) for section in plan.sections), default=0)
        rest = width - index - max(spans, 5) - max(tokens, 6) - 8 - LINKS_WIDTH
        return cls(index, max(16, rest), max(spans, 5), max(tokens, 6))

    def line(self, index: str, path: str, range: str, tokens: str, links: str) -> str:
        """One line of the table."""
        cells = [index.rjust(self.index), set_cell_size(path, self.path), range.ljust(self.range)]
        return "  ".join([*cells, tokens.rjust(self.tokens), links]).rstrip()

    def row(self, section: Section, path: str) -> str:
        """The line of a section whose path is shown as `path`."""
        return self.line(str(section.index), path, _range(section), _tokens(section), _links(section.links))


class ShortPaths:
    """Paths in at most `width` cells. A long path is never put together: its end is climbed from the node, its start
    is remembered for every node on the way, so that all rows together cost no more than the nodes they touch."""

    def __init__(self, document: Document, width: int) -> None:
        self._document, self._width = document, width
        self._heads: dict[int, tuple[str, bool]] = {}

    def of(self, node: Node) -> str:
        """The path, or its beginning, `…`, and its end."""
        head, whole = self._head(node)
        if whole and cell_len(head) <= self._width:
            return head or visible(self._document.path(node))
        tail = (self._width - 1) * 2 // 3
        return f"{_cut(head, self._width - 1 - tail)}…{_cut(self._tail(node, tail), -tail)}"

    def _head(self, node: Node) -> tuple[str, bool]:
        """The path from the root until it is wider than a row, and whether that is all of it."""
        way = []
        walk: Node | None = node
        while walk is not None and id(walk) not in self._heads:
            way.append(walk)
            walk = walk.parent
        head, whole = ("", True) if walk is None else self._heads[id(walk)]
        for below in reversed(way):
            if self._document.starts_path(below):
                head, whole = "", True
            whole = whole and len(head) <= self._width
            head = head + visible(self._document.step(below)) if whole else head
            self._heads[id(below)] = head, whole
        return self._heads[id(node)]

    def _tail(self, node: Node, width: int) -> str:
        """The last steps of the path, at least `width` characters of them if there are as many."""
        steps, length = [], 0
        walk: Node | None = node
        while walk is not None and length <= width:
            steps.append(visible(self._document.step(walk)))
            length += len(steps[-1])
            walk = None if self._document.starts_path(walk) else walk.parent
        return "".join(reversed(steps))


def _cut(text: str, width: int) -> str:
    """The first `width` cells of a text, or the last `-width`."""
    if width < 0:
        return _cut(text[::-1], -width)[::-1]
    kept = text[:width]
    while cell_len(kept) > width:
        kept = kept[:-1]
    return kept


def _range(section: Section) -> str:
    if section.range is not None:
        return f"{section.range[0]}-{section.range[1]}"
    return "text" if section.kind == "text" else ""


def _tokens(section: Section) -> str:
    return f"{section.tokens:,}" + ("!" if section.oversize else "")


def _links(links: Sequence[int]) -> str:
    shown = ", ".join(map(str, links[:LINKS_SHOWN]))
    more = len(links) - LINKS_SHOWN
    return shown if more <= 0 else f"{shown} and {more:,} more"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def document(path: str, format: str | None) -> tuple[str, str]:
    """The text of a file and the name of its format; standard input is JSON unless told otherwise."""
    format = format or ("json" if path == "-" else format_of(path))
    return read_text(path, format), format


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Puts the file's name before an error about its content."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{'standard input' if path == '-' else path}: {error}") from error
