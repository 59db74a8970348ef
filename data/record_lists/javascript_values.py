"""Static initialisers of JavaScript as typed values.

Decimal numbers with or without a sign, strings, true, false and null are values. Numbers of another base are static but
have no value here. Calls, functions, spreads, references, computed keys, templates and all else are faults.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tree_sitter import Node as Syntax

from ..formats.javascript_labels import label_of
from ..formats.javascript_tree import JavascriptDocument
from ..tree import Node
from .items import MAX_DEPTH, MAX_VALUES, OPAQUE, Fault, Item, Reading, close, decimal

_DECIMAL = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_OTHER_BASE = re.compile(r"[+-]?0[xX][0-9a-fA-F]+\Z")
_WORDS = {"true": True, "false": False, "null": None}
_FAULTS = {
    "call_expression": "a call",
    "new_expression": "a call",
    "arrow_function": "a function",
    "function_expression": "a function",
    "function": "a function",
    "generator_function": "a function",
    "method_definition": "a function",
    "class": "a class",
    "spread_element": "a spread",
    "identifier": "a reference",
    "shorthand_property_identifier": "a reference",
    "member_expression": "a reference",
    "subscript_expression": "a reference",
    "undefined": "a reference",
    "this": "a reference",
    "computed_property_name": "a computed key",
    "template_string": "a template",
    "regex": "a regular expression",
}
_CONTAINERS = ("object", "array")
_ASIDE = ("comment", "html_comment")


def initialisers(document: JavascriptDocument) -> Iterator[tuple[str, Node]]:
    """The object and array literals that initialise something, with their names; "" names a text that is just one."""
    root = document.root
    if root.kind != "program":
        yield "", root
        return
    walk = list(reversed(document.children(root)))
    while walk:
        node = walk.pop()
        if node.kind == "statement":
            walk.extend(reversed(document.children(node)))
        elif node.kind in _CONTAINERS:
            yield document.step(node), node


def read_initialiser(document: JavascriptDocument, name: str, node: Node) -> Reading:
    """The value of one initialiser."""
    return read_literal(document, document.literal(node), name)


def read_literal(document: JavascriptDocument, literal: Syntax, name: str = "") -> Reading:
    """The value of an object or array literal."""
    reader = _Reader(document)
    root = reader.item(literal)
    left, walk = MAX_VALUES, [(literal, root, 0)]
    while walk:
        node, item, depth = walk.pop()
        members = reader.members(node, item) if depth < MAX_DEPTH and left >= 0 else None
        if members is None:
            item.value, item.inside = OPAQUE, None
            reader.fault(node, f"nested deeper than {MAX_DEPTH}" if left >= 0 else "too large")
            continue
        left -= len(members)
        walk.extend((inside, held, depth + 1) for inside, held in members)
    close(root)
    reader.faults.sort(key=lambda fault: fault.at)
    return Reading(root.value, lambda: root, reader.faults, name)


class _Reader:
    """Items of the nodes of one text, and the faults met."""

    def __init__(self, document: JavascriptDocument) -> None:
        self._text, self._char = document.text, document.characters
        self.faults: list[Fault] = []

    def item(self, node: Syntax) -> Item:
        return Item(self._char(node.start_byte), self._char(node.end_byte), None)

    def fault(self, node: Syntax, reason: str) -> None:
        self.faults.append(Fault(self._char(node.start_byte), reason))

    def members(self, node: Syntax, item: Item) -> list[tuple[Syntax, Item]]:
        """Fills a container; the containers inside it."""
        named = [child for child in node.named_children if child.type not in _ASIDE]
        if node.type == "array":
            commas = sum(child.type == "," for child in node.children)
            if commas > len(named):
                self.fault(node, "a hole in an array")
            items = [self._value(child) for child in named]
            item.inside = items
            return [(child, held) for child, held in zip(named, items, strict=True) if child.type in _CONTAINERS]
        item.inside = {}
        opened: list[tuple[Syntax, Item]] = []
        for member in named:
            key, value = self._pair(member)
            if key is None or value is None:
                continue
            if key in item.inside or key == "__proto__":
                self.fault(member, "a key stands twice in one object" if key in item.inside else "a prototype")
            held = item.inside[key] = self._value(value)
            if value.type in _CONTAINERS:
                opened.append((value, held))
        return opened

    def _pair(self, member: Syntax) -> tuple[str | None, Syntax | None]:
        key, value = member.child_by_field_name("key"), member.child_by_field_name("value")
        if member.type != "pair" or key is None or value is None:
            self.fault(member, _FAULTS.get(member.type, "a member that is no pair"))
            return None, None
        if key.type == "computed_property_name":
            self.fault(key, _FAULTS[key.type])
            return None, None
        return _joined(label_of(self._source(key))), value

    def _value(self, node: Syntax) -> Item:
        item = self.item(node)
        if node.type in _CONTAINERS:
            return item
        source = self._source(node)
        if node.type == "string":
            text = _joined(label_of(source))
            item.value = OPAQUE if text is None else text
            if text is None:
                self.fault(node, "half a character")
        elif source in _WORDS:
            item.value = _WORDS[source]
        elif _DECIMAL.match(source):
            item.value = decimal(source)
        else:
            item.value = OPAQUE
            if not _OTHER_BASE.match(source):
                self.fault(node, _FAULTS.get(node.type, "an expression"))
        return item

    def _source(self, node: Syntax) -> str:
        return self._text[self._char(node.start_byte) : self._char(node.end_byte)]


def _joined(text: str) -> Any:
    """The text with surrogate pairs made one character; None where one stands alone."""
    try:
        text.encode()
    except UnicodeEncodeError:
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            return None
    return text
