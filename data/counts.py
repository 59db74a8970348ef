"""Exact token counts of any slice of a text, after one pass over it.

A position is *hard* if no token, in any context, can reach across it: a letter or digit before it and punctuation or
white space after it (not an apostrophe), or punctuation before it and a blank after it, and the two characters not
inside an added token. Text cut at hard positions is tokenised piece by piece (a fraction of the cost of one call),
and a slice costs `A[s] + Z[e]`: the tokens up to its first hard position, those after its last one, and a difference
of prefix sums between. Tokenizers outside the family (`bpe.family_of`) are counted slice by slice: correct, slower.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Count = Callable[[Sequence[str]], list[int]]

PIECE = 8_192  # characters encoded at once; the speed is flat from 1 K to 16 K
LONG = 256  # characters without a hard position beyond which counts are had only where a decision needs them
SLACK = 32  # tokens by which a slice's own count may differ from the document's tokens inside it
_WORD, _MARK, _BLANK, _BREAK, _QUOTE = 1, 2, 3, 4, 5


class Units(Protocol):
    """Consecutive siblings, counted alone and in runs. `limit` is a budget in tokens."""

    def over(self, limit: int) -> Sequence[int]:
        """Ordinals of the units that alone have more than `limit` tokens, ascending."""
        ...

    def fit(self, first: int, stop: int, limit: int) -> int:
        """The end of the longest run `first:end` within `stop` before the first unit that does not fit; at least one
        unit."""
        ...


class Counts(Protocol):
    """Counts over one text. `ends[k]` is the character at which token k ends, a cut inside a character moved to its
    end."""

    text: str
    ends: Ints

    @property
    def total(self) -> int: ...

    def count(self, start: int, end: int) -> int:
        """Tokens of `text[start:end]` encoded alone, no special tokens."""
        ...

    def counts_of(self, texts: Sequence[str]) -> list[int]:
        """Tokens of other texts, each encoded alone."""
        ...

    def exceeds(self, start: int, end: int, limit: int) -> bool:
        """True where `text[start:end]` surely has more than `limit` tokens; a cheap bound, False where it is
        close."""
        ...

    def units(self, starts: Ints, ends: Ints) -> Units: ...


class HardCounts:
    """Counts by hard positions. `ends` are the token ends of the whole text, `count_texts` counts short strings."""

    def __init__(self, text: str, hard: Ints, ends: Ints, count_texts: Count) -> None:
        self.text, self.ends, self._hard, self._count_texts = text, ends, hard, count_texts
        self._memo: dict[str, int] = {"": 0}

    @property
    def total(self) -> int:
        return len(self.ends)

    def upto(self, positions: Ints) -> Ints:
        """Tokens of the text that end at or before each position."""
        return np.searchsorted(self.ends, positions, "right")

    def first_hard(self, starts: Ints) -> Ints:
        return self._hard[np.searchsorted(self._hard, starts, "left")]

    def last_hard(self, ends: Ints) -> Ints:
        return self._hard[np.searchsorted(self._hard, ends, "right") - 1]

    def count(self, start: int, end: int) -> int:
        head, tail = (int(h) for h in (self.first_hard(np.array([start]))[0], self.last_hard(np.array([end]))[0]))
        if head > tail:
            return self.counts_of([self.text[start:end]])[0]
        edge = self.counts_of([self.text[start:head], self.text[tail:end]])
        inside = self.upto(np.array([head, tail]))
        return sum(edge) + int(inside[1] - inside[0])

    def exceeds(self, start: int, end: int, limit: int) -> bool:
        return bisect_right(self.ends, end) - bisect_right(self.ends, start) > limit + LONG

    def counts_of(self, texts: Sequence[str]) -> list[int]:
        """Counts of texts encoded alone; equal ones are counted once."""
        memo = self._memo
        fresh = list(dict.fromkeys(text for text in texts if text not in memo))
        if fresh:
            memo.update(zip(fresh, self._count_texts(fresh), strict=True))
        return [memo[text] for text in texts]

    def units(self, starts: Ints, ends: Ints) -> HardUnits:
        return HardUnits(self, starts, ends)


class HardUnits:
    """Siblings with the two arrays of `A[s] + Z[e]`. Where the next hard position is far, the document's own tokens
    stand in as an estimate, and the exact count is taken only if a decision falls within `SLACK` of it."""

    def __init__(self, counts: HardCounts, starts: Ints, ends: Ints) -> None:
        self._counts, self._starts, self._ends = counts, starts, ends
        head, tail = counts.first_hard(starts), counts.last_hard(ends)
        far_head, far_tail = head - starts > LONG, ends - tail > LONG
        self._head = head
        self._a = self._edge(starts, head, far_head) - counts.upto(np.where(far_head, starts, head))
        self._z = counts.upto(np.where(far_tail, ends, tail)) + self._edge(tail, ends, far_tail)
        self._peak = np.maximum.accumulate(self._z) if len(ends) else self._z
        self._far = far_head | far_tail
        self._any_far = bool(self._far.any())
        self._alone = self._a + self._z
        inside = head > tail
        short = inside & (ends - starts <= LONG)
        self._alone[short] = self._slices(starts[short], ends[short])
        self._loose = (self._far & ~short) | (inside & ~short)
        estimate = counts.upto(ends[self._loose]) - counts.upto(starts[self._loose])
        self._alone[self._loose] = estimate

    def _edge(self, starts: Ints, ends: Ints, far: NDArray[np.bool_]) -> Ints:
        found = np.zeros(len(starts), np.int64)
        wanted = (ends > starts) & ~far
        found[wanted] = self._slices(starts[wanted], ends[wanted])
        return found

    def _slices(self, starts: Ints, ends: Ints) -> list[int]:
        text = self._counts.text
        return self._counts.counts_of([text[s:e] for s, e in zip(starts.tolist(), ends.tolist(), strict=True)])

    def over(self, limit: int) -> list[int]:
        if not self._loose.any():
            return np.flatnonzero(self._alone > limit).tolist()
        near = self._loose & (np.abs(self._alone - limit) <= SLACK)
        over = self._alone > limit
        for i in np.flatnonzero(near).tolist():
            over[i] = self._counts.count(int(self._starts[i]), int(self._ends[i])) > limit
        return np.flatnonzero(over).tolist()

    def fit(self, first: int, stop: int, limit: int) -> int:
        if self._any_far or 4 * int(self._head[first] - self._starts[first]) + SLACK > limit:
            return self._fit_slowly(first, stop, limit)
        room = limit - int(self._a[first])
        # A sequence first crosses where its running maximum does, unless that maximum was reached before `first`.
        end = bisect_right(self._peak, room, first, stop)
        if end < stop and self._z[end] <= room:
            crossing = np.flatnonzero(self._z[end:stop] > room)
            end = end + int(crossing[0]) if crossing.size else stop
        return max(end, first + 1)

    def _fit_slowly(self, first: int, stop: int, limit: int) -> int:
        """The same by exact counts of whole runs, between the bounds that the document's own tokens give."""
        start = int(self._starts[first])
        passed = int(self._counts.upto(np.array([start]))[0])
        place = self._counts.ends
        safe = self._last_within(place, passed + limit - SLACK, first, stop)
        sure = self._last_within(place, passed + limit + SLACK, first, stop)
        if sure - safe <= 2 * SLACK:
            crossing = (j for j in range(safe, sure) if self._counts.count(start, int(self._ends[j])) > limit)
            return max(next(crossing, sure), first + 1)
        while safe < sure:  # many units within a few tokens: counts of growing runs are monotone but for a token or two
            middle = (safe + sure) // 2
            if self._counts.count(start, int(self._ends[middle])) > limit:
                sure = middle
            else:
                safe = middle + 1
        return max(sure, first + 1)

    def _last_within(self, place: Ints, tokens: int, first: int, stop: int) -> int:
        """The first unit of `first:stop` that ends beyond the document's token number `tokens`."""
        if tokens <= 0:
            return first
        if tokens >= len(place):
            return stop
        return first + int(np.searchsorted(self._ends[first:stop], place[tokens], "left"))


