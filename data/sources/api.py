"""A public API whose responses list records in JSON: one collection of its records, with words for people.

A record is any object of the source's shape, wherever it stands: in the response's list, in a bare list, alone, or
inside somebody's recording of a response. The envelope is that of the first response among the files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..catalog import (
    Collection,
    Field,
    FieldKind,
    FieldPath,
    Provenance,
    Record,
    Role,
    Scope,
    Table,
    Unit,
    identity_of,
    value_at,
)
from ..frames import LAYOUTS, frame_for
from .fetch import Call, Fetcher
from .paging import pages
from .source import RawFile, Skipped, Wish

Options = Mapping[str, str]

ASK, TEST = frozenset[Role]({"ask"}), frozenset[Role]({"condition"})
CLASS = frozenset[Role]({"ask", "condition", "group"})
NUMBER = frozenset[Role]({"ask", "condition", "measure"})
MEASURE = frozenset[Role]({"ask", "measure"})
GROUP = frozenset[Role]({"condition", "group"})


@dataclass(frozen=True)
class Words:
    """What people call records and their fields; see `catalog.Table`."""

    singular: str
    plural: str
    identity: FieldPath
    naming: Field
    qualifiers: tuple[Field, ...]
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Api:
    """A source of JSON records. `list_path` is where a response lists them, `envelope` a response without any;
    `required` the paths that tell a record from other objects; `location` gives a record's public address;
    `licence_of` its own licence where records have one each (None: none is stated, the record is left out)."""

    name: str
    hosts: tuple[str, ...]
    licence: str
    attribution: str
    list_path: FieldPath
    envelope: Mapping[str, Any]
    required: tuple[FieldPath, ...]
    words: Words
    location: Callable[[Record], str]
    first: Callable[[Options, int], Call]
    following: Callable[[Any, Call], Call | None]
    options: Options = field(default_factory=dict)
    licence_of: Callable[[Record], str | None] | None = None
    formats: tuple[str, ...] = ("json",)
    suffixes: tuple[str, ...] = (".json", ".geojson")

    def fetch(self, fetcher: Fetcher, wish: Wish) -> list[RawFile]:
        """Pages of the API until they hold the wished number of records."""
        call = self.first(wish.resolved(self), wish.records)
        return pages(fetcher, self.hosts, call, self.following, self._count, wish.records)

    def read(self, files: Sequence[RawFile], skipped: Skipped | None = None) -> list[Collection]:
        """One collection of all records in the files, equal ones once; none if there are no records."""
        skipped = Skipped() if skipped is None else skipped
        records: dict[str, tuple[Record, RawFile]] = {}
        envelope: Any = None
        for file in files:
            value = read_json(file, skipped)
            found = list(self._records(value))
            if not found:
                skipped[f"files without {self.words.plural}"] += 1
                continue
            envelope = self._envelope(value) if envelope is None else envelope
            for record in found:
                self._add(records, record, file, skipped)
        return [self._collection(records, envelope or self.envelope)] if records else []

    def _count(self, page: Any) -> int:
        return len(value_at(page, self.list_path) or ())

    def _records(self, value: Any) -> Iterator[Record]:
        """Objects of the source's shape, outermost first, in the order of the text."""
        walk = [value]
        while walk:
            here = walk.pop()
            if isinstance(here, dict):
                if all(value_at(here, path) is not None for path in self.required):
                    yield here
                else:
                    walk.extend(reversed(here.values()))
            elif isinstance(here, list):
                walk.extend(reversed(here))

    def _envelope(self, value: Any) -> Any:
        """The response around its list, the list emptied; None where the value is no response."""
        if not isinstance(value_at(value, self.list_path), list):
            return None
        return _emptied(value, self.list_path)

    def _add(self, records: dict[str, tuple[Record, RawFile]], record: Record, file: RawFile, skipped: Skipped) -> None:
        name = str(value_at(record, self.words.identity))
        if name in records:
            skipped[f"{self.words.plural} seen before"] += 1
        elif self.licence_of is not None and not self.licence_of(record):
            skipped[f"{self.words.plural} without a licence"] += 1
        elif not _encodable(record):
            skipped[f"{self.words.plural} with broken characters"] += 1
        else:
            records[name] = record, file

    def _collection(self, records: Mapping[str, tuple[Record, RawFile]], envelope: Any) -> Collection:
        words = self.words
        table = Table(
            name=self.name,
            singular=words.singular,
            plural=words.plural,
            label="",
            scope=Scope("".join(["$", *(f".{key}" for key in self.list_path), ".*"])),
            records=[{**record, "@unit": {}, "@keys": []} for record, _ in records.values()],
            unit_of=range(len(records)),
            identity=words.identity,
            naming=words.naming,
            aliases=None,
            qualifiers=words.qualifiers,
            fields=words.fields,
        )
        units = [self._unit(record, file) for record, file in records.values()]
        frame = frame_for("json", envelope=envelope, list_path=self.list_path)
        content = identity_of(unit.identity for unit in units)
        origin = Provenance(self.name, self.licence, self.attribution, f"https://{self.hosts[0]}", {"content": content})
        return Collection(self.name, "json", units, [table], frame, tuple(LAYOUTS), origin)

    def _unit(self, record: Record, file: RawFile) -> Unit:
        licence = self.licence_of(record) if self.licence_of is not None else None
        location = self.location(record) or file.url or file.path
        origin = Provenance(self.name, licence or self.licence, self.attribution, location, {"sha256": file.sha256})
        identity = identity_of([json.dumps(record, sort_keys=True)])
        return Unit(json.dumps(record, ensure_ascii=False), identity, {}, origin)


def text(path: str, name: str, roles: frozenset[Role], kind: FieldKind = "text") -> Field:
    """A field at `path`, its steps separated by `/`."""
    return Field(tuple(path.split("/")), name, kind, roles)


def number(path: str, name: str, roles: frozenset[Role] = NUMBER) -> Field:
    """A field that holds a number."""
    return text(path, name, roles, "number")


def listed(path: str, name: str, roles: frozenset[Role] = GROUP) -> Field:
    """A field that holds a list of texts."""
    return text(path, name, roles, "list")


def truth(path: str, name: str, roles: frozenset[Role] = TEST) -> Field:
    """A field that is true or false."""
    return text(path, name, roles, "boolean")


def read_json(file: RawFile, skipped: Skipped) -> Any:
    """The value of a file, None and counted if it is no JSON that means the same everywhere."""
    try:
        return json.loads(file.text, parse_constant=_refuse, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        skipped["files that are not clean JSON"] += 1
        return None


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _emptied(value: Any, path: FieldPath) -> Any:
    """A copy of `value` with an empty list at `path`."""
    return {**value, path[0]: _emptied(value[path[0]], path[1:])} if path else []


def _encodable(record: Record) -> bool:
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        return False
    return True
