"""Collections: who is meant, and which split a unit belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from treeagent.data.catalog import Collection, Field, Provenance, Table, Unit, identity_of, numeric, value_at


def table_of(towns: Collection, records: Sequence[Mapping[str, Any]]) -> Table:
    return replace(towns.tables[0], records=records, unit_of=range(len(records)))


def test_a_unique_name_means_its_record(towns: Collection) -> None:
    (table,) = towns.tables
    index = next(i for i, town in enumerate(table.records) if town["name"] == "Town 7")
    fields = table.described(index)
    assert fields is not None
    assert [field.path for field in fields] == [("name",)]


def test_a_name_that_another_record_also_goes_by_is_qualified(towns: Collection) -> None:
    twins = [
        {"id": 1, "name": "Springfield", "nation": {"name": "A"}, "aka": []},
        {"id": 2, "name": "Other", "nation": {"name": "B"}, "aka": ["SPRINGFIELD"]},
        {"id": 3, "name": "Springfield", "nation": {"name": "C"}, "aka": []},
    ]
    fields = table_of(towns, twins).described(0)
    assert fields is not None
    assert [field.path for field in fields] == [("name",), ("nation", "name")]


def test_a_record_that_nothing_tells_apart_is_not_described(towns: Collection) -> None:
    twins = [{"id": i, "name": "Springfield", "nation": {"name": "A"}, "aka": []} for i in range(2)]
    assert table_of(towns, twins).described(0) is None
    spelled = [{**twins[0]}, {**twins[1], "name": "springfield ", "nation": {"name": "a"}}]
    assert table_of(towns, spelled).described(0) is None


@pytest.mark.parametrize("name", [None, "", "  ", ["a"], {"a": 1}])
def test_a_record_without_a_name_is_not_described(towns: Collection, name: Any) -> None:
    assert table_of(towns, [{"id": 1, "name": name, "nation": {"name": "A"}, "aka": []}]).described(0) is None


@given(st.lists(st.tuples(st.sampled_from("abAB"), st.sampled_from(["x", "y", None])), min_size=1, max_size=8))
def test_a_description_means_one_record_and_an_undescribed_one_has_a_twin(
    towns: Collection, facts: list[tuple[str, str | None]]
) -> None:
    records = [{"id": i, "name": name, "nation": {"name": nation}} for i, (name, nation) in enumerate(facts)]
    table = table_of(towns, records)
    for i, record in enumerate(records):
        fields = table.described(i)
        same_name = [r for r in records if r["name"].lower() == record["name"].lower()]
        alike = [r for r in same_name if r["nation"] == record["nation"]]
        if fields is None:
            assert len(same_name) > 1
            assert len(alike) > 1 or record["nation"]["name"] is None
        else:
            assert len(same_name if len(fields) == 1 else alike) == 1


def test_splits_share_no_unit_and_leave_none_out(towns: Collection) -> None:
    pools = {split: towns.pool(split) for split in ("train", "dev", "test")}
    assert sorted(i for pool in pools.values() for i in pool) == list(range(len(towns.units)))
    assert all(pools.values())


def test_shares_say_how_many_units_a_split_has(towns: Collection) -> None:
    assert towns.pool("train", {"test": 100}) == []
    assert len(towns.pool("test", {"test": 100})) == len(towns.units)
    assert 0.2 < len(towns.pool("dev", {"train": 20, "dev": 30, "test": 50})) / len(towns.units) < 0.4


def test_a_unit_stays_in_its_split_whatever_else_the_collection_holds(towns: Collection) -> None:
    half = replace(towns, units=towns.units[:150])
    assert half.pool("dev") == [i for i in towns.pool("dev") if i < 150]


def test_a_copy_of_a_unit_is_in_no_pool(towns: Collection) -> None:
    doubled = replace(towns, units=[*towns.units, *towns.units])
    assert all(i < len(towns.units) for split in ("train", "dev", "test") for i in doubled.pool(split))


def test_facts_that_two_units_share_name_neither(towns: Collection) -> None:
    origin = Provenance("s", "CC0-1.0", "a")
    titles = ["One", "Two", "two ", "Three"]
    units = [Unit(str(i), str(i), {"title": title}, origin) for i, title in enumerate(titles)]
    named = replace(towns, units=[*units, Unit("", "4", {}, origin)])
    assert [named.names_unit(i) for i in range(5)] == [True, False, False, True, False]


def test_a_missing_value_is_none() -> None:
    assert value_at({"a": {"b": 1}}, ("a", "b")) == 1
    assert value_at({"a": 1}, ("a", "b")) is None
    assert value_at({}, ("a",)) is None
    assert value_at({"@keys": ["/pets", "get"]}, ("@keys", "1")) == "get"
    assert value_at({"@keys": ["/pets"]}, ("@keys", "1")) is None


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (3, 3),
        (2.5, 2.5),
        ("1,234.5", 1234.5),
        ("-3", -3),
        ("12", 12),
        ("1,23", None),
        ("3 km", None),
        ("", None),
        (True, None),
        (None, None),
        ("٣", None),
    ],
)
def test_numbers_are_values_or_plain_texts_of_numbers(value: Any, number: float | None) -> None:
    assert numeric(value) == number


def test_an_identity_tells_texts_apart_and_where_they_end() -> None:
    assert identity_of(["ab", "c"]) != identity_of(["a", "bc"])
    assert identity_of(["ab"]) == identity_of(["ab"])


def test_a_field_is_found_by_its_path(towns: Collection) -> None:
    assert towns.tables[0].field(("stats", "people")) == Field(
        ("stats", "people"), "population", "number", frozenset({"ask", "condition", "measure"})
    )


def test_two_states_of_one_record_are_in_the_same_split(towns: Collection) -> None:
    """What a service says of the same towns a day later supports no other split."""
    (table,) = towns.tables
    changed = [{**town, "schools": town["schools"] + 1} for town in table.records]
    units = [replace(unit, identity=f"other {i}") for i, unit in enumerate(towns.units)]
    later = replace(towns, name="the next day", units=units, tables=(replace(table, records=changed),))
    splits = {split: towns.pool(split) for split in ("train", "dev", "test")}
    assert {split: later.pool(split) for split in splits} == splits
    assert all(splits.values())