class SliceCounts:
    """Counts for any tokenizer: every slice is encoded, equal ones once."""

    def __init__(self, text: str, ends: Ints, count_texts: Count) -> None:
        self.text, self.ends, self._count_texts = text, ends, count_texts
        self._memo: dict[tuple[int, int], int] = {}

    @property
    def total(self) -> int:
        return len(self.ends)

    def count(self, start: int, end: int) -> int:
        found = self._memo.get((start, end))
        if found is None:
            found = self._memo[start, end] = self._count_texts([self.text[start:end]])[0]
        return found

    def counts_of(self, texts: Sequence[str]) -> list[int]:
        return self._count_texts(texts)

    def exceeds(self, start: int, end: int, limit: int) -> bool:
        return False

    def units(self, starts: Ints, ends: Ints) -> SliceUnits:
        return SliceUnits(self, starts, ends)


class SliceUnits:
    """Siblings counted one run at a time, to the letter of Algorithm 1."""

    def __init__(self, counts: SliceCounts, starts: Ints, ends: Ints) -> None:
        self._counts, self._starts, self._ends = counts, starts.tolist(), ends.tolist()

    def over(self, limit: int) -> list[int]:
        spans = zip(self._starts, self._ends, strict=True)
        return [i for i, (start, end) in enumerate(spans) if self._counts.count(start, end) > limit]

    def fit(self, first: int, stop: int, limit: int) -> int:
        start = self._starts[first]
        over = (j for j in range(first + 1, stop) if self._counts.count(start, self._ends[j]) > limit)
        return next(over, stop)


