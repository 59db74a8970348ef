"""Scores, against values from the paper's definition and a brute-force matching."""

from __future__ import annotations

from decimal import Decimal
from itertools import permutations
from random import Random
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from treeagent.data.rollout import Reference
from treeagent.rewards.score import matches, normalise, parse_number, score, score_answer


def text(*values: str, ordered: bool = False, count: int | None = None) -> Reference:
    return Reference(values, "text", ordered, count if count else len(values))


def number(*values: str, ordered: bool = False) -> Reference:
    return Reference(values, "number", ordered, len(values))


@pytest.mark.parametrize(
    ("value", "expected", "same"),
    [
        ("paris", "Paris", True),
        ('"Paris"', "Paris", True),
        ("[Paris]", "Paris", True),
        ("`Paris`", "Paris", True),
        ("\\text{Paris}", "Paris", True),
        ("New   York", "new york", True),
        ("Ｐａｒｉｓ", "Paris", True),
        ("STRASSE", "straße", True),
        (".ad", "ad", True),
        ("C++", "C", False),
        ("-12", "12", False),
        ("12.50", "1250", False),
        ("CVE-2024-0001", "cve-2024-0001", True),
        ("CVE-2024-0001", "CVE-2024-0002", False),
        ("__init__", "init", False),
        ("08", "8", False),
        ("1000001", "1000002", False),
        ("", "", False),
    ],
)
def test_text_matches_but_for_case_and_surrounding_formatting(value: str, expected: str, same: bool) -> None:
    assert matches(value, expected, "text") is same


@pytest.mark.parametrize(
    ("value", "expected", "same"),
    [
        ("1,234", "1234", True),
        ("$1,234.50", "1234.5", True),
        ("1 234", "1234", True),
        ("−12", "-12", True),
        ("12", "-12", False),
        ("-12", "12", False),
        ("12 %", "12", True),
        ("2.5 million", "2500000", True),
        ("15,853 people", "15853", True),
        ("34 km²", "34", True),
        ("5 m", "5", False),
        ("5 or 6", "5", False),
        ("0.01", "0", True),
        ("0.010001", "0", False),
        ("1.01", "1", True),
        ("1001", "1000", True),
        ("999", "1000", True),
        ("1001.01", "1000", False),
        ("1000", "1001.001", True),  # 0.1 % of the reference is 1.001001
        ("1000", "1001.002", False),
        ("NaN", "NaN", True),  # the reference is no number: text
        ("nan", "5", False),
        ("inf", "5", False),
        ("1e400", "1" + "0" * 400, False),  # beyond the longest number: text
        ("CVE-2024-0001", "2024", False),
    ],
)
def test_numbers_match_within_the_larger_of_two_tolerances(value: str, expected: str, same: bool) -> None:
    assert matches(value, expected, "number") is same


@pytest.mark.parametrize(
    ("spelled", "value"),
    [
        ("1.234.567", "1234567"),
        ("1.234,56", "1234.56"),
        ("1,234.56", "1234.56"),
        ("3,14", "3.14"),
        ("0,123", "0.123"),
        ("12,34,567", "1234567"),
        ("1.234", "1.234"),
        (".5", "0.5"),
        ("1e5", "100000"),
        ("€ 5", "5"),
        ("5 EUR", "5"),
        ("42.5° N", "42.5"),
        ("3 cities", "3"),
    ],
)
def test_a_number_is_read_as_people_spell_it(spelled: str, value: str) -> None:
    assert parse_number(spelled) == Decimal(value)


NO_NUMBERS = ["", "NaN", "inf", "5-7", "12 or 13", "1,2,3", "2024-01-02", "1.5.2024", "42.5° S", "about 5", "5k", "--5"]


@pytest.mark.parametrize("spelled", NO_NUMBERS)
def test_what_is_not_clearly_one_number_is_none(spelled: str) -> None:
    assert parse_number(spelled) is None


