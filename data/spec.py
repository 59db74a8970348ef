"""The reference specification of a question: what is asked, as data that anyone can execute over a context.

It is stored with each example (paper, Appendix B.1) as canonical JSON: task, scope, selectors, fields, conditions,
measure or group. A lookup keeps it at every length.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from .catalog import FieldPath, Record, Scope, numeric, value_at
from .record_lists.items import spelling

Operator = Literal["=", ">", "<", "contains"]
AnswerKind = Literal["text", "number"]


@dataclass(frozen=True)
class Condition:
    """A test of one field of a record. `>` and `<` compare numbers, those that text spells (1,234.5) too."""

    field: FieldPath
    op: Operator
    value: str | int | float | bool

    def holds(self, record: Record) -> bool:
        """Whether the record passes; a record without the field does not."""
        found = value_at(record, self.field)
        if self.op == "contains":
            return isinstance(found, list) and any(_equal(item, self.value) for item in found)
        if self.op == "=":
            return _equal(found, self.value)
        number = numeric(found)
        if number is None or isinstance(self.value, str):
            return False
        return number > self.value if self.op == ">" else number < self.value


@dataclass(frozen=True)
class Spec:
    """What is asked. Each of `selectors` means one record; `fields` are the values asked for; `conditions` bound an
    aggregation; `measure` and `extreme` say what is compared, and how; `group` whose values are counted."""

    task: str
    scope: Scope
    answer_kind: AnswerKind
    selectors: tuple[tuple[Condition, ...], ...] = ()
    fields: tuple[FieldPath, ...] = ()
    conditions: tuple[Condition, ...] = ()
    measure: FieldPath | None = None
    extreme: Literal["max", "min"] | None = None
    group: FieldPath | None = None
    ordered: bool = False

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, what is empty left out."""
        parts = {key: value for key, value in asdict(self).items() if value}
        return json.dumps({**parts, "scope": self.scope.stored()}, sort_keys=True)

    @property
    def asked(self) -> int | None:
        """How many values the question asks for; None where ties decide."""
        if self.group is not None:
            return None
        return len(self.selectors) * len(self.fields) if self.selectors else 1


def spelled(value: Any) -> str:
    """A value as the answer states it: text as it is, anything else as its source spells it."""
    return spelling(value)


def all_hold(conditions: Sequence[Condition], record: Record) -> bool:
    """Whether a record passes all conditions."""
    return all(condition.holds(record) for condition in conditions)


def _equal(found: Any, value: Any) -> bool:
    """Equal, and true is not 1."""
    return found == value and isinstance(found, bool) == isinstance(value, bool)
