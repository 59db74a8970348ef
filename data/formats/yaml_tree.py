"""YAML as a tree of exact spans.

A mapping entry (key and value together) or a sequence item is a child, with the comments that belong to it; so is a
document of a stream that has several. Plain and quoted scalars are divisible, but for the numbers, booleans and nulls
of YAML's core schema; block scalars, aliases and what is left out are atomic. A key that is itself a collection or an
alias is named by its place: `[?2]` is the entry with ordinal 2. Places come from `yaml_index`; nothing is resolved,
expanded or constructed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import numpy as np

from ..tree import Document, LeafText, Node, Offsets
from .yaml_events import ALIAS, MAPPING, SCALAR, SEQUENCE, read_events, scalar_value
from .yaml_index import Index, YamlNode
from .yaml_wrapper import Wrapper

_BOM = "\ufeff"
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_CORE = re.compile(
    r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?\.(?:inf|Inf|INF)"
    r"|\.(?:nan|NaN|NAN)|(?P<word>null|Null|NULL|~|true|True|TRUE|false|False|FALSE))\Z"
)
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}"
    r"|\\U[0-9a-fA-F]{8}|\\\r\n|\\.",
    re.DOTALL,
)
_UNITS = {'"': _ESCAPE, "'": re.compile("''")}
_LINE = re.compile(r"[\n\r\x85\u2028\u2029]")
_SPACE = re.compile(r"[ \t\n\r\x85\u2028\u2029\ufeff]*")


def parse_yaml(text: str) -> YamlDocument:
    """The tree of a YAML stream; a byte order mark may stand before it. Raises ParseError with line and column,
    LimitError for nesting beyond what libyaml reads (about 1,000 levels)."""
    return YamlDocument(text, len(_BOM) if text.startswith(_BOM) else 0)


class YamlDocument(Document):
    """A YAML stream with its tree. The root is the stream's only document, or the stream."""

    format = "yaml"

    def __init__(self, text: str, start: int = 0) -> None:
        self.text = text
        self.notes = ("byte order mark",) if start else ()
        self._index = Index(text, start, read_events(text, start))
        self._wrapper = Wrapper(text, self._index)
        self._copies_of: dict[int, dict[int, int]] = {}
        self._starts, self._ends = self._document_spans(start)
        self.root = self._root(start)

    def spans(self, node: Node) -> tuple[Offsets, Offsets]:
        if node.kind == "stream":
            return self._starts, self._ends
        if not node.n_children:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        index, (first, stop, step) = self._index, self._range(node)
        return index.entry_starts[first:stop:step], index.entry_ends[first + step - 1 : stop : step]

    def child(self, node: Node, ordinal: int) -> Node:
        if node.kind == "stream":
            return self._document(node, ordinal)
        index, (first, _, step) = self._index, self._range(node)
        head, value = first + step * ordinal, first + step * ordinal + step - 1
        start, end = int(index.entry_starts[head]), int(index.entry_ends[value])
        return self._node(node, ordinal, start, end, int(index.proper[head]), int(index.order[value]))

    def step(self, node: Node) -> str:
        parent = node.parent
        if parent is None:
            return "$"
        if parent.kind == "stream":
            return f"doc[{node.ordinal}]"
        if parent.kind == "array":
            return f"[{node.ordinal}]"
        key = self._key(parent, node.ordinal)
        if key is None:
            return f"[?{node.ordinal}]"
        step = f".{key}" if _IDENTIFIER.match(key) else f"[{json.dumps(key, ensure_ascii=False)}]"
        copy = self._copies(parent).get(node.ordinal, 1)
        return step if copy == 1 else f"{step}#{copy}"

    def leaf_text(self, node: Node) -> LeafText:
        start, end = self._inside(node)
        unit = _UNITS.get(self.text[start - 1]) if start > self._scalar(_own(node).event)[0] else None
        units = [m.span() for m in unit.finditer(self.text, start, end)] if unit else []
        return LeafText(start, end, [s for s, _ in units], [e for _, e in units])

    def quotes(self, leaf: Node) -> tuple[str, str]:
        start, end = self._inside(leaf)
        return self.text[leaf.start : start], self.text[end : leaf.end]

    def _inside(self, leaf: Node) -> tuple[int, int]:
        """Where the text of a plain or quoted scalar stands, without its quotation marks."""
        start, end = self._scalar(_own(leaf).event)
        return (start + 1, end - 1) if self.text[start] in _UNITS else (start, end)

    def frame(self, parent: Node) -> tuple[str, str]:
        node = _own(parent)
        return self._wrapper.around([node], False, node.end, node.end)

    def wrapper(self, parent: Node | None, opened: Sequence[Node], start: int, end: int) -> tuple[str, str]:
        chain = [_own(node) for node in opened or filter(None, [parent])]
        return self._wrapper.around(chain, bool(opened), start, end)

    def _document_spans(self, start: int) -> tuple[Offsets, Offsets]:
        """Where the documents start and end: each with its directives, and the comments before it."""
        index = self._index
        ends = index.document_stops
        befores = [start, *ends[:-1].tolist()] if len(ends) else []
        return np.array([_skip(self.text, before) for before in befores], np.int64), ends

    def _root(self, start: int) -> Node:
        many = len(self._starts)
        if many == 1:
            return self._document(None, 0)
        first, end = _skip(self.text, start), len(self.text.rstrip())
        if not many:
            return YamlNode("null", first, end, None, 0, first, 0)
        return YamlNode("stream", first, int(self._ends[-1]), None, 0, first, many)

    def _document(self, stream: Node | None, ordinal: int) -> YamlNode:
        start, end = int(self._starts[ordinal]), int(self._ends[ordinal])
        return self._node(stream, ordinal, start, end, start, int(self._index.order[ordinal]))

    def _node(self, parent: Node | None, ordinal: int, start: int, end: int, proper: int, event: int) -> YamlNode:
        index = self._index
        kind, count, divisible, flow = int(index.events.kinds[event]), 0, False, False
        document = ordinal
        if isinstance(parent, YamlNode) and parent.event >= 0:
            flow, document = parent.flow, parent.document
        if kind in (MAPPING, SEQUENCE):
            number = index.collection[event]
            count = int(index.stop[number] - index.first[number]) // (2 if kind == MAPPING else 1)
            flow = flow or bool(index.bracketed[event])
            name = "object" if kind == MAPPING else "array"
        else:
            name = self._scalar_kind(event)
            divisible = name == "string"
        content = min(int(index.events.starts[event]), end)
        return YamlNode(name, start, end, parent, ordinal, content, count, divisible, event, proper, flow, document)

    def _scalar_kind(self, event: int) -> str:
        if self._index.events.kinds[event] == ALIAS:
            return "alias"
        start, end = self._scalar(event)
        if start == end:
            return "null"
        sign = self.text[start]
        if sign in "|>":
            return "block"
        if sign in _UNITS:
            return "string" if end - start > 2 else "empty"
        if (plain := _CORE.match(self.text, start, end)) is None:
            return "string"
        word = (plain.group("word") or "").lower()
        return "null" if word == "~" else word or "number"

    def _scalar(self, event: int) -> tuple[int, int]:
        """Start and end of a scalar without anchor and tag, quotation marks counted in."""
        return int(self._index.scalar_starts[event]), int(self._index.events.ends[event])

    def _range(self, node: Node) -> tuple[int, int, int]:
        """Where the children of a collection stand in the index: first, stop and step."""
        number = self._index.collection[_own(node).event]
        return int(self._index.first[number]), int(self._index.stop[number]), 2 if node.kind == "object" else 1

    def _key(self, parent: Node, ordinal: int) -> str | None:
        """The key as read, None for one that is no scalar."""
        event = int(self._index.order[self._range(parent)[0] + 2 * ordinal])
        if self._index.events.kinds[event] != SCALAR:
            return None
        start, end = self._scalar(event)
        return scalar_text(self.text[start:end])

    def _copies(self, parent: Node) -> dict[int, int]:
        """For entries whose key stood in `parent` before: ordinal to 2, 3, …; found once for each mapping asked
        about."""
        event = _own(parent).event
        copies = self._copies_of.get(event)
        if copies is None:
            copies = self._copies_of[event] = {}
            seen: dict[str, int] = {}
            for ordinal in range(parent.n_children):
                key = self._key(parent, ordinal)
                if key is not None:
                    seen[key] = seen.get(key, 0) + 1
                    if seen[key] > 1:
                        copies[ordinal] = seen[key]
        return copies


def _own(node: Node) -> YamlNode:
    assert isinstance(node, YamlNode)
    return node


def _skip(text: str, start: int) -> int:
    """The first character from `start` that is not white space or a byte order mark."""
    match = _SPACE.match(text, start)
    return match.end() if match else start


def scalar_text(source: str) -> str:
    """What a scalar's own characters read as; asked of libyaml only where its source is not simply its value."""
    if not _LINE.search(source):
        if source[:1] == "'":
            return source[1:-1].replace("''", "'")
        if source[:1] == '"' and "\\" not in source:
            return source[1:-1]
        if source[:1] not in ('"', "|", ">"):
            return source
        if source[0] == '"':
            try:
                return json.loads(source)
            except ValueError:
                pass
    return scalar_value(source)
