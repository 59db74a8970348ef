"""Patterns: paths with `.*` for every member of a map or element of a list, over plain values.

`$.features.*` are the elements of a list, `$.paths.*.*` the members of the members of a map.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from ...errors import InputError
from .items import Item

EVERY = None
Step = str | int | None
"""A key, a place in a list, or EVERY."""
_STEP = re.compile(r'\.\*|\.([A-Za-z_][A-Za-z0-9_]*)|\[([0-9]+)\]|\[("(?:[^"\\]|\\.)*")\]')
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def parsed(pattern: str) -> tuple[Step, ...]:
    """The steps of a pattern. Raises InputError for what is none."""
    if not pattern.startswith("$"):
        raise InputError(f"a pattern begins with $: {pattern}")
    steps: list[Step] = []
    at = 1
    while at < len(pattern):
        match = _STEP.match(pattern, at)
        if match is None:
            raise InputError(f"no pattern: {pattern}")
        key, place, quoted = match.groups()
        steps.append(key if key else int(place) if place else json.loads(quoted) if quoted else EVERY)
        at = match.end()
    return tuple(steps)


def written(steps: Sequence[Step]) -> str:
    """The pattern of some steps."""
    return "$" + "".join(map(_written, steps))


def _written(step: Step) -> str:
    if step is None:
        return ".*"
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _IDENTIFIER.match(step) else f"[{json.dumps(step, ensure_ascii=False)}]"


def objects_at(value: Any, steps: Sequence[Step]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """The objects that the steps lead to, in order, each with the map keys that the wildcards matched."""
    walk: list[tuple[int, tuple[str, ...], Any]] = [(0, (), value)]
    while walk:
        depth, keys, here = walk.pop()
        if depth == len(steps):
            if isinstance(here, dict):
                yield keys, here
        elif steps[depth] is not EVERY:
            walk.extend((depth + 1, keys, inside) for inside in _into(here, steps[depth]))
        elif isinstance(here, dict):
            walk.extend(reversed([(depth + 1, (*keys, key), inside) for key, inside in here.items()]))
        elif isinstance(here, list):
            walk.extend(reversed([(depth + 1, keys, inside) for inside in here]))


def entries_at(value: Any, steps: Sequence[Step]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The members of the maps that all steps but the last lead to, in order, with the map keys that were passed and
    their own."""
    for keys, here in objects_at(value, steps[:-1]):
        for key, member in here.items():
            yield (*keys, key), member


def entry_items_at(item: Item, steps: Sequence[Step]) -> Iterator[Item]:
    """The items of these members, in the order of `entries_at`."""
    for here in items_at(item, steps[:-1]):
        yield from here.inside.values() if isinstance(here.inside, dict) else ()


def items_at(item: Item, steps: Sequence[Step]) -> Iterator[Item]:
    """The items of the objects that the steps lead to, in the order of `objects_at`."""
    walk: list[tuple[int, Item]] = [(0, item)]
    while walk:
        depth, here = walk.pop()
        if depth == len(steps):
            if isinstance(here.value, dict):
                yield here
        elif steps[depth] is not EVERY:
            walk.extend((depth + 1, inside) for inside in _into(here.inside, steps[depth]))
        elif here.inside is not None:
            held = list(here.inside.values()) if isinstance(here.inside, dict) else here.inside
            walk.extend(reversed([(depth + 1, inside) for inside in held]))


def _into(here: Any, step: Step) -> list[Any]:
    """What one step leads to: one thing or nothing."""
    if isinstance(step, str) and isinstance(here, dict) and step in here:
        return [here[step]]
    return [here[step]] if isinstance(step, int) and isinstance(here, list) and step < len(here) else []
