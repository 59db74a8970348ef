"""Values as this check reads them: numbers keep their spelling, what has no plain value is `OPAQUE`.

Nothing here is shared with construction. Two texts that people would take for one are equal when `folded`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

LONGEST_NUMBER = 300
"""Characters of a number; a longer one has no value."""
_GROUPED = re.compile(r"[-+]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?\Z")


class Unreadable(Exception):  # noqa: N818 - it says what the context is
    """A context, or a part of one, that cannot be read, or in more than one way."""


class _Opaque:
    """What stands where a text has no plain value: an alias, a number of another base."""

    def __repr__(self) -> str:
        return "OPAQUE"

    def __reduce__(self) -> str:
        return "OPAQUE"


OPAQUE = _Opaque()


class Spelled(float):
    """A number with the characters that spell it."""

    raw: str

    def __new__(cls, raw: str) -> Spelled:
        number = super().__new__(cls, raw)
        number.raw = raw
        return number

    def __reduce__(self) -> tuple[type[Spelled], tuple[str]]:
        return Spelled, (self.raw,)


def number_of(raw: str) -> Any:
    """The number that `raw` spells; OPAQUE where it is too long or has no finite value."""
    if len(raw) > LONGEST_NUMBER:
        return OPAQUE
    if re.fullmatch(r"-?(?:0|[1-9][0-9]*)", raw) and raw != "-0":
        return int(raw)
    value = Spelled(raw)
    return OPAQUE if value in (float("inf"), float("-inf")) or value != value else value


def spelling(value: Any) -> str | None:
    """A scalar as its source spells it; None for what is none."""
    if isinstance(value, str):
        return value
    if isinstance(value, Spelled):
        return value.raw
    return json.dumps(value) if isinstance(value, bool | int | float) else None


def folded(value: Any) -> str:
    """A scalar without the differences that people overlook: case and white space."""
    return " ".join((spelling(value) or "").casefold().split())


def amount(value: Any) -> Decimal | None:
    """The exact number that a value is, or that a text such as 1,234.5 spells; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        if len(value) > 40 or not _GROUPED.match(value):
            return None
        return Decimal(value.replace(",", ""))
    if not isinstance(value, int | float):
        return None
    try:
        return Decimal(value.raw if isinstance(value, Spelled) else str(value))
    except InvalidOperation:
        return None


def inside(record: Any, path: Sequence[str]) -> Any:
    """The value at a path; None where there is none. A number leads into a list."""
    for step in path:
        if isinstance(record, Mapping):
            record = record.get(step)
        elif isinstance(record, list) and re.fullmatch(r"[0-9]{1,9}", step) and int(step) < len(record):
            record = record[int(step)]
        else:
            return None
    return record


def equal(found: Any, wanted: Any) -> bool:
    """The same value; true is not 1, and text is no number."""
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    if isinstance(found, str) or isinstance(wanted, str):
        return isinstance(found, str) and found == wanted
    if not isinstance(found, int | float) or not isinstance(wanted, int | float):
        return False
    return amount(found) == amount(wanted) or float(found) == float(wanted)
