"""The benchmark's tasks: how each draws a question's specification, and what the specification's answer is.

A `Spec` is the reference specification that is stored with an example (paper, Appendix B.1): task, scope, selectors,
fields, conditions. `execute` gives its answer over records. A task draws a spec and the records that it needs, and its
gate says which further records may stand beside them, so that the answer stays unique while distractors grow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import Any, Literal, Protocol

from .catalog import Collection, Field, FieldPath, Record, value_at

Operator = Literal["=", ">", "<", "contains"]
COUNT_CAPS = (5, 24)  # a drawn cap on matching records, beyond which counting measures nothing but length
ABSOLUTE_GAP, RELATIVE_GAP = 0.011, 0.0011  # an extremum stands clear of the next value by more than a score tolerates
FEWEST_COMPARED = 4  # records that the shortest context of an aggregation must have room for
_PROBES = 2000
_SAMPLE = 60


@dataclass(frozen=True)
class Condition:
    """A test of one field of a record."""

    field: FieldPath
    op: Operator
    value: str | int | float

    def holds(self, record: Record) -> bool:
        """Whether the record passes; a record without the field does not."""
        found = value_at(record, self.field)
        if self.op == "contains":
            return isinstance(found, list) and self.value in found
        if self.op == "=":
            return found == self.value
        if not isinstance(found, int | float) or isinstance(self.value, str):
            return False
        return found > self.value if self.op == ">" else found < self.value


@dataclass(frozen=True)
class Spec:
    """What is asked. `scope` is the path of the record list; each of `selectors` means one record; `fields` are the
    values asked for; `conditions` bound an aggregation; `measure` and `extreme` say what is compared, and how."""

    task: str
    scope: str
    answer_kind: Literal["text", "number"]
    selectors: tuple[tuple[Condition, ...], ...] = ()
    fields: tuple[FieldPath, ...] = ()
    conditions: tuple[Condition, ...] = ()
    measure: FieldPath | None = None
    extreme: Literal["max", "min"] | None = None
    ordered: bool = False

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, what is empty left out."""
        return json.dumps({key: value for key, value in asdict(self).items() if value}, sort_keys=True)


@dataclass(frozen=True)
class Drawn:
    """A specification, and the records (indices) that every context of it holds."""

    spec: Spec
    seeds: tuple[int, ...]


Gate = Callable[[Record], bool]


class Task(Protocol):
    """One of the tasks. `placed` tells whether the supporting record is put at a drawn place in the context."""

    name: str
    placed: bool

    def draw(self, rng: Random, collection: Collection, pool: Sequence[int], room: int) -> Drawn | None:
        """A question over records of `pool`; the shortest context has room for `room` of them. None: draw again."""
        ...

    def gate(self, spec: Spec) -> Gate:
        """A test, asked once for each further record in turn, of whether the record may join the context."""
        ...

    def support(self, spec: Spec, records: Sequence[Record]) -> list[int]:
        """Positions of the records that the answer rests on."""
        ...

    def execute(self, spec: Spec, records: Sequence[Record]) -> list[Any]:
        """The answer's values over the whole list of records."""
        ...


class Lookup:
    """Some fields of some named records (one and one here); the values in the order of the question."""

    placed = True

    def __init__(self, name: str, n_records: int, n_fields: int) -> None:
        self.name, self._n_records, self._n_fields = name, n_records, n_fields

    def draw(self, rng: Random, collection: Collection, pool: Sequence[int], room: int) -> Drawn | None:
        if len(pool) < self._n_records or room <= self._n_records:
            return None
        chosen = rng.sample(range(len(pool)), self._n_records)
        seeds = tuple(pool[i] for i in chosen)
        fields = [f for f in collection.with_role("ask") if all(_has(collection.records[i], f) for i in seeds)]
        described = [collection.described(i) for i in seeds]
        if len(fields) < self._n_fields or not all(described):
            return None
        asked = rng.sample(fields, self._n_fields)
        selectors = tuple(
            tuple(Condition(f.path, "=", value_at(collection.records[i], f.path)) for f in names or ())
            for i, names in zip(seeds, described, strict=True)
        )
        kind: Literal["text", "number"] = "number" if all(f.kind == "number" for f in asked) else "text"
        several = self._n_records * self._n_fields > 1
        paths = tuple(f.path for f in asked)
        spec = Spec(self.name, scope_of(collection), kind, selectors, paths, ordered=several)
        return Drawn(spec, seeds)

    def gate(self, spec: Spec) -> Gate:
        return lambda record: True  # a record is described uniquely over the whole collection

    def support(self, spec: Spec, records: Sequence[Record]) -> list[int]:
        return [i for selector in spec.selectors for i, r in enumerate(records) if _all_hold(selector, r)]

    def execute(self, spec: Spec, records: Sequence[Record]) -> list[Any]:
        return [value_at(records[i], field) for i in self.support(spec, records) for field in spec.fields]


