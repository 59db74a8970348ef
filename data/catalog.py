"""What a source offers to questions: units that contexts are made of, and tables of like records inside them.

1. A `Unit` joins a context whole or not at all, in native syntax: a record of a response's list, the body of a page, a
   document, a statement. Units of one `Collection` stand in one `Frame`.
2. A `Table` is what questions are about: like records, how one is named so that nothing else is meant, and which of its
   fields can be asked for, tested, compared or grouped. It runs over all units, or lies inside one.
3. The split that a unit may support is drawn by its identity alone.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol

FieldPath = tuple[str, ...]
Record = Mapping[str, Any]
Role = Literal["ask", "condition", "measure", "group"]
FieldKind = Literal["text", "number", "boolean", "list"]
Shape = Literal["objects", "entries", "table", "definitions", "items"]
Shares = Mapping[str, int]
SPLITS = ("train", "dev", "test")
SHARES: Shares = {"train": 50, "dev": 10, "test": 40}
UNIT, KEYS, VALUE = "@unit", "@keys", "@value"
"""Members of a record that hold the facts of its unit, the map keys that lead to it, and the value of an entry."""
_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?", re.ASCII)


@dataclass(frozen=True)
class Field:
    """A field of a record: where it lies, what people call it, and what questions may do with it."""

    path: FieldPath
    name: str
    kind: FieldKind
    roles: frozenset[Role] = frozenset()


@dataclass(frozen=True)
class Provenance:
    """Where something comes from. `location` is a URL, or `repository@commit:path#Lline`. `identity` is what makes a
    dataset built from it the same: versions and hashes."""

    source: str
    license: str
    attribution: str
    location: str = ""
    identity: Mapping[str, str] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """Source, licence and location in one line."""
        return " | ".join((self.source, self.license, self.location))


@dataclass(frozen=True, eq=False)
class Unit:
    """What joins a context whole or not at all. `text` is as it stands in the source (JSON: the value, which the layout
    prints); `identity` the SHA-256 of its canonical content; `about` the visible facts by which people name it."""

    text: str
    identity: str
    about: Mapping[str, str]
    provenance: Provenance


@dataclass(frozen=True)
class Scope:
    """Which records are meant: in the unit with these facts ({}: in every unit), those at `pattern`. The pattern is in
    the format's path language with `.*` for every member or element, relative to the unit (JSON: to the response). The
    shape `entries` means the members of a map: each is a record of its key and, where that is a scalar, its value."""

    pattern: str
    unit: Mapping[str, str] = field(default_factory=dict)
    shape: Shape = "objects"

    def stored(self) -> dict[str, Any]:
        """As it is stored with an example."""
        return {"unit": dict(self.unit), "list": self.pattern, "shape": self.shape}


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Like records. `identity` is the field that tells them apart where there is one, `naming` the one that names them,
    `aliases` a list field with other names, `qualifiers` what may be added to a name that is not unique, in this order.
    `label` is how people see the list described, "" if they do not. `whole`: the records come from all units of the
    collection, so that the table grows with the context; otherwise all lie in one unit. `spans` tells where in its
    unit's text each record stands, if known."""

    name: str
    singular: str
    plural: str
    label: str
    scope: Scope
    records: Sequence[Record]
    unit_of: Sequence[int]
    identity: FieldPath | None
    naming: Field
    aliases: FieldPath | None
    qualifiers: tuple[Field, ...]
    fields: tuple[Field, ...]
    whole: bool = True
    spans: Sequence[tuple[int, int]] | None = None

    def __repr__(self) -> str:
        return f"<Table {self.name}: {len(self.records):,} {self.plural}>"

    def with_role(self, role: Role) -> list[Field]:
        """The fields that questions may use in this way."""
        return [field for field in self.fields if role in field.roles]

    def field(self, path: FieldPath) -> Field:
        """The field at `path`."""
        return next(field for field in (self.naming, *self.qualifiers, *self.fields) if field.path == path)

    def records_in(self, unit: int) -> Sequence[int]:
        """Indices of the records that lie in this unit."""
        return self._by_unit.get(unit, ())

    def described(self, index: int) -> tuple[Field, ...] | None:
        """The fewest fields that together mean this record and no other of the table, its other names counted; None if
        none do."""
        record = self.records[index]
        if not _is_name(value_at(record, self.naming.path)):
            return None
        chosen: tuple[Field, ...] = (self.naming,)
        rivals = {i for label in self._labels_of(record) for i in self._labels[label]} - {index}
        for qualifier in self.qualifiers:
            if not rivals:
                break
            value = value_at(record, qualifier.path)
            fewer = {i for i in rivals if _same(value_at(self.records[i], qualifier.path), value)}
            if _is_name(value) and fewer < rivals:
                chosen, rivals = (*chosen, qualifier), fewer
        return None if rivals else chosen

    @cached_property
    def _by_unit(self) -> Mapping[int, list[int]]:
        rows: dict[int, list[int]] = defaultdict(list)
        for row, unit in enumerate(self.unit_of):
            rows[unit].append(row)
        return rows

    @cached_property
    def _labels(self) -> Mapping[str, list[int]]:
        labels: dict[str, list[int]] = defaultdict(list)
        for i, record in enumerate(self.records):
            for label in self._labels_of(record):
                labels[label].append(i)
        return labels

    def _labels_of(self, record: Record) -> set[str]:
        others = value_at(record, self.aliases) if self.aliases else None
        names = (value_at(record, self.naming.path), *(others or ()))
        return {_folded(name) for name in names if name is not None}


