"""From collections to examples: one question at a time, each a pure function of the seed and of its place.

For each question a table is drawn, a task draws a specification and its records, wording is drawn, and one context per
length is filled and arranged. Lookups keep question and answer at every length (`base_id`); aggregations are computed
anew. `Maker.question` may start at a later attempt: who has a use for only different questions asks again.
"""

from __future__ import annotations

import json
from bisect import insort
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import log
from random import Random
from typing import Any

from ..errors import ConfigError
from . import questions
from .catalog import SHARES, Collection, Record, Shares
from .contexts import Counter, Filler, Page
from .drawing import RESERVE, Drawn, Ground
from .grounds import Shelf
from .rollout import Example, Reference
from .spec import spelled
from .tasks import TASKS, Task

ATTEMPTS = 200
_NEW_SPEC = 120  # attempts after which another answer is difference enough between two questions

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Plan:
    """What the examples of one split are made of. `shares` says which units may support which split, in percent."""

    split: str
    seed: int
    tasks: tuple[str, ...]
    per_task: int
    lengths: tuple[int, ...]
    layouts: tuple[str, ...]
    shares: Shares = field(default_factory=lambda: SHARES)

    def places(self) -> Iterator[tuple[str, int]]:
        """Task and number of each question: by number, then task, so that any first few are a mixture."""
        return ((task, number) for number in range(self.per_task) for task in self.tasks)


@dataclass(frozen=True)
class Made:
    """A question's rows, by length; `attempt` is the draw that gave them."""

    rows: tuple[Row, ...]
    attempt: int

    @property
    def key(self) -> str:
        """What must differ between two questions of a split: what is asked of which source, and, where new questions
        have become rare, what is answered."""
        first = self.rows[0]
        answers = [row["answers"] for row in self.rows] if self.attempt >= _NEW_SPEC else []
        return _key(first["source"], first["spec"], answers)


def generate(plan: Plan, collections: Sequence[Collection], tokenizers: Sequence[Counter]) -> Iterator[Row]:
    """The rows of a split, no question twice.

    Raises ConfigError at once where the sources hold too little for a length, and on the way where they hold too few
    different questions."""
    return _rows(plan, Maker(plan, collections, tokenizers))


def _rows(plan: Plan, maker: Maker) -> Iterator[Row]:
    asked = set[str]()
    for task, number in plan.places():
        made = maker.question(task, number, asked=asked)
        asked.add(made.key)
        yield from made.rows


def example_of(row: Row) -> Example:
    """The example that a row states."""
    reference = Reference(tuple(row["answers"]), row["answer_kind"], row["ordered"], row["count"])
    fields = ("context", "format", "question", "task", "length", "base_id", "spec")
    return Example(reference=reference, **{name: row[name] for name in fields})


