"""What a source offers to questions: collections of like records, and what their fields are called among people.

A collection knows the response that its records come in (an envelope with one ordered list), how a record is named so
that nothing else in the collection is meant, and which fields can be asked for, tested or compared. Sources fill it in
by hand.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

FieldPath = tuple[str, ...]
Record = Mapping[str, Any]
Role = Literal["ask", "condition", "measure"]
SPLITS = ("train", "dev", "test")
_SHARES = (50, 60, 100)  # of 100 records, 50 may support train, 10 dev, 40 test


@dataclass(frozen=True)
class Field:
    """A field of a record: where it lies, what people call it, and what questions may do with it."""

    path: FieldPath
    name: str
    kind: Literal["text", "number", "list"]
    roles: frozenset[Role] = frozenset()


@dataclass(frozen=True)
class Provenance:
    """Where records come from. `identity` is what makes a dataset built from them the same: version and file hashes."""

    source: str
    license: str
    attribution: str
    identity: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Collection:
    """Like records that one response lists. `envelope` is the response around them, `list_path` where the list goes.
    `identity` is the field that tells records apart, `naming` the one that names a record, `aliases` a list field with
    other names of it, `qualifiers` what may be added to the name where it alone is not unique, in this order."""

    name: str
    singular: str
    plural: str
    records: Sequence[Record]
    identity: FieldPath
    naming: Field
    aliases: FieldPath | None
    qualifiers: tuple[Field, ...]
    fields: tuple[Field, ...]
    envelope: Mapping[str, Any]
    list_path: FieldPath
    provenance: Provenance

    def with_role(self, role: Role) -> list[Field]:
        """The fields that questions may use in this way."""
        return [field for field in self.fields if role in field.roles]

    def field(self, path: FieldPath) -> Field:
        """The field at `path`."""
        return next(field for field in (self.naming, *self.qualifiers, *self.fields) if field.path == path)

    def pool(self, split: str) -> list[int]:
        """Indices of the records that may appear in this split. The share is drawn by the record's identity alone, so
        no two recipes disagree about it: what trains under one recipe never tests under another."""
        number = SPLITS.index(split)
        low, high = (0, *_SHARES)[number : number + 2]
        return [i for i, ticket in enumerate(self._tickets) if low <= ticket < high]

    def described(self, index: int) -> tuple[Field, ...] | None:
        """The fewest fields that together mean this record and no other of the collection, its other names counted;
        None if none do."""
        record = self.records[index]
        chosen: tuple[Field, ...] = (self.naming,)
        rivals = {i for label in self._labels_of(record) for i in self._labels[label]} - {index}
        for qualifier in self.qualifiers:
            if not rivals:
                break
            value = value_at(record, qualifier.path)
            chosen = (*chosen, qualifier)
            rivals = {i for i in rivals if value_at(self.records[i], qualifier.path) == value}
        return None if rivals else chosen

    @cached_property
    def _tickets(self) -> list[int]:
        names = (f"{self.name}/{value_at(record, self.identity)}" for record in self.records)
        return [int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) % 100 for name in names]

    @cached_property
    def _labels(self) -> Mapping[str, list[int]]:
        labels: dict[str, list[int]] = defaultdict(list)
        for i, record in enumerate(self.records):
            for label in self._labels_of(record):
                labels[label].append(i)
        return labels

    def _labels_of(self, record: Record) -> set[str]:
        others = value_at(record, self.aliases) if self.aliases else None
        return {str(name).casefold() for name in (value_at(record, self.naming.path), *(others or ()))}


def value_at(record: Any, path: FieldPath) -> Any:
    """The value at `path` inside a record, None where there is none."""
    for key in path:
        if not isinstance(record, Mapping) or key not in record:
            return None
        record = record[key]
    return record
