"""JSON as typed values; places are found only where somebody asks for them.

A whole text is read by `json.loads`, whose nesting is bounded; a text that it cannot hold is read through the tree.
Numbers that are not spelled in the usual way keep their spelling.
"""

from __future__ import annotations

import json
from typing import Any

from ..tree import Document, Node
from .items import MAX_DEPTH, MAX_VALUES, OPAQUE, Fault, Item, Reading, close, number

_WORDS = {"true": True, "false": False, "null": None}


def read_json(document: Document) -> Reading:
    """The value of a document."""
    twice = False

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal twice
        found = dict(pairs)
        twice |= len(found) < len(pairs)
        return found

    root = document.root
    text = document.text[root.content : root.end]
    try:
        value = json.loads(text, object_pairs_hook=unique, parse_int=number, parse_float=number)
    except RecursionError:
        item, faults = _read(document)
        return Reading(item.value, lambda: item, faults)
    faults = [Fault(root.content, "a key stands twice in one object")] if twice else []
    return Reading(value, lambda: _read(document)[0], faults)


def _read(document: Document) -> tuple[Item, list[Fault]]:
    """The values with their places."""
    root, faults, left = Item(document.root.content, document.root.end, None), list[Fault](), MAX_VALUES
    walk: list[tuple[Node, Item, int]] = [(document.root, root, 0)]
    while walk:
        at, item, depth = walk.pop()
        left -= at.n_children
        if at.kind not in ("object", "array"):
            item.value = _scalar(document.text[at.content : at.end], at.kind)
        elif depth >= MAX_DEPTH or left < 0:
            item.value = OPAQUE
            faults.append(Fault(item.start, f"nested deeper than {MAX_DEPTH}" if left >= 0 else "too large", True))
        else:
            walk.extend((child, inside, depth + 1) for child, inside in _enter(document, at, item, faults))
    close(root)
    faults.sort(key=lambda fault: fault.at)
    return root, faults


def _enter(document: Document, node: Node, item: Item, faults: list[Fault]) -> list[tuple[Node, Item]]:
    children = document.children(node)
    items = [Item(child.content, child.end, None) for child in children]
    if node.kind == "array":
        item.inside = items
    else:
        keys = [_key(document.text, child) for child in children]
        item.inside = dict(zip(keys, items, strict=True))
        if len(item.inside) < len(items):
            faults.append(Fault(item.start, "a key stands twice in one object"))
    return list(zip(children, items, strict=True))


def _key(text: str, member: Node) -> str:
    return json.JSONDecoder().raw_decode(text, member.start)[0]


def _scalar(text: str, kind: str) -> Any:
    if kind == "string":
        return json.loads(text)
    return _WORDS[text] if text in _WORDS else number(text)
