"""Record lists inside any document, read from its own text.

`find` discovers them: lists and maps of like objects and maps of entries in JSON, YAML and JavaScript, what OpenAPI
documents list, tables, definitions and repeated elements in HTML. `select` reads the records that a scope means, as it
is executed on a context. Both read typed values with their places and resolve nothing: what two readers may read in two
ways is a fault.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...errors import InputError
from ..catalog import VALUE, Shape
from ..formats.html_tree import HtmlDocument
from ..formats.javascript_tree import JavascriptDocument
from ..formats.yaml_tree import YamlDocument
from ..tree import Document
from . import openapi
from .html_lists import read_html
from .items import Item, Reading
from .javascript_values import initialisers, read_initialiser
from .json_values import read_json
from .lists import RecordList, is_record, lists_in, located, name_of
from .patterns import EVERY, Step, entries_at, entry_items_at, items_at, objects_at, parsed, written
from .yaml_values import read_yaml


def find(document: Document) -> list[RecordList]:
    """The record lists of a document, in its order; of lists in lists, the outermost. Those of a YAML stream and of a
    JavaScript file come document by document and initialiser by initialiser, with patterns relative to them."""
    if isinstance(document, HtmlDocument):
        return read_html(document)
    return [found for reading in readings(document) for found in find_in(reading)]


def readings(document: Document) -> Iterator[Reading]:
    """The values of a document: of JSON one, of YAML one a document of the stream, of JavaScript one an initialiser."""
    if isinstance(document, YamlDocument):
        yield from read_yaml(document)
    elif isinstance(document, JavascriptDocument):
        yield from (read_initialiser(document, name, node) for name, node in initialisers(document))
    elif document.format == "json":
        yield read_json(document)


def find_in(reading: Reading) -> Iterator[RecordList]:
    """The record lists of one value."""
    value = reading.value
    if openapi.is_openapi(value):
        for pattern, ((_, several), _) in openapi.LISTS.items():
            found = select(reading, parsed(pattern), several)
            if len(found.records) > 1:
                yield found
        return
    listed = False
    for steps, shape in lists_in(value):
        listed |= shape == "objects"
        yield select(reading, (*steps, EVERY), name_of(steps) or _variable(reading.label), shape)
    if reading.label and not listed and is_record(value):
        yield select(reading, (), _variable(reading.label))


def _variable(label: str) -> str:
    """The name of what is initialised, without what it is a member of; "" where that says nothing."""
    last = label.partition("#")[0].rpartition(".")[2]
    return "" if last in ("exports", "export default") or label.startswith("call ") else last


def read(document: Document, path: str) -> RecordList:
    """The list of objects at `path` of a JSON document, of any length. Raises InputError where there is none."""
    reading = next(readings(document))
    here: Any = reading.value
    for step in parsed(path):
        try:
            here = here[step]
        except (KeyError, IndexError, TypeError):
            raise InputError(f"nothing lies at {path}") from None
    if not isinstance(here, list) or any(not isinstance(element, dict) for element in here):
        raise InputError(f"{path} is not a list of objects")
    found = select(reading, (*parsed(path), EVERY))
    if found.fault:
        raise InputError(f"{path}: {found.fault}")
    return found


def select(reading: Reading, steps: Sequence[Step], named: str = "", shape: Shape = "objects") -> RecordList:
    """The objects of a value that the steps lead to; of entries, the members of maps with their values."""
    if shape == "entries":
        matched = [(keys, _entry(member)) for keys, member in entries_at(reading.value, steps)]
        items = entry_items_at
    else:
        matched, items = list(objects_at(reading.value, steps)), items_at
    pattern = written(steps)
    return RecordList(
        written(steps[:-1]) if steps and steps[-1] is EVERY else pattern,
        pattern,
        shape,
        [record for _, record in matched],
        [keys for keys, _ in matched],
        named,
        "",
        _fault(reading, pattern, matched, lambda: items(reading.root, steps)),
        places=lambda: located(items(reading.root, steps), shape),
    )


def _entry(value: Any) -> dict[str, Any]:
    """The record of an entry: its value, if it has one that can be told."""
    return {} if value is None or isinstance(value, dict | list) else {VALUE: value}


def _fault(
    reading: Reading,
    pattern: str,
    matched: Sequence[tuple[tuple[str, ...], dict[str, Any]]],
    items: Callable[[], Iterator[Item]],
) -> str:
    """Why the records may be read in another way: a fault of the whole, one inside them, or a record that is none."""
    spans = [(item.start, item.end) for item in items()] if reading.faults else []
    for fault in reading.faults:
        before = bisect_right(spans, (fault.at, sys.maxsize)) - 1
        if not fault.local or (before >= 0 and fault.at < spans[before][1]):
            return fault.reason
    wrong = (openapi.fault_of(pattern, keys) for keys, _ in matched)
    return next(filter(None, wrong), "") if openapi.is_openapi(reading.value) else ""
