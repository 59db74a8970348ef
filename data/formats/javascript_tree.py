"""JavaScript as a tree of exact spans: the object and array literals that initialise something, and the code between.

A text that is just `{…}` or `[…]` is the tree of that literal. In a file, the value of a declarator, of an assignment,
of `export default`, or of an argument is an initialiser, wherever it stands, unless it stands in another one. The
root's children are the file's statements: a statement around one initialiser is that initialiser, with the rest of the
statement as its wrapper; a statement without any is indivisible code; one that holds initialisers among longer code (a
function, say) opens into them and the code between. A text with a syntax error is refused, wherever the
error is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from tree_sitter import Node as Syntax

from ..tree import Document, LeafText, Node, Offsets
from .javascript_index import FORMAT, Layout, Piece, Source
from .javascript_labels import ESCAPE, step_of

_BOM = "\ufeff"
_CONTAINERS = ("object", "array")
_DIVIDED = ("program", "statement")
_HIGH = r"\\u(?:[dD][89abAB][0-9a-fA-F]{2}|\{0*[dD][89abAB][0-9a-fA-F]{2}\})"
_LOW = r"\\u(?:[dD][c-fC-F][0-9a-fA-F]{2}|\{0*[dD][c-fC-F][0-9a-fA-F]{2}\})"
_UNIT = re.compile(rf"{_HIGH}{_LOW}|{ESCAPE}|\r\n")
_REMARK = re.compile(
    r'"(?:[^"\\]|\\[\s\S])*"|\'(?:[^\'\\]|\\[\s\S])*\''
    r"|(\A#![^\n\r\u2028\u2029]*|//[^\n\r\u2028\u2029]*|<!--[^\n\r\u2028\u2029]*|/\*[\s\S]*?\*/)"
)
_STEP = re.compile(r'\.[A-Za-z_][A-Za-z0-9_]*|\[[0-9]+\]|\["(?:[^"\\]|\\.)*"\]')
_STEP_START = re.compile(r"[.\[]")
_ELIDED_STEPS = "/* … */ "


def parse_javascript(text: str) -> JavascriptDocument:
    """The tree of a script, a module or a single literal. Raises ParseError with line and column, LimitError for more
    open brackets than can be read."""
    return JavascriptDocument(text)


class _Parts(NamedTuple):
    """Children of a file or of a statement that holds initialisers. `names` are those of the initialisers, by ordinal;
    `numbers[i]` counts the children before child i that are of its kind."""

    starts: Offsets
    ends: Offsets
    pieces: tuple[Piece, ...]
    names: dict[int, str]
    numbers: Offsets


class JavascriptDocument(Document):
    """A JavaScript text with its tree. An object member (key and value together), an array element or hole, and a
    statement of a file is a child."""

    format = FORMAT

    def __init__(self, text: str) -> None:
        self.text = text
        self.notes = ("byte order mark",) if text.startswith(_BOM) else ()
        self._source = Source(text)
        self._values: dict[int, tuple[Syntax, int]] = {}
        self._layouts: dict[int, Layout] = {}
        self._steps: dict[int, list[str]] = {}
        self._by_step: dict[int, dict[str, int]] = {}
        self._parts: dict[tuple[str, int], _Parts] = {}
        self._seen: dict[str, int] = {}
        self.root = self._file() if self._source.bare is None else self._bare(self._source.bare)

    def spans(self, node: Node) -> tuple[Offsets, Offsets]:
        if not node.n_children:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        found = self._parts[node.kind, node.start] if node.kind in _DIVIDED else self._layout(node.content)
        return found.starts, found.ends

    def child(self, node: Node, ordinal: int) -> Node:
        if node.kind in _DIVIDED:
            return self._part(node, ordinal)
        layout = self._layout(node.content)
        start, end, item = (int(positions[ordinal]) for positions in (layout.starts, layout.ends, layout.contents))
        return self._member(node, ordinal, start, end, item)

    def step(self, node: Node) -> str:
        parent = node.parent
        if parent is None:
            return "$"
        if parent.kind in _DIVIDED:
            parts = self._parts[parent.kind, parent.start]
            numbered = f"{node.kind}[{int(parts.numbers[node.ordinal])}]"
            return parts.names.get(node.ordinal, numbered if parent is self.root else f".{numbered}")
        return f"[{node.ordinal}]" if parent.kind == "array" else self._member_steps(parent.content)[node.ordinal]

    def starts_path(self, node: Node) -> bool:
        """The root of a text that is just one literal; in a file, every statement and every initialiser."""
        if node.parent is None or self.root.kind != "program":
            return node.parent is None
        return node.parent is self.root or self._is_initialiser(node)

    def leaf_text(self, node: Node) -> LeafText:
        start, end = node.content + 1, self._values[node.content][1] - 1
        units = [m.span() for m in _UNIT.finditer(self.text, start, end)]
        return LeafText(start, end, [s for s, _ in units], [e for _, e in units])

    def frame(self, parent: Node) -> tuple[str, str]:
        if parent.kind in _DIVIDED:
            return "", ""
        open, close = ("{", "}") if parent.kind == "object" else ("[", "]")
        if self._layout(parent.content).closes_anew:
            close = "\n" + close
        before, after = self._rest(parent)
        return before + open, close + after

    def introduction(self, opened: Node) -> tuple[str, str]:
        before, after = self._rest(opened)
        return (before + _ELIDED_STEPS, after) if before or after else ("", "")

    def remark(self, opened: Node) -> str:
        if opened.kind == "program":
            return ""
        stretches = [(opened.start, opened.content)]
        if opened.kind == "statement" or self._is_initialiser(opened):
            stretches = [(opened.start, self._lead(opened))]
        else:
            stretches.append((self._values[opened.content][1], opened.end))
        if opened.kind != "statement":
            stretches.append(self._layout(opened.content).rest)
        found = (_REMARK.finditer(self.text[start:end]) for start, end in stretches)
        comments = (match[1] for matches in found for match in matches if match[1])
        return "".join(f"{comment} " if comment.startswith("/*") else f"{comment}\n" for comment in comments)

    def quotes(self, leaf: Node) -> tuple[str, str]:
        end = self._values[leaf.content][1]
        return self.text[leaf.start : leaf.content + 1], self.text[end - 1 : leaf.end]

    def literal(self, node: Node) -> Syntax:
        """The syntax of an object or array."""
        return self._values[node.content][0]

    def characters(self, position: int) -> int:
        """Characters before a byte position of the syntax."""
        return self._source.char(position)

    def _bare(self, literal: Syntax) -> Node:
        """The root of a text that is one literal, with the comments around it."""
        return self._value(literal, *self._solid(), None, 0)

    def _solid(self) -> tuple[int, int]:
        """Where the text starts and ends, white space apart."""
        blank = _BOM + " \t\r\n"
        return len(self.text) - len(self.text.lstrip(blank)), len(self.text.rstrip(blank))

    def _file(self) -> Node:
        pieces = self._source.pieces()
        if not pieces:
            start, end = self._solid()
            return Node("program", start, end, None, 0, start, 0)
        within = [part for piece in pieces for part in piece.parts]
        self._seen |= dict.fromkeys({"$", *(piece.kind for piece in (*pieces, *within))}, 1)
        self._seen |= dict.fromkeys(self._taken((*pieces, *within)), 1)
        parts = self._numbered(pieces)
        start, end = int(parts.starts[0]), int(parts.ends[-1])
        self._parts["program", start] = parts
        return Node("program", start, end, None, 0, start, len(pieces))

    def _numbered(self, pieces: tuple[Piece, ...]) -> _Parts:
        """The pieces in characters; equal names get a number, all over the file and in its order."""
        names: dict[int, str] = {}
        for ordinal, piece in enumerate(pieces):
            if piece.initialiser is not None:
                names[ordinal] = self._named(piece.initialiser.name)
            elif piece.parts:
                inside = self._numbered(piece.parts)
                self._parts["statement", self._source.char(piece.start)] = inside
        starts, ends = (np.array([getattr(p, side) for p in pieces], np.int64) for side in ("start", "end"))
        kinds, numbers = np.array([piece.kind for piece in pieces]), np.zeros(len(pieces), np.int64)
        for kind in np.unique(kinds):
            numbers[kinds == kind] = np.arange(np.count_nonzero(kinds == kind))
        return _Parts(self._source.chars(starts), self._source.chars(ends), pieces, names, numbers)

    def _taken(self, pieces: Iterable[Piece]) -> Iterator[str]:
        """Names that are also paths into another initialiser, as in `a = {b: 1}; a.b = {}`."""
        first = {piece.initialiser.name: piece.initialiser.node for piece in pieces if piece.initialiser is not None}
        for name in first:
            for match in _STEP_START.finditer(name):
                node = first.get(name[: match.start()])
                if node is not None and self._leads(self._value(node, 0, 0, None, 0), name[match.start() :]):
                    yield name
                    break

    def _leads(self, node: Node, steps: str) -> bool:
        """Whether a path of these steps leads from a literal to something in it."""
        while node.n_children and (match := _STEP.match(steps)):
            inside = self._ordinals(node)
            if match[0] not in inside:
                return False
            steps = steps[match.end() :]
            if not steps:
                return True
            node = self.child(node, inside[match[0]])
        return False

    def _ordinals(self, node: Node) -> dict[str, int]:
        if node.content not in self._by_step:
            array = node.kind == "array"
            steps = [f"[{i}]" for i in range(node.n_children)] if array else self._member_steps(node.content)
            self._by_step[node.content] = {step: ordinal for ordinal, step in enumerate(steps)}
        return self._by_step[node.content]

    def _named(self, name: str) -> str:
        copy = self._seen[name] = self._seen.get(name, 0) + 1
        return name if copy == 1 else f"{name}#{copy}"

    def _part(self, parent: Node, ordinal: int) -> Node:
        parts = self._parts[parent.kind, parent.start]
        piece, start, end = parts.pieces[ordinal], int(parts.starts[ordinal]), int(parts.ends[ordinal])
        if piece.initialiser is None:
            return Node(piece.kind, start, end, parent, ordinal, start, len(piece.parts))
        return self._value(piece.initialiser.node, start, end, parent, ordinal)

    def _member(self, parent: Node, ordinal: int, start: int, end: int, item: int) -> Node:
        if self.text[item] == ",":
            return Node("hole", start, end, parent, ordinal, item, 0)
        found = self._values[parent.content][0].first_child_for_byte(self._source.byte(item))
        assert found is not None
        if found.type != "pair":
            return self._value(found, start, end, parent, ordinal)
        key, value = found.child(0), found.child(found.child_count - 1)
        assert key is not None
        assert value is not None
        if key.type == "computed_property_name":
            return Node("pair", start, end, parent, ordinal, item, 0)
        return self._value(value, start, end, parent, ordinal)

    def _value(self, value: Syntax, start: int, end: int, parent: Node | None, ordinal: int) -> Node:
        """The node whose value is `value`; what it needs later is kept under the character at which that starts."""
        content = self._source.char(value.start_byte)
        kind, count, divisible = value.type, 0, False
        if kind in _CONTAINERS:
            self._values[content] = value, self._source.char(value.end_byte)
            count = len(self._layout(content).starts)
        elif kind == "string" or (kind == "template_string" and _is_plain(value)):
            self._values[content] = value, self._source.char(value.end_byte)
            divisible = value.end_byte - value.start_byte > 2
        return Node(kind, start, end, parent, ordinal, content, count, divisible)

    def _layout(self, content: int) -> Layout:
        if content not in self._layouts:
            self._layouts[content] = self._source.layout(self._values[content][0])
        return self._layouts[content]

    def _is_initialiser(self, node: Node) -> bool:
        return node.parent is not None and node.parent.kind in _DIVIDED and node.kind in _CONTAINERS

    def _lead(self, piece: Node) -> int:
        """Where a statement begins after the comments before it."""
        assert piece.parent is not None
        parts = self._parts[piece.parent.kind, piece.parent.start]
        return self._source.char(parts.pieces[piece.ordinal].lead)

    def _rest(self, opened: Node) -> tuple[str, str]:
        """The statement around an initialiser."""
        if not self._is_initialiser(opened):
            return "", ""
        return self.text[self._lead(opened) : opened.content], self.text[self._values[opened.content][1] : opened.end]

    def _member_steps(self, content: int) -> list[str]:
        """Steps to all members of an object, repeated labels numbered; found once for each object asked about."""
        if content not in self._steps:
            seen: dict[str, int] = {}
            steps = self._steps[content] = []
            for step in map(step_of, self._source.keys(self._values[content][0])):
                seen[step] = copy = seen.get(step, 0) + 1
                steps.append(step if copy == 1 else f"{step}#{copy}")
        return self._steps[content]


def _is_plain(template: Syntax) -> bool:
    return not any(child.type == "template_substitution" for child in template.named_children)
