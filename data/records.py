"""Record lists inside any document, read from its own text.

Works on the tree of `data.tree.Document` alone: a record list is an array whose elements are like objects, a record is
the slice of its source. This is the reading that validation trusts: it knows nothing of how a document was made.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import InputError
from .catalog import FieldPath
from .tree import Document, Node

FieldKind = Literal["text", "number", "boolean", "null", "list", "mixed"]
_ALIKE = 0.5  # of the keys of all records, the share that a record must have for the list to be one of like records


@dataclass(frozen=True)
class RecordList:
    """An ordered list of records: its path, the records' values and their spans (characters) in the document."""

    path: str
    records: tuple[dict[str, Any], ...]
    spans: tuple[tuple[int, int], ...]


def find(document: Document) -> list[RecordList]:
    """The outermost lists of at least two like objects, in document order."""
    found, walk = [], [document.root]
    while walk:
        node = walk.pop()
        if node.kind == "array" and _is_record_list(document, node):
            found.append(_read(document, node))
        elif node.kind in ("array", "object"):
            walk.extend(reversed(document.children(node)))
    return found


def read(document: Document, path: str) -> RecordList:
    """The list of objects at `path`, of any length. Raises InputError where there is none."""
    walk = [document.root]
    while walk:
        node = walk.pop()
        here = document.path(node)
        if here == path:
            if node.kind != "array" or any(child.kind != "object" for child in document.children(node)):
                raise InputError(f"{path} is not a list of objects")
            return _read(document, node)
        if node.kind in ("array", "object") and path.startswith(here):
            walk.extend(reversed(document.children(node)))
    raise InputError(f"nothing lies at {path}")


def fields(records: Sequence[dict[str, Any]]) -> dict[FieldPath, FieldKind]:
    """The fields of the records, nested objects followed, with their kinds; "mixed" where records disagree. A null
    agrees with everything."""
    kinds: dict[FieldPath, FieldKind] = {}
    for record in records:
        for path, value in _leaves(record):
            kind, before = _kind(value), kinds.get(path)
            if before in (None, "null"):
                kinds[path] = kind
            elif kind not in ("null", before):
                kinds[path] = "mixed"
    return kinds


def _is_record_list(document: Document, node: Node) -> bool:
    children = document.children(node)
    if len(children) < 2 or any(child.kind != "object" or not child.n_children for child in children):
        return False
    steps = [{document.step(member) for member in document.children(child)} for child in children]
    common = Counter(step for keys in steps for step in keys)
    usual = {step for step, times in common.items() if times > _ALIKE * len(children)}
    return bool(usual) and all(len(keys & usual) >= _ALIKE * len(usual) for keys in steps)


def _read(document: Document, node: Node) -> RecordList:
    children = document.children(node)
    values = tuple(_value(document.text[child.content : child.end], document, child) for child in children)
    return RecordList(document.path(node), values, tuple((child.content, child.end) for child in children))


def _value(text: str, document: Document, node: Node) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) < len(pairs):
            raise InputError(f"{document.path(node)} has a key twice; its value is not clear")
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=unique)
    except RecursionError:
        raise InputError(f"{document.path(node)} is nested too deep to be a record") from None
    except ValueError as error:
        raise InputError(f"{document.path(node)}: {error}") from error


def _leaves(record: dict[str, Any]) -> Iterable[tuple[FieldPath, Any]]:
    walk: list[tuple[FieldPath, Any]] = [((), record)]
    while walk:
        path, value = walk.pop()
        if isinstance(value, dict):
            walk.extend(reversed([((*path, key), item) for key, item in value.items()]))
        else:
            yield path, value


def _kind(value: Any) -> FieldKind:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "list" if isinstance(value, list) else "text"
