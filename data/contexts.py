"""Contexts filled to a length: which units join, where they stand, and what the text is.

A `Page` is a collection in one layout, seen from one split; it counts each unit's tokens once and joins units into
text without rewriting them. `Filler` adds distractors until the whole text has 90 to 100 % of the wanted tokens under
every tokenizer; because it only ever adds, the contexts of one question grow into each other.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from random import Random
from typing import Protocol

from ..errors import ConfigError
from .catalog import Collection, Record
from .drawing import Gate

LEAST_SHARE = 0.9  # of the length that a context must fill
_SLACK = 0.004  # of the length: the order of units, drawn later, may change a few tokens where they meet
_AIM = (0.94, 0.985)  # between these shares, by the sum of unit counts, filling stops
_LOWEST_AIM, _LESS = 0.908, 0.012  # where units are large, the lower share gives way step by step
_PATIENCE = 400  # draws in a row that join nothing before the fill counts as stuck
_CORRECTIONS = 20
_SAMPLE = 48  # units from which the length of a token is learned
_KEPT = 64_000_000  # characters of printed units that are kept


class Counter(Protocol):
    """What counts tokens: a `data.tokens.Tokenizer`, or a stand-in."""

    @property
    def name(self) -> str: ...

    def count(self, text: str) -> int: ...


class Page:
    """The units of a collection that a split may use, in one layout, under the tokenizers that measure length."""

    def __init__(
        self, collection: Collection, layout: str, tokenizers: Sequence[Counter], pool: Sequence[int] | None = None
    ) -> None:
        self.collection, self.layout, self.tokenizers = collection, layout, tuple(tokenizers)
        self.pool = range(len(collection.units)) if pool is None else pool
        self._before, self._glue, self._after = collection.frame.shell(layout)
        self._elements: dict[int, tuple[str, str, str]] = {}
        self._kept = 0
        self._tokens: dict[int, tuple[int, ...]] = {}

    def element(self, index: int) -> tuple[str, str, str]:
        """What opens a unit, its text, what closes it, as they stand in the context."""
        if index not in self._elements:
            if self._kept > _KEPT:
                self._elements.clear()
                self._kept = 0
            self._elements[index] = self.collection.frame.unit(self.collection.units[index], self.layout)
            self._kept += len(self._elements[index][1])
        return self._elements[index]

    def tokens(self, index: int) -> tuple[int, ...]:
        """Tokens of one unit with the glue after it, by tokenizer; nearly its share of the whole text."""
        if index not in self._tokens:
            self._tokens[index] = self.counts("".join(self.element(index)) + self._glue)
        return self._tokens[index]

    def counts(self, text: str) -> tuple[int, ...]:
        """Tokens of a text, by tokenizer."""
        return tuple(tokenizer.count(text) for tokenizer in self.tokenizers)

    @cached_property
    def shell_tokens(self) -> tuple[int, ...]:
        """Tokens of what stands around the units."""
        return self.counts(self._before + self._after)

    def text(self, order: Sequence[int]) -> str:
        """The context that holds these units."""
        return self._before + self._glue.join("".join(self.element(i)) for i in order) + self._after

    def spans(self, order: Sequence[int]) -> list[tuple[int, int]]:
        """Where each unit's own text stands in that context, in characters."""
        spans, place = [], len(self._before)
        for index in order:
            opening, text, closing = self.element(index)
            start = place + len(opening)
            spans.append((start, start + len(text)))
            place = start + len(text) + len(closing) + len(self._glue)
        return spans

    @cached_property
    def rate(self) -> float:
        """Tokens that a character of a unit's source becomes here, by the tokenizer that sees most; from units spread
        over the pool."""
        sample = [self.pool[i] for i in range(0, len(self.pool), max(1, len(self.pool) // _SAMPLE))]
        sample = [i for i in sample if self._size(i) < 100_000] or sample[:1]
        return sum(max(self.tokens(i)) for i in sample) / max(1, sum(map(self._size, sample)))

    @cached_property
    def held(self) -> int:
        """About how many tokens the pool has in all."""
        return int(self.rate * sum(map(self._size, self.pool)))

    def estimate(self, index: int) -> float:
        """About how many tokens a unit has, without counting them."""
        return self.rate * self._size(index)

    def within(self, tokens: float) -> int:
        """How many of the pool's units, in the order of `by_size`, may have at most so many tokens."""
        return bisect_right(self._sizes, 1.5 * max(0.0, tokens) / self.rate)

    @cached_property
    def by_size(self) -> list[int]:
        """The pool from the smallest unit to the largest."""
        return sorted(self.pool, key=self._size)

    @cached_property
    def _sizes(self) -> list[int]:
        return [self._size(i) for i in self.by_size]

    def _size(self, index: int) -> int:
        return len(self.collection.units[index].text)


class Filler:
    """Grows one question's units from length to length. `new_gate` makes a test that the records of each unit are put
    to once, in the order of joining, those of the seeds together."""

    def __init__(
        self,
        page: Page,
        seeds: Sequence[int],
        rng: Random,
        records: Callable[[int], Sequence[Record]],
        new_gate: Callable[[], Gate],
    ) -> None:
        self._page, self._rng, self._records, self._new_gate = page, rng, records, new_gate
        self._seeds = list(dict.fromkeys(seeds))
        self._fixed = len(self._seeds)
        self.chosen = list(self._seeds)
        self._sound = self._renew_gate()

    def fill(self, length: int) -> list[int] | None:
        """The units of a context of `length` tokens, those of the last length among them; None where no choice that
        was tried fills it. Raises ConfigError where no text suits all tokenizers."""
        low, high = _AIM
        for _ in range(_CORRECTIONS if self._sound else 0):
            enough = self._add(low * length, high * length)
            if not enough:
                self._check_spread(self._total(), length)
                if len(self.chosen) == self._fixed and low <= _LOWEST_AIM:
                    return None
                low = max(_LOWEST_AIM, low - _LESS)
                self._drop_last()  # nothing fits what is left: leave more
                continue
            counts = self._page.counts(self._page.text(self.chosen))
            if (LEAST_SHARE + _SLACK) * length <= min(counts) and max(counts) <= (1 - _SLACK) * length:
                self._fixed = len(self.chosen)
                return list(self.chosen)
            self._check_spread(counts, length)
            if max(counts) > (1 - _SLACK) * length:  # the sum of the units says too little
                low, high = (share * 0.99 * length / max(counts) for share in (low, high))
                self._drop(high * length)
            else:  # it says too much
                low, high = low * 1.02, high * 1.02
        return None

    def _add(self, enough: float, most: float) -> bool:
        """Adds units that fit. True when there is enough, False when none has fitted for long."""
        total, failed = self._total(), 0
        while min(total) < enough and failed < _PATIENCE:
            candidates = self._page.within(most - max(total))
            if not candidates:
                return False
            index = self._page.by_size[self._rng.randrange(candidates)]
            failed += 1
            if index in self._taken:
                continue
            grown = [a + b for a, b in zip(total, self._page.tokens(index), strict=True)]
            if max(grown) > most or not self._admits(self._records(index)):
                continue
            self._taken.add(index)
            self.chosen.append(index)
            total, failed = grown, 0
        return min(total) >= enough and max(total) <= most

    def _drop_last(self) -> None:
        if len(self.chosen) > self._fixed:
            self.chosen.pop()
            self._renew_gate()

    def _drop(self, most: float) -> None:
        while len(self.chosen) > self._fixed and max(self._total()) > most:
            self.chosen.pop()
        self._renew_gate()

    def _renew_gate(self) -> bool:
        """Brings the gate to the state after the units that are here now; False where it refuses the seeds."""
        self._taken = set(self.chosen)
        self._admits = self._new_gate()
        if not self._admits([record for index in self._seeds for record in self._records(index)]):
            return False
        for index in self.chosen[len(self._seeds) :]:
            admitted = self._admits(self._records(index))
            assert admitted, "a gate admits again what it admitted in this order"
        return True

    def _total(self) -> list[int]:
        total = list(self._page.shell_tokens)
        for index in self.chosen:
            total = [a + b for a, b in zip(total, self._page.tokens(index), strict=True)]
        return total

    def _check_spread(self, counts: Sequence[int], length: int) -> None:
        """Two tokenizers that differ by more than a length may vary leave no text that suits both."""
        if min(counts) >= LEAST_SHARE * max(counts) or max(counts) < LEAST_SHARE * length:
            return
        names = [tokenizer.name for tokenizer in self._page.tokenizers]
        few, many = names[counts.index(min(counts))], names[counts.index(max(counts))]
        raise ConfigError(
            f"tokenizers: {few} counts {min(counts):,} tokens where {many} counts {max(counts):,}; "
            "no context suits both within 10 %: build them apart"
        )
