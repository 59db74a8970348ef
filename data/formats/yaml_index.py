"""Where the entries of a YAML text start and end, from its events: array work over the whole text at once.

Events sorted by depth put the children of every collection side by side, closed by its end. An entry starts at its
`-`, `?` or key, or at the first of the comments before it. A comment on the line where something ends, and one that
nothing follows inside its brackets or in the document, belongs to what stands before it. Ends come from the last
scalar or bracket inside, since libyaml puts the end of a block collection at the next token.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..counts import code_points
from ..tree import Node, Offsets
from .yaml_events import CLOSE, DOCUMENT, DOCUMENT_END, MAPPING, SCALAR, SEQUENCE, Events

PROPERTIES = re.compile(r"(?:[&!]\S*(?:\s+(?:#[^\n\r\x85\u2028\u2029]*)?)*)*")
_HEADER = re.compile(r"[|>](?:[-+]?([1-9])?[-+]?)[^\n\r\x85\u2028\u2029]*")
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class YamlNode(Node):
    """`event` is the index of the value's event (-1: a stream), `proper` where the entry starts without the comments
    before it, `flow` whether the value stands in brackets, `document` the ordinal of its document."""

    event: int = -1
    proper: int = 0
    flow: bool = False
    document: int = 0


class Index:
    """Collections are numbered by depth, then place. `order` holds the events by depth; children of collection k are
    `order[first[k]:stop[k]]`, of a mapping key and value in turn. `entry_starts` counts comments in, `proper` does
    not; both, and `entry_ends`, run along `order`."""

    def __init__(self, text: str, start: int, events: Events) -> None:
        self.text, self._codes, self.events = text, code_points(text), events
        self.breaks = np.flatnonzero(_line_breaks(self._codes))
        kinds, starts, ends = events.kinds, events.starts, events.ends
        opens = (kinds == MAPPING) | (kinds == SEQUENCE)
        self.bracketed = opens & (ends > starts) & np.isin(self._codes[np.maximum(ends - 1, 0)], (0x5B, 0x7B))
        self._sort(kinds, opens)
        spans = self._real_spans(opens)
        self._find_comments(spans, start)
        self._add_empty(spans)
        real = spans[1] >= 0
        self._last_real = np.cumsum(real) - 1
        self._real_starts, self._real_ends = spans[0][real], np.maximum.accumulate(spans[1][real])
        self._real_kinds = kinds[real]
        self._places(start)

    def _sort(self, kinds: NDArray[np.uint8], opens: Mask) -> None:
        closes = kinds == CLOSE
        inside = np.flatnonzero((kinds != DOCUMENT) & (kinds != DOCUMENT_END))
        depth = np.cumsum(opens[inside].astype(np.int32) - closes[inside])
        depth += closes[inside].astype(np.int32) - opens[inside]
        key = depth.astype(np.uint16) if depth.size and depth.max() < 65_536 else depth
        self.order = inside[np.argsort(key, kind="stable")]
        self.documents = np.flatnonzero(kinds == DOCUMENT)
        self.document_ends = np.flatnonzero(kinds == DOCUMENT_END)
        self._closing = closes[self.order]
        self.stop = np.flatnonzero(self._closing)
        self.first = np.concatenate(([len(self.documents)], self.stop[:-1] + 1)).astype(np.int64)[: len(self.stop)]
        self.opening = self.order[opens[self.order]]
        self.collection = np.full(len(kinds), -1, np.int64)
        self.collection[self.opening] = np.arange(len(self.opening))

    def _real_spans(self, opens: Mask) -> tuple[Offsets, Offsets]:
        """Where each event's own characters stand: brackets, scalars without the blank lines after them, anchors and
        tags; (0, -1) for an event that has none."""
        events = self.events
        starts, ends = events.starts.copy(), np.where(events.ends > events.starts, events.ends, -1)
        ends[opens & ~self.bracketed] = -1
        first = self._codes[np.minimum(events.starts, len(self._codes) - 1)]
        named = np.isin(first, (0x26, 0x21)) & (events.ends > events.starts)
        for i in np.flatnonzero(named & opens & ~self.bracketed).tolist():
            ends[i] = events.starts[i] + len(self.properties(i).rstrip())
        self.scalar_starts = np.where(events.kinds == SCALAR, events.starts, -1)
        for i in np.flatnonzero(named & (events.kinds == SCALAR)).tolist():
            self.scalar_starts[i] += len(self.properties(i))
        heads = np.where(self.scalar_starts < events.ends, self.scalar_starts, -1)
        self.block_scalars = np.flatnonzero((heads >= 0) & np.isin(self._codes[heads], (0x7C, 0x3E)))
        for i in self.block_scalars.tolist():
            ends[i] = _block_end(self.text, int(self.scalar_starts[i]), int(events.ends[i]))
        self.block_scalar_ends = ends[self.block_scalars]
        starts[ends < 0] = 0
        return starts, ends

    def properties(self, event: int) -> str:
        """Anchor and tag of an event's node, with the white space after them; empty where there are none."""
        match = PROPERTIES.match(self.text, int(self.events.starts[event]), int(self.events.ends[event]))
        return match.group() if match else ""

    def _find_comments(self, spans: tuple[Offsets, Offsets], start: int) -> None:
        real = spans[1] >= 0
        self._covered = spans[0][real], spans[1][real]
        signs = self._outside(np.flatnonzero(self._codes == ord("#")))
        line_ends = np.concatenate((self.breaks, [len(self.text)]))[np.searchsorted(self.breaks, signs)]
        fresh = np.diff(line_ends, prepend=-1) > 0
        self.comment_starts, self.comment_ends = signs[fresh], line_ends[fresh]
        marks = {}
        for char in "-?:,":
            found = self._outside(np.flatnonzero(self._codes == ord(char)))
            marks[char] = found[~self._in_comment(found)]
        self._marks = marks
        self._any_mark = np.sort(np.concatenate(list(marks.values())))

    def _outside(self, positions: Offsets) -> Offsets:
        starts, ends = self._covered
        before = np.searchsorted(starts, positions, "right") - 1
        return positions[(before < 0) | (positions >= np.concatenate((ends, [0]))[before])]

    def _in_comment(self, positions: Offsets) -> Mask:
        before = np.searchsorted(self.comment_starts, positions, "right") - 1
        return (before >= 0) & (positions < np.concatenate((self.comment_ends, [0]))[before])

    def _add_empty(self, spans: tuple[Offsets, Offsets]) -> None:
        """A value left out after its indicator has its place there; others have none."""
        kinds, starts = self.events.kinds, self.events.starts
        empty = np.flatnonzero((kinds == SCALAR) & (self.events.ends == starts))
        if not empty.size or not self._any_mark.size:
            return
        mark = np.searchsorted(self._any_mark, starts[empty]) - 1
        at = np.where(mark >= 0, self._any_mark[mark], -1)
        own = (at >= np.maximum.accumulate(spans[1])[empty - 1]) & (at >= 0) & (self._codes[at] != ord(","))
        spans[0][empty[own]] = spans[1][empty[own]] = at[own] + 1

    def _places(self, start: int) -> None:
        """Starts and ends of all entries, comments counted in."""
        order, events = self.order, self.events
        parent = np.minimum(np.cumsum(self._closing) - self._closing, max(len(self.stop) - 1, 0))
        before = self._last_real[order - 1]
        bound = np.where(before >= 0, np.concatenate((self._real_ends, [0]))[before], start)
        self.proper = events.starts[order]
        if len(self.opening):
            opening = self.opening[parent]
            in_block = (events.kinds[opening] == SEQUENCE) & ~self.bracketed[opening]
            asked = (events.kinds[opening] == MAPPING) & ((np.arange(len(order)) - self.first[parent]) % 2 == 0)
            self._move_to("-", in_block, bound)
            self._move_to("?", asked, np.maximum(bound, events.starts[opening]))
        self._start_at_comments(bound, start)
        reach = self._reach(len(self.text))
        following = np.concatenate((order[1:], order[:1]))
        self.entry_ends = reach[self._last_real[following - 1]]
        self.document_stops = reach[self._last_real[self.document_ends]]

    def _move_to(self, char: str, where: Mask, least: Offsets) -> None:
        """Moves entries back to their own indicator, if one stands between `least` and them."""
        marks = self._marks[char]
        if not marks.size:
            return
        at = marks[np.maximum(np.searchsorted(marks, self.proper) - 1, 0)]
        own = where & (at >= least) & (at < self.proper)
        self.proper = np.where(own, at, self.proper)

    def _start_at_comments(self, bound: Offsets, start: int) -> None:
        self.entry_starts = self.proper.copy()
        if not self.comment_starts.size:
            return
        comments = np.concatenate((self.comment_starts, [len(self.text) + 1, len(self.text) + 1]))
        mark = np.searchsorted(self._any_mark, self.proper) - 1
        token = np.where(mark >= 0, np.concatenate((self._any_mark + 1, [0]))[mark], 0)
        token = np.maximum(token, bound)
        nearest = np.searchsorted(self.comment_starts, token)
        nearest += self._same_line(token, comments[nearest], start)
        found = comments[nearest]
        self.entry_starts = np.where(found < self.proper, found, self.entry_starts)

    def _same_line(self, ends: Offsets, comments: Offsets, start: int) -> Mask:
        """Whether each comment stands on the line where what lies before it ends."""
        line = np.searchsorted(self.breaks, ends) == np.searchsorted(self.breaks, comments)
        on_break = _line_breaks(self._codes[np.maximum(ends - 1, 0)])
        return line & ~on_break & (ends > start) & (comments <= len(self.text))

    def _reach(self, length: int) -> Offsets:
        """Where what ends at each real event ends with the comments that belong to it."""
        reach = self._real_ends.copy()
        if not self.comment_starts.size or not reach.size:
            return reach
        following = np.concatenate((self._real_starts[1:], [length]))
        lo, hi = np.searchsorted(self.comment_starts, reach), np.searchsorted(self.comment_starts, following)
        touched = np.flatnonzero(lo < hi)
        lo, hi, ends = lo[touched], hi[touched], reach[touched]
        kinds = np.concatenate((self._real_kinds[1:], [CLOSE]))[touched]
        comma = np.concatenate((self._marks[","], [length]))[np.searchsorted(self._marks[","], ends)]
        listed = comma < following[touched]
        lo = np.where(listed, np.searchsorted(self.comment_starts, comma), lo)
        token = np.where(listed, comma + 1, ends)
        lo += self._same_line(token, np.concatenate((self.comment_starts, [length + 1]))[lo], 0)
        lo = np.where((kinds == CLOSE) | (kinds == DOCUMENT_END), hi, lo)
        last = np.concatenate((self.comment_ends, [0]))[lo - 1]
        reach[touched] = np.where((lo > 0) & (last > ends), last, ends)
        return reach

    def column(self, position: int) -> int:
        """Characters before `position` on its line, a byte order mark not counted."""
        line = int(np.searchsorted(self.breaks, position))
        begin = int(self.breaks[line - 1]) + 1 if line else int(self.text.startswith("\ufeff"))
        return position - begin


