"""YAML read by ruamel's own scanner and parser, event by event: no tags, no aliases, nothing is constructed.

A stream is cut at its `---` lines, which no scalar can hold. Plain scalars that are JSON numbers, true, false, null, ~
or nothing have those values; all other scalars are their text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .reading import (
    KEYS,
    MOST_DEPTH,
    UNIT,
    Kept,
    Reading,
    Record,
    Scope,
    Tree,
    Unit,
    chosen,
    digest_of,
    records_at,
    steps_of,
)
from .values import OPAQUE, Unreadable, number_of

_CUT = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_SILENT = re.compile(r"(?:\s|#[^\n]*(?:\n|\Z))*\Z")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\Z")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}


def read_yaml(text: str, scope: Scope) -> Reading:
    """The records of a stream; a document is a unit. Raises Unreadable."""
    reading, trees = Reading(), list[Tree]()
    for start, end in _documents(text):
        tree = _kept.tree(text[start:end])
        trees.append(tree)
        reading.units.append(Unit(_about(tree), start, end, digest_of(text[start:end].strip())))
    steps = steps_of(scope.pattern)
    for number in chosen(reading.units, scope):
        unit = reading.units[number]
        for values, found, keys in records_at(trees[number], steps, scope.shape):
            record = {**values, UNIT: unit.about, KEYS: keys}
            reading.records.append(Record(record, unit.start + found.start, unit.start + found.end, number))
    return reading


def _documents(text: str) -> Iterator[tuple[int, int]]:
    """Where the documents of a stream stand."""
    cuts = [cut.span() for cut in _CUT.finditer(text)]
    starts, ends = [0, *(end for _, end in cuts)], [*(start for start, _ in cuts), len(text)]
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if number or not _SILENT.match(text, start, end):
            yield start, end


def _about(tree: Tree) -> dict[str, str]:
    """By which title people name a document: that of its `info`, or its own title or name."""
    top = tree.held if isinstance(tree.held, dict) else {}
    info = top["info"].held if "info" in top else None
    titles = [info["title"]] if isinstance(info, dict) and "title" in info else []
    for said in (*titles, *(top[key] for key in ("title", "name") if key in top)):
        if isinstance(said.value, str) and said.value.strip():
            return {"title": " ".join(said.value.split())}
    return {}


def stated_license(text: str) -> str:
    """What a document names as its licence, "" where it does not."""
    tree = _kept.tree(text)
    for key in ("info", "license", "name"):
        if not isinstance(tree.held, dict) or key not in tree.held:
            return ""
        tree = tree.held[key]
    return " ".join(tree.value.split()) if isinstance(tree.value, str) else ""


class _Composer:
    """Makes one tree of the events of a text."""

    def __init__(self) -> None:
        self._open: list[tuple[Tree, str | None]] = []  # containers, and the key that waits for its value
        self._roots: list[Tree] = []

    def compose(self, text: str) -> Tree:
        """The tree of the one document in a text. Raises Unreadable."""
        from ruamel.yaml import YAML
        from ruamel.yaml.error import YAMLError

        try:
            for event in YAML(typ="safe", pure=True).parse(text):
                self._take(type(event).__name__, event)
        except (YAMLError, ValueError, RecursionError, AttributeError, IndexError, KeyError) as error:
            raise Unreadable(f"it is no YAML: {' '.join(str(error).split())[:160]}") from None
        if len(self._roots) != 1:
            raise Unreadable(f"{len(self._roots)} documents stand where there should be one")
        return self._roots[0]

    def _take(self, kind: str, event: Any) -> None:
        start, end = event.start_mark.index, event.end_mark.index
        if kind in ("MappingStartEvent", "SequenceStartEvent"):
            if len(self._open) >= MOST_DEPTH:
                raise Unreadable(f"it is nested deeper than {MOST_DEPTH}")
            held: dict[str, Tree] | list[Tree] = {} if kind[0] == "M" else []
            tree = Tree(start, end, OPAQUE, held)
            self._add(tree)
            self._open.append((tree, None))
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            tree, _ = self._open.pop()
            tree.end = max(end, tree.end)
        elif kind == "ScalarEvent":
            tree = Tree(start, end, _scalar(event))
            around, key = self._open[-1] if self._open else (None, "")
            if around is not None and isinstance(around.held, dict) and key is None:
                self._key(around, event.value)
            else:
                self._add(tree)
        elif kind == "AliasEvent":
            self._add(Tree(start, end, OPAQUE))

    def _key(self, around: Tree, key: str) -> None:
        assert isinstance(around.held, dict)
        if key in around.held:
            raise Unreadable(f"the key {key[:40]!r} stands twice in a map")
        self._open[-1] = (around, key)

    def _add(self, tree: Tree) -> None:
        if not self._open:
            self._roots.append(tree)
            return
        around, key = self._open[-1]
        if isinstance(around.held, list):
            around.held.append(tree)
            return
        assert isinstance(around.held, dict)
        if key is None:
            raise Unreadable("a key is no scalar")
        around.held[key] = tree
        self._open[-1] = (around, None)


def _scalar(event: Any) -> Any:
    if event.style in ("'", '"', "|", ">"):
        return event.value
    if event.value in _WORDS:
        return _WORDS[event.value]
    return number_of(event.value) if _NUMBER.match(event.value) else event.value


_kept = Kept(6_000_000, lambda text: _Composer().compose(text))
