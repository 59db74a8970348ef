"""Units turned into tables: what their records are called, which fields are good for questions.

A list at the same place in all units is one table over all of them, which grows with the context, if its records are
alike wherever it is found; other lists are tables inside one unit, which must have a name of its own. No two lists that
a question could mean are called alike. `examined` says also what was left out, and why.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import InputError
from .catalog import KEYS, UNIT, FieldPath, Record, Scope, Shape, Table, Unit, value_at
from .field_roles import FEWEST_RECORDS, Profile, answerable, profiled
from .record_lists.lists import RecordList, alike
from .record_lists.openapi import LISTS
from .record_lists.secret_strings import secret_in
from .unit_lists import UnitLists, lists_of, reading_of
from .words import nouns, words_of

_FACTS = {"name": "variable"}
_KEY_NAMES = ("name", "second name", "third name")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A list that offers no table: in which unit (-1: over all), where, and why."""

    unit: int
    pattern: str
    reason: str


@dataclass(eq=False)
class Examined:
    """The tables of some units; units that must not stand in a context, with the reason; lists that offer nothing."""

    tables: list[Table] = field(default_factory=list)
    unfit: dict[int, str] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)

    def settled(self, units: Sequence[Unit]) -> tuple[list[Unit], list[Table]]:
        """The units without the unfit ones, and the tables over what is left."""
        kept = [i for i in range(len(units)) if i not in self.unfit]
        place = {i: at for at, i in enumerate(kept)}
        tables = [replace(table, unit_of=[place[i] for i in table.unit_of]) for table in self.tables]
        return [units[i] for i in kept], tables


def tables(units: Sequence[Unit], format: str, *, whole: bool | None = None, **words: str) -> list[Table]:
    """The tables of `units`: over all of them, inside one, or (None) both. Where a unit is unfit there are none over
    all; `examined(...).settled(units)` leaves such units out instead."""
    found = examined(units, format, whole=whole, **words)
    return [table for table in found.tables if not (table.whole and found.unfit)]


def examined(
    units: Sequence[Unit],
    format: str,
    *,
    whole: bool | None = None,
    name: str = "",
    pattern: str = "$.*",
    named: str = "",
) -> Examined:
    """Tables and refusals. `name` begins the names of the tables; for JSON, whose units are the records themselves,
    `pattern` is their place in the response and `named` what the response calls the list."""
    found = Examined()
    if format == "json":
        _response(found, units, name, pattern, named)
        return found
    lists: list[UnitLists] = []
    for i, unit in enumerate(units):
        try:
            lists.append(lists_of(unit, format))
        except InputError as error:
            found.unfit[i] = str(error)
            lists.append(UnitLists())
    _refuse_unclear(found, lists)
    facts = Counter(facts_of(unit) for i, unit in enumerate(units) if i not in found.unfit)
    alone = {i for i, unit in enumerate(units) if unit.about and facts[facts_of(unit)] == 1}
    builder = _Builder(found, units, lists, alone, name)
    covered = builder.over_all() if whole is not False else set()
    if whole is not True:
        builder.inside_one(covered)
    return found


def _refuse_unclear(found: Examined, lists: list[UnitLists]) -> None:
    """Beside documents that describe interfaces, one whose records lie at the places of theirs and may be read in
    another way must not stand: it would take the lists from all."""
    shared = {one.pattern for listed in lists for one in listed.lists if one.pattern in LISTS}
    for i, listed in enumerate(lists):
        fault = next((one.fault for p in sorted(shared) for one in listed.at(p, "objects") if one.fault), "")
        if fault:
            found.unfit[i], lists[i] = fault, UnitLists()


def facts_of(unit: Unit) -> tuple[tuple[str, str], ...]:
    """What people know a unit by, to be compared."""
    return tuple(sorted((key, " ".join(value.casefold().split())) for key, value in unit.about.items()))


def _response(found: Examined, units: Sequence[Unit], name: str, pattern: str, named: str) -> None:
    """One table over all units, each of which is a record."""
    records: dict[int, Record] = {}
    for i, unit in enumerate(units):
        try:
            value = reading_of(unit, "json").value
        except InputError as error:
            found.unfit[i] = str(error)
            continue
        if not isinstance(value, dict):
            found.unfit[i] = "it is no object"
        elif secret := secret_in(value):
            found.unfit[i] = f"it holds what looks like {secret}"
        else:
            plain = json.loads(unit.text)  # the response is printed anew, so numbers are spelled as JSON does
            records[i] = {**plain, UNIT: dict(unit.about), KEYS: []}
    rows = RecordList(pattern, pattern, "objects", list(records.values()), [], named)
    offer = _Offer(rows, list(records.values()), list(records), Scope(pattern), True)
    _add(found, offer, profiled(offer.records), name)