def _line_breaks(codes: NDArray[np.unsignedinteger]) -> Mask:
    """Where libyaml sees the characters of a line break."""
    breaks = (codes == 0x0A) | (codes == 0x0D)
    if codes.dtype != np.uint8:
        breaks |= (codes == 0x85) | (codes >> 1 == 0x2028 >> 1)
    return breaks


def _block_end(text: str, start: int, end: int) -> int:
    """The end of a block scalar without what is not of its value: blank lines after it, unless it keeps them, and its
    last line break. Blanks that its value ends with stay."""
    header = _HEADER.match(text, start, end)
    if header is None:
        return end
    if "+" in header.group().partition("#")[0]:
        return end
    body = text[header.end() : end]
    solid = len(body.rstrip(" \t\n\r\x85\u2028\u2029"))
    if not solid:
        return start + len(text[start : header.end()].rstrip())
    tail = body[solid:]
    if " " not in tail and "\t" not in tail:
        return header.end() + solid
    lines = _BREAK.split(tail)
    indent = _indent(body) if not header.group(1) else 0
    for i in range(len(lines) - 1, 0, -1):
        if len(lines[i]) > indent:
            return end - sum(map(len, lines[i + 1 :])) - _break_lengths(body, solid, i)
    return header.end() + solid + len(lines[0])


def _indent(body: str) -> int:
    """Spaces before the first line that is not blank."""
    first = re.search(r"[^\s]", body)
    if first is None:
        return 0
    line = max((body.rfind(b, 0, first.start()) for b in "\n\r\x85\u2028\u2029"), default=-1)
    return len(body[line + 1 :]) - len(body[line + 1 :].lstrip(" "))


def _break_lengths(body: str, solid: int, skip: int) -> int:
    """Characters of the line breaks of `body[solid:]` after the first `skip`."""
    return sum(len(b) for b in _BREAK.findall(body, solid)[skip:])
