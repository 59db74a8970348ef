"""From a recipe to examples: one question at a time, each a pure function of the seed and its place in the benchmark.

For each question a task draws a specification and its records, wording is drawn, and one context per length is filled
and arranged. Lookups keep question and answer at every length (`base_id`); aggregations are computed anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from random import Random
from typing import Any

from ..errors import ConfigError
from . import questions
from .catalog import Collection
from .contexts import Counter, Filler, Page
from .rollout import Example, Reference
from .tasks import TASKS, Drawn, Spec, Task, shuffled, spelled

_ATTEMPTS = 200
_RESERVE = 1.3  # a pool must hold this many times the tokens of the longest context

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Plan:
    """What the examples of one split are made of."""

    split: str
    seed: int
    tasks: tuple[str, ...]
    per_task: int
    lengths: tuple[int, ...]
    layouts: tuple[str, ...]


def generate(plan: Plan, collections: Sequence[Collection], tokenizers: Sequence[Counter]) -> Iterator[Row]:
    """The rows of a split: by number, then task, then length, so that any first few are a mixture.

    Raises ConfigError at once where the sources hold too little for a length, and on the way where they hold too few
    different questions."""
    return _rows(plan, _Maker(plan, collections, tokenizers))


def _rows(plan: Plan, maker: _Maker) -> Iterator[Row]:
    places = {task: _spread(Random(f"{plan.seed}/{plan.split}/{task}/places"), plan.per_task) for task in plan.tasks}
    for number in range(plan.per_task):
        for task in plan.tasks:
            yield from maker.question(TASKS[task], number, places[task][number])


def example_of(row: Row) -> Example:
    """The example that a row states."""
    reference = Reference(tuple(row["answers"]), row["answer_kind"], row["ordered"], row["count"])
    fields = ("context", "format", "question", "task", "length", "base_id", "spec")
    return Example(reference=reference, **{name: row[name] for name in fields})


class _Maker:
    """Makes questions, none twice in a split."""

    def __init__(self, plan: Plan, collections: Sequence[Collection], tokenizers: Sequence[Counter]) -> None:
        self._plan, self._asked = plan, set[str]()
        self._pools = {collection.name: collection.pool(plan.split) for collection in collections}
        pages = [Page(collection, layout, tokenizers) for collection in collections for layout in plan.layouts]
        self._pages = [page for page in pages if self._holds(page, max(plan.lengths))]
        if not self._pages:
            most = max(len(self._pools[page.collection.name]) * page.typical_tokens() / _RESERVE for page in pages)
            raise ConfigError(
                f"{plan.split}.lengths: the sources hold records for about {int(most):,} tokens in this split, "
                f"not {max(plan.lengths):,}; add a source or leave the length out"
            )

    def question(self, task: Task, number: int, place: float) -> list[Row]:
        """One question with its contexts of all lengths."""
        for attempt in range(_ATTEMPTS):
            rng = Random(f"{self._plan.seed}/{self._plan.split}/{task.name}/{number}/{attempt}")
            page = self._choose_page(rng)
            pool = self._pools[page.collection.name]
            room = int(0.9 * min(self._plan.lengths) / page.typical_tokens())
            drawn = task.draw(rng, page.collection, pool, room)
            if drawn is None or f"{page.collection.name} {drawn.spec.to_json()}" in self._asked:
                continue
            rows = self._contexts(rng, page, task, drawn, f"{self._plan.split}/{task.name}/{number}", place)
            if rows:
                self._asked.add(f"{page.collection.name} {drawn.spec.to_json()}")
                return rows
        raise ConfigError(
            f"{self._plan.split}.per_task: only {number} questions found for {task.name} with contexts of "
            f"{', '.join(f'{n:,}' for n in self._plan.lengths)} tokens; lower it, lengthen them, or add a source"
        )

    def _contexts(self, rng: Random, page: Page, task: Task, drawn: Drawn, base: str, place: float) -> list[Row]:
        """Rows of every length; none where an answer would be revealed or not be unique, or a length not be filled."""
        spec, collection = drawn.spec, page.collection
        question = questions.ask(rng, spec, collection)
        order = _Order(Random(rng.random()), page, place if task.placed else None)
        candidates = shuffled(Random(rng.random()), self._pools[collection.name])
        filler = Filler(page, drawn.seeds, candidates, lambda: task.gate(spec))
        rows = []
        for length in sorted(self._plan.lengths):
            chosen = filler.fill(length)
            if chosen is None:
                return []
            records = [collection.records[i] for i in chosen]
            placed = order.arrange(chosen, [chosen[i] for i in task.support(spec, records)])
            records = [collection.records[i] for i in placed]
            answers = [spelled(value) for value in task.execute(spec, records)]
            if len(answers) != _asked_for(spec) or questions.reveals(question, answers):
                return []
            positions = page.positions(placed, task.support(spec, records))
            rows.append(_row(page, spec, question, answers, base, length, page.text(placed), positions))
        return rows

    def _choose_page(self, rng: Random) -> Page:
        """A page, larger collections more often, but not by their size: small ones would never be seen."""
        weights = [log(len(self._pools[page.collection.name])) for page in self._pages]
        return rng.choices(self._pages, weights)[0]

    def _holds(self, page: Page, length: int) -> bool:
        return len(self._pools[page.collection.name]) * page.typical_tokens() >= _RESERVE * length


class _Order:
    """Where records stand in the list: anywhere, each at the same rank among the others at every length; the one that
    supports the answer, if placed, where the drawn share of the text lies before it."""

    def __init__(self, rng: Random, page: Page, place: float | None) -> None:
        self._rng, self._page, self._place = rng, page, place
        self._ranks: dict[int, float] = {}

    def arrange(self, chosen: Sequence[int], supports: Sequence[int]) -> list[int]:
        for index in chosen:
            self._ranks.setdefault(index, self._rng.random())
        moved = set(supports) if self._place is not None else set[int]()
        order = sorted((i for i in chosen if i not in moved), key=self._ranks.__getitem__)
        for support in supports if moved else ():
            order.insert(self._index(order, support), support)
        return order

    def _index(self, order: Sequence[int], support: int) -> int:
        """The place in the list that puts the middle of the record nearest to the drawn share of the text."""
        assert self._place is not None
        lengths = [len(self._page.element(i)) for i in order]
        target = self._place * sum(lengths)
        before, best = 0, 0
        for i, length in enumerate(lengths):
            if before + length / 2 > target:
                break
            before, best = before + length, i + 1
        return best


def _spread(rng: Random, count: int) -> list[float]:
    """`count` places in [0, 1), one in each of as many equal parts, in random order: uniform, and never bunched."""
    places = [(i + rng.random()) / count for i in range(count)]
    rng.shuffle(places)
    return places


def _asked_for(spec: Spec) -> int:
    return len(spec.selectors) * len(spec.fields) if spec.selectors else 1


def _row(
    page: Page,
    spec: Spec,
    question: str,
    answers: list[str],
    base: str,
    length: int,
    context: str,
    positions: list[float],
) -> Row:
    provenance = page.collection.provenance
    row = {
        "base_id": base,
        "task": spec.task,
        "format": "json",
        "length": length,
        "context": context,
        "question": question,
        "answers": answers,
        "answer_kind": spec.answer_kind,
        "ordered": spec.ordered,
        "count": _asked_for(spec),
        "spec": spec.to_json(),
        "source": provenance.source,
        "license": provenance.license,
        "support": positions,
    }
    return {"id": example_of(row).key, **row}


def canonical(row: Row) -> bytes:
    """The row as canonical JSON, for fingerprints."""
    return json.dumps(row, sort_keys=True, ensure_ascii=True).encode()
