"""Collections: who is meant, and which split a record belongs to."""

from __future__ import annotations

from dataclasses import replace

from treeagent.data.catalog import Collection, Field, value_at


def test_a_unique_name_means_its_record(towns: Collection) -> None:
    index = next(i for i, town in enumerate(towns.records) if town["name"] == "Town 7")
    fields = towns.described(index)
    assert fields is not None
    assert [field.path for field in fields] == [("name",)]


def test_a_name_that_another_record_also_goes_by_is_qualified(towns: Collection) -> None:
    twins = [
        {"id": 1, "name": "Springfield", "nation": {"name": "A"}, "aka": []},
        {"id": 2, "name": "Other", "nation": {"name": "B"}, "aka": ["SPRINGFIELD"]},
        {"id": 3, "name": "Springfield", "nation": {"name": "C"}, "aka": []},
    ]
    collection = replace(towns, records=twins)
    fields = collection.described(0)
    assert fields is not None
    assert [field.path for field in fields] == [("name",), ("nation", "name")]


def test_a_record_that_nothing_tells_apart_is_not_described(towns: Collection) -> None:
    twins = [{"id": i, "name": "Springfield", "nation": {"name": "A"}, "aka": []} for i in range(2)]
    assert replace(towns, records=twins).described(0) is None


def test_splits_share_no_record_and_leave_none_out(towns: Collection) -> None:
    pools = {split: towns.pool(split) for split in ("train", "dev", "test")}
    assert sorted(i for pool in pools.values() for i in pool) == list(range(len(towns.records)))
    assert all(pools.values())


def test_a_record_stays_in_its_split_whatever_else_the_collection_holds(towns: Collection) -> None:
    half = replace(towns, records=towns.records[:150])
    assert half.pool("dev") == [i for i in towns.pool("dev") if i < 150]


def test_a_missing_value_is_none() -> None:
    assert value_at({"a": {"b": 1}}, ("a", "b")) == 1
    assert value_at({"a": 1}, ("a", "b")) is None
    assert value_at({}, ("a",)) is None


def test_a_field_is_found_by_its_path(towns: Collection) -> None:
    assert towns.field(("stats", "people")) == Field(
        ("stats", "people"), "population", "number", frozenset({"ask", "condition", "measure"})
    )
