"""Where questions may be drawn: the tables of a page that a split may ask about, and which of their rows.

A row may support an answer if its unit belongs to the split and fits the shortest context. A table inside one unit may
be asked about if the unit's facts mean no other unit, and the list's words no other list in it; a record alone goes by
the name of its unit. Fields whose names say the same are left out: nobody could tell which is meant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import log
from random import Random

from .catalog import UNIT, Table
from .contexts import Page
from .drawing import Ground
from .tasks import Task

_WIDEST = 0.85  # of the shortest context, the share that one supporting unit may take
_FEWEST = 2  # records of a table that can be asked about


@dataclass(frozen=True)
class _Place:
    """A table that may be asked about, and its rows."""

    table: Table
    rows: Sequence[int]


class Shelf:
    """A page and what of it may be asked about, at these lengths."""

    def __init__(self, page: Page, lengths: Sequence[int]) -> None:
        self.page, self._shortest, self._longest = page, min(lengths), max(lengths)
        self._suiting: dict[str, tuple[list[_Place], list[_Place]]] = {}

    def suits(self, task: Task) -> bool:
        """Whether there is a table for this task."""
        return any(self._of(task))

    def ground(self, rng: Random, task: Task) -> Ground | None:
        """A table for this task: one that grows with the context or one inside a unit, larger ones more often, but not
        by their size: small ones would never be seen."""
        kinds = [places for places in self._of(task) if places]
        if not kinds:
            return None
        places = rng.choice(kinds)
        place = rng.choices(places, [log(1 + len(place.rows)) for place in places])[0]
        if not place.table.whole:
            size = len(place.rows)
            return Ground(place.table, place.rows, max(size, 2), size, self._reserve)
        share = len(place.rows) / max(1.0, self.page.held)
        room, crowd = (int(0.9 * length * share) for length in (self._shortest, self._longest))
        return Ground(place.table, place.rows, max(room, self._units_of_shortest(place)), crowd, self._reserve)

    @property
    def _reserve(self) -> float:
        return self.page.held / self._longest

    def _units_of_shortest(self, place: _Place) -> int:
        """How many of the place's units the shortest context holds, by the mean of some of them."""
        step = max(1, len(place.rows) // 20)
        sample = [self.page.estimate(place.table.unit_of[row]) for row in place.rows[::step]]
        return int(0.9 * self._shortest / (sum(sample) / len(sample)))

    def _of(self, task: Task) -> tuple[list[_Place], list[_Place]]:
        if task.name not in self._suiting:
            whole = [place for place in self._whole if task.suits(place.table)]
            inner = [place for place in self._inner if task.suits(place.table)]
            self._suiting[task.name] = (whole, inner)
        return self._suiting[task.name]

    @cached_property
    def _fitting(self) -> frozenset[int]:
        """Units of the pool that leave room beside them in the shortest context."""
        return frozenset(u for u in self.page.pool if self.page.estimate(u) <= _WIDEST * self._shortest)

    @cached_property
    def _whole(self) -> list[_Place]:
        tables = [table for table in self.page.collection.tables if table.whole]
        words = Counter(_folded(table.plural) for table in tables)
        places = []
        for table in tables:
            rows = [row for row, unit in enumerate(table.unit_of) if unit in self._fitting]
            if len(rows) >= _FEWEST and words[_folded(table.plural)] == 1:
                places.append(_Place(clear_fields(table), rows))
        return places

    @cached_property
    def _inner(self) -> list[_Place]:
        collection = self.page.collection
        inner = [table for table in collection.tables if not table.whole and len(table.records)]
        words = Counter(_words(table) for table in inner)
        return [
            _Place(clear_fields(table), range(len(table.records)))
            for table in inner
            if table.unit_of[0] in self._fitting
            and (len(table.records) >= _FEWEST or table.naming.path[0] == UNIT)
            and words[_words(table)] == 1
            and collection.names_unit(table.unit_of[0])
        ]


def clear_fields(table: Table) -> Table:
    """The table without fields whose names mean several of them."""
    names = Counter(_folded(field.name) for field in {f.path: f for f in (table.naming, *table.fields)}.values())
    fields = tuple(field for field in table.fields if names[_folded(field.name)] == 1)
    return table if len(fields) == len(table.fields) else replace(table, fields=fields)


def _words(table: Table) -> tuple[int, str, str]:
    return table.unit_of[0], _folded(table.label), _folded(table.plural)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
