"""Where the initialisers of a JavaScript text stand, found by tree-sitter.

Only cursor walks: the interior of an initialiser is not visited before somebody asks, and code is entered only where a
bracket follows what may stand before an initialiser. Offsets here are bytes; `Source.chars` turns them into characters.
"""

from __future__ import annotations

import re
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import tree_sitter_javascript
from tree_sitter import Language, Parser, Query, QueryCursor, TreeCursor
from tree_sitter import Node as Syntax

from ...errors import LimitError, ParseError
from ..tree import Offsets

FORMAT = "javascript"
MAX_DEPTH = 1_000_000
"""Brackets that may be open at once. tree-sitter recurses on some broken texts, so its stack follows their number."""
REST = 200
"""Bytes on either side that the rest of a statement may have to belong to its initialiser; a longer rest is code."""

_LANGUAGE = Language(tree_sitter_javascript.language())


def _kinds(*names: str) -> frozenset[int]:
    found = (_LANGUAGE.id_for_node_kind(name, True) for name in names)
    return frozenset(kind for kind in found if kind is not None)


_OBJECT, _ARRAY = _kinds("object"), _kinds("array")
_LITERAL = _OBJECT | _ARRAY
_COMMENT = _kinds("comment", "html_comment")
_ASIDE = _COMMENT | _kinds("hash_bang_line")
_PARENTHESES, _ARGUMENTS, _NEW = _kinds("parenthesized_expression"), _kinds("arguments"), _kinds("new_expression")
_DECLARATOR, _EXPORT = _kinds("variable_declarator"), _kinds("export_statement")
_ASSIGNMENT = _kinds("assignment_expression", "augmented_assignment_expression")
_STATEMENT = frozenset(
    kind
    for kind in range(_LANGUAGE.node_kind_count)
    if (_LANGUAGE.node_kind_for_id(kind) or "").endswith(("_statement", "_declaration"))
)
_CARRIER = _STATEMENT | _DECLARATOR
_COMMA = _LANGUAGE.id_for_node_kind(",", False)
_OPENING = frozenset(_LANGUAGE.id_for_node_kind(sign, False) for sign in ("{", "[", "(", "${"))
_CLOSER = frozenset(_LANGUAGE.id_for_node_kind(sign, False) for sign in "}])")
_BRACKETS = _OPENING | _CLOSER
_EMPTY_MEMBER = '(object "," . (comment)* . "," @found) (object . "{" . (comment)* . "," @found)'
_DECLARES = re.compile(rb"(?:export\s+)?(?:const|let|var)\s+\Z")
_CLOSING = re.compile(rb"[\s)\]},;]*\Z")
_SEPARATORS = b" \t\r\n\v\f,;"


@dataclass(frozen=True, slots=True)
class Initialiser:
    """An initialiser: its place, its name without number, and the statement or declarator it belongs to. `plain` tells
    a declarator of a top-level declaration."""

    node: Syntax
    name: str
    carrier: tuple[int, int]
    plain: bool


