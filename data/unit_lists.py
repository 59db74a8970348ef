"""The record lists of a unit as it will stand in a context: wrapped as its frame wraps it, read by two readers.

Places are those of the unit's own text. What must not stand in any context, because readers may take it in different
ways, is an InputError.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import InputError
from .catalog import Shape, Unit
from .formats import parse
from .formats.html_tree import HtmlDocument
from .record_lists.finding import find_in, readings, select
from .record_lists.html_lists import MAX_LISTS, read_html
from .record_lists.html_second import SecondReading
from .record_lists.items import Reading
from .record_lists.lists import RecordList
from .record_lists.openapi import LISTS
from .record_lists.patterns import entries_at, objects_at, parsed
from .tree import Node

MAX_COMPARED = 5_000_000
"""Characters of a page's lists that the second reading is compared on; a list beyond is refused."""
_BEFORE = "<!DOCTYPE html>\n<html>\n<head><title></title></head>\n<body>\n<article>\n"
_END = "\n</article>"
_AFTER = "\n</body>\n</html>\n"


@dataclass(frozen=True, eq=False)
class UnitLists:
    """The lists found in a unit; its value, where its format has one; `unit` reads it again."""

    lists: Sequence[RecordList] = ()
    value: Any = None
    unit: Unit | None = field(default=None, repr=False)
    format: str = ""

    def at(self, pattern: str, shape: Shape) -> list[RecordList]:
        """What the pattern means in this unit, discovered or not: one list or none."""
        there = [one for one in self.lists if one.pattern == pattern and one.shape == shape]
        if there or self.value is None or self.unit is None:
            return there
        steps = parsed(pattern)
        if not any(True for _ in (entries_at if shape == "entries" else objects_at)(self.value, steps)):
            return []
        return [_placed(select(reading_of(self.unit, self.format), steps, shape=shape))]


def lists_of(unit: Unit, format: str) -> UnitLists:
    """The record lists of a unit. Raises InputError for one that must not stand in a context."""
    if format == "html":
        return UnitLists(_of_page(unit))
    reading = reading_of(unit, format)
    lists = [_spelled(_placed(one), unit.text) for one in find_in(reading)]
    for one in lists:
        if one.fault and one.pattern in LISTS:
            raise InputError(one.fault)
    return UnitLists(lists, reading.value, unit, format)


def reading_of(unit: Unit, format: str) -> Reading:
    """The value of a JSON, YAML or JavaScript unit. Raises InputError where it is not clear."""
    read = list(readings(parse(unit.text, format)))
    if len(read) != 1:
        kind = "initialisers" if format == "javascript" else "documents"
        raise InputError(f"it holds {len(read)} {kind}, not one")
    for fault in read[0].faults:
        if not fault.local:
            raise InputError(fault.reason)
    return read[0]


def page_of(body: str) -> tuple[HtmlDocument, Node]:
    """A page with one article that holds the inside of a body, and that article. Raises InputError where the inside
    ends the article or goes on after it."""
    document = parse(_BEFORE + body + _END + _AFTER, "html")
    assert isinstance(document, HtmlDocument)
    node, start, end = document.root, _BEFORE.rindex("<article"), len(_BEFORE) + len(body) + len(_END)
    while node.start != start or node.kind != "element":
        inside = [child for child in document.children(node) if child.start <= start < child.end]
        if not inside:
            raise InputError("its markup does not stay inside the page")
        node = inside[0]
    if node.end != end:
        raise InputError("its markup does not stay inside the page")
    return document, node


def _of_page(unit: Unit) -> list[RecordList]:
    document, article = page_of(unit.text)
    found = read_html(document, article)
    if len(found) >= MAX_LISTS:
        raise InputError(f"it has {MAX_LISTS} lists or more")
    second = SecondReading(document.text)
    compared, lists = 0, list[RecordList]()
    for one in found:
        start, end = one.extent
        compared += end - start
        if not one.fault and (compared > MAX_COMPARED or not second.reads(one.path, document.text, start, end)):
            one = replace(one, fault="two readers take its markup in different ways")
        lists.append(_placed(one, -len(_BEFORE)))
    return lists


def _spelled(one: RecordList, text: str) -> RecordList:
    """The list, with a fault where the keys that name its entries do not stand in the text as they read."""
    at = 0
    for keys, (start, end) in zip(one.keys, one.spans, strict=True) if one.shape == "entries" else ():
        if text.find(keys[-1], at, start) < 0:
            return replace(one, fault=one.fault or "its keys are written with escapes")
        at = end
    return one


def _placed(one: RecordList, shift: int = 0) -> RecordList:
    """The list with the places of its records found, and those of fields forgotten."""
    spans = [((start + shift, end + shift), {}) for start, end in one.spans]
    return replace(one, places=lambda: spans)
