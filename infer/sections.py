"""Sectioning (paper, Algorithm 1).

A subtree within the budget stays whole; adjacent siblings are grouped greedily; what is too large is opened. Opened
nodes are kept with the token counts of their children, so that sectioning at one more budget costs a binary search
per section and no tokenising. All walks are iterative.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ..data.counts import Counts, Units
from ..data.tree import Document, Node
from .split import split_text

Kind = Literal["subtree", "siblings", "text"]


@dataclass(frozen=True, slots=True)
class Piece:
    """One section as source text. `place` is the subtree's node, the parent of grouped siblings, or the leaf a span
    is cut from; `range` the ordinals of grouped siblings, both included; `source[start:end]` in characters."""

    kind: Kind
    place: Node
    range: tuple[int, int] | None
    start: int
    end: int
    last_of_leaf: bool = False

    @property
    def parent(self) -> Node | None:
        """The nearest opened node around what the section shows; None for the root."""
        return self.place if self.kind == "siblings" else self.place.parent


@dataclass(slots=True)
class _Opened:
    """A node whose children are counted. `over` are those too large at the least budget, `always` at the greatest
    too; `opened` holds those that were opened at some budget."""

    node: Node
    starts: list[int]
    ends: list[int]
    units: Units
    over: list[int]
    always: bool
    opened: dict[int, _Opened | Node]


class Structure:
    """The opened part of a document's tree, for budgets from `least` to `most` tokens. Not changed by being asked."""

    def __init__(self, document: Document, counts: Counts, least: int, most: int) -> None:
        self.document, self.counts = document, counts
        self._least, self._most = least, most
        root = document.root
        self._root_tokens = counts.count(root.start, root.end)
        self._spans: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self._root = self._open(root) if self._root_tokens > least else root

    def _open(self, node: Node) -> _Opened | Node:
        """The node with its children counted; a leaf is returned as it is. An only child that is too large at every
        budget takes its parent's place, since the parent adds neither a section nor a link."""
        while node.n_children == 1:
            child = self.document.child(node, 0)
            if not self.counts.exceeds(child.start, child.end, self._most):
                break
            node = child
        if not node.n_children:
            return node
        starts, ends = self.document.spans(node)
        units = self.counts.units(starts, ends)
        over = list(units.over(self._least))
        always = not over or len(units.over(self._most)) == len(over)
        return _Opened(node, starts.tolist(), ends.tolist(), units, over, always, {})

    def _too_large(self, opened: _Opened, budget: int) -> list[int]:
        if budget == self._least or opened.always:
            return opened.over
        return list(opened.units.over(budget))

    def _inside(self, opened: _Opened, ordinal: int) -> _Opened | Node:
        if ordinal not in opened.opened:
            opened.opened[ordinal] = self._open(self.document.child(opened.node, ordinal))
        return opened.opened[ordinal]

    def _leaf_spans(self, leaf: Node, budget: int) -> list[tuple[int, int]]:
        """The spans of a leaf over budget; a single one for what cannot be split."""
        if leaf.atomic:
            return [(leaf.start, leaf.end)]
        key = (leaf.content, budget)
        if key not in self._spans:
            self._spans[key] = split_text(self.document.leaf_text(leaf), self.counts, budget)
        return self._spans[key]

    def count(self, budget: int) -> int:
        """n(B): how many sections the document has at this budget."""
        if self._root_tokens <= budget:
            return 1
        total, stack = 0, [self._root]
        while stack:
            opened = stack.pop()
            if isinstance(opened, Node):
                total += len(self._leaf_spans(opened, budget))
                continue
            at = 0
            for ordinal in self._too_large(opened, budget):
                total += sum(1 for _ in _runs(opened.units, at, ordinal, budget))
                stack.append(self._inside(opened, ordinal))
                at = ordinal + 1
            total += sum(1 for _ in _runs(opened.units, at, len(opened.starts), budget))
        return total

    def pieces(self, budget: int) -> tuple[list[Piece], list[list[int]]]:
        """The sections in document order, and for each opened node the last section of each of its children,
        ascending (what Eq. 14 needs)."""
        root = self.document.root
        if self._root_tokens <= budget:
            return [Piece("subtree", root, None, root.start, root.end)], []
        if isinstance(self._root, Node):
            return list(self._leaf_pieces(self._root, budget)), []
        pieces: list[Piece] = []
        closed: list[list[int]] = []
        stack = [_Frame(self._root, iter(self._too_large(self._root, budget)), 0, [])]
        while stack:
            frame = stack[-1]
            ordinal = next(frame.too_large, None)
            stop = len(frame.opened.starts) if ordinal is None else ordinal
            for first, end in _runs(frame.opened.units, frame.at, stop, budget):
                pieces.append(self._group(frame.opened, first, end))
                frame.lasts.append(len(pieces) - 1)
            if ordinal is None:
                closed.append(stack.pop().lasts)
                if stack:
                    stack[-1].lasts.append(frame.lasts[-1])
                continue
            frame.at = ordinal + 1
            inside = self._inside(frame.opened, ordinal)
            if isinstance(inside, Node):
                pieces.extend(self._leaf_pieces(inside, budget))
                frame.lasts.append(len(pieces) - 1)
            else:
                stack.append(_Frame(inside, iter(self._too_large(inside, budget)), 0, []))
        return pieces, closed

    def _group(self, opened: _Opened, first: int, end: int) -> Piece:
        start, stop = opened.starts[first], opened.ends[end - 1]
        if end - first == 1:
            return Piece("subtree", self.document.child(opened.node, first), None, start, stop)
        return Piece("siblings", opened.node, (first, end - 1), start, stop)

    def _leaf_pieces(self, leaf: Node, budget: int) -> Iterator[Piece]:
        if leaf.atomic:
            yield Piece("subtree", leaf, None, leaf.start, leaf.end)
            return
        spans = self._leaf_spans(leaf, budget)
        for i, (start, end) in enumerate(spans):
            yield Piece("text", leaf, None, start, end, last_of_leaf=i == len(spans) - 1)


@dataclass(slots=True)
class _Frame:
    """Where the walk stands in one opened node. `lasts` are the last sections of its children so far."""

    opened: _Opened
    too_large: Iterator[int]
    at: int
    lasts: list[int]


def _runs(units: Units, first: int, stop: int, budget: int) -> Iterator[tuple[int, int]]:
    """Greedy groups of the fitting siblings `first:stop`, as (first, end)."""
    while first < stop:
        end = units.fit(first, stop, budget) if stop - first > 1 else stop
        yield first, end
        first = end
