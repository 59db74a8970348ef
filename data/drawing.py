"""Drawing: where a question may come from, which condition divides its records, which values a reply can state."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from .catalog import Field, Record, Table, numeric, value_at
from .spec import Condition, Operator, Spec, all_hold

COUNT_CAPS = (5, 24)  # a drawn cap on matching records, beyond which counting measures nothing but length
RESERVE = 1.15  # a pool must hold this many times what the longest context takes
TEXT_LIMIT, NAME_LIMIT = 160, 80  # characters of an answer, and of a name or value in a question
_PROBES = 2000
_SAMPLE = 60
_SEPARATORS = re.compile(r"[,;|\n\r]|(?:^|\s)and(?:\s|$)", re.IGNORECASE)


Gate = Callable[[Sequence[Record]], bool]
"""A test, asked once for the records of each further unit in turn, of whether they may all join."""


@dataclass(frozen=True)
class Ground:
    """Where a question is drawn: a table and the rows of it that may support an answer. `room` is how many of them the
    shortest context holds, `crowd` how many the longest; `reserve` how many times the pool fills the longest one. The
    rows of a table that lies in one unit are always all there."""

    table: Table
    rows: Sequence[int]
    room: int
    crowd: int
    reserve: float

    def record(self, row: int) -> Record:
        """The record at a row."""
        return self.table.records[row]


@dataclass(frozen=True)
class Drawn:
    """A specification, and the rows whose units every context of it holds."""

    spec: Spec
    seeds: tuple[int, ...]


def shuffled(rng: Random, items: Sequence[int]) -> Iterator[int]:
    """The items in random order, found as they are needed: taking ten of a million costs ten steps."""
    moved: dict[int, int] = {}
    for i in range(len(items)):
        j = rng.randrange(i, len(items))
        yield items[moved.get(j, j)]
        moved[j] = moved.pop(i, i)


def is_tidy(value: Any, limit: int) -> bool:
    """Whether it is one line of text without blanks at its ends, with a letter or digit, and not too long."""
    if not isinstance(value, str) or not 0 < len(value) <= limit:
        return False
    return value == " ".join(value.split()) and any(char.isalnum() for char in value)


def is_separable(value: Any) -> bool:
    """Whether a reply can state it beside other values: no separator inside, nothing around it that would be taken off.
    A number whose digits a comma groups is one value."""
    if isinstance(value, bool | int | float) or numeric(value) is not None:
        return True
    edges = isinstance(value, str) and bool(value) and value[0].isalnum() and (value[-1].isalnum() or value[-1] in "%°")
    return edges and is_tidy(value, NAME_LIMIT) and not _SEPARATORS.search(value)


def can_answer(value: Any, field: Field, several: bool) -> bool:
    """Whether a reply can state this value of the field."""
    if field.kind == "number":
        return numeric(value) is not None
    if isinstance(value, bool):
        return field.kind == "boolean"
    return is_separable(value) if several else is_tidy(value, TEXT_LIMIT)


def round_number(value: float) -> int | float:
    """The value with two digits that count, as a person would choose a bound: 48,213 becomes 48,000."""
    if abs(value) < 10:
        rounded = float(f"{value:.2g}")
        return int(rounded) if rounded == int(rounded) else rounded
    return round(int(value), min(0, 2 - len(str(abs(int(value))))))


def draw_condition(rng: Random, ground: Ground, fields: Sequence[Field], *, bounded: bool = False) -> Condition | None:
    """A condition on one of the fields that some records pass and most do not; `bounded`: so few that the longest
    context can be filled with others."""
    field = rng.choice(fields)
    sample = [ground.record(row) for _, row in zip(range(_SAMPLE), shuffled(rng, ground.rows), strict=False)]
    values = [value for record in sample if (value := value_at(record, field.path)) not in (None, "", [])]
    condition = _test_of(rng, field, values) if values else None
    if condition is None:
        return None
    share = sum(condition.holds(record) for record in sample) / len(sample)
    crowded = share * ground.crowd > COUNT_CAPS[0] and (1 - share) * ground.reserve < RESERVE
    return condition if share <= 0.5 and not (bounded and ground.table.whole and crowded) else None


def _test_of(rng: Random, field: Field, values: Sequence[Any]) -> Condition | None:
    """A test that a value of the field suggests."""
    if field.kind == "number":
        numbers = sorted(number for value in values if (number := numeric(value)) is not None)
        if not numbers:
            return None
        op: Operator = rng.choice((">", "<"))
        share = rng.uniform(0.6, 0.9) if op == ">" else rng.uniform(0.1, 0.4)
        return Condition(field.path, op, round_number(numbers[int(len(numbers) * share)]))
    value = rng.choice(values)
    if field.kind == "list":
        items = [item for item in value if is_tidy(item, NAME_LIMIT)] if isinstance(value, list) else []
        return Condition(field.path, "contains", rng.choice(items)) if items else None
    return Condition(field.path, "=", value) if isinstance(value, bool) or is_tidy(value, NAME_LIMIT) else None


def matching(
    rng: Random,
    ground: Ground,
    conditions: Sequence[Condition],
    wanted: int,
    gate: Gate = lambda records: True,
) -> tuple[int, ...]:
    """Up to `wanted` rows of the ground that pass, by a bounded search."""
    found: list[int] = []
    for _, row in zip(range(_PROBES), shuffled(rng, ground.rows), strict=False):
        if len(found) >= wanted:
            break
        if all_hold(conditions, ground.record(row)) and gate([ground.record(row)]):
            found.append(row)
    return tuple(found)
