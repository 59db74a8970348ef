"""The finished arrays of an HTML page: exact spans, children of every node side by side, positions for paths."""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from ..counts import code_points
from .html_builder import Builder, build
from .html_open import TEXT
from .html_tags import ATOMIC

Ints = NDArray[np.int32]
_BLANK_CODES = (9, 10, 12, 13, 32)


class HtmlIndex:
    """Arrays over the nodes of a page, in source order; node 0 is the page. Units: characters.

    `starts`, `ends`: spans without white space at the edges; `contents`, `inner_ends`: of elements, where the start
    tag ends and the end tag starts; `closed`: whether there is an end tag; `kinds`, `places`, `names` as in
    `OpenElements`; `text_ranks`: 1-based position among the parent's text nodes, blank ones counted."""

    def __init__(self, text: str, start: int) -> None:
        solid = _solid_positions(text, start)
        page = build(text, int(solid[0]) if solid.size else start)
        self.doctype, self.names = page.doctype, page.names
        self.contents, self.inner_ends = _ints(page.contents), _ints(page.inner_ends)
        self.kinds, self.places = _ints(page.kinds), np.array(page.places, np.int8)
        ends = _ints(page.ends)
        self.closed = ends >= 0
        kept = self._trim(page, np.where(self.closed, ends, self.inner_ends), solid)
        parents = _ints(page.parents)
        self.text_ranks = _ranks_of_texts(parents, self.kinds, self.places)
        kept &= ~np.isin(parents, np.flatnonzero(self._atomic()))
        self._members = np.flatnonzero(kept)[np.argsort(parents[kept], kind="stable")].astype(np.int32)
        counts = np.bincount(parents[self._members], minlength=len(parents))
        self._first = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)

    def _trim(self, page: Builder, ends: Ints, solid: Ints) -> NDArray[np.bool_]:
        """Sets `starts` and `ends`; tells which nodes are more than white space. The page itself is nobody's child."""
        starts = _ints(page.starts)
        if not solid.size:
            self.starts, self.ends = starts, ends
            return np.zeros(len(starts), np.bool_)
        first = np.searchsorted(solid, starts)
        self.starts = solid[np.minimum(first, solid.size - 1)]
        self.ends = solid[np.searchsorted(solid, ends) - 1] + 1
        kept = (first < solid.size) & (self.starts < self.ends)
        kept[0] = False
        return kept

    def _atomic(self) -> NDArray[np.bool_]:
        return np.isin(self.kinds, [i for i, name in enumerate(self.names) if name in ATOMIC])

    def children(self, node: int) -> Ints:
        """The nodes inside `node`, in source order."""
        return self._members[self._first[node] : self._first[node + 1]]

    def count(self, node: int) -> int:
        return int(self._first[node + 1] - self._first[node])

    def ranks(self, node: int) -> tuple[Ints, Ints]:
        """For each child of `node`: its 1-based position among siblings of its name and place, and how many those
        are."""
        members = self.children(node)
        label = self.kinds[members].astype(np.int64) * 4 + self.places[members]
        order = np.argsort(label, kind="stable")
        fresh = np.concatenate(([True], np.diff(label[order]) != 0))
        first = np.flatnonzero(fresh)
        sizes = np.diff(np.concatenate((first, [len(order)])))
        ranks, totals = np.empty(len(order), np.int32), np.empty(len(order), np.int32)
        ranks[order] = np.arange(len(order)) - np.repeat(first, sizes) + 1
        totals[order] = np.repeat(sizes, sizes)
        return ranks, totals


def _ints(values: array[int]) -> Ints:
    return np.array(values, np.int32)


def _solid_positions(text: str, start: int) -> Ints:
    """Where characters from `start` on are not white space."""
    codes = code_points(text)
    blank = codes == _BLANK_CODES[0]
    for code in _BLANK_CODES[1:]:
        blank |= codes == code
    blank[:start] = True
    return np.flatnonzero(~blank).astype(np.int32)


def _ranks_of_texts(parents: Ints, kinds: Ints, places: NDArray[np.int8]) -> Ints:
    ranks = np.zeros(len(kinds), np.int32)
    texts = np.flatnonzero((kinds == TEXT) & (parents >= 0))
    if texts.size:
        group = parents[texts].astype(np.int64) * 4 + places[texts]
        order = np.argsort(group, kind="stable")
        first = np.concatenate(([True], np.diff(group[order]) != 0))
        base = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
        ranks[texts[order]] = np.arange(len(order)) - base + 1
    return ranks
