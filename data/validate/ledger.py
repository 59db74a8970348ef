"""What examples must agree on with each other: remembered as hashes, so that any number of them fits in memory.

An id stands once; a base asks one question at every length, a lookup with the same answers and supporting records,
among ever more units; no unit is in two splits; supports spread over the contexts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from .execution import TASKS
from .row import Finding

_FEWEST_PLACES = 24
_SLACK, _CRITICAL = 0.2, 1.95
"""How far the places of supports may be from uniform: supporting units are large, so that the test is gentle."""


@dataclass
class _Base:
    kept: bytes
    split: str
    sizes: dict[int, int] = field(default_factory=dict)


class Ledger:
    """Takes findings in any order; says what contradicts the earlier ones."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._bases: dict[str, _Base] = {}
        self._split_of: dict[bytes, str] = {}
        self._places: dict[str, list[float]] = {}
        self.counts: Counter[tuple[str, str, int]] = Counter()
        self.credits: set[tuple[str, str]] = set()

    def add(self, split: str, found: Finding) -> list[str]:
        """What the example contradicts."""
        self.counts[split, found.task, found.length] += 1
        self.credits |= found.credits
        problems = [*self._twice(found), *self._base(split, found), *self._leak(split, found)]
        if TASKS.get(found.task, (0, 0))[0]:
            self._places.setdefault(split, []).extend(place for place in found.places if isinstance(place, float))
        return problems

    def spread(self) -> list[str]:
        """Splits whose supports bunch: the Kolmogorov-Smirnov distance of their places from uniform is too large."""
        problems = []
        for split, places in sorted(self._places.items()):
            places, n = sorted(places), len(places)
            if n < _FEWEST_PLACES:
                continue
            distance = max(max((i + 1) / n - place, place - i / n) for i, place in enumerate(places))
            if distance > _SLACK + _CRITICAL / n**0.5:
                problems.append(f"{split}: the supports are not spread over the contexts (distance {distance:.2f})")
        return problems

    def _twice(self, found: Finding) -> list[str]:
        if found.id and found.id in self._ids:
            return ["the same example is there twice"]
        self._ids.add(found.id)
        return []

    def _base(self, split: str, found: Finding) -> list[str]:
        if not found.kept:
            return []
        base = self._bases.setdefault(found.base_id, _Base(found.kept, split))
        name, number = found.base_id, len(found.units)
        if base.split != split:
            return [f"{name} is in the split {base.split} too"]
        if base.kept != found.kept:
            return [f"{name} asks another question, or rests on other records, at another length"]
        if found.length in base.sizes:
            return [f"{name} is there twice with {found.length} tokens"]
        base.sizes[found.length] = number
        shorter = [size for length, size in base.sizes.items() if length < found.length]
        longer = [size for length, size in base.sizes.items() if length > found.length]
        if max(shorter, default=0) > number or min(longer, default=number) < number:
            return [f"{name} does not grow with its length"]
        return []

    def _leak(self, split: str, found: Finding) -> list[str]:
        for digest in dict.fromkeys((*found.supports, *found.units)):
            other = self._split_of.setdefault(digest, split)
            if other != split:
                what = "a record that supports it" if digest in found.supports else "a part of its context"
                return [f"{what} is also in the split {other}"]
        return []