class Maker:
    """Makes the questions of a split, in any order. Raises ConfigError where the sources hold too little."""

    def __init__(self, plan: Plan, collections: Sequence[Collection], tokenizers: Sequence[Counter]) -> None:
        self._plan = plan
        pools = [(collection, collection.pool(plan.split, plan.shares)) for collection in collections]
        pages = [
            Page(collection, layout, tokenizers, pool)
            for collection, pool in pools
            if pool
            for layout in collection.layouts
            if len(collection.layouts) == 1 or layout in plan.layouts
        ]
        longest = max(plan.lengths)
        self._shelves = [Shelf(page, plan.lengths) for page in pages if page.held >= RESERVE * longest]
        if not self._shelves:
            raise ConfigError(_too_little(plan, max((page.held for page in pages), default=0)))
        self._places = {
            task: _spread(Random(f"{plan.seed}/{plan.split}/{task}/places"), plan.per_task, TASKS[task].placed)
            for task in plan.tasks
        }

    def suits(self, name: str) -> bool:
        """Whether any list of records suits a task; there may still be too few of them."""
        return any(shelf.suits(TASKS[name]) for shelf in self._shelves)

    def question(self, name: str, number: int, start: int = 0, asked: Set[str] = frozenset()) -> Made:
        """The question with this number of a task, with its contexts of all lengths, by the first attempt from `start`
        on that succeeds and whose key is none of `asked`. Raises ConfigError where none does."""
        task, base = TASKS[name], f"{self._plan.split}/{name}/{number}"
        shelves = [shelf for shelf in self._shelves if shelf.suits(task)]
        unfilled = 0
        for attempt in range(start, ATTEMPTS if shelves else start):
            rng = Random(f"{self._plan.seed}/{base}/{attempt}")
            shelf = rng.choices(shelves, [log(1 + len(shelf.page.pool)) for shelf in shelves])[0]
            ground = shelf.ground(rng, task)
            drawn = task.draw(rng, ground) if ground else None
            source = shelf.page.collection.provenance.source
            if ground is None or drawn is None:
                continue
            if attempt < _NEW_SPEC and _key(source, drawn.spec.to_json(), []) in asked:
                continue
            rows = _Question(rng, shelf, ground, task, drawn).rows(base, self._plan.lengths, self._places[name][number])
            made = Made(tuple(rows), attempt)
            if rows and made.key not in asked:
                return made
            unfilled += not rows
        why = "too few records or fields that suit it" if shelves else "no list of records suits it"
        if unfilled:
            why = "most often the parts of the documents are too large, or too alike in size, to fill 90-100 %"
        raise ConfigError(
            f"{self._plan.split}.per_task: only {number} questions found for {name} with contexts of "
            f"{', '.join(f'{n:,}' for n in self._plan.lengths)} tokens ({why}); lower it, lengthen them, leave the "
            "task out, or add documents"
        )


def _key(source: str, spec: str, answers: Sequence[Sequence[str]]) -> str:
    return json.dumps([source, spec, answers])