PieceKind = Literal["initialiser", "statement", "code", "comment"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a file: an initialiser with the rest of its statement; a statement that `parts` divide into
    initialisers and code; code without an initialiser; or comments that precede no statement. `lead` is where it starts
    after the comments before it."""

    kind: PieceKind
    start: int
    lead: int
    end: int
    initialiser: Initialiser | None = None
    parts: tuple[Piece, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """The members or elements of a literal in characters; a hole is the comma that ends it. `contents` are where they
    start after their comments; `closes_anew` tells that one ends with a comment to the end of the line."""

    starts: Offsets
    ends: Offsets
    contents: Offsets
    closes_anew: bool


class Source:
    """A JavaScript text that tree-sitter reads without a fault. `bare` is the literal, where the text is just one."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.data = _encoded(text)
        self._shift = 0
        self.root, self.bare = self._read()
        self._table = None if len(self.data) == len(text) + 3 * self._shift else _character_table(self.data)

    def _read(self) -> tuple[Syntax, Syntax | None]:
        """The tree, and the literal of a text that is just one: `{}` and `{a}` are such, though a script would read a
        block there, so a text that starts with a brace is read in parentheses if it can be."""
        root = _parsed(self.data)
        bare = None if root.has_error else _only_literal(root)
        if bare is None and re.match(rb"(?:\xef\xbb\xbf)?\s*(?://[^\n]*\n\s*|/\*.*?\*/\s*)*+\{", self.data, re.DOTALL):
            if root.has_error or _only(root) is not None:
                inside = b"(" + self.data + b"\n)"
                wrapped = _parsed(inside)
                bare = None if wrapped.has_error else _only_literal(wrapped)
                if bare is not None:
                    self.data, self._shift, root = inside, 1, wrapped
        if root.has_error:
            at, reason = _fault(root)
            raise ParseError.at(FORMAT, self.text, len(self.data[:at].decode()), reason)
        if _after(self.data, b",", b",{/"):
            found = QueryCursor(Query(_LANGUAGE, _EMPTY_MEMBER)).captures(root).get("found", [])
            if found:
                at = len(self.data[self._shift : min(node.start_byte for node in found)].decode())
                raise ParseError.at(FORMAT, self.text, at, "expected a member, found ','")
        return root, bare

    def chars(self, positions: Offsets) -> Offsets:
        """Characters before each byte position."""
        return positions - self._shift if self._table is None else self._table[positions].astype(np.int64) - self._shift

    def char(self, position: int) -> int:
        """Characters before the byte position."""
        return position - self._shift if self._table is None else int(self._table[position]) - self._shift

    def byte(self, character: int) -> int:
        """The byte at which a character starts."""
        if self._table is None:
            return character + self._shift
        return int(np.searchsorted(self._table, character + self._shift, "left"))

    def layout(self, literal: Syntax) -> Layout:
        """One pass over the children of an object or array. A comment before a separator belongs to the member before
        it, any other to the member that follows, the last ones to the last member."""
        starts: list[int] = []
        ends: list[int] = []
        contents: list[int] = []
        waiting, last_comment, empty, to_line_end = -1, -1, True, False
        for kind, start, end in _children(literal):
            if kind == _COMMA:
                if empty:  # a hole; an object has none
                    starts.append(start if waiting < 0 else waiting)
                    contents.append(start)
                    ends.append(end)
                empty, waiting = True, -1
            elif kind in _COMMENT:
                last_comment = end
                if not empty:
                    ends[-1] = end
                    to_line_end |= self.data[start : start + 2] != b"/*"
                elif waiting < 0:
                    waiting = start
            elif kind not in _BRACKETS:
                starts.append(start if waiting < 0 else waiting)
                contents.append(start)
                ends.append(end)
                empty, waiting = False, -1
        if waiting >= 0 and ends:
            ends[-1] = last_comment
            to_line_end = True
        arrays = (self.chars(np.array(positions, np.int64)) for positions in (starts, ends, contents))
        return Layout(*arrays, to_line_end)

    def keys(self, literal: Syntax) -> Iterator[str]:
        """What names each member of an object, as it is written: a key, or all of a spread."""
        cursor = literal.walk()
        more = cursor.goto_first_child()
        while more:
            member = _node(cursor)
            if _is_named(member.kind_id) and member.kind_id not in _COMMENT:
                key = _key(cursor)
                yield self._elided(key.start_byte, key.end_byte)
            more = cursor.goto_next_sibling()

    def pieces(self) -> tuple[Piece, ...]:
        """The statements of a file, each with the comments before it, and the initialisers in them."""
        held: dict[int, list[Initialiser]] = {}
        for statement, literal in _Finder(self).literals():
            held.setdefault(statement, []).append(literal)
        pieces: list[Piece] = []
        aside: tuple[int, int] | None = None
        for kind, start, end in _children(self.root):
            if kind in _ASIDE:
                aside = (start if aside is None else aside[0], end)
                continue
            found = self._statement(start, end, held.get(start, []))
            if found and aside is not None:
                if found[0].initialiser is not None and aside[1] - aside[0] > REST:
                    pieces.append(Piece("comment", aside[0], *aside))
                else:
                    found[0] = replace(found[0], start=aside[0])
                aside = None
            pieces.extend(found)
        if aside is not None:
            pieces.append(Piece("comment", aside[0], *aside))
        return tuple(pieces)

    def _elided(self, start: int, end: int) -> str:
        """The text of a name in one line; a spread or a computed key of more than `REST` bytes loses its middle."""
        first = self.data[start : start + 1]
        if end - start <= REST or first not in (b"[", b"."):
            return self.data[start:end].decode()
        return shortened(self.data, start, end)

    def _statement(self, start: int, end: int, literals: list[Initialiser]) -> list[Piece]:
        """The pieces of one statement that stand under the root."""
        if not literals:
            return list(self._code(start, end))
        if len(literals) == 1:
            node = literals[0].node
            if node.start_byte - start <= REST and end - node.end_byte <= REST:
                return [Piece("initialiser", start, start, end, literals[0])]
        parts = self._parts(start, end, literals)
        held = [(part.start, part.end) for part in parts if part.initialiser is not None]
        if all(literal.plain and literal.carrier == span for literal, span in zip(literals, held, strict=True)):
            return parts
        return [Piece("statement", start, start, end, None, tuple(parts))]

    def _parts(self, start: int, end: int, literals: list[Initialiser]) -> list[Piece]:
        """Initialisers, with the rest of their own statements where that is short, and the code between them."""
        parts: list[Piece] = []
        at = start
        for i, literal in enumerate(literals):
            node = literal.node
            before = literals[i - 1].node.end_byte if i else start
            after = literals[i + 1].node.start_byte if i + 1 < len(literals) else end
            first, last = literal.carrier
            short = node.start_byte - first <= REST and last - node.end_byte <= REST
            if not (short and before <= first and last <= after):
                first, last = node.start_byte, node.end_byte
            parts.extend(self._code(at, first))
            parts.append(Piece("initialiser", first, first, last, literal))
            at = last
        parts.extend(self._code(at, end))
        return parts

    def _code(self, start: int, end: int) -> Iterator[Piece]:
        """Code without white space and separators around it; nothing where only closing brackets are left."""
        text = self.data[start:end]
        start += len(text) - len(text.lstrip(_SEPARATORS))
        end -= len(text) - len(text.rstrip())
        if start < end and not _CLOSING.match(self.data, start, end):
            yield Piece("code", start, start, end)


class _Finder:
    """Walks to each bracket that may open an initialiser, and over those found."""

    def __init__(self, source: Source) -> None:
        self._data, self._root = source.data, source.root
        self._places: dict[int, dict[int, int]] = {}

    def literals(self) -> Iterator[tuple[int, Initialiser]]:
        """Each initialiser that stands in no other one, with the start of its top-level statement."""
        candidates = _after(self._data, b"{[", b"=(,t/")  # `t` ends `export default`
        path, at = _Path(self._root), 0
        while at < len(candidates):
            position, at = candidates[at], at + 1
            path.leave(position)
            while path.enter(position):
                if path.nodes[-1].start_byte == position and path.nodes[-1].kind_id in _LITERAL:
                    literal = self._literal(path)
                    if literal is not None:
                        yield path.nodes[1].start_byte, literal
                        at = bisect_left(candidates, literal.node.end_byte)
                        break

    def _literal(self, path: _Path) -> Initialiser | None:
        """The initialiser at the end of `path`, if what it stands in makes it one."""
        nodes = path.nodes
        place = len(nodes) - 2
        while place > 0 and nodes[place].kind_id in _PARENTHESES:
            place -= 1
        name = self._name(nodes, place)
        return None if name is None else Initialiser(nodes[-1], name, *self._carrier(nodes, path.carriers[place]))

    def _name(self, path: list[Syntax], place: int) -> str | None:
        parent = path[place]
        if parent.kind_id in _EXPORT:
            return "export default"
        if parent.kind_id in _DECLARATOR | _ASSIGNMENT and parent.start_byte < path[place + 1].start_byte:
            return self._text(parent.child(0))
        if parent.kind_id in _ARGUMENTS:
            call = path[place - 1]
            callee = call.child(1 if call.kind_id in _NEW else 0)
            return f"call {self._text(callee)} argument {self._argument(parent, path[place + 1].start_byte)}"
        return None

    def _argument(self, arguments: Syntax, start: int) -> int:
        """The 0-based place of the argument that starts at `start`."""
        if arguments.start_byte not in self._places:
            named = (child for child in arguments.named_children if child.kind_id not in _COMMENT)
            self._places[arguments.start_byte] = {child.start_byte: i for i, child in enumerate(named)}
        return self._places[arguments.start_byte][start]

    def _carrier(self, path: list[Syntax], at: int) -> tuple[tuple[int, int], bool]:
        """Bounds of the statement around; of a declarator, with the words before the first and the sign after the
        last. And whether it is a declarator of a top-level declaration."""
        first, last = path[at].start_byte, path[at].end_byte
        declarator = path[at].kind_id in _DECLARATOR
        around = at - 1 if declarator else at
        if around > 1 and path[around - 1].kind_id in _EXPORT:
            around -= 1
        whole = path[around]
        if not declarator or _DECLARES.match(self._data, whole.start_byte, first):
            first = whole.start_byte
        if not declarator or not self._data[last : whole.end_byte].strip(b"; \t\r\n"):
            last = whole.end_byte
        return (first, last), declarator and around == 1

    def _text(self, node: Syntax | None) -> str:
        """A name as it is written, in one line; the middle of a long one elided."""
        return "" if node is None else shortened(self._data, node.start_byte, node.end_byte)


def shortened(data: bytes, start: int, end: int) -> str:
    """A stretch of code in one line of at most 120 bytes, its middle elided if need be."""
    if end - start <= 120:
        text = data[start:end].decode()
    else:
        head, tail = data[start : start + 60], data[end - 60 : end]
        text = head.decode(errors="ignore") + "…" + tail.decode(errors="ignore")
    return " ".join(text.split())


class _Path:
    """The way from the root to a node. `carriers[i]` is the place of the nearest statement or declarator at or above
    node i."""

    def __init__(self, root: Syntax) -> None:
        self._cursor = root.walk()
        self.nodes, self.carriers, self._ends = [root], [0], [root.end_byte]

    def leave(self, position: int) -> None:
        """Goes up to what holds the byte."""
        while len(self._ends) > 1 and self._ends[-1] <= position:
            self._cursor.goto_parent()
            for stack in (self.nodes, self.carriers, self._ends):
                stack.pop()

    def enter(self, position: int) -> bool:
        """Goes to the child that holds the byte, if there is one."""
        if self._cursor.goto_first_child_for_byte(position) is None:
            return False
        node = _node(self._cursor)
        if node.start_byte > position:
            self._cursor.goto_parent()
            return False
        carries = len(self.nodes) == 1 or node.kind_id in _CARRIER
        self.carriers.append(len(self.nodes) if carries else self.carriers[-1])
        self.nodes.append(node)
        self._ends.append(node.end_byte)
        return True


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        reason = "a lone surrogate is not a character; write it escaped"
        raise ParseError.at(FORMAT, text, error.start, reason) from None


def _character_table(data: bytes) -> np.ndarray:
    """For each byte position, the characters that start before it."""
    table = np.zeros(len(data) + 1, np.int32)
    np.cumsum((np.frombuffer(data, np.uint8) & 0xC0) != 0x80, out=table[1:])
    return table


_STACK = threading.Lock()


def _parsed(data: bytes) -> Syntax:
    """The tree of `data`, made on a stack that is deep enough for the brackets in it."""
    codes = np.frombuffer(data, np.uint8)
    opens = _is_in(codes, b"([{")
    depth = np.cumsum(opens.astype(np.int8) - _is_in(codes, b")]}").astype(np.int8), dtype=np.int64)
    if depth.size and int((depth - np.minimum.accumulate(depth)).max()) > MAX_DEPTH:
        raise LimitError(f"more than {MAX_DEPTH:,} brackets are open at once")
    found: list[Syntax] = []

    def parse() -> None:
        tree = Parser(_LANGUAGE).parse(data)
        found.append(tree.root_node)

    _on_stack(parse, (16 << 20) + 512 * min(int(opens.sum()), 4 * MAX_DEPTH))
    return found[0]


def _on_stack(work: Callable[[], None], size: int) -> None:
    """Runs `work` in a thread with a stack of `size` bytes, of which only what is used is taken from memory."""
    thread = threading.Thread(target=work)
    with _STACK:
        before = threading.stack_size(size)
        try:
            thread.start()
        finally:
            threading.stack_size(before)
    thread.join()


def _fault(root: Syntax) -> tuple[int, str]:
    """Where the first fault of a tree stands, and what it is."""
    cursor = root.walk()
    while True:
        node = _node(cursor)
        if node.is_missing:
            return node.start_byte, f"expected {node.type!r}"
        inside = node.has_error and cursor.goto_first_child()
        while inside and not (_node(cursor).has_error or _node(cursor).is_missing):
            inside = cursor.goto_next_sibling()
        if not inside:
            unclosed = _unclosed(node)
            return unclosed or (node.start_byte, "what begins here is no JavaScript")


def _unclosed(fault: Syntax) -> tuple[int, str] | None:
    """The innermost bracket that a stretch of faulty syntax opens and never closes."""
    opened: list[int] = []
    for kind, start, _ in _children(fault):
        if kind in _OPENING:
            opened.append(start)
        elif kind in _CLOSER and opened:
            opened.pop()
    return (opened[-1], "a bracket that is never closed") if opened else None


def _only(root: Syntax) -> Syntax | None:
    """The only statement of a program."""
    found = None
    for i, (kind, _, _) in enumerate(_children(root)):
        if kind not in _ASIDE:
            if found is not None:
                return None
            found = root.child(i)
    return found


def _only_literal(root: Syntax) -> Syntax | None:
    """The object or array that a program is just one of, in parentheses or not."""
    node = _only(root)
    for _ in range(2):
        if node is None or node.type not in ("expression_statement", "parenthesized_expression"):
            return None
        inside = [i for i, (kind, _, _) in enumerate(_children(node)) if _is_named(kind) and kind not in _COMMENT]
        node = node.child(inside[0]) if len(inside) == 1 else None
        if node is not None and node.kind_id in _LITERAL:
            return node
    return None


def _is_named(kind: int) -> bool:
    return _LANGUAGE.node_kind_is_named(kind)


def _after(data: bytes, wanted: bytes, before: bytes) -> list[int]:
    """Positions of the `wanted` signs that stand, white space apart, after one of `before`, or after what may be a
    comment to the end of the line."""
    codes = np.frombuffer(data, np.uint8)
    solid = np.flatnonzero(codes > 32)
    found = np.flatnonzero(_is_in(codes[solid], wanted))
    found = found[found > 0]
    at, previous = solid[found], solid[found - 1]
    right = _is_in(codes[previous], before)
    slashes = np.flatnonzero((codes[:-1] == ord("/")) & (codes[1:] == ord("/")))
    if slashes.size:
        lines = np.flatnonzero(codes == ord("\n"))
        nearest = slashes[np.searchsorted(slashes, previous, "right") - 1]
        same_line = np.searchsorted(lines, nearest) == np.searchsorted(lines, previous)
        right |= (nearest <= previous) & same_line
    return at[right].tolist()


def _is_in(codes: np.ndarray, signs: bytes) -> np.ndarray:
    table = np.zeros(256, np.bool_)
    table[list(signs)] = True
    return table[codes]


def _children(node: Syntax) -> Iterator[tuple[int, int, int]]:
    """Kind, start and end of each child."""
    cursor = node.walk()
    more = cursor.goto_first_child()
    while more:
        child = _node(cursor)
        yield child.kind_id, child.start_byte, child.end_byte
        more = cursor.goto_next_sibling()


def _key(cursor: TreeCursor) -> Syntax:
    """The name of the member under the cursor, which stays where it is; the member itself if it has none."""
    member = _node(cursor)
    if member.type not in ("pair", "method_definition") or not cursor.goto_first_child():
        return member
    while cursor.field_name not in ("key", "name") and cursor.goto_next_sibling():
        pass
    key = _node(cursor) if cursor.field_name in ("key", "name") else member
    cursor.goto_parent()
    return key


def _node(cursor: TreeCursor) -> Syntax:
    node = cursor.node
    assert node is not None
    return node