@dataclass(frozen=True)
class _Offer:
    """Records that may become a table."""

    rows: RecordList
    records: Sequence[Record]
    unit_of: Sequence[int]
    scope: Scope
    whole: bool


class _Builder:
    """Adds the tables of some units to what was found."""

    def __init__(
        self, found: Examined, units: Sequence[Unit], lists: Sequence[UnitLists], alone: set[int], name: str
    ) -> None:
        self._found, self._units, self._lists, self._alone, self._name = found, units, lists, alone, name

    def over_all(self) -> set[tuple[str, str]]:
        """Adds tables over all units; says which lists they cover, by shape and pattern. A list that only one unit
        holds is asked about by the name of that unit, if it has one."""
        places: dict[tuple[Shape, str], list[int]] = defaultdict(list)
        for i, listed in enumerate(self._lists):
            for one in listed.lists:
                places[one.shape, one.pattern].append(i)
        covered: set[tuple[str, str]] = set()
        called: dict[str, int] = Counter()
        ready: list[tuple[_Offer, Profile]] = []
        for (shape, pattern), where in places.items():
            if (len(where) == 1 and where[0] in self._alone) or (
                shape == "definitions" and len(where) < FEWEST_RECORDS
            ):
                continue
            if shape == "entries" and pattern == "$.*":
                continue  # maps of all kinds; nobody would take their entries for one list
            rows, unit_of, fault = self._everywhere(pattern, shape)
            if fault:
                self._found.left_out.append(LeftOut(-1, pattern, fault))
                continue
            joined = _joined(rows)
            called[_called(joined)] += 1
            offer = _Offer(joined, self._records(rows, unit_of), unit_of, Scope(pattern, {}, joined.shape), True)
            ready.append((offer, _profile(offer, _extra(offer))))
        for offer, profile in ready:
            if called[_called(offer.rows)] > 1:
                self._found.left_out.append(LeftOut(-1, offer.rows.pattern, "another list is described alike"))
            elif _add(self._found, offer, profile, self._name):
                covered.add((offer.rows.shape, offer.rows.pattern))
        return covered

    def _everywhere(self, pattern: str, shape: Shape) -> tuple[list[RecordList], list[int], str]:
        """What the pattern means in each unit: lists, the unit of each record, and why they are no table."""
        rows: list[RecordList] = []
        unit_of: list[int] = []
        for i, listed in enumerate(self._lists):
            there = listed.at(pattern, shape)
            if shape == "items" and not there and i not in self._found.unfit:
                return [], [], "not all units have it"
            if shape == "entries" and there and there[0] not in listed.lists:
                return [], [], "it is another list in other units"
            for one in there:
                if one.fault:
                    return [], [], f"in one unit {one.fault}"
                rows.append(one)
                unit_of.extend([i] * len(one.records))
            others = (one for one in listed.lists if one.path == pattern and one.shape != shape)
            if shape in ("table", "definitions") and any(others):
                return [], [], "it is another list in other units"
        records = [record for one in rows for record in one.records]
        if not records or (pattern not in LISTS and shape != "entries" and not alike(records)):
            return [], [], "it is another list in other units"
        return rows, unit_of, ""

    def inside_one(self, covered: set[tuple[str, str]]) -> None:
        """Adds tables inside one unit."""
        for i, (unit, listed) in enumerate(zip(self._units, self._lists, strict=True)):
            called = Counter(_called(one) for one in listed.lists)
            for one in listed.lists:
                if (one.shape, one.pattern) in covered:
                    continue
                fault = one.fault or ("" if i in self._alone else "its unit has no name of its own")
                if not fault and called[_called(one)] > 1:
                    fault = "another list of the unit is described alike"
                if fault:
                    self._found.left_out.append(LeftOut(i, one.pattern, fault))
                    continue
                unit_of = [i] * len(one.records)
                scope = Scope(one.pattern, dict(unit.about), one.shape)
                offer = _Offer(one, self._records([one], unit_of), unit_of, scope, False)
                facts = _extra(offer)
                if not _by_facts(offer):
                    facts = {path: said for path, said in facts.items() if path[0] != UNIT}
                _add(self._found, offer, _profile(offer, facts), self._name)

    def _records(self, rows: Sequence[RecordList], unit_of: Sequence[int]) -> list[Record]:
        """Records with what tells their unit and the keys that lead to them."""
        records = (record for one in rows for record in one.records)
        keys = (keys for one in rows for keys in one.keys)
        return [
            {**record, UNIT: dict(self._units[unit].about), KEYS: list(held)}
            for record, held, unit in zip(records, keys, unit_of, strict=True)
        ]


