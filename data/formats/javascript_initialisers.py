"""The initialisers of a JavaScript file: object and array literals, each with its name and the statement around it.

Code is entered only where a bracket follows what may stand before an initialiser, and initialisers are not entered.
Positions here are bytes.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node as Syntax

from .javascript_syntax import COMMENT, LANGUAGE, LITERAL, after, kinds, node_of, shortened

_PARENTHESES, _ARGUMENTS, _NEW = kinds("parenthesized_expression"), kinds("arguments"), kinds("new_expression")
_DECLARATOR, _EXPORT = kinds("variable_declarator"), kinds("export_statement")
_ASSIGNMENT = kinds("assignment_expression", "augmented_assignment_expression")
_STATEMENT = frozenset(
    kind
    for kind in range(LANGUAGE.node_kind_count)
    if (LANGUAGE.node_kind_for_id(kind) or "").endswith(("_statement", "_declaration"))
)
_CARRIER = _STATEMENT | _DECLARATOR
_DECLARES = re.compile(rb"(?:export\s+)?(?:const|let|var)\s+\Z")


@dataclass(frozen=True, slots=True)
class Initialiser:
    """An initialiser: its place, its name without number, and the statement or declarator it belongs to. `plain` tells
    a declarator of a top-level declaration."""

    node: Syntax
    name: str
    carrier: tuple[int, int]
    plain: bool


class Finder:
    """Walks to each bracket that may open an initialiser, and over those found."""

    def __init__(self, data: bytes, root: Syntax) -> None:
        self._data, self._root = data, root
        self._places: dict[int, dict[int, int]] = {}

    def found(self) -> Iterator[tuple[int, Initialiser]]:
        """Each initialiser that stands in no other one, with the start of its top-level statement."""
        candidates = after(self._data, b"{[", b"=(,t/")  # `t` ends `export default`
        path, at = _Path(self._root), 0
        while at < len(candidates):
            position, at = candidates[at], at + 1
            path.leave(position)
            while path.enter(position):
                if path.nodes[-1].start_byte == position and path.nodes[-1].kind_id in LITERAL:
                    found = self._initialiser(path)
                    if found is not None:
                        yield path.nodes[1].start_byte, found
                        at = bisect_left(candidates, found.node.end_byte)
                        break

    def _initialiser(self, path: _Path) -> Initialiser | None:
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
        if arguments.start_byte not in self._places:  # asked once for all arguments of a call
            named = (child for child in arguments.named_children if child.kind_id not in COMMENT)
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
        node = node_of(self._cursor)
        if node.start_byte > position:
            self._cursor.goto_parent()
            return False
        carries = len(self.nodes) == 1 or node.kind_id in _CARRIER
        self.carriers.append(len(self.nodes) if carries else self.carriers[-1])
        self.nodes.append(node)
        self._ends.append(node.end_byte)
        return True
