"""What is read of a context: its units, and the records that a scope means, each with where it stands.

`Tree` is a value with its place in the text, as the readers of YAML and JavaScript make it; `matched` follows a pattern
in it, `records_at` gives the records that it means. All walks are iterative.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .values import OPAQUE, Unreadable, folded

MOST_DEPTH = 200
"""Containers inside each other; a deeper text is not read."""
UNIT, KEYS, VALUE = "@unit", "@keys", "@value"
SHAPES = ("objects", "entries", "table", "definitions", "items")
_STEP = re.compile(r'\.\*|\.([A-Za-z_][A-Za-z0-9_]*)|\[([0-9]{1,9})\]|\[("(?:[^"\\]|\\.)*")\]')
Step = str | int | None
"""A key, a place in a list, or None for every member."""


@dataclass(frozen=True)
class Scope:
    """Which records are meant, as the specification stores it."""

    pattern: str
    unit: Mapping[str, str]
    shape: str

    @classmethod
    def of(cls, stored: Any) -> Scope:
        """The scope of a specification. Raises Unreadable for what is none."""
        if not isinstance(stored, dict) or set(stored) != {"unit", "list", "shape"}:
            raise Unreadable("the scope is not {unit, list, shape}")
        unit, pattern, shape = stored["unit"], stored["list"], stored["shape"]
        if not isinstance(unit, dict) or not all(isinstance(value, str) for value in unit.values()):
            raise Unreadable("the scope's unit is not described by texts")
        if not isinstance(pattern, str) or shape not in SHAPES:
            raise Unreadable(f"the scope's list or shape is unknown: {pattern} {shape}")
        return cls(pattern, unit, shape)


@dataclass(frozen=True)
class Unit:
    """A part of a context. `said` is what stands beside it about its origin."""

    about: Mapping[str, str]
    start: int
    end: int
    digest: bytes
    said: str = ""


@dataclass(frozen=True)
class Record:
    """A record: its values, where it stands, and the unit that holds it. `unclear` are fields with several values."""

    value: Mapping[str, Any]
    start: int
    end: int
    unit: int
    unclear: frozenset[str] = frozenset()


@dataclass
class Reading:
    """Units of a context, and the records of a scope."""

    units: list[Unit] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)


@dataclass(slots=True)
class Tree:
    """A value and its place; `held` are the members of a container."""

    start: int
    end: int
    value: Any = OPAQUE
    held: dict[str, Tree] | list[Tree] | None = None


class Kept:
    """Trees of the texts that were read last, up to so many characters: contexts of one question grow into each other,
    and slow readers need not read a unit again."""

    def __init__(self, most: int, read: Callable[[str], Tree]) -> None:
        self._most, self._read, self._size = most, read, 0
        self._trees: dict[str, Tree] = {}

    def tree(self, text: str) -> Tree:
        """The tree of a text. Raises what reading it raises."""
        tree = self._trees.pop(text, None)
        if tree is None:
            tree = self._read(text)
            self._size += len(text)
        self._trees[text] = tree  # the latest is the last to go
        while self._size > self._most and len(self._trees) > 1:
            oldest = next(iter(self._trees))
            del self._trees[oldest]
            self._size -= len(oldest)
        return tree


def digest_of(text: str) -> bytes:
    """A short identity of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:12]


def steps_of(pattern: str) -> list[Step]:
    """The steps of a pattern. Raises Unreadable for what is none."""
    steps: list[Step] = []
    at = 1
    while at < len(pattern):
        step = _STEP.match(pattern, at)
        if step is None or not pattern.startswith("$"):
            raise Unreadable(f"{pattern} is no pattern")
        key, place, quoted = step.groups()
        steps.append(key if key else int(place) if place else json.loads(quoted) if quoted else None)
        at = step.end()
    return steps


def matched(tree: Tree, steps: Sequence[Step]) -> Iterator[tuple[Tree, list[str]]]:
    """The objects that the steps lead to, in their order, with the keys that were passed on the way."""
    walk: list[tuple[Tree, int, list[str]]] = [(tree, 0, [])]
    while walk:
        here, depth, keys = walk.pop()
        if depth == len(steps):
            if isinstance(here.held, dict):
                yield here, keys
            continue
        within: list[tuple[Tree, int, list[str]]] = []
        for name, member in _members(here):
            if steps[depth] is None:
                within.append((member, depth + 1, [*keys, name] if isinstance(name, str) else keys))
            elif name == steps[depth]:
                within.append((member, depth + 1, keys))
        walk += reversed(within)


def records_at(tree: Tree, steps: Sequence[Step], shape: str) -> Iterator[tuple[dict[str, Any], Tree, list[str]]]:
    """The records that the steps lead to: their values, place and keys. Raises Unreadable."""
    if shape == "objects":
        yield from ((plain(found), found, keys) for found, keys in matched(tree, steps))
    elif shape == "entries":
        yield from _entries(tree, steps)
    else:
        raise Unreadable(f"a value of this format holds no records of the shape {shape}")


def _entries(tree: Tree, steps: Sequence[Step]) -> Iterator[tuple[dict[str, Any], Tree, list[str]]]:
    """The members of the maps that all steps but the last lead to; where they stand is where their values do. Raises
    Unreadable where values are of several kinds, or a value is there that nobody can tell."""
    if not steps or steps[-1] is not None:
        raise Unreadable("entries are the members of a map")
    kinds = set[str]()
    for around, keys in matched(tree, steps[:-1]):
        assert isinstance(around.held, dict)
        for key, member in around.held.items():
            told = member.held is None and member.value is not None
            if told:
                kinds.add(kind_of(member.value))
            yield {VALUE: member.value} if told else {}, member, [*keys, key]
    if kinds - {"text", "number", "boolean"} or len(kinds) > 1:
        raise Unreadable("the values of the entries are not of one kind")


def kind_of(value: Any) -> str:
    """What a scalar is."""
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else "text" if isinstance(value, str) else "unknown"


def _members(tree: Tree) -> Iterable[tuple[Step, Tree]]:
    if isinstance(tree.held, dict):
        return tree.held.items()
    return enumerate(tree.held or ())


def plain(tree: Tree) -> Any:
    """The value of a tree without places."""
    order, walk = [], [tree]
    while walk:
        here = walk.pop()
        order.append(here)
        if here.held is not None:
            walk += here.held.values() if isinstance(here.held, dict) else here.held
    made: dict[int, Any] = {}
    for here in reversed(order):
        if isinstance(here.held, dict):
            made[id(here)] = {key: made[id(member)] for key, member in here.held.items()}
        elif here.held is not None:
            made[id(here)] = [made[id(member)] for member in here.held]
        else:
            made[id(here)] = here.value
    return made[id(tree)]


def chosen(units: Sequence[Unit], scope: Scope) -> list[int]:
    """The units that a scope means: all, or the one with its facts. Raises Unreadable where it is not one."""
    if not scope.unit:
        return list(range(len(units)))
    exact = [i for i, unit in enumerate(units) if all(unit.about.get(k) == v for k, v in scope.unit.items())]
    alike = [i for i, unit in enumerate(units) if _alike(unit.about, scope.unit)]
    if len(exact) != 1 or len(alike) != 1:
        facts = ", ".join(f"{key} {value!r}" for key, value in scope.unit.items())
        raise Unreadable(f"{max(len(exact), len(alike)) if exact else 0} units have {facts}, not one")
    return exact


def _alike(about: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return all(key in about and folded(about[key]) == folded(value) for key, value in wanted.items())