class ConditionalCount:
    """How many records pass a condition."""

    name, placed = "conditional_count", False

    def draw(self, rng: Random, collection: Collection, pool: Sequence[int], room: int) -> Drawn | None:
        condition = _condition(rng, collection, pool, collection.with_role("condition"))
        if condition is None or room < FEWEST_COMPARED:
            return None
        wanted = rng.randint(1, min(COUNT_CAPS[0], room // 2))
        seeds = _matching(rng, collection, pool, (condition,), wanted)
        if len(seeds) < wanted:
            return None
        return Drawn(Spec(self.name, scope_of(collection), "number", conditions=(condition,)), seeds)

    def gate(self, spec: Spec) -> Gate:
        left = Random(spec.to_json()).randint(*COUNT_CAPS)

        def admits(record: Record) -> bool:
            nonlocal left
            if not _all_hold(spec.conditions, record):
                return True
            left -= 1
            return left >= 0

        return admits

    def support(self, spec: Spec, records: Sequence[Record]) -> list[int]:
        return [i for i, record in enumerate(records) if _all_hold(spec.conditions, record)]

    def execute(self, spec: Spec, records: Sequence[Record]) -> list[Any]:
        return [len(self.support(spec, records))]


class NumericalExtremum:
    """The greatest or least value of a field, or a field of the record that has it, over all records or those that pass
    a condition."""

    name, placed = "numerical_extremum", True

    def draw(self, rng: Random, collection: Collection, pool: Sequence[int], room: int) -> Drawn | None:
        if room < FEWEST_COMPARED:
            return None
        measure = rng.choice(collection.with_role("measure"))
        others = [field for field in collection.with_role("condition") if field is not measure]
        scoped = rng.random() < 0.5 and room >= 6
        condition = _condition(rng, collection, pool, others) if scoped else None
        conditions = (condition,) if condition else ()
        wanted = rng.randint(3, min(5, room // 2)) if conditions else 0
        spec = self._spec(rng, collection, measure, conditions)
        seeds = _matching(rng, collection, pool, conditions, wanted, self.gate(spec))
        return Drawn(spec, seeds) if len(seeds) == wanted else None

    def _spec(self, rng: Random, collection: Collection, measure: Field, conditions: tuple[Condition, ...]) -> Spec:
        by_name = rng.random() < 0.5
        return Spec(
            self.name,
            scope_of(collection),
            "text" if by_name else "number",
            fields=(collection.naming.path if by_name else measure.path,),
            conditions=conditions,
            measure=measure.path,
            extreme=rng.choice(("max", "min")),
        )

    def gate(self, spec: Spec) -> Gate:
        best: float | None = None

        def admits(record: Record) -> bool:
            nonlocal best
            value = _measured(spec, record)
            if value is None:
                return True
            if best is not None and abs(value - best) <= max(ABSOLUTE_GAP, RELATIVE_GAP * max(abs(best), abs(value))):
                return False
            if best is None or (value > best) == (spec.extreme == "max"):
                best = value
            return True

        return admits

    def support(self, spec: Spec, records: Sequence[Record]) -> list[int]:
        values = [(value, i) for i, record in enumerate(records) if (value := _measured(spec, record)) is not None]
        if not values:
            return []
        best = (max if spec.extreme == "max" else min)(value for value, _ in values)
        return [i for value, i in values if value == best]

    def execute(self, spec: Spec, records: Sequence[Record]) -> list[Any]:
        return [value_at(records[i], field) for i in self.support(spec, records) for field in spec.fields]


TASKS: dict[str, Task] = {
    task.name: task for task in (Lookup("single_field", 1, 1), ConditionalCount(), NumericalExtremum())
}


def spelled(value: Any) -> str:
    """A value as the answer states it: text as it is, anything else as JSON spells it."""
    return value if isinstance(value, str) else json.dumps(value)


def shuffled(rng: Random, items: Sequence[int]) -> Iterator[int]:
    """The items in random order, found as they are needed: taking ten of a million costs ten steps."""
    moved: dict[int, int] = {}
    for i in range(len(items)):
        j = rng.randrange(i, len(items))
        yield items[moved.get(j, j)]
        moved[j] = moved.pop(i, i)


def scope_of(collection: Collection) -> str:
    """The path of the collection's record list in a response."""
    return "$" + "".join(f".{key}" for key in collection.list_path)


def _has(record: Record, field: Field) -> bool:
    value = value_at(record, field.path)
    return value is not None and value not in ("", [])


def _all_hold(conditions: Sequence[Condition], record: Record) -> bool:
    return all(condition.holds(record) for condition in conditions)


def _measured(spec: Spec, record: Record) -> float | None:
    if spec.measure is None or not _all_hold(spec.conditions, record):
        return None
    return value_at(record, spec.measure)


def _condition(rng: Random, collection: Collection, pool: Sequence[int], fields: Sequence[Field]) -> Condition | None:
    """A condition on one of the fields that some records pass and most do not."""
    field = rng.choice(fields)
    sample = [collection.records[i] for _, i in zip(range(_SAMPLE), shuffled(rng, pool), strict=False)]
    values = [value_at(record, field.path) for record in sample if _has(record, field)]
    if not values:
        return None
    if field.kind == "number":
        op: Operator = rng.choice((">", "<"))
        quantile = sorted(values)[int(len(values) * (rng.uniform(0.6, 0.9) if op == ">" else rng.uniform(0.1, 0.4)))]
        condition = Condition(field.path, op, round_number(quantile))
    elif field.kind == "list":
        condition = Condition(field.path, "contains", rng.choice(rng.choice(values)))
    else:
        condition = Condition(field.path, "=", rng.choice(values))
    share = sum(condition.holds(record) for record in sample) / len(sample)
    return condition if share <= 0.5 else None


def round_number(value: float) -> int:
    """The value with two digits that count, as a person would choose a bound: 48,213 becomes 48,000."""
    digits = len(str(abs(int(value))))
    return round(int(value), min(0, 2 - digits))


def _matching(
    rng: Random,
    collection: Collection,
    pool: Sequence[int],
    conditions: Sequence[Condition],
    wanted: int,
    gate: Gate = lambda record: True,
) -> tuple[int, ...]:
    """Up to `wanted` records of the pool that pass, by a bounded search."""
    found: list[int] = []
    for _, i in zip(range(_PROBES), shuffled(rng, pool), strict=False):
        if len(found) >= wanted:
            break
        if _all_hold(conditions, collection.records[i]) and gate(collection.records[i]):
            found.append(i)
    return tuple(found)