def _joined(rows: Sequence[RecordList]) -> RecordList:
    """The lists of several units as one."""
    labels = {one.label for one in rows}
    first = next(one for one in rows if one.records)
    return RecordList(
        first.path,
        first.pattern,
        first.shape,
        [record for one in rows for record in one.records],
        [keys for one in rows for keys in one.keys],
        first.named,
        first.label if len(labels) == 1 else "",
        "",
        frozenset(path for one in rows for path in one.unclear),
        any(one.hidden for one in rows),
        places=lambda: [(span, {}) for one in rows for span in one.spans],
    )


def _called(one: RecordList) -> str:
    """By what a question would mean a list."""
    return one.label.casefold() or _nouns(one)[1]


def _nouns(rows: RecordList) -> tuple[str, str]:
    """What people call one record of a list and several; entries of a map inside a unit by the map, too."""
    if rows.pattern in LISTS:
        return LISTS[rows.pattern][0]
    if rows.pattern == "$":
        return "record", "records"  # the unit itself, by whose name it goes
    one, several = nouns(rows.named, rows.shape)
    words = " ".join(words_of(rows.named))
    if rows.shape != "entries" or rows.path == "$" or one != "entry" or not words.replace(" ", "").isalpha():
        return one, several
    return f"{words} {one}", f"{words} {several}"


def _extra(offer: _Offer) -> dict[FieldPath, str]:
    """Names of map keys and unit facts by which records may be told apart."""
    names = LISTS[offer.rows.pattern][1] if offer.rows.pattern in LISTS else _KEY_NAMES
    depth = min(len(names), max(map(len, offer.rows.keys), default=0))
    extra: dict[FieldPath, str] = {(KEYS, str(i)): names[i] for i in range(depth)}
    for key in dict.fromkeys(str(key) for record in offer.records for key in record[UNIT]):
        extra[UNIT, key] = _FACTS.get(key, key)
    return extra


def _by_facts(offer: _Offer) -> bool:
    """Whether a record is all of its list, so that only its unit's facts name it."""
    return offer.rows.shape == "definitions" or offer.rows.path == offer.rows.pattern == "$"


def _profile(offer: _Offer, extra: Mapping[FieldPath, str]) -> Profile:
    return profiled(
        offer.records,
        headings=offer.rows.shape in ("table", "definitions"),
        numbers=offer.rows.shape not in ("objects", "entries"),
        unclear=offer.rows.unclear,
        extra=extra,
        counted=not offer.rows.hidden,
        by_facts=_by_facts(offer),
        entries=offer.rows.shape == "entries",
    )


def _add(found: Examined, offer: _Offer, profile: Profile, name: str) -> bool:
    """Adds a table, or says why there is none."""
    rows = offer.rows
    where = -1 if offer.whole or not offer.unit_of else offer.unit_of[0]
    if profile.refused or profile.naming is None:
        found.left_out.append(LeftOut(where, rows.pattern, profile.refused))
        return False
    one, several = _nouns(rows)
    offered = (profile.naming, *profile.qualifiers, *profile.fields)
    paths = sorted({field.path for field in offered} | {profile.identity or profile.naming.path})
    asked = {field.path for field in profile.fields if "ask" in field.roles and "group" not in field.roles}
    asked -= {field.path for field in profile.qualifiers}
    found.tables.append(
        Table(
            name=f"{name}{'' if offer.whole else f'/{where}'}{rows.pattern}",
            singular=one,
            plural=several,
            label=rows.label,
            scope=offer.scope,
            records=[_kept(record, paths, asked) for record in offer.records],
            unit_of=offer.unit_of,
            identity=profile.identity,
            naming=profile.naming,
            aliases=None,
            qualifiers=profile.qualifiers,
            fields=profile.fields,
            whole=offer.whole,
            spans=rows.spans or None,
        )
    )
    return True


def _kept(record: Record, paths: Sequence[FieldPath], asked: Set[FieldPath]) -> Record:
    """The record with its offered fields alone; of those `asked` for, with values that can answer a question."""
    kept: dict[str, Any] = {UNIT: record[UNIT], KEYS: record[KEYS]}
    for path in paths:
        value = value_at(record, path)
        if value is None or path[0] in (UNIT, KEYS) or (path in asked and not answerable(value)):
            continue
        here = kept
        for key in path[:-1]:
            here = here.setdefault(key, {})
        here[path[-1]] = value
    return kept
