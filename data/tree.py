"""A document as a tree over its own text.

The source is never rewritten: a node is a slice `text[start:end]`, offsets count characters. Children are found on
demand, so that a million siblings cost two arrays and not a million objects. Everything that depends on a format
(labels, path steps, where a long string may be cut, which delimiters make a slice read natively) is a method of
`Document`; the layers above know no format by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Offsets = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A slice of a document. `ordinal` is the 0-based place among the parent's children; `content` is where the
    node's own value starts (after the key of an object member); `n_children` is 0 for a leaf; `divisible` tells a
    leaf whose text may be cut."""

    kind: str
    start: int
    end: int
    parent: Node | None = field(repr=False)
    ordinal: int
    content: int
    n_children: int
    divisible: bool = False

    @property
    def atomic(self) -> bool:
        """True for a leaf whose syntax must stay whole (paper, A.1)."""
        return self.n_children == 0 and not self.divisible


@dataclass(frozen=True)
class LeafText:
    """The text of a divisible leaf: `text[start:end]` of the document, without quotes. `unit_starts[i]:unit_ends[i]`
    are the stretches that must not be cut (escapes, surrogate pairs), ascending."""

    start: int
    end: int
    unit_starts: Sequence[int]
    unit_ends: Sequence[int]


class Document(ABC):
    """Text, format and tree. Subclasses come from `treeagent.data.formats.parse`; all are immutable."""

    format: str
    text: str
    root: Node
    notes: tuple[str, ...] = ()

    @cached_property
    def derived(self) -> dict[Hashable, Any]:
        """What readers of this document computed once and share while it lives (counts, plans)."""
        return {}

    @abstractmethod
    def spans(self, node: Node) -> tuple[Offsets, Offsets]:
        """Starts and ends of the node's children, each of shape `(n_children,)`, in document order."""

    @abstractmethod
    def child(self, node: Node, ordinal: int) -> Node:
        """The child with this 0-based ordinal."""

    @abstractmethod
    def step(self, node: Node) -> str:
        """The last step of the node's path: `.key`, `["other key"]`, `[i]`; the root's is `$`."""

    @abstractmethod
    def leaf_text(self, node: Node) -> LeafText:
        """The text of a divisible leaf."""

    @abstractmethod
    def frame(self, parent: Node) -> tuple[str, str]:
        """Delimiters of `parent` that let a run of its children read natively."""

    def introduction(self, opened: Node) -> tuple[str, str]:
        """What an opened node says of itself (an opening tag, a key with its comment), and what closes it; shown
        around the node's first section, outside the frame of the nearest parent. Empty where the path says it all."""
        return "", ""

    def remark(self, opened: Node) -> str:
        """Comments of an opened node that stand in none of its children; shown once, before the delimiters of its
        first section, whether it is the nearest parent or not."""
        return ""

    def wrapper(self, parent: Node | None, opened: Sequence[Node], start: int, end: int) -> tuple[str, str]:
        """What stands around the slice `start:end`, which covers children of `parent` (None: the root itself): the
        parent's frame, and around it what `opened` say of themselves, the nodes around the slice that no section
        showed before, outermost first. A format may compose the two otherwise."""
        pairs = []
        for node in opened:
            pairs.append((self.remark(node), ""))
            if node is not parent:
                pairs.append(self.introduction(node))
        if parent is not None:
            pairs.append(self.frame(parent))
        return "".join(before for before, _ in pairs), "".join(after for _, after in reversed(pairs))

    @abstractmethod
    def quotes(self, leaf: Node) -> tuple[str, str]:
        """What stands around a fragment of a divisible leaf: quotation marks, and the key where there is one."""

    def children(self, node: Node) -> list[Node]:
        """All children as nodes; for small nodes and for tests."""
        return [self.child(node, i) for i in range(node.n_children)]

    def path(self, node: Node) -> str:
        """The structural path (paper, Eq. 12): the steps from where it starts to the node, joined."""
        steps = [self.step(node)]
        while not self.starts_path(node) and node.parent is not None:
            node = node.parent
            steps.append(self.step(node))
        return "".join(reversed(steps))

    def starts_path(self, node: Node) -> bool:
        """Whether the node's path begins with its own step: the root's does, and what a format knows by name."""
        return node.parent is None
