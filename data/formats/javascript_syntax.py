"""JavaScript syntax as tree-sitter reads it: trees, their faults, and walks that hold no more than a cursor.

tree-sitter gives a tree for any text; `fault` finds what is wrong in it. Positions here are bytes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count

import numpy as np
import tree_sitter_javascript
from tree_sitter import Language, Parser, TreeCursor
from tree_sitter import Node as Syntax

from ...errors import LimitError

MAX_DEPTH = 1_000_000
"""Brackets that may be open at once. tree-sitter recurses on some broken texts, so its stack follows their number."""

LANGUAGE = Language(tree_sitter_javascript.language())


def kinds(*names: str) -> frozenset[int]:
    """The numbers of named kinds of syntax."""
    found = (LANGUAGE.id_for_node_kind(name, True) for name in names)
    return frozenset(kind for kind in found if kind is not None)


OBJECT, ARRAY = kinds("object"), kinds("array")
LITERAL = OBJECT | ARRAY
COMMENT = kinds("comment", "html_comment")
ASIDE = COMMENT | kinds("hash_bang_line")
COMMA = LANGUAGE.id_for_node_kind(",", False)
OPENING = frozenset(LANGUAGE.id_for_node_kind(sign, False) for sign in ("{", "[", "(", "${"))
CLOSER = frozenset(LANGUAGE.id_for_node_kind(sign, False) for sign in "}])")
BRACKETS = OPENING | CLOSER

STEP_BYTES = 4  # one step of the parser is allowed for so many bytes; a right text takes nine and more
_CHUNK = 1 << 20
_STACK = threading.Lock()


def parsed(data: bytes) -> Syntax:
    """The tree of `data`, made on a stack that is deep enough for the brackets in it. The parser's way of making sense
    of errors may not end, so its steps are counted: a text without errors takes less than half of those allowed."""
    opens = sum(data.count(bracket) for bracket in (b"(", b"[", b"{"))
    if opens > MAX_DEPTH and _deepest(data) > MAX_DEPTH:
        raise LimitError(f"more than {MAX_DEPTH:,} brackets are open at once")
    found: list[Syntax] = []

    steps = count(1)
    most = 1_000 + len(data) // STEP_BYTES

    def parse() -> None:
        with suppress(ValueError):  # stopped
            tree = Parser(LANGUAGE).parse(
                lambda at, _: data[at : at + _CHUNK], progress_callback=lambda *_: next(steps) > most
            )
            found.append(tree.root_node)

    _on_stack(parse, (16 << 20) + 512 * min(opens, 4 * MAX_DEPTH))
    if not found:
        raise LimitError(f"not valid javascript: errors that more than {most:,} steps make no sense of")
    return found[0]


def _deepest(data: bytes) -> int:
    """The most brackets that any stretch of the text opens and does not close."""
    codes = np.frombuffer(data, np.uint8)
    steps = _is_in(codes, b"([{").astype(np.int8) - _is_in(codes, b")]}").astype(np.int8)
    depth = np.cumsum(steps, dtype=np.int64)
    return int((depth - np.minimum.accumulate(depth)).max(initial=0)) + 1


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


def fault(root: Syntax) -> tuple[int, str]:
    """Where the first fault of a tree stands, and what it is."""
    cursor = root.walk()
    while True:
        node = node_of(cursor)
        if node.is_missing:
            return node.start_byte, f"expected {node.type!r}"
        inside = node.has_error and cursor.goto_first_child()
        while inside and not (node_of(cursor).has_error or node_of(cursor).is_missing):
            inside = cursor.goto_next_sibling()
        if not inside:
            return _unpaired(node) or (node.start_byte, "what begins here is no JavaScript")


def _unpaired(fault: Syntax) -> tuple[int, str] | None:
    """The first bracket that a stretch of faulty syntax closes without having opened it, or else the last one that it
    leaves open."""
    opened: list[int] = []
    for kind, start, _ in children(fault):
        if kind in OPENING:
            opened.append(start)
        elif kind in CLOSER:
            if not opened:
                return start, "a bracket that was never opened"
            opened.pop()
    return (opened[-1], "a bracket that is never closed") if opened else None


def only_statement(root: Syntax) -> Syntax | None:
    """The only statement of a program."""
    found = None
    for i, (kind, _, _) in enumerate(children(root)):
        if kind not in ASIDE:
            if found is not None:
                return None
            found = root.child(i)
    return found


def only_literal(root: Syntax) -> Syntax | None:
    """The object or array that a program is just one of, in parentheses or not."""
    node = only_statement(root)
    for _ in range(2):
        if node is None or node.type not in ("expression_statement", "parenthesized_expression"):
            return None
        inside = [i for i, (kind, _, _) in enumerate(children(node)) if is_named(kind) and kind not in COMMENT]
        node = node.child(inside[0]) if len(inside) == 1 else None
        if node is not None and node.kind_id in LITERAL:
            return node
    return None


def is_named(kind: int) -> bool:
    """Whether a kind is more than punctuation or a keyword."""
    return LANGUAGE.node_kind_is_named(kind)


def after(data: bytes, wanted: bytes, before: bytes) -> list[int]:
    """Positions of the `wanted` signs that stand, white space apart, after one of `before`, or after what may be a
    comment to the end of the line or white space beyond ASCII."""
    codes = np.frombuffer(data, np.uint8)
    solid = np.flatnonzero(codes > 32)
    found = np.flatnonzero(_is_in(codes[solid], wanted))
    found = found[found > 0]
    at, previous = solid[found], solid[found - 1]
    right = _is_in(codes[previous], before) | (codes[previous] > 127)
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


def children(node: Syntax) -> Iterator[tuple[int, int, int]]:
    """Kind, start and end of each child."""
    cursor = node.walk()
    more = cursor.goto_first_child()
    while more:
        child = node_of(cursor)
        yield child.kind_id, child.start_byte, child.end_byte
        more = cursor.goto_next_sibling()


def key_of(cursor: TreeCursor) -> Syntax:
    """The name of the member under the cursor, which stays where it is; the member itself if it has none."""
    member = node_of(cursor)
    if member.type not in ("pair", "method_definition") or not cursor.goto_first_child():
        return member
    while cursor.field_name not in ("key", "name") and cursor.goto_next_sibling():
        pass
    key = node_of(cursor) if cursor.field_name in ("key", "name") else member
    cursor.goto_parent()
    return key


def node_of(cursor: TreeCursor) -> Syntax:
    """The node under a cursor."""
    node = cursor.node
    assert node is not None
    return node


def shortened(data: bytes, start: int, end: int) -> str:
    """A stretch of code in one line of at most 120 bytes, its middle elided if need be."""
    if end - start <= 120:
        text = data[start:end].decode()
    else:
        head, tail = data[start : start + 60], data[end - 60 : end]
        text = head.decode(errors="ignore") + "…" + tail.decode(errors="ignore")
    return " ".join(text.split())
