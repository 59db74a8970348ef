"""YAML as typed values, one reading a document of the stream.

Quoted and block scalars are text; of the plain ones, JSON numbers are numbers, `true` and `false` booleans, `null`, `~`
and nothing are null, anything else is text. Keys are their text. Aliases, merge keys, tags and keys that are no scalars
are faults: whoever resolves them reads something else.
"""

from __future__ import annotations

import re
from typing import Any

from ..formats.yaml_tree import YamlDocument, scalar_text
from ..tree import Node
from .items import MAX_DEPTH, MAX_VALUES, OPAQUE, Fault, Item, Reading, close, number

_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_INDENTED = re.compile(r"[|>][-+]?[1-9]")
MERGE = "<<"


def read_yaml(document: YamlDocument) -> list[Reading]:
    """The documents of a stream."""
    root = document.root
    documents = document.children(root) if root.kind == "stream" else [root]
    return [_read(document, node) for node in documents]


def _read(document: YamlDocument, node: Node) -> Reading:
    root, faults, left = Item(node.content, node.end, None), list[Fault](), MAX_VALUES
    walk: list[tuple[Node, Item, int]] = [(node, root, 0)]
    while walk:
        at, item, depth = walk.pop()
        left -= at.n_children
        if "!" in document.properties(at):
            faults.append(Fault(item.start, "a tag says how a value is to be read"))
        if at.kind not in ("object", "array"):
            _scalar(document, at, item, faults)
        elif depth >= MAX_DEPTH or left < 0:
            item.value = OPAQUE
            faults.append(Fault(item.start, f"nested deeper than {MAX_DEPTH}" if left >= 0 else "too large", True))
        else:
            walk.extend((child, inside, depth + 1) for child, inside in _enter(document, at, item, faults))
    close(root)
    faults.sort(key=lambda fault: fault.at)
    return Reading(root.value, lambda: root, faults)


def _enter(document: YamlDocument, node: Node, item: Item, faults: list[Fault]) -> list[tuple[Node, Item]]:
    children = document.children(node)
    items = [Item(child.content, child.end, None) for child in children]
    if node.kind == "array":
        item.inside = items
        return list(zip(children, items, strict=True))
    item.inside = {}
    for ordinal, inside in enumerate(items):
        key = document.key(node, ordinal)
        if key is None or key == MERGE:
            merged = key == MERGE
            faults.append(Fault(inside.start, "another map is merged" if merged else "a key is no scalar", merged))
            key = f"{MERGE}{ordinal}"
        elif key in item.inside:
            faults.append(Fault(inside.start, "a key stands twice in one map"))
        item.inside[key] = inside
    return list(zip(children, items, strict=True))


def _scalar(document: YamlDocument, node: Node, item: Item, faults: list[Fault]) -> None:
    if node.kind == "alias":
        item.value = OPAQUE
        faults.append(Fault(item.start, "an alias stands for a value", True))
        return
    item.start, item.end = document.scalar(node)
    source = document.text[item.start : item.end]
    if _INDENTED.match(source):
        item.value = OPAQUE  # what it reads as depends on where it stands
        return
    if source[:1] in ("|", ">", "'", '"'):
        item.value = scalar_text(source)
    else:
        item.value = _plain(source)


def _plain(source: str) -> Any:
    if source in _WORDS:
        return _WORDS[source]
    value = number(source)
    return scalar_text(source) if value is None else value