@pytest.mark.parametrize(
    ("values", "reference", "expected"),
    [
        (("a",), text("a"), 1.0),
        (("a", "b"), text("a"), 0.0),
        ((), text("a"), 0.0),
        (("b", "a"), text("a", "b"), 1.0),
        (("b", "a"), text("a", "b", ordered=True), 0.0),
        (("a", "x"), text("a", "b", ordered=True), 0.5),
        (("a", "b", "c"), text("a", "b"), 2 / 3),
        (("a", "a"), text("a", "b"), 0.5),
        (("a", "a"), text("a", "a", "b"), 2 / 3),
        (("a",), text("a", "b", "c", "d"), 0.25),
        (("1.00", "1.01"), number("1.01", "1.02"), 1.0),  # 1.01 must take 1.02 and leave 1.01 to 1.00
        (("1", "1"), number("1", "5"), 0.5),
        (("a",), Reference((), "text", False, None), 0.0),
        (("a", "b"), Reference(("a",), "text", False, None), 0.5),
    ],
)
def test_a_list_scores_matches_over_the_longer(values: tuple[str, ...], reference: Reference, expected: float) -> None:
    assert score(values, reference) == pytest.approx(expected)


LETTERS = st.lists(st.sampled_from(["a", "A", '"a"', "b", "c", "C++"]), min_size=1, max_size=5)
CLOSE = st.lists(st.integers(0, 8).map(lambda i: f"{1 + i / 200:.3f}"), min_size=1, max_size=5)


def brute_force(values: list[str], expected: list[str], kind: str) -> float:
    """The best assignment found by trying all of them."""
    width = max(len(values), len(expected))
    padded: list[str | None] = [*values, *[None] * (width - len(values))]
    targets: list[str | None] = [*expected, *[None] * (width - len(expected))]
    best = max(
        sum(v is not None and t is not None and matches(v, t, kind) for v, t in zip(order, targets, strict=True))
        for order in permutations(padded)
    )
    return best / width


@given(LETTERS, LETTERS)
def test_unordered_text_is_the_best_of_all_assignments(values: list[str], expected: list[str]) -> None:
    reference = Reference(tuple(expected), "text", False, None)
    assert score(values, reference) == pytest.approx(brute_force(values, expected, "text"))


@given(CLOSE, CLOSE)
def test_unordered_numbers_are_the_best_of_all_assignments(values: list[str], expected: list[str]) -> None:
    reference = Reference(tuple(expected), "number", False, None)
    assert score(values, reference) == pytest.approx(brute_force(values, expected, "number"))


KINDS: st.SearchStrategy[Literal["text", "number"]] = st.sampled_from(["text", "number"])
LISTS = st.one_of(LETTERS, CLOSE)


@given(LISTS, LISTS, KINDS, st.randoms(use_true_random=False))
def test_without_an_order_permutations_change_nothing(
    values: list[str], expected: list[str], kind: Literal["text", "number"], random: Random
) -> None:
    first = score(values, Reference(tuple(expected), kind, False, None))
    random.shuffle(values)
    random.shuffle(expected)
    assert score(values, Reference(tuple(expected), kind, False, None)) == pytest.approx(first)


@given(st.text(max_size=40), LETTERS, st.booleans(), st.sampled_from([None, 1, 2]), KINDS)
def test_every_score_lies_between_zero_and_one(
    reply: str, expected: list[str], ordered: bool, count: int | None, kind: Literal["text", "number"]
) -> None:
    reference = Reference(tuple(expected), kind, ordered, count)
    assert 0.0 <= score_answer(f"the answer is {reply}", "the answer is", reference).score <= 1.0


@given(st.lists(st.text(min_size=1).filter(lambda value: bool(normalise(value))), min_size=1, max_size=5))
def test_the_reference_itself_scores_one(values: list[str]) -> None:
    assert score(values, Reference(tuple(values), "text", True, len(values))) == 1.0


def test_a_reply_is_extracted_split_and_scored() -> None:
    scored = score_answer("Therefore, the answer is 1,200 and **7**.", "the answer is", number("7", "1200"))
    assert scored.values == ("1,200", "7")
    assert scored.score == 1.0
    assert score_answer("I cannot tell.", "the answer is", number("7")).score == 0.0
