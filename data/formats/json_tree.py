"""JSON (RFC 8259) as a tree of exact spans.

A numpy index of all separators, ordered by depth, gives the children of any container as one slice of two arrays; no
object is made per node. `json.loads` is the strict check; what it refuses, and what is too deep for it, goes to a
grammar of our own that walks without recursion and says where the text is wrong. Numbers are spans and are never
converted; duplicate keys stay.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left

import numpy as np

from ...errors import ParseError
from ..counts import code_points
from ..tree import Document, LeafText, Node, Offsets

_BOM = "\ufeff"
_OPEN, _CLOSE, _COMMA = 1, 2, 3
_CLASS = np.zeros(128, np.uint8)
for _char, _code in zip("{[}],", (_OPEN, _OPEN, _CLOSE, _CLOSE, _COMMA), strict=True):
    _CLASS[ord(_char)] = _code
_UNIT = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SCALARS = {'"': "string", "t": "true", "f": "false", "n": "null", "{": "object", "[": "array"}


def parse_json(text: str) -> JsonDocument:
    """The tree of a JSON text; a byte order mark may stand before it. Raises ParseError with line and column."""
    start = len(_BOM) if text.startswith(_BOM) else 0
    check_json(text, start)
    return JsonDocument(text, start)


class JsonDocument(Document):
    """A JSON text with its tree. An object member (key and value together) or an array element is a child."""

    format = "json"

    def __init__(self, text: str, start: int = 0) -> None:
        self.text = text
        self.notes = ("byte order mark",) if start else ()
        self._index = _Index(text)
        self._copies_of: dict[int, dict[int, int]] = {}
        first = self._index.solid_from(start)
        self.root = self._node(first, self._index.solid_before(len(text)), None, 0, first)

    def spans(self, node: Node) -> tuple[Offsets, Offsets]:
        if not node.n_children:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        return self._index.children(node.content)

    def child(self, node: Node, ordinal: int) -> Node:
        start, end = self._index.child(node.content, ordinal)
        content = start
        if node.kind == "object":
            content = self._value_start(self._index.string_end(start))
        return self._node(start, end, node, ordinal, content)

    def step(self, node: Node) -> str:
        parent = node.parent
        if parent is None:
            return "$"
        if parent.kind == "array":
            return f"[{node.ordinal}]"
        key = self._key(node.start)
        step = f".{key}" if _IDENTIFIER.match(key) else f"[{_quoted(key)}]"
        copy = self._copies(parent).get(node.ordinal, 1)
        return step if copy == 1 else f"{step}#{copy}"

    def leaf_text(self, node: Node) -> LeafText:
        start, end = node.content + 1, node.end - 1
        units = [m.span() for m in _UNIT.finditer(self.text, start, end)]
        return LeafText(start, end, [s for s, _ in units], [e for _, e in units])

    def frame(self, parent: Node) -> tuple[str, str]:
        return ("{", "}") if parent.kind == "object" else ("[", "]")

    def quotes(self, leaf: Node) -> tuple[str, str]:
        return self.text[leaf.start : leaf.content + 1], '"'

    def _node(self, start: int, end: int, parent: Node | None, ordinal: int, content: int) -> Node:
        kind = _SCALARS.get(self.text[content], "number")
        count = self._index.count(content) if kind in ("object", "array") else 0
        divisible = kind == "string" and end - content > 2
        return Node(kind, start, end, parent, ordinal, content, count, divisible)

    def _key(self, start: int) -> str:
        return json.loads(self.text[start : self._index.string_end(start)])

    def _value_start(self, key_end: int) -> int:
        colon = self.text.index(":", key_end)
        return self._index.solid_from(colon + 1)

    def _copies(self, parent: Node) -> dict[int, int]:
        """For members whose key stood in `parent` before: ordinal to 2, 3, …; found once for each object asked
        about."""
        copies = self._copies_of.get(parent.content)
        if copies is None:
            copies = self._copies_of[parent.content] = {}
            seen: dict[str, int] = {}
            for ordinal, start in enumerate(self.spans(parent)[0].tolist()):
                key = self._key(start)
                seen[key] = seen.get(key, 0) + 1
                if seen[key] > 1:
                    copies[ordinal] = seen[key]
        return copies


def _quoted(key: str) -> str:
    try:
        key.encode()
    except UnicodeEncodeError:
        return json.dumps(key)
    return json.dumps(key, ensure_ascii=False)


class _Index:
    """Where the containers and commas of a valid JSON text stand, ordered so that each container's are adjacent.

    Separators (brackets and commas outside strings) are sorted by depth, then position. At one depth the text reads
    `[ , , ] [ , ]`, so the children of a container lie between consecutive entries from its opening to its closing
    bracket.
    """

    def __init__(self, text: str) -> None:
        codes = code_points(text)
        self._solid = np.flatnonzero(codes > 32).astype(np.int32)
        self._quotes = _quote_positions(codes)
        positions, kinds = _separators(codes, self._quotes)
        depth = np.cumsum((kinds == _OPEN).astype(np.int32) - (kinds == _CLOSE))
        depth[kinds == _CLOSE] += 1
        order = np.argsort(depth.astype(np.uint16) if depth.size and depth.max() < 65536 else depth, kind="stable")
        self._sorted = positions[order]
        self._closes = np.flatnonzero(kinds[order] == _CLOSE)
        opens = np.flatnonzero(kinds == _OPEN)
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        self._open_positions, self._open_ranks = positions[opens], rank[opens]

    def _range(self, open_position: int) -> tuple[int, int]:
        """Ranks of the container's opening and closing bracket."""
        first = int(self._open_ranks[bisect_left(self._open_positions, open_position)])
        return first, int(self._closes[bisect_left(self._closes, first)])

    def count(self, open_position: int) -> int:
        first, last = self._range(open_position)
        if last - first > 1:
            return last - first
        return 0 if self.solid_from(int(self._sorted[first]) + 1) == int(self._sorted[last]) else 1

    def children(self, open_position: int) -> tuple[Offsets, Offsets]:
        """Starts and ends of the container's children: what lies between its separators, white space trimmed."""
        first, last = self._range(open_position)
        starts = self._solid[np.searchsorted(self._solid, self._sorted[first:last] + 1)]
        ends = self._solid[np.searchsorted(self._solid, self._sorted[first + 1 : last + 1]) - 1] + 1
        return starts.astype(np.int64), ends.astype(np.int64)

    def child(self, open_position: int, ordinal: int) -> tuple[int, int]:
        at = self._range(open_position)[0] + ordinal
        return self.solid_from(int(self._sorted[at]) + 1), self.solid_before(int(self._sorted[at + 1]))

    def solid_from(self, position: int) -> int:
        """The first character at or after `position` that is not white space."""
        return int(self._solid[bisect_left(self._solid, position)])

    def solid_before(self, position: int) -> int:
        """The end of the last character before `position` that is not white space."""
        return int(self._solid[bisect_left(self._solid, position) - 1]) + 1

    def string_end(self, start: int) -> int:
        """The end of the string that opens at `start`."""
        return int(self._quotes[bisect_left(self._quotes, start) + 1]) + 1


