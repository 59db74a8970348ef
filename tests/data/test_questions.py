"""Wording: what questions say, and what they do not."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from treeagent.data.catalog import Collection, Field, Scope
from treeagent.data.questions import ask, reveals
from treeagent.data.spec import Condition, Spec

ALL = Scope("$.result.towns.*")
PEOPLE = ("stats", "people")
LOOKUP = Spec("single_field", ALL, "number", ((Condition(("name",), "=", "Town 1"),),), (PEOPLE,))
TWO = Spec("two_fields", ALL, "text", LOOKUP.selectors, (PEOPLE, ("mayor",)), ordered=True)
COUNT = Spec("conditional_count", ALL, "number", conditions=(Condition(PEOPLE, ">", 48_000),))
MOST = Spec("numerical_extremum", ALL, "text", fields=(("name",),), measure=PEOPLE, extreme="max")


@given(st.integers(), st.sampled_from([LOOKUP, TWO, COUNT, MOST]))
def test_no_key_that_is_not_plain_english_is_in_a_question(towns: Collection, seed: int, spec: Spec) -> None:
    question = ask(Random(seed), spec, towns.tables[0])
    assert not any(word in question for word in ("stats", "people", "areaKm", "$", "{", "}"))
    assert question[0].isupper()
    assert question.endswith(".")


@given(st.integers())
def test_a_question_says_what_its_specification_means(towns: Collection, seed: int) -> None:
    assert all(part in ask(Random(seed), LOOKUP, towns.tables[0]) for part in ("population", "Town 1"))
    assert all(part in ask(Random(seed), COUNT, towns.tables[0]) for part in ("population", "48,000", "town"))
    assert "name" in ask(Random(seed), MOST, towns.tables[0])
    assert "order" in ask(Random(seed), TWO, towns.tables[0])


def test_wording_varies_and_is_repeatable(towns: Collection) -> None:
    said = [ask(Random(seed), LOOKUP, towns.tables[0]) for seed in range(30)]
    assert len(set(said)) > 10
    assert said == [ask(Random(seed), LOOKUP, towns.tables[0]) for seed in range(30)]


@pytest.mark.parametrize(
    ("question", "value", "revealed"),
    [
        ("Is Paris the capital?", "paris", True),
        ("More than 48,000 people?", "48000", True),
        ("More than 48,000 people?", "48", False),
        ("In Parisville?", "Paris", False),
        ("Above 1.5?", "5", False),
    ],
)
def test_an_answer_is_revealed_as_a_whole_word_or_number(question: str, value: str, revealed: bool) -> None:
    assert reveals(question, [value]) is revealed


def test_a_record_named_by_a_number_is_said_to_have_it(towns: Collection) -> None:
    naming = Field(PEOPLE, "population", "number", frozenset())
    table = replace(towns.tables[0], naming=naming)
    spec = Spec("single_field", ALL, "text", ((Condition(PEOPLE, "=", 48_211),),), (("mayor",),))
    said = [ask(Random(seed), spec, table) for seed in range(20)]
    assert all("the town with the population 48211" in question for question in said)
