"""The benchmark's eight tasks: how each draws a question's specification, and what the specification's answer is.

A task draws a `Spec` and the records that every context of it holds (its seeds). Its gate says which further records
may stand beside them, so that the answer stays unique while distractors grow; `execute` gives the answer over the
records of a context. Values that a reply could not state clearly are never asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any, Protocol

from .catalog import Field, Record, Table, numeric, value_at
from .drawing import (
    COUNT_CAPS,
    NAME_LIMIT,
    TEXT_LIMIT,
    Drawn,
    Gate,
    Ground,
    can_answer,
    draw_condition,
    is_separable,
    is_tidy,
    matching,
    shuffled,
)
from .spec import AnswerKind, Condition, Spec, all_hold, spelled

ABSOLUTE_GAP, RELATIVE_GAP = 0.011, 0.0011  # an extremum stands clear of the next value by more than a score tolerates
MOST_TIES = 3  # values that may share the greatest frequency
FEWEST_COMPARED = 4  # records that an aggregation compares, at least
_SAMPLE = 60
_TRIES = 20  # records that are looked at for one question, where few have all that it asks for


class Task(Protocol):
    """One of the tasks. `placed` is how many supports are put at drawn places in the context; others lie anywhere."""

    name: str
    placed: int

    def suits(self, table: Table) -> bool:
        """Whether the table has fields for this task."""
        ...

    def draw(self, rng: Random, ground: Ground) -> Drawn | None:
        """A question over the ground. None: draw again."""
        ...

    def gate(self, spec: Spec) -> Gate:
        """A new gate; the first records that it is asked for are those of the seeds' units, all at once."""
        ...

    def support(self, spec: Spec, records: Sequence[Record]) -> list[int]:
        """Positions of the records that the answer rests on, in the order of the answer."""
        ...

    def execute(self, spec: Spec, records: Sequence[Record]) -> list[Any]:
        """The answer's values over all records of the scope; none where they give no clear answer."""
        ...


class Lookup:
    """Some fields of some named records; the values in the order of the question."""

    def __init__(self, name: str, n_records: int, n_fields: int) -> None:
        self.name, self.placed, self._n_records, self._n_fields = name, n_records, n_records, n_fields

    def suits(self, table: Table) -> bool:
        enough = max(len(table.records), 2) > self._n_records
        return enough and any(len(fields) >= self._n_fields for fields in _by_kind(table.with_role("ask")).values())

    def draw(self, rng: Random, ground: Ground) -> Drawn | None:
        if len(ground.rows) < self._n_records or ground.room <= self._n_records:
            return None
        return next(filter(None, (self._try(rng, ground) for _ in range(_TRIES))), None)

    def _try(self, rng: Random, ground: Ground) -> Drawn | None:
        """A question about drawn records; None where they cannot be named or asked about."""
        seeds = tuple(ground.rows[i] for i in rng.sample(range(len(ground.rows)), self._n_records))
        selectors = [self._selector(ground.table, row) for row in seeds]
        said = {condition.field for selector in selectors for condition in selector}
        fields = [field for field in ground.table.with_role("ask") if field.path not in said]
        kinds = _by_kind([field for field in fields if self._can_ask(ground, seeds, field)])
        chosen: list[AnswerKind] = [kind for kind, fields in kinds.items() if len(fields) >= self._n_fields]
        if not chosen or not all(selectors):
            return None
        kind = rng.choice(chosen)
        paths = tuple(field.path for field in rng.sample(kinds[kind], self._n_fields))
        several = self._n_records * self._n_fields > 1
        if several and len({spelled(value_at(ground.record(row), path)) for row in seeds for path in paths}) == 1:
            return None  # one value said several times tells little
        spec = Spec(self.name, ground.table.scope, kind, tuple(selectors), paths, ordered=several)
        return Drawn(spec, seeds)

    def gate(self, spec: Spec) -> Gate:
        return lambda records: True  # a record is described uniquely over the whole collection

    def support(self, spec: Spec, records: Sequence[Record]) -> list[int]:
        return [i for selector in spec.selectors for i, r in enumerate(records) if all_hold(selector, r)]

    def execute(self, spec: Spec, records: Sequence[Record]) -> list[Any]:
        found = self.support(spec, records)
        values = [value_at(records[i], field) for i in found for field in spec.fields]
        return values if len(found) == len(spec.selectors) else []

    def _selector(self, table: Table, row: int) -> tuple[Condition, ...]:
        fields, record = table.described(row) or (), table.records[row]
        values = [value_at(record, field.path) for field in fields]
        if not all(isinstance(value, int | float) or is_tidy(value, NAME_LIMIT) for value in values):
            return ()
        return tuple(Condition(field.path, "=", value) for field, value in zip(fields, values, strict=True))

    def _can_ask(self, ground: Ground, seeds: Sequence[int], field: Field) -> bool:
        """Whether every record has a value that a reply can state, and several records not all the same."""
        values = [value_at(ground.record(row), field.path) for row in seeds]
        several = self._n_records * self._n_fields > 1
        if field.path == ground.table.naming.path or not all(can_answer(v, field, several) for v in values):
            return False
        return self._n_records == 1 or len(set(map(spelled, values))) > 1