def _quote_positions(codes: np.ndarray) -> np.ndarray:
    """Positions of the quotation marks that open and close strings: those after an even run of backslashes."""
    quotes = np.flatnonzero(codes == ord('"')).astype(np.int32)
    slashes = np.flatnonzero(codes == ord("\\"))
    if not slashes.size:
        return quotes
    starts_run = np.concatenate(([True], np.diff(slashes) > 1))
    run_start = slashes[np.maximum.accumulate(np.where(starts_run, np.arange(slashes.size), 0))]
    before = np.searchsorted(slashes, quotes) - 1
    touching = (before >= 0) & (slashes[before] == quotes - 1)
    run = np.where(touching, quotes - run_start[before], 0)
    return quotes[run % 2 == 0]


def _separators(codes: np.ndarray, quotes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions and kinds of the brackets and commas outside strings."""
    kinds = _CLASS[codes] if codes.dtype == np.uint8 else _CLASS[np.minimum(codes, 127)]
    positions = np.flatnonzero(kinds).astype(np.int32)
    outside = np.searchsorted(quotes, positions) % 2 == 0
    positions = positions[outside]
    return positions, kinds[positions]


_SPACE = re.compile(r"[ \t\n\r]*")
_STRING_BODY = re.compile(r'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![0-9A-Za-z+.\-])")
_WORD = re.compile(r"(?:true|false|null)(?![0-9A-Za-z_])")


def check_json(text: str, start: int = 0) -> None:
    """Raises ParseError unless `text[start:]` is one JSON value of any depth, by RFC 8259, without lone
    surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ParseError.at(
            "json", text, error.start, "a lone surrogate is not a character; write it escaped"
        ) from None
    try:
        json.loads(text[start:] if start else text, parse_int=len, parse_float=len, parse_constant=_refuse)
    except (ValueError, RecursionError):
        _walk(text, start)


def _refuse(name: str) -> None:
    raise ValueError(name)


def _walk(text: str, start: int) -> None:
    """The grammar without recursion: `closers` holds the bracket that each open container still needs."""
    closers: list[str] = []
    at = _skip(text, start)
    while True:
        at = _value_head(text, at, closers)
        while True:  # after a complete value
            at = _skip(text, at)
            if not closers:
                if at < len(text):
                    raise ParseError.at("json", text, at, "text after the end of the value")
                return
            char = text[at : at + 1]
            if char == closers[-1]:
                closers.pop()
                at += 1
            elif char == ",":
                at = _skip(text, at + 1)
                if closers[-1] == "}":
                    at = _member_key(text, at)
                break
            else:
                raise _expected(text, at, f"',' or '{closers[-1]}'")


def _value_head(text: str, at: int, closers: list[str]) -> int:
    """Reads down to the end of a scalar or of an empty container, pushing what it opens on the way."""
    while True:
        char = text[at : at + 1]
        if char not in ("{", "["):
            return _scalar(text, at)
        closer = "}" if char == "{" else "]"
        at = _skip(text, at + 1)
        if text[at : at + 1] == closer:
            return at + 1
        closers.append(closer)
        if closer == "}":
            at = _member_key(text, at)


def _member_key(text: str, at: int) -> int:
    if text[at : at + 1] != '"':
        raise _expected(text, at, "a key in double quotes")
    at = _skip(text, _string(text, at))
    if text[at : at + 1] != ":":
        raise _expected(text, at, "':'")
    return _skip(text, at + 1)


def _scalar(text: str, at: int) -> int:
    if text[at : at + 1] == '"':
        return _string(text, at)
    match = _NUMBER.match(text, at) or _WORD.match(text, at)
    if match is None:
        raise _expected(text, at, "a value")
    return match.end()


def _string(text: str, at: int) -> int:
    match = _STRING_BODY.match(text, at + 1)
    stop = match.end() if match else at + 1
    if text[stop : stop + 1] == '"':
        return stop + 1
    if stop == len(text):
        raise ParseError.at("json", text, at, "a string without its closing quotation mark")
    fault = "an escape that JSON does not have" if text[stop] == "\\" else "a control character in a string"
    raise ParseError.at("json", text, stop, fault)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _expected(text: str, at: int, what: str) -> ParseError:
    found = repr(text[at]) if at < len(text) else "the end of the text"
    return ParseError.at("json", text, at, f"expected {what}, found {found}")