def hard_positions(text: str, added: Sequence[str]) -> Ints:
    """All hard positions of a text, 0 and its length included. `added` are the texts of added tokens."""
    codes = code_points(text)
    kinds = _kinds(codes)
    left, right = kinds[:-1], kinds[1:]
    hard = (left == _WORD) & ((right == _MARK) | (right == _BLANK) | (right == _BREAK))
    hard |= ((left == _MARK) | (left == _QUOTE)) & (right == _BLANK)
    positions = np.flatnonzero(hard) + 1
    pairs = {token[i : i + 2] for token in added for i in range(len(token) - 1)}
    if pairs and positions.size:
        before, after = codes[positions - 1].astype(np.int64), codes[positions].astype(np.int64)
        inside = np.isin(before << 21 | after, [ord(a) << 21 | ord(b) for a, b in pairs])
        positions = positions[~inside]
    return np.concatenate(([0], positions, [len(text)] if text else [])).astype(np.int64)


def code_points(text: str) -> np.ndarray:
    """The code points of a text as an array of `len(text)` small integers."""
    if text.isascii():
        return np.frombuffer(text.encode("ascii"), np.uint8)
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def foreign_characters(text: str) -> list[str]:
    """The distinct characters beyond ASCII, ascending."""
    if text.isascii():
        return []
    codes = code_points(text)
    return [chr(c) for c in np.unique(codes[codes > 127]).tolist()]


def _kind(char: str) -> int:
    category = unicodedata.category(char)
    if char in "'’":
        return _QUOTE
    if char in " \t":
        return _BLANK
    if char in "\r\n":
        return _BREAK
    return _WORD if category[0] in "LN" else _MARK if category[0] in "PS" else 0


def _kinds(codes: np.ndarray) -> np.ndarray:
    table = np.array([_kind(chr(c)) for c in range(128)], np.uint8)
    if codes.dtype == np.uint8:
        return table[codes]
    kinds = table[np.minimum(codes, 127)]
    foreign = np.flatnonzero(codes > 127)
    distinct, where = np.unique(codes[foreign], return_inverse=True)
    kinds[foreign] = np.array([_kind(chr(c)) for c in distinct.tolist()], np.uint8)[where]
    return kinds


def pieces_at(hard: Ints, length: int) -> Ints:
    """Cut positions at hard positions, about every `PIECE` characters, from 0 to `length`."""
    marks = np.arange(PIECE, length, PIECE)
    cuts = hard[np.searchsorted(hard, marks)] if marks.size else marks
    return np.unique(np.concatenate(([0], cuts, [length])))