class _Question:
    """One question that was drawn, and its contexts."""

    def __init__(self, rng: Random, shelf: Shelf, ground: Ground, task: Task, drawn: Drawn) -> None:
        self._page, self._table, self._task, self._spec = shelf.page, ground.table, task, drawn.spec
        self._rng = rng
        self._text = questions.ask(rng, drawn.spec, ground.table, shelf.page.collection.format)
        seeds = [ground.table.unit_of[row] for row in drawn.seeds]
        new_gate = (lambda: task.gate(drawn.spec)) if ground.table.whole else _open_gate
        self._filler = Filler(shelf.page, seeds, Random(rng.random()), self._records_in, new_gate)

    def rows(self, base: str, lengths: Sequence[int], places: Sequence[float]) -> list[Row]:
        """Rows of every length; none where an answer would be revealed or not be clear, or a length not be filled."""
        order = Order(Random(self._rng.random()), self._page, places)
        rows = []
        for length in sorted(lengths):
            chosen = self._filler.fill(length)
            if chosen is None:
                return []
            units = order.arrange(chosen, self._supporting(chosen) if self._placed else {})
            records, places_of = self._listed(units)
            answers = [spelled(value) for value in self._task.execute(self._spec, records)]
            if not answers or questions.reveals(self._text, answers):
                return []
            support = self._positions(units, [places_of[i] for i in self._task.support(self._spec, records)])
            rows.append(self._row(base, length, units, answers, support))
        return rows

    @property
    def _placed(self) -> bool:
        """Whether the units of the support are put at drawn places: always where they are few."""
        return bool(self._task.placed) or not self._table.whole

    def _records_in(self, unit: int) -> list[Record]:
        return [self._table.records[row] for row in self._table.records_in(unit)]

    def _listed(self, units: Sequence[int]) -> tuple[list[Record], list[tuple[int, int]]]:
        """The table's records in a context, and where each lies: place of the unit, row of the table."""
        places = [(place, row) for place, unit in enumerate(units) for row in self._table.records_in(unit)]
        return [self._table.records[row] for _, row in places], places

    def _supporting(self, chosen: Sequence[int]) -> dict[int, int]:
        """The units of the support, with the middle of the first supporting record in each, in characters."""
        records, places = self._listed(chosen)
        middles: dict[int, int] = {}
        for place, row in (places[i] for i in self._task.support(self._spec, records)):
            opening, text, _ = self._page.element(chosen[place])
            start, end = (0, len(text)) if self._table.spans is None else self._table.spans[row]
            middles.setdefault(chosen[place], len(opening) + (start + end) // 2)
        return middles

    def _positions(self, units: Sequence[int], supports: Sequence[tuple[int, int]]) -> list[float]:
        """Where the middles of the supporting records lie in the text, from 0 to 1; of their units where no more is
        known."""
        spans, total = self._page.spans(units), len(self._page.text(units))
        middles = []
        for place, row in supports:
            start, end = spans[place]
            if self._table.spans is not None:
                start, end = (start + offset for offset in self._table.spans[row])
            middles.append(round((start + end) / 2 / total, 6))
        return middles

    def _row(self, base: str, length: int, units: Sequence[int], answers: list[str], support: list[float]) -> Row:
        collection, spec = self._page.collection, self._spec
        origins = [collection.units[unit].provenance for unit in units]
        row = {
            "base_id": base,
            "task": spec.task,
            "format": collection.format,
            "length": length,
            "context": self._page.text(units),
            "question": self._text,
            "answers": answers,
            "answer_kind": spec.answer_kind,
            "ordered": spec.ordered,
            "count": spec.asked,
            "spec": spec.to_json(),
            "source": collection.provenance.source,
            "license": ", ".join(sorted({origin.license for origin in origins})),
            "sources": list(dict.fromkeys(origin.line for origin in origins)),
            "support": support,
        }
        return {"id": example_of(row).key, **row}


class Order:
    """Where units stand: anywhere, each at the same rank among the others at every length; those that support the
    answer, if placed, where the drawn shares of the text lie before the support in them."""

    def __init__(self, rng: Random, page: Page, places: Sequence[float]) -> None:
        self._rng, self._page = rng, page
        self._places = list(places) or [rng.random()]
        self._ranks: dict[int, float] = {}

    def arrange(self, chosen: Sequence[int], supports: Mapping[int, int]) -> list[int]:
        """All units in their order; `supports`: those to be placed, with the place of the support in their text."""
        for unit in chosen:
            self._ranks.setdefault(unit, self._rng.random())
        order = sorted((unit for unit in chosen if unit not in supports), key=self._ranks.__getitem__)
        targets: list[tuple[float, int]] = []
        for support, place in zip(supports, self._places, strict=False):
            insort(targets, (place, support))
        for place, support in targets:
            order.insert(self._index(order, support, supports[support], place), support)
        return order

    def _index(self, order: Sequence[int], support: int, inside: int, place: float) -> int:
        """The index that puts the support in the unit nearest to this share of the text."""
        lengths = [self._length(unit) for unit in order]
        target = place * (sum(lengths) + self._length(support))
        before, index, best = 0, 0, abs(inside - target)
        for i, length in enumerate(lengths):
            before += length
            distance = abs(before + inside - target)
            if distance > best:
                break
            index, best = i + 1, distance
        return index

    def _length(self, unit: int) -> int:
        return sum(map(len, self._page.element(unit)))


def canonical(row: Row) -> bytes:
    """The row as canonical JSON, for fingerprints."""
    return json.dumps(row, sort_keys=True, ensure_ascii=True).encode()


def _open_gate() -> Any:
    return lambda records: True


def _spread(rng: Random, count: int, each: int) -> list[list[float]]:
    """`each` places in [0, 1) for `count` questions; one in each of as many equal parts, in random order: uniform, and
    never bunched. A question whose supports are not placed has one for the case that they lie in one unit."""
    total = count * max(1, each)
    places = [(i + rng.random()) / total for i in range(total)]
    rng.shuffle(places)
    return [places[i * max(1, each) : (i + 1) * max(1, each)] for i in range(count)]


def _too_little(plan: Plan, held: int) -> str:
    fits = [f"{length:,}" for length in sorted(plan.lengths) if RESERVE * length <= held]
    beyond = [f"{length:,}" for length in sorted(plan.lengths) if RESERVE * length > held]
    enough = f"; enough for {', '.join(fits)}" if fits else ""
    return (
        f"{plan.split}.lengths: the largest source holds about {held:,} tokens for this split, too few for "
        f"{', '.join(beyond)} (each takes {RESERVE} times as many to choose from){enough}; add documents, leave these "
        "lengths out, or raise the split's share"
    )
