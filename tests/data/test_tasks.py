"""The eight tasks, against plain loops: what is drawn has one clear answer, which no distractor makes unclear."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from treeagent.data.catalog import Collection, Field, Scope, Table
from treeagent.data.drawing import Ground, can_answer, is_separable, is_tidy
from treeagent.data.spec import Condition, Spec
from treeagent.data.tasks import MOST_TIES, TASKS

WHERE = Scope("$.a.*")
INSIDE = Scope("/table", {"title": "Page"}, "table")
GOODS = Field(("goods",), "goods", "text", frozenset({"group"}))
PRICE = Field(("price",), "price", "number", frozenset({"measure"}))
Things = list[dict[str, Any]]

things = st.lists(
    st.fixed_dictionaries(
        {"goods": st.sampled_from(["salt", "iron", "Iron", "a, b", "tin"]), "price": st.integers(-3, 12)}
    ),
    min_size=1,
    max_size=4,
)


def ground(towns: Collection, *, whole: bool = True) -> Ground:
    (table,) = towns.tables
    table = replace(table, whole=whole, scope=WHERE if whole else INSIDE)
    return Ground(table, range(len(table.records)), 12, 300, 3.0)


@given(st.integers(0, 10**6), st.sampled_from(sorted(TASKS)))
def test_what_is_drawn_has_an_answer_over_its_seeds(towns: Collection, seed: int, name: str) -> None:
    where, task = ground(towns), TASKS[name]
    drawn = task.draw(Random(seed), where)
    if drawn is None:
        return
    records = [where.record(row) for row in drawn.seeds]
    assert task.gate(drawn.spec)(records)
    assert drawn.spec.scope == WHERE
    if drawn.spec.selectors:
        assert len(task.execute(drawn.spec, records)) == drawn.spec.asked == len(drawn.seeds) * len(drawn.spec.fields)
    assert drawn == task.draw(Random(seed), where)


@given(st.integers(0, 10**6), st.sampled_from(["two_fields", "four_fields", "two_records", "four_records"]))
def test_a_lookup_of_several_values_asks_for_them_in_order(towns: Collection, seed: int, name: str) -> None:
    where, task = ground(towns), TASKS[name]
    drawn = task.draw(Random(seed), where)
    assert drawn is not None
    records = [where.record(row) for row in range(len(where.rows))]
    expected = []
    for row in drawn.seeds:
        for field in drawn.spec.fields:
            value: Any = where.record(row)
            for key in field:
                value = value[key]
            expected.append(value)
    assert drawn.spec.ordered
    assert task.execute(drawn.spec, records) == expected
    assert [records[i] for i in task.support(drawn.spec, records)] == [where.record(row) for row in drawn.seeds]
    assert len({type(value) is str or type(value) is bool for value in expected}) == 1  # all of one kind


@given(st.lists(things, max_size=12))
def test_the_most_frequent_values_stay_few_and_frequent_whatever_joins(groups: list[Things]) -> None:
    task, spec = TASKS["most_frequent"], Spec("most_frequent", WHERE, "text", group=("goods",))
    admits, context = task.gate(spec), [{"goods": "tin"}, {"goods": "tin"}]
    assert admits(context)
    for group in groups:
        if admits(group):
            context = context + group
        counts = Counter(record["goods"] for record in context)
        top = max(counts.values())
        leaders = {value for value, times in counts.items() if times == top}
        assert top > 1
        assert len(leaders) <= MOST_TIES
        assert "a, b" not in leaders
        assert len({value.casefold() for value in counts}) == len(counts)
        answers = task.execute(spec, context)
        if len(context) >= 4 and len(counts) > len(leaders):
            assert set(answers) == leaders
        else:
            assert answers == []
        if answers:
            assert [context[i]["goods"] in leaders for i in task.support(spec, context)].count(True) == top * len(
                leaders
            )


@given(st.lists(things, min_size=2, max_size=12), st.sampled_from(["max", "min"]))
def test_an_extremum_stays_clear_of_the_next_value_whatever_joins(groups: list[Things], extreme: Any) -> None:
    task = TASKS["numerical_extremum"]
    spec = Spec(task.name, WHERE, "number", fields=(("price",),), measure=("price",), extreme=extreme)
    admits, context = task.gate(spec), list[Mapping[str, Any]]()
    for group in groups:
        if admits(group):
            context = context + group
        ranked = sorted((record["price"] for record in context), reverse=extreme == "max")
        if len(ranked) > 1:
            assert ranked[0] != ranked[1]
        if len(ranked) > 2:
            assert task.execute(spec, context) == [ranked[0]]


@given(st.lists(things, min_size=2, max_size=40))
def test_a_count_has_a_bound_whatever_joins(groups: list[Things]) -> None:
    task, spec = TASKS["conditional_count"], Spec("conditional_count", WHERE, "number")
    spec = replace(spec, conditions=(Condition(("goods",), "=", "iron"),))
    admits, context = task.gate(spec), list[Mapping[str, Any]]()
    for group in groups:
        if admits(group):
            context = context + group
    count = sum(record["goods"] == "iron" for record in context)
    assert count <= 24
    assert not any(record["goods"] == "Iron" for record in context)
    assert task.execute(spec, context) == ([count] if 0 < count < len(context) else [])


@given(st.integers(0, 10**6), st.sampled_from(["conditional_count", "most_frequent", "numerical_extremum"]))
def test_a_table_inside_a_unit_is_asked_about_as_it_is(towns: Collection, seed: int, name: str) -> None:
    where, task = ground(towns, whole=False), TASKS[name]
    drawn = task.draw(Random(seed), where)
    if drawn is not None:
        answers = task.execute(drawn.spec, [where.record(row) for row in where.rows])
        assert answers
        assert drawn.spec.asked in (None, len(answers))
        assert drawn.spec.scope.unit == {"title": "Page"}


def test_numbers_that_text_spells_are_compared_as_numbers_and_answered_as_text() -> None:
    task = TASKS["numerical_extremum"]
    spec = Spec(task.name, WHERE, "number", fields=(("price",),), measure=("price",), extreme="max")
    assert task.execute(spec, [{"price": "998"}, {"price": "1,234.5"}, {"price": "-3"}, {"price": "n/a"}]) == [
        "1,234.5"
    ]
    assert Condition(("price",), ">", 1000).holds({"price": "1,234.5"})
    assert not Condition(("price",), "<", 1000).holds({"price": "unknown"})


def test_true_is_not_one() -> None:
    assert not Condition(("a",), "=", 1).holds({"a": True})
    assert not Condition(("a",), "=", True).holds({"a": 1})
    assert not Condition(("a",), "contains", 1).holds({"a": [True]})


def test_a_specification_is_canonical_and_leaves_out_what_is_empty() -> None:
    spec = Spec("most_frequent", INSIDE, "text", group=("goods",))
    assert spec.to_json() == (
        '{"answer_kind": "text", "group": ["goods"], "scope": {"list": "/table", "shape": "table", '
        '"unit": {"title": "Page"}}, "task": "most_frequent"}'
    )


@pytest.mark.parametrize(
    ("value", "separable"),
    [
        ("salt", True),
        ("a, b", False),
        ("salt and iron", False),
        ("1,234", True),
        ("(x)", False),
        (True, True),
        (3, True),
    ],
)
def test_a_value_beside_others_must_not_hold_what_separates_them(value: Any, separable: bool) -> None:
    assert is_separable(value) is separable


@pytest.mark.parametrize("value", ["", " x", "x ", "a\nb", "...", "x" * 200, None, 3])
def test_an_answer_is_one_short_line_with_something_in_it(value: Any) -> None:
    assert not is_tidy(value, 160)
    assert not can_answer(value, GOODS, several=False)


def test_a_field_is_asked_by_its_kind() -> None:
    assert can_answer("3", PRICE, several=True)
    assert not can_answer("three", PRICE, several=False)
    assert not can_answer(True, PRICE, several=False)
    assert can_answer(True, replace(GOODS, kind="boolean"), several=True)


def test_a_table_without_the_fields_for_a_task_does_not_suit_it(towns: Collection) -> None:
    bare: Table = replace(towns.tables[0], fields=(GOODS,))
    assert [name for name, task in TASKS.items() if task.suits(bare)] == ["most_frequent"]
    assert all(task.suits(towns.tables[0]) for task in TASKS.values())
