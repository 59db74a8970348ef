"""Typed values with their places: what a JSON, YAML or JavaScript tree says, and nothing that it does not.

An `Item` is a value and its span; containers hold items. What has no value of its own (an alias, a call) is `OPAQUE`,
and a `Fault` says where and why a reader might take the text otherwise. All walks are iterative.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

MAX_VALUES = 2_000_000
"""Values that are read of one document; what lies behind is not looked at."""
MAX_DEPTH = 60
"""Containers inside each other that are read; a deeper value is opaque."""
MAX_DIGITS = 300
"""Characters of a number; a longer one is opaque."""
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\Z")


class _Opaque:
    """The value of what has none."""

    def __repr__(self) -> str:
        return "OPAQUE"


OPAQUE: Any = _Opaque()


class SpelledFloat(float):
    """A number that its source spells in another way than `json.dumps` does."""

    source: str

    def __new__(cls, value: float, source: str) -> SpelledFloat:
        number = super().__new__(cls, value)
        number.source = source
        return number

    def __reduce__(self) -> tuple[Any, ...]:
        return SpelledFloat, (float(self), self.source)


@dataclass(slots=True, eq=False)
class Item:
    """A value, where it stands (characters), and the items inside it: by key, by place, or none."""

    start: int
    end: int
    value: Any
    inside: dict[str, Item] | list[Item] | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """Where a text leaves open what it says, and why. A `local` one touches only what it stands in."""

    at: int
    reason: str
    local: bool = False


@dataclass(eq=False)
class Reading:
    """The value of a document, and the faults in it by place. `label` is what an initialiser is called, "" where it has
    no name. `place` finds where everything stands."""

    value: Any
    place: Callable[[], Item] = field(repr=False)
    faults: Sequence[Fault] = ()
    label: str = ""

    @cached_property
    def root(self) -> Item:
        """The value with its place, and all that is inside it."""
        return self.place()


def number(text: str) -> Any:
    """The value of a JSON number, OPAQUE for one that is too long or has no finite value, None for what is none. The
    spelling is kept where it is not the usual one."""
    if not _NUMBER.match(text):
        return None
    return decimal(text)


def decimal(text: str) -> Any:
    """The value of a decimal number as written, with or without a sign."""
    if len(text) > MAX_DIGITS:
        return OPAQUE
    bare = text[1:] if text[0] in "+-" else text
    if bare.isdigit() and text[0] != "+" and not (text[0] == "-" and not bare.strip("0")):
        return int(text)
    value = float(text)
    if value in (float("inf"), float("-inf")):
        return OPAQUE
    return value if json.dumps(value) == text else SpelledFloat(value, text)


def spelling(value: Any) -> str:
    """A scalar as its source spells it: text as it is, a number or word as it is written."""
    if isinstance(value, str):
        return value
    return value.source if isinstance(value, SpelledFloat) else json.dumps(value)


def leaves(value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Paths and values of the fields of a record, objects inside it followed; lists and scalars are fields."""
    walk: list[tuple[tuple[str, ...], Any]] = [((), value)]
    while walk:
        path, here = walk.pop()
        if isinstance(here, Mapping):
            walk.extend(reversed([((*path, key), inside) for key, inside in here.items()]))
        elif path:
            yield path, here


def close(root: Item) -> None:
    """Makes the values of containers from those inside them, innermost first."""
    order, walk = [], [root]
    while walk:
        item = walk.pop()
        if item.inside is not None:
            order.append(item)
            walk.extend(item.inside.values() if isinstance(item.inside, dict) else item.inside)
    for item in reversed(order):
        if isinstance(item.inside, dict):
            item.value = {key: inside.value for key, inside in item.inside.items()}
        else:
            item.value = [inside.value for inside in item.inside or ()]


def spans_of(item: Item) -> dict[tuple[str, ...], tuple[int, int]]:
    """Where each field of a record stands, by path."""
    found: dict[tuple[str, ...], tuple[int, int]] = {}
    walk: list[tuple[tuple[str, ...], Item]] = [((), item)]
    while walk:
        path, here = walk.pop()
        if isinstance(here.inside, dict):
            walk.extend(reversed([((*path, key), inside) for key, inside in here.inside.items()]))
        elif path:
            found[path] = here.start, here.end
    return found


def is_scalar(value: Any) -> bool:
    """Whether a value is text, a number or a boolean; null is none of them."""
    return isinstance(value, str | int | float)