class ConditionalCount:
    """How many records pass a condition."""

    name, placed = "conditional_count", 0

    def suits(self, table: Table) -> bool:
        return bool(table.with_role("condition"))

    def draw(self, rng: Random, ground: Ground) -> Drawn | None:
        condition = draw_condition(rng, ground, ground.table.with_role("condition"), bounded=True)
        if condition is None or ground.room < FEWEST_COMPARED:
            return None
        spec = Spec(self.name, ground.table.scope, "number", conditions=(condition,))
        if not ground.table.whole:
            return _settled(self, spec, ground)
        wanted = rng.randint(1, min(COUNT_CAPS[0], ground.room // 2))
        seeds = matching(rng, ground, (condition,), wanted)
        return Drawn(spec, seeds) if len(seeds) == wanted else None

    def gate(self, spec: Spec) -> Gate:
        left = Random(spec.to_json()).randint(*COUNT_CAPS) if not spec.scope.unit else COUNT_CAPS[1]

        def admits(records: Sequence[Record]) -> bool:
            nonlocal left
            passing = sum(all_hold(spec.conditions, record) for record in records)
            if passing > left or not _clear(spec.conditions, records):
                return False
            left -= passing
            return True

        return admits

    def support(self, spec: Spec, records: Sequence[Record]) -> list[int]:
        return [i for i, record in enumerate(records) if all_hold(spec.conditions, record)]

    def execute(self, spec: Spec, records: Sequence[Record]) -> list[Any]:
        count = len(self.support(spec, records))
        return [count] if 0 < count < len(records) else []


class MostFrequent:
    """The value that a field has most often; all of them where several tie."""

    name, placed = "most_frequent", 0

    def suits(self, table: Table) -> bool:
        return bool(_groups(table))

    def draw(self, rng: Random, ground: Ground) -> Drawn | None:
        if ground.room < FEWEST_COMPARED:
            return None
        field = rng.choice(_groups(ground.table))
        others = [other for other in ground.table.with_role("condition") if other.path != field.path]
        scoped = rng.random() < 0.6 and ground.room >= 6 and bool(others)
        condition = draw_condition(rng, ground, others) if scoped else None
        conditions = (condition,) if condition else ()
        spec = Spec(self.name, ground.table.scope, "text", conditions=conditions, group=field.path)
        if not ground.table.whole:
            return _settled(self, spec, ground)
        leader = self._leader(rng, ground, spec)
        if leader is None:
            return None
        alike = (*conditions, Condition(field.path, "=", leader))
        seeds = matching(rng, ground, alike, rng.randint(2, min(4, ground.room // 2)))
        return Drawn(spec, seeds) if len(seeds) > 1 else None

    def gate(self, spec: Spec) -> Gate:
        counts, spellings = Counter[str](), dict[str, str]()
        sizes = Counter[int]()

        def admits(records: Sequence[Record]) -> bool:
            added = Counter(value for value in (_grouped(spec, record) for record in records) if value is not None)
            if not _clear(spec.conditions, records) or not _same_spelling(spellings, added):
                return False
            grown = {value: counts[value] + more for value, more in added.items()}
            after = Counter(sizes)
            after.subtract(counts[value] for value in grown if counts[value])
            after.update(grown.values())
            top = max((size for size, times in after.items() if times > 0), default=0)
            leaders = [value for value, size in grown.items() if size == top]
            if top < 2 or after[top] > MOST_TIES or not all(map(is_separable, leaders)):
                return False
            counts.update(added)
            spellings.update((_folded(value), value) for value in added)
            sizes.clear()
            sizes.update({size: times for size, times in after.items() if times > 0})
            return True

        return admits

    def support(self, spec: Spec, records: Sequence[Record]) -> list[int]:
        values = [_grouped(spec, record) for record in records]
        leaders = set(self._leaders(values))
        return [i for i, value in enumerate(values) if value in leaders]

    def execute(self, spec: Spec, records: Sequence[Record]) -> list[Any]:
        values = [value for record in records if (value := _grouped(spec, record)) is not None]
        leaders = self._leaders(values)
        clear = len(values) >= FEWEST_COMPARED and len(set(values)) > len(leaders) and len(leaders) <= MOST_TIES
        return leaders if clear and values.count(leaders[0]) > 1 else []

    def _leader(self, rng: Random, ground: Ground, spec: Spec) -> Any:
        """The value of a drawn record."""
        for _, row in zip(range(_SAMPLE), shuffled(rng, ground.rows), strict=False):
            value = _grouped(spec, ground.record(row))
            if value is not None and is_separable(value):
                assert spec.group is not None
                return value_at(ground.record(row), spec.group)
        return None

    def _leaders(self, values: Sequence[str | None]) -> list[str]:
        """The most frequent values, by where they first occur."""
        counts = Counter(value for value in values if value is not None)
        top = max(counts.values(), default=0)
        return [value for value, times in counts.items() if times == top]


class NumericalExtremum:
    """The greatest or least value of a field, or the name of the record that has it, over all records or those that
    pass a condition."""

    name, placed = "numerical_extremum", 1

    def suits(self, table: Table) -> bool:
        return bool(table.with_role("measure"))

    def draw(self, rng: Random, ground: Ground) -> Drawn | None:
        if ground.room < FEWEST_COMPARED:
            return None
        measure = rng.choice(ground.table.with_role("measure"))
        others = [field for field in ground.table.with_role("condition") if field.path != measure.path]
        scoped = rng.random() < 0.5 and ground.room >= 6 and bool(others)
        condition = draw_condition(rng, ground, others) if scoped else None
        conditions = (condition,) if condition else ()
        spec = self._spec(rng, ground, measure, conditions)
        if not ground.table.whole:
            return _settled(self, spec, ground)
        dense = self._measured(rng, ground, spec) > 0.5
        wanted = 1 if dense and not conditions else rng.randint(3, max(3, min(5, ground.room // 2)))
        clear = self.gate(spec)
        seeds = matching(rng, ground, conditions, wanted, lambda records: _has(spec, records) and clear(records))
        return Drawn(spec, seeds) if len(seeds) == wanted else None

    def _measured(self, rng: Random, ground: Ground, spec: Spec) -> float:
        """Of some rows, the share that has the measure."""
        sample = [ground.record(row) for _, row in zip(range(_SAMPLE), shuffled(rng, ground.rows), strict=False)]
        return sum(_has(spec, [record]) for record in sample) / len(sample)

    def _spec(self, rng: Random, ground: Ground, measure: Field, conditions: tuple[Condition, ...]) -> Spec:
        by_name = rng.random() < 0.5 and ground.table.naming.kind == "text"
        return Spec(
            self.name,
            ground.table.scope,
            "text" if by_name else "number",
            fields=(ground.table.naming.path if by_name else measure.path,),
            conditions=conditions,
            measure=measure.path,
            extreme=rng.choice(("max", "min")),
        )

    def gate(self, spec: Spec) -> Gate:
        top: list[float] = []  # the two most extreme values so far, signed so that more is more extreme

        def admits(records: Sequence[Record]) -> bool:
            nonlocal top
            values = [value for record in records if (value := _extremeness(spec, record)) is not None]
            after = sorted([*top, *values], reverse=True)[:2]
            if not _clear(spec.conditions, records) or (len(after) > 1 and not _stands_clear(*after)):
                return False
            top = after
            return True

        return admits

    def support(self, spec: Spec, records: Sequence[Record]) -> list[int]:
        values = [(value, i) for i, record in enumerate(records) if (value := _extremeness(spec, record)) is not None]
        best = max((value for value, _ in values), default=None)
        return [i for value, i in values if value == best]

    def execute(self, spec: Spec, records: Sequence[Record]) -> list[Any]:
        found = self.support(spec, records)
        compared = sum(_extremeness(spec, record) is not None for record in records)
        values = [value_at(records[i], field) for i in found for field in spec.fields]
        asks_name = spec.fields != (spec.measure,)
        stated = all(is_tidy(value, TEXT_LIMIT) or not asks_name for value in values)
        return values if len(values) == 1 and stated and compared >= min(3, FEWEST_COMPARED) else []


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Lookup("single_field", 1, 1),
        Lookup("two_fields", 1, 2),
        Lookup("four_fields", 1, 4),
        Lookup("two_records", 2, 1),
        Lookup("four_records", 4, 1),
        ConditionalCount(),
        MostFrequent(),
        NumericalExtremum(),
    )
}


def _by_kind(fields: Sequence[Field]) -> dict[AnswerKind, list[Field]]:
    """Fields whose values are compared alike when they are answers."""
    return {
        "text": [field for field in fields if field.kind in ("text", "boolean")],
        "number": [field for field in fields if field.kind == "number"],
    }


def _groups(table: Table) -> list[Field]:
    return [field for field in table.with_role("group") if field.kind != "list"]


def _grouped(spec: Spec, record: Record) -> str | None:
    """The record's value of the group field as it is spelled; None for a record that does not count."""
    if spec.group is None or not all_hold(spec.conditions, record):
        return None
    value = value_at(record, spec.group)
    return None if value in (None, "") or isinstance(value, list | dict) else spelled(value)


def _folded(value: str) -> str:
    return " ".join(value.casefold().split())


def _same_spelling(spellings: dict[str, str], added: Counter[str]) -> bool:
    """Whether values that people would take for one are spelled as one."""
    fresh = {_folded(value): value for value in added}
    return len(fresh) == len(added) and all(spellings.get(key, value) == value for key, value in fresh.items())


def _clear(conditions: Sequence[Condition], records: Sequence[Record]) -> bool:
    """Whether no record almost passes: the same text but for case and blanks would make people hesitate."""
    for condition in conditions:
        if condition.op != "=" or not isinstance(condition.value, str):
            continue
        folded = _folded(condition.value)
        for record in records:
            found = value_at(record, condition.field)
            if isinstance(found, str) and found != condition.value and _folded(found) == folded:
                return False
    return True


def _extremeness(spec: Spec, record: Record) -> float | None:
    """The measure of a record in the scope, with the sign that makes more of it more extreme."""
    if spec.measure is None or not all_hold(spec.conditions, record):
        return None
    value = numeric(value_at(record, spec.measure))
    return value if value is None or spec.extreme == "max" else -value


def _has(spec: Spec, records: Sequence[Record]) -> bool:
    """Whether the records are among those that are compared."""
    return all(_extremeness(spec, record) is not None for record in records)


def _stands_clear(best: float, second: float) -> bool:
    return best - second > max(ABSOLUTE_GAP, RELATIVE_GAP * max(abs(best), abs(second)))


def _settled(task: Task, spec: Spec, ground: Ground) -> Drawn | None:
    """The question over a table that is always there as a whole; None where it has no clear answer."""
    records = [ground.record(row) for row in ground.rows]
    return Drawn(spec, (ground.rows[0],)) if task.gate(spec)(records) and task.execute(spec, records) else None
