"""Record lists of HTML pages: tables with a row of headings, definitions, repeated elements.

A table is offered where every reader sees the same rows: no table inside, no cell over several rows or columns, no row
with other cells than the headings. Elements that repeat are records of what their classes name. All of it is found in
one walk in document order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ..catalog import Shape
from ..formats.html_tree import HtmlDocument
from ..tree import Node
from .html_text import Text, attribute, name_at, names, text_of
from .lists import RecordList, Span

MAX_LISTS = 2_000
"""Record lists that are read of one page."""
MAX_LEVELS = 100
"""Elements inside each other; lists that lie deeper are not looked for."""
MAX_FIELDS = 200
"""Columns of a table, and labels of a definition list."""
ITEM_DEPTH, ITEM_NODES = 6, 200
"""How deep, and over how many nodes, the fields of a repeated element are looked for."""
FEWEST_ITEMS = 3
HEADING_LENGTH = 60
"""Characters of a heading of a column or a label; a longer one is no name."""
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_SECTIONS = frozenset(("thead", "tbody", "tfoot"))
_NO_ITEMS = _SECTIONS | names("table tr head script style select svg math dl p a span pre code")
_USUAL_HEADINGS = names(
    "attribute code column constant default description definition effect element example explanation field id key "
    "label meaning method name no. notes operator option parameter property purpose syntax term title type value"
)
_CLASS = re.compile(r"[A-Za-z]{3,20}(?:[-_][A-Za-z]{3,20}){0,2}\Z")
_REOPENED = re.compile(r"/(a|b|big|code|em|font|i|nobr|p|s|small|strike|strong|tt|u)(?=[/\[])")
"""Elements around a list that readers end in different places."""
_ANCHOR = re.compile(r"\s*[¶§#]+\Z")
_NUMERIC = re.compile(r"[-+]?[$€£]?\d[\d,.]*%?\Z")


@dataclass
class _Element:
    """An element of the walk. `nested`: it holds another of its kind."""

    node: Node
    name: str
    label: str
    heading: str
    nested: bool = False
    around: _Element | None = None


@dataclass
class _Row:
    """A row of a table: texts of its cells, which of them are headings, and whether one spans others."""

    node: Node
    cells: list[Text] = field(default_factory=list)
    heads: list[bool] = field(default_factory=list)
    spanning: bool = False
    bold: bool = False


def read_html(document: HtmlDocument, base: Node | None = None) -> list[RecordList]:
    """The record lists below `base` (the whole page), their patterns relative to it, or to the body of a page."""
    root = base or document.root
    prefix = "/html/body" if base is None else document.path(base)
    found: list[RecordList] = []
    for element in _candidates(document, root):
        if len(found) == MAX_LISTS:
            break
        path = document.path(element.node)
        if not path.startswith(prefix) or path == prefix:
            continue
        read = _READERS.get(element.name, _items)
        listed = read(document, element, path.removeprefix(prefix))
        if listed is not None:
            inside = _REOPENED.search(path.removeprefix(prefix))
            fault = listed.fault or (f"it stands inside <{inside[1]}>" if inside else "")
            found.append(replace(listed, fault=fault, extent=(element.node.start, element.node.end)))
    return found


def _candidates(document: HtmlDocument, root: Node) -> Iterator[_Element]:
    """Tables, definition lists and elements with repeated children, in document order."""
    text, heading = document.text, ""
    elements: list[_Element] = []
    walk: list[tuple[Node, _Element | None, int]] = [(root, None, 0)]
    while walk:
        node, around, depth = walk.pop()
        if node.kind not in ("element", "document") or depth > MAX_LEVELS:
            continue
        name = name_at(text, node.start) if node.kind == "element" else ""
        if name in _HEADINGS:
            heading = _ANCHOR.sub("", text_of(text, node.content, node.end).value)
            continue
        inside = around
        children = [child for child in document.children(node) if child.kind == "element"]
        if name in ("table", "dl"):
            inside = _Element(node, name, "", heading, around=around)
            elements.append(inside)
            if around is not None:
                around.nested = True
        elif around is None and name not in _NO_ITEMS and len(children) >= FEWEST_ITEMS:
            elements.append(_Element(node, name, "", heading))
        walk.extend((child, inside, depth + 1) for child in reversed(children))
    yield from elements


def _rows(document: HtmlDocument, table: Node) -> tuple[list[_Row], str, str]:
    """The rows of a table, its caption, and why they are not clear."""
    rows: list[_Row] = []
    caption, text = "", document.text
    walk = list(reversed(document.children(table)))
    while walk:
        node = walk.pop()
        if node.kind != "element":
            if node.kind == "text":
                return [], "", "text stands between its rows"
            continue
        name = name_at(text, node.start)
        if name == "caption":
            caption = text_of(text, node.content, node.end).value
        elif name in _SECTIONS and node.parent is table:
            walk.extend(reversed(document.children(node)))
        elif name == "tr":
            row = _row(document, node)
            if row is None:
                return [], "", "its rows hold more than cells"
            rows.append(row)
        elif name not in ("colgroup", "col", "script", "style"):
            return [], "", "it holds more than rows"
    return rows, caption, ""


def _row(document: HtmlDocument, node: Node) -> _Row | None:
    row, text = _Row(node), document.text
    for cell in document.children(node):
        name = name_at(text, cell.start) if cell.kind == "element" else ""
        if name not in ("td", "th"):
            if cell.kind == "comment":
                continue
            return None
        row.cells.append(text_of(text, cell.content, cell.end))
        row.heads.append(name == "th")
        spans = (attribute(text, cell.start, cell.content, kind) for kind in ("colspan", "rowspan"))
        row.spanning |= any(span not in ("", "1") for span in spans)
    inner = [text[c.content : c.content + 12].lstrip().lower() for c in document.children(node) if c.kind == "element"]
    row.bold = bool(inner) and all(start.startswith(("<b>", "<strong", "<b ")) for start in inner)
    return row


def _table(document: HtmlDocument, element: _Element, path: str) -> RecordList:
    rows, caption, fault = ([], "", "it holds another table") if element.nested else _rows(document, element.node)
    rows = [row for row in rows if row.cells]
    element.label = caption or element.heading
    if not fault and all(len(row.cells) == 2 for row in rows) and _has_labels(rows):
        pairs = [(row.cells[0], row.cells[1]) for row in rows if not row.spanning]
        return _defined(element, path, pairs, "cells span rows or columns" if len(pairs) < len(rows) else "")
    if fault or len(rows) < 2 or max(len(row.cells) for row in rows) < 2:
        return _nothing(element, path, "table", fault or "it has no rows of several cells below a first")
    return _with_headings(element, path, rows)


def _has_labels(rows: list[_Row]) -> bool:
    """Whether the first of two columns names the second, rather than the first row the others."""
    return bool(rows) and not (all(rows[0].heads) or _looks_like_headings(rows))


def _nothing(element: _Element, path: str, shape: Shape, fault: str) -> RecordList:
    return RecordList(path, path, shape, [], [], element.label, element.label, fault)


def _with_headings(element: _Element, path: str, rows: list[_Row]) -> RecordList:
    at = next((i for i, row in enumerate(rows) if any(row.heads)), 0)
    head, body = rows[at], rows[at + 1 :]
    width, names = len(head.cells), [cell.value for cell in head.cells]
    records = [row for row in body if len(row.cells) == width]
    fault = _table_fault(rows, at, names)
    keep = [i for i in range(width) if names[i] or not i]

    def places() -> list[tuple[Span, dict[tuple[str, ...], Span]]]:
        return [
            ((row.node.start, row.node.end), {(names[i],): (row.cells[i].start, row.cells[i].end) for i in keep})
            for row in records
        ]

    return RecordList(
        path,
        path,
        "table",
        [{names[i]: row.cells[i].value for i in keep} for row in records],
        [()] * len(records),
        element.label,
        element.label,
        fault,
        frozenset((names[i],) for i in keep if not all(row.cells[i].clear for row in records)),
        places=places,
    )


def _table_fault(rows: list[_Row], at: int, names: list[str]) -> str:
    """Why people and programs may read a table in different ways."""
    head, body = rows[at], rows[at + 1 :]
    width = len(names)
    if width < 2 or not body:
        return "it has a row of headings and nothing below"
    if any(row.spanning and len(row.cells) > 1 for row in (head, *body)):
        return "cells span rows or columns"
    if any(len(row.cells) > 1 for row in rows[:at]):
        return "rows stand before the headings"
    if any(len(row.cells) not in (1, width) for row in body):
        return "its rows have different numbers of cells"
    if any(len(row.cells) == width and (all(row.heads) or [c.value for c in row.cells] == names) for row in body):
        return "there are several rows of headings"
    if any(head.heads) and not all(head.heads[1:]):
        return "there is no row of headings"
    if not any(head.heads) and not _looks_like_headings(rows[at:]):
        return "there is no row of headings"
    said = [name.casefold() for name in names if name]
    if len(set(said)) < len(said):
        return "two columns have one heading"
    if width > MAX_FIELDS or any(len(name) > HEADING_LENGTH for name in names) or len(said) < 2:
        return "its headings are no names"
    return ""


def _looks_like_headings(rows: Sequence[_Row]) -> bool:
    """Whether the first row of a table without heading cells names what stands below it."""
    head, body = rows[0], [row for row in rows[1:] if len(row.cells) == len(rows[0].cells)]
    names = [cell.value for cell in head.cells]
    if any(head.heads) or not body or not all(names) or any(_NUMERIC.match(name) for name in names):
        return False
    if all(name.casefold() in _USUAL_HEADINGS for name in names):
        return True
    if head.bold and not all(row.bold for row in body):
        return True
    return any(all(_NUMERIC.match(row.cells[i].value) for row in body) for i in range(len(names))) and len(body) > 1


def _definitions(document: HtmlDocument, element: _Element, path: str) -> RecordList:
    """A `dl` whose terms have one definition each."""
    element.label = element.heading
    if element.nested:
        return _nothing(element, path, "definitions", "it holds another list")
    pairs: list[tuple[Text, Text]] = []
    term: Text | None = None
    fault, text = "", document.text
    for child in document.children(element.node):
        name = name_at(text, child.start) if child.kind == "element" else ""
        if name == "dt":
            fault = fault or ("a term has no definition" if term else "")
            term = text_of(text, child.content, child.end)
        elif name == "dd":
            if term is None:
                fault = fault or "a term has several definitions"
            else:
                pairs.append((term, text_of(text, child.content, child.end)))
            term = None
        elif child.kind != "comment":
            fault = fault or "it holds more than terms and definitions"
    return _defined(element, path, pairs, fault or ("a term has no definition" if term else ""))


def _defined(element: _Element, path: str, pairs: list[tuple[Text, Text]], fault: str) -> RecordList:
    """One record, whose fields are the labels."""
    if not 2 <= len(pairs) <= MAX_FIELDS:
        return _nothing(element, path, "definitions", fault or f"it has {len(pairs)} labels")
    labels = Counter(label.value for label, _ in pairs)
    unclear = {
        (label.value,)
        for label, value in pairs
        if labels[label.value] > 1 or not 0 < len(label.value) <= HEADING_LENGTH or not (label.clear and value.clear)
    }
    record: dict[str, str] = {}
    spans: dict[tuple[str, ...], Span] = {}
    for label, value in pairs:
        if label.value not in record:
            record[label.value] = value.value
            spans[(label.value,)] = value.start, value.end
    whole = element.node.start, element.node.end
    return RecordList(
        path,
        path,
        "definitions",
        [record],
        [()],
        element.label,
        element.label,
        fault,
        frozenset(unclear),
        places=lambda: [(whole, spans)],
    )


def _items(document: HtmlDocument, element: _Element, path: str) -> RecordList | None:
    """Children of the most frequent tag, if what their descendants' classes name is there in most of them."""
    text = document.text
    children = [child for child in document.children(element.node) if child.kind == "element"]
    tags = Counter(name_at(text, child.start) for child in children).most_common(2)
    if tags[0][1] < FEWEST_ITEMS or (len(tags) > 1 and tags[0][1] == tags[1][1]):
        return None
    members = [child for child in children if name_at(text, child.start) == tags[0][0]]
    read = [_classes(document, member) for member in members]
    held = Counter(name for fields in read if fields is not None for name in fields)
    if None in read or sum(times >= len(members) / 2 for times in held.values()) < 2:
        return None
    fields = [found for found in read if found is not None]
    unclear = {(name,) for found in fields for name, texts in found.items() if len(texts) > 1 or not texts[0].clear}
    records = [{name: texts[0].value for name, texts in found.items()} for found in fields]
    places = [
        ((member.start, member.end), {(name,): (texts[0].start, texts[0].end) for name, texts in found.items()})
        for member, found in zip(members, fields, strict=True)
    ]
    return RecordList(
        path,
        path,
        "items",
        records,
        [()] * len(records),
        element.heading,
        element.heading,
        "",
        frozenset(unclear),
        hidden=len(members) < len(children),
        places=lambda: places,
    )


def _classes(document: HtmlDocument, member: Node) -> dict[str, list[Text]] | None:
    """Texts of the descendants that have a class and text, by the first word of the class; None where there is more
    than is looked at. A class around other such classes is read too, but is never clear."""
    text, found = document.text, dict[str, list[Text]]()
    left = ITEM_NODES
    walk = [(child, 1) for child in reversed(document.children(member))]
    while walk:
        node, depth = walk.pop()
        left -= 1
        if left < 0 or depth > ITEM_DEPTH:
            return None
        if node.kind != "element":
            continue
        words = attribute(text, node.start, node.content, "class").split()
        if words and _CLASS.match(words[0]):
            read = text_of(text, node.content, node.end)
            if read.value:
                around = "class=" in text[node.content : node.end]
                found.setdefault(words[0], []).append(
                    Text(read.value, read.start, read.end, read.clear and not around) if around else read
                )
        walk.extend((child, depth + 1) for child in reversed(document.children(node)))
    return found


_READERS = {"table": _table, "dl": _definitions}