class Frame(Protocol):
    """How units stand in a context; `data.frames` has one for each format."""

    def shell(self, layout: str) -> tuple[str, str, str]:
        """What stands before the units, between two of them, and after them."""
        ...

    def unit(self, unit: Unit, layout: str) -> tuple[str, str, str]:
        """The unit's text as it stands in the context, with what opens and closes it: opening, text, closing."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Collection:
    """Units of one format that may stand together in a context, and the tables that they hold. `layouts` are the ways
    in which units may be printed; only JSON has several."""

    name: str
    format: str
    units: Sequence[Unit]
    tables: Sequence[Table]
    frame: Frame
    layouts: tuple[str, ...]
    provenance: Provenance

    def __repr__(self) -> str:
        return f"<Collection {self.name}: {len(self.units):,} units, {len(self.tables):,} tables>"

    def pool(self, split: str, shares: Shares = SHARES) -> list[int]:
        """Indices of the units that may appear in this split, equal ones once. The shares (in percent) are drawn by
        what the unit is alone, so recipes with equal shares agree: what trains under one never tests under another."""
        bounds = [sum(shares.get(name, 0) for name in SPLITS[: number + 1]) for number in range(len(SPLITS))]
        number = SPLITS.index(split)
        low, high = (0, *bounds)[number : number + 2]
        return [i for i, ticket in self._tickets.items() if low <= ticket < high]

    def names_unit(self, index: int) -> bool:
        """Whether the unit's facts mean this unit and no other of the collection."""
        return bool(self.units[index].about) and self._named[_facts(self.units[index])] == 1

    @cached_property
    def _tickets(self) -> Mapping[int, int]:
        """A number from 0 to 99 for each unit that is not a copy of an earlier one. A unit that is one record draws it
        by the record's name or identity, so that two states of the same thing, from two days, are in one split."""
        first: dict[str, int] = {}
        for i, unit in enumerate(self.units):
            first.setdefault(unit.identity, i)
        drawn = self._records_of_units
        digests = (
            (i, hashlib.sha256((drawn.get(i) or f"{self.name}/{name}").encode("utf-8", "surrogatepass")).digest())
            for name, i in first.items()
        )
        return {i: int.from_bytes(digest[:4]) % 100 for i, digest in digests}

    @cached_property
    def _records_of_units(self) -> Mapping[int, str]:
        """What tells the one record of a unit from others, where units are records (JSON)."""
        if self.format != "json":
            return {}
        return {
            unit: f"record/{str(value).casefold()}"
            for table in self.tables
            if table.whole
            for record, unit in zip(table.records, table.unit_of, strict=True)
            if (value := value_at(record, table.identity or table.naming.path)) is not None
        }

    @cached_property
    def _named(self) -> Mapping[tuple[tuple[str, str], ...], int]:
        return Counter(_facts(self.units[i]) for i in self._tickets)


def value_at(record: Any, path: FieldPath) -> Any:
    """The value at `path` inside a record, None where there is none. A step into a list is a number."""
    for key in path:
        if isinstance(record, Mapping):
            record = record.get(key)
        elif isinstance(record, list) and key.isdecimal() and int(key) < len(record):
            record = record[int(key)]
        else:
            return None
    return record


def numeric(value: Any) -> int | float | None:
    """The number that a value is, or that its text spells (1,234.5 or -3); None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    if isinstance(value, str) and len(value) <= 40 and _NUMBER.fullmatch(value):
        plain = value.replace(",", "")
        return float(plain) if "." in plain else int(plain)
    return None


def identity_of(parts: Iterable[str]) -> str:
    """The SHA-256 of some texts, told apart, in hexadecimal."""
    digest = hashlib.sha256()
    for part in parts:
        octets = part.encode("utf-8", "surrogatepass")
        digest.update(len(octets).to_bytes(8) + octets)
    return digest.hexdigest()


def _is_name(value: Any) -> bool:
    return isinstance(value, int | float) or (isinstance(value, str) and bool(value.strip()))


def _folded(name: Any) -> str:
    return " ".join(str(name).casefold().split())


def _same(a: Any, b: Any) -> bool:
    """Whether people would take the two values for one."""
    return a == b if a is None or b is None else _folded(a) == _folded(b)


def _facts(unit: Unit) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((key, _folded(value)) for key, value in unit.about.items()))
