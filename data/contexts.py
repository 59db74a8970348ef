"""Responses filled to a length: which records join, where they stand, and what the text is.

A `Page` is a collection's response in one layout; it counts each record's tokens once and joins records into text
without rewriting them. `fill` adds distractors until the whole text has 90 to 100 % of the wanted tokens under every
tokenizer; because it only ever adds, the contexts of one question grow into each other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from ..errors import ConfigError
from .catalog import Collection, FieldPath, Record
from .tasks import Gate

LEAST_SHARE = 0.9  # of the length that a context must fill
_SLACK = 0.005  # of the length: the order of records, drawn later, may change a few tokens where they meet
_AIM = (0.935, 0.985)  # between these shares, by the sum of record counts, filling stops
_PATIENCE = 400  # records that may be too long for what is left before the fill counts as stuck
_CORRECTIONS = 20
_MARK = "\uf8ff"

LAYOUTS: Mapping[str, dict[str, Any]] = {
    "compact": {"separators": (",", ":")},
    "spaced": {"separators": (", ", ": ")},
    "indented": {"indent": 2},
}


class Counter(Protocol):
    """What counts tokens: a `data.tokens.Tokenizer`, or a stand-in."""

    @property
    def name(self) -> str: ...

    def count(self, text: str) -> int: ...


class Page:
    """A collection's response in one layout, under the tokenizers that its length is measured with."""

    def __init__(self, collection: Collection, layout: str, tokenizers: Sequence[Counter]) -> None:
        self.collection, self.layout, self.tokenizers = collection, layout, tuple(tokenizers)
        shell = _dumps(_enclosed(collection.envelope, collection.list_path), layout)
        before, after = shell.split(f'"{_MARK}"')
        self._indent = before[before.rfind("\n") :] if layout == "indented" else ""
        self._before, self._after = before, after
        self._glue = "," + self._indent if self._indent else LAYOUTS[layout]["separators"][0]
        self._elements: dict[int, str] = {}
        self._tokens: dict[int, tuple[int, ...]] = {}

    def element(self, index: int) -> str:
        """The text of one record as it stands in the list."""
        if index not in self._elements:
            text = _dumps(self.collection.records[index], self.layout)
            self._elements[index] = text.replace("\n", self._indent) if self._indent else text
        return self._elements[index]

    def tokens(self, index: int) -> tuple[int, ...]:
        """Tokens of one record with the comma after it, by tokenizer; nearly its share of the whole text."""
        if index not in self._tokens:
            self._tokens[index] = self.counts(self.element(index) + self._glue)
        return self._tokens[index]

    def counts(self, text: str) -> tuple[int, ...]:
        """Tokens of a text, by tokenizer."""
        return tuple(tokenizer.count(text) for tokenizer in self.tokenizers)

    def shell_tokens(self) -> tuple[int, ...]:
        """Tokens of the response around its records."""
        return self.counts(self._before + self._after)

    def text(self, order: Sequence[int]) -> str:
        """The response that lists these records."""
        return self._before + self._glue.join(map(self.element, order)) + self._after

    def typical_tokens(self) -> float:
        """The mean tokens of a record, by the tokenizer that sees most, from records spread over the collection."""
        step = max(1, len(self.collection.records) // 40)
        sample = range(0, len(self.collection.records), step)
        return sum(max(self.tokens(i)) for i in sample) / len(sample)

    def positions(self, order: Sequence[int], supports: Sequence[int]) -> list[float]:
        """Where the middles of the records at these places of the list lie in the text, from 0 to 1."""
        starts, place = [], len(self._before)
        for index in order:
            starts.append(place)
            place += len(self.element(index)) + len(self._glue)
        total = place - len(self._glue) + len(self._after)
        return [round((starts[i] + len(self.element(order[i])) / 2) / total, 4) for i in supports]


class Filler:
    """Grows one question's list of records from length to length. `new_gate` makes a test that each record is put to
    once, in the order of joining."""

    def __init__(
        self, page: Page, seeds: Sequence[int], candidates: Iterator[int], new_gate: Callable[[], Gate]
    ) -> None:
        self._page, self._candidates, self._new_gate = page, candidates, new_gate
        self._fixed = len(seeds)
        self.chosen = list(seeds)
        self._renew_gate()

    def fill(self, length: int) -> list[int] | None:
        """The records of a context of `length` tokens, those of the last length among them; None where no choice that
        was tried fills it. Raises ConfigError where no text suits all tokenizers."""
        low, high = _AIM
        for _ in range(_CORRECTIONS):
            enough = self._add(low * length, high * length)
            counts = self._page.counts(self._page.text(self.chosen))
            if (LEAST_SHARE + _SLACK) * length <= min(counts) and max(counts) <= (1 - _SLACK) * length:
                self._fixed = len(self.chosen)
                return list(self.chosen)
            self._check_spread(counts, length)
            if max(counts) > (1 - _SLACK) * length:  # the sum of the records says too little
                low, high = (share * 0.99 * length / max(counts) for share in (low, high))
                self._drop(high * length)
            elif enough:  # it says too much
                low, high = low * 1.02, high * 1.02
            else:
                self._drop_last()  # nothing fits what is left: leave more
        return None

    def _add(self, enough: float, most: float) -> bool:
        """Adds candidates that fit. True when there is enough, False when none has fitted for long."""
        total, failed = self._total(), 0
        while min(total) < enough and failed < _PATIENCE:
            index = next(self._candidates, None)
            if index is None:
                return False
            grown = [a + b for a, b in zip(total, self._page.tokens(index), strict=True)]
            if max(grown) > most or index in self._taken or not self._admits(self._record(index)):
                failed += 1
                continue
            self._taken.add(index)
            self.chosen.append(index)
            total = grown
        return min(total) >= enough

    def _drop_last(self) -> None:
        if len(self.chosen) > self._fixed:
            self.chosen.pop()
            self._renew_gate()

    def _drop(self, most: float) -> None:
        while len(self.chosen) > self._fixed and max(self._total()) > most:
            self.chosen.pop()
        self._renew_gate()

    def _renew_gate(self) -> None:
        """The state of the gate after the records that are here now."""
        self._taken = set(self.chosen)
        self._admits = self._new_gate()
        for index in self.chosen:
            admitted = self._admits(self._record(index))
            assert admitted, "a gate admits again what it admitted in this order"

    def _record(self, index: int) -> Record:
        return self._page.collection.records[index]

    def _total(self) -> list[int]:
        total = list(self._page.shell_tokens())
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


def _enclosed(envelope: Mapping[str, Any], path: FieldPath) -> dict[str, Any]:
    """The envelope with a list of one mark at `path`."""
    key, *rest = path
    inner = _enclosed(envelope[key], tuple(rest)) if rest else [_MARK]
    return {**envelope, key: inner}


def _dumps(value: Any, layout: str) -> str:
    return json.dumps(value, ensure_ascii=False, **LAYOUTS[layout])
