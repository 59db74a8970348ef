"""What a record list is, and how lists and maps of like objects are found in plain values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..catalog import VALUE, FieldPath, Shape
from .items import Item, is_scalar, spans_of
from .patterns import EVERY, Step, written

FEWEST_ELEMENTS, FEWEST_MEMBERS, FEWEST_ENTRIES = 2, 3, 4
"""Objects that a list and a map, and scalars that a map, must have to be one of records."""
_ALIKE = 0.5  # of the keys that most records have, the share that each must have
_OBJECTS = 0.8  # of the members of a map, the share that must be objects
_SCALARS = 0.8  # of the members of a map of entries, the share that must have a value
_SAMPLE = 2_000  # records whose keys are compared
Span = tuple[int, int]
Places = Callable[[], Sequence[tuple[Span, Mapping[FieldPath, Span]]]]


@dataclass(frozen=True, eq=False)
class RecordList:
    """Like records of one document, in order. `path` is where the list lies and `pattern` what its records match;
    `keys` the map keys that lead to each record; `named` the words by which the document calls the list (a key, a
    caption, a heading), `label` those of them that people see as its description; `fault` why it may be read in another
    way, "" if it may not; `unclear` fields whose text is; `hidden` tells that not all that people
    count is a record; `extent` is where an HTML list stands."""

    path: str
    pattern: str
    shape: Shape
    records: Sequence[Mapping[str, Any]]
    keys: Sequence[tuple[str, ...]]
    named: str = ""
    label: str = ""
    fault: str = ""
    unclear: frozenset[FieldPath] = frozenset()
    hidden: bool = False
    extent: Span = (0, 0)
    places: Places = field(default=tuple, repr=False)

    @cached_property
    def _places(self) -> Sequence[tuple[Span, Mapping[FieldPath, Span]]]:
        return self.places()

    @property
    def spans(self) -> tuple[Span, ...]:
        """Where each record stands, in characters."""
        return tuple(span for span, _ in self._places)

    def value_spans(self, index: int) -> Mapping[FieldPath, Span]:
        """Where each field of a record stands, in characters."""
        return self._places[index][1]


def located(items: Iterator[Item], shape: Shape) -> Sequence[tuple[Span, Mapping[FieldPath, Span]]]:
    """Places of records and of their fields; an entry stands where its value does."""
    if shape == "entries":
        return [(span, {(VALUE,): span}) for span in ((item.start, item.end) for item in items)]
    return [((item.start, item.end), spans_of(item)) for item in items]


def found_in(value: Any) -> Iterator[tuple[Step, ...]]:
    """Steps to the outermost lists and maps of like objects, in document order."""
    return (steps for steps, shape in lists_in(value) if shape == "objects")


def lists_in(value: Any) -> Iterator[tuple[tuple[Step, ...], Shape]]:
    """Steps to the outermost lists and maps of like objects, and to maps of entries, with their shape, in document
    order."""
    walk: list[tuple[tuple[Step, ...], Any]] = [((), value)]
    while walk:
        steps, here = walk.pop()
        if _is_list(here) or _is_map(here):
            yield steps, "objects"
        elif has_entries(here):
            yield steps, "entries"
        elif isinstance(here, dict):
            walk.extend(reversed([((*steps, key), inside) for key, inside in here.items() if _holds(inside)]))
        elif isinstance(here, list):
            walk.extend(reversed([((*steps, i), inside) for i, inside in enumerate(here) if _holds(inside)]))


def is_record(value: Any) -> bool:
    """Whether a map alone is a record: it has several fields with values."""
    return isinstance(value, dict) and sum(is_scalar(member) for member in value.values()) >= FEWEST_MEMBERS


def has_entries(value: Any) -> bool:
    """Whether the members of a map are entries: at least four, and four of five, have a scalar value, all of one kind
    (text, number or boolean); the others are null, or lists without objects."""
    if not isinstance(value, dict):
        return False
    scalars = [member for member in value.values() if is_scalar(member)]
    kinds = {"text" if isinstance(s, str) else "boolean" if isinstance(s, bool) else "number" for s in scalars}
    if len(kinds) != 1 or len(scalars) < max(FEWEST_ENTRIES, _SCALARS * len(value)):
        return False
    lists = (member for member in value.values() if _holds(member))
    return all(isinstance(one, list) and not any(map(_holds, one)) for one in lists)


def name_of(steps: Sequence[Step]) -> str:
    """The last key that leads to a list."""
    return next((step for step in reversed(steps) if isinstance(step, str)), "")


def pattern_of(steps: Sequence[Step]) -> tuple[str, str]:
    """The path of a list, and the pattern of its records."""
    return written(steps), written((*steps, EVERY))


def alike(records: Sequence[Mapping[str, Any]]) -> bool:
    """Whether each record has at least half of the keys that more than half of them have."""
    step = max(1, len(records) // _SAMPLE)
    keys = [record.keys() for record in records[::step]]
    common = Counter(key for held in keys for key in held)
    usual = {key for key, times in common.items() if times > _ALIKE * len(keys)}
    return bool(usual) and all(len(held & usual) >= _ALIKE * len(usual) for held in keys)


def _holds(value: Any) -> bool:
    return isinstance(value, dict | list)


def _is_list(value: Any) -> bool:
    if not isinstance(value, list) or len(value) < FEWEST_ELEMENTS:
        return False
    return all(isinstance(element, dict) and element for element in value) and alike(value)


def _is_map(value: Any) -> bool:
    if not isinstance(value, dict) or len(value) < FEWEST_MEMBERS:
        return False
    objects = [member for member in value.values() if isinstance(member, dict) and member]
    return len(objects) >= max(FEWEST_MEMBERS, _OBJECTS * len(value)) and alike(objects)
