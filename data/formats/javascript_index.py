"""A JavaScript text divided: into a file's statements and initialisers, and into a literal's members or elements.

The interior of an initialiser is not visited before somebody asks. tree-sitter counts bytes; what leaves this module as
`Layout`, or through `Source.chars`, is characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from tree_sitter import Node as Syntax
from tree_sitter import Query, QueryCursor

from ...errors import ParseError
from ..tree import Offsets
from .javascript_initialisers import Finder, Initialiser
from .javascript_syntax import (
    ASIDE,
    BRACKETS,
    COMMA,
    COMMENT,
    LANGUAGE,
    after,
    children,
    fault,
    is_named,
    key_of,
    node_of,
    only_literal,
    only_statement,
    parsed,
    shortened,
)

FORMAT = "javascript"
REST = 200
"""Bytes on either side that the rest of a statement may have to belong to its initialiser; a longer rest is code."""

_EMPTY_MEMBER = '(object "," . (comment)* . "," @found) (object . "{" . (comment)* . "," @found)'
_BRACKET_FIRST = re.compile(r"\ufeff?\s*(?://[^\n]*\n\s*|/\*.*?\*/\s*)*+[{\[]", re.DOTALL)
_CLOSING = re.compile(rb"[\s)\]},;]*\Z")
_SEPARATORS = b" \t\r\n\v\f,;"

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
    start after their comments; `closes_anew` tells that one ends with a comment to the end of the line; `rest` bounds
    the comments after the last separator."""

    starts: Offsets
    ends: Offsets
    contents: Offsets
    closes_anew: bool
    rest: tuple[int, int]


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
        block there, so a text that starts with a bracket is read in parentheses if it can be."""
        root = parsed(self.data)
        bare = None if root.has_error else only_literal(root)
        may_be_block = root.has_error or only_statement(root) is not None
        if bare is None and may_be_block and _BRACKET_FIRST.match(self.text):
            inside = b"(" + self.data + b"\n)"
            wrapped = parsed(inside)
            bare = None if wrapped.has_error else only_literal(wrapped)
            if bare is not None:
                self.data, self._shift, root = inside, 1, wrapped
        if root.has_error:
            at, reason = fault(root)
            raise ParseError.at(FORMAT, self.text, len(self.data[:at].decode()), reason)
        if after(self.data, b",", b",{/"):
            found = QueryCursor(Query(LANGUAGE, _EMPTY_MEMBER)).captures(root).get("found", [])
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
        return int(np.searchsorted(self._table, character + self._shift, "right")) - 1

    def layout(self, literal: Syntax) -> Layout:
        """One pass over the children of an object or array. A comment before a separator belongs to the member before
        it, any other to the member that follows; after the last separator, to the literal itself."""
        starts: list[int] = []
        ends: list[int] = []
        contents: list[int] = []
        waiting, last_comment, empty, to_line_end = -1, 0, True, False
        for kind, start, end in children(literal):
            if kind == COMMA:
                if empty:  # a hole; an object has none
                    starts.append(start if waiting < 0 else waiting)
                    contents.append(start)
                    ends.append(end)
                empty, waiting = True, -1
            elif kind in COMMENT:
                last_comment = end
                if not empty:
                    ends[-1] = end
                    to_line_end |= self.data[start : start + 2] != b"/*"
                elif waiting < 0:
                    waiting = start
            elif kind not in BRACKETS:
                starts.append(start if waiting < 0 else waiting)
                contents.append(start)
                ends.append(end)
                empty, waiting = False, -1
        starts_, ends_, contents_ = (self.chars(np.array(found, np.int64)) for found in (starts, ends, contents))
        rest = (self.char(waiting), self.char(last_comment)) if waiting >= 0 else (0, 0)
        return Layout(starts_, ends_, contents_, to_line_end, rest)

    def keys(self, literal: Syntax) -> Iterator[str]:
        """What names each member of an object, as it is written: a key, or all of a spread."""
        cursor = literal.walk()
        more = cursor.goto_first_child()
        while more:
            member = node_of(cursor)
            if is_named(member.kind_id) and member.kind_id not in COMMENT:
                key = key_of(cursor)
                yield self._elided(key.start_byte, key.end_byte)
            more = cursor.goto_next_sibling()

    def pieces(self) -> tuple[Piece, ...]:
        """The statements of a file, each with the comments before it, and the initialisers in them."""
        held: dict[int, list[Initialiser]] = {}
        for statement, literal in Finder(self.data, self.root).found():
            held.setdefault(statement, []).append(literal)
        pieces: list[Piece] = []
        aside: tuple[int, int] | None = None
        for kind, start, end in children(self.root):
            if kind in ASIDE:
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
        end -= len(text) - len(text.rstrip(b" \t\r\n\v\f,"))
        if start < end and not _CLOSING.match(self.data, start, end):
            yield Piece("code", start, start, end)


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
