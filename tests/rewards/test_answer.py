"""From replies to values."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from treeagent.errors import ConfigError
from treeagent.rewards.answer import clean, extract, split

WORDS = st.text("abcdefgXYZéß0123456789+#%/", min_size=1, max_size=8).filter(lambda word: word.strip("0123456789"))
NUMBERS = st.integers(-(10**9), 10**9)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Therefore, the answer is 42.", "42"),
        ("the answer is 1. No, the answer is **Paris**. ", "Paris"),
        ("the answer is ... Rome ... ", "Rome"),
        ("The Answer Is 42", ""),
        ("the *answer* is 3.5", "3.5"),
        ("I do not know", ""),
        ("the answer is", ""),
        ("", ""),
    ],
)
def test_the_text_after_the_last_exact_cue_is_the_answer(reply: str, answer: str) -> None:
    assert extract(reply, "the answer is") == answer


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        (r"\boxed{1} then \boxed{ 2 }", "2"),
        (r"\boxed{a{b}c}", "a{b}c"),
        (r"\boxed{kept} \boxed{never closed", "kept"),
        (r"\boxed{outer \boxed{inner}}", "inner"),
        (r"\fbox{1}", ""),
        ("}}} 7", ""),
        (r"\boxed{}", ""),
    ],
)
def test_the_last_balanced_box_is_the_answer(reply: str, answer: str) -> None:
    assert extract(reply, "boxed") == answer


def test_an_unknown_answer_format_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="'xml'"):
        extract("", "xml")


@pytest.mark.parametrize(
    ("text", "count", "values"),
    [
        ('"Washington, DC"', 1, ("Washington, DC",)),
        ("Washington, DC", 1, ("Washington, DC",)),
        ("1,234", 1, ("1,234",)),
        ('["a, b", "c", 1.50, true, null]', 5, ("a, b", "c", "1.50", "true", "null")),
        ("A, B and C", 3, ("A", "B", "C")),
        ("A, B, and C", 3, ("A", "B", "C")),
        ("Trinidad and Tobago, Chad", 2, ("Trinidad and Tobago", "Chad")),
        ("Trinidad and Tobago", 2, ("Trinidad", "Tobago")),
        ("A; B, C", 2, ("A", "B, C")),
        ("1,234, 5,678", 2, ("1,234", "5,678")),
        ("1,234 and 5,678", 2, ("1,234", "5,678")),
        ("100,200,300", 3, ("100", "200", "300")),
        ("100,200,300", None, ("100,200,300",)),
        ('"Washington, DC", Paris', 2, ("Washington, DC", "Paris")),
        ("'a, b', 'c'", 2, ("a, b", "c")),
        ("d'Or, l'Ame", 2, ("d'Or", "l'Ame")),
        ('12" and 14"', 2, ('12"', '14"')),
        ("1. Paris\n2. London", 2, ("Paris", "London")),
        ("- 5\n- -3", 2, ("5", "-3")),
        ("-5\n-3", 2, ("-5", "-3")),
        ("(A, B)", 2, ("A", "B")),
        ("A, B, C, D", 2, ("A", "B", "C", "D")),
        ("only one", 3, ("only one",)),
        ("a,,b,", 2, ("a", "b")),
        ("```json\n[1, 2]\n```", 2, ("1", "2")),
        ("  ", 2, ()),
        ('""', 1, ()),
    ],
)
def test_an_answer_is_split_into_the_values_asked_for(text: str, count: int | None, values: tuple[str, ...]) -> None:
    assert split(text, count) == values


@given(st.lists(WORDS, min_size=2, max_size=6), st.sampled_from(["\n", "; ", ", ", ";", ","]))
def test_splitting_a_joined_list_gives_its_values(values: list[str], separator: str) -> None:
    assert split(separator.join(values), len(values)) == tuple(map(clean, values))


@given(st.lists(NUMBERS, min_size=2, max_size=6), st.sampled_from(["\n", "; ", ", ", " and "]))
def test_grouped_numbers_survive_every_separator(numbers: list[int], separator: str) -> None:
    spelled = [f"{number:,}" for number in numbers]
    assert split(separator.join(spelled), len(spelled)) == tuple(spelled)


@given(st.lists(st.text(min_size=1, max_size=10).filter(str.strip), min_size=2, max_size=6))
def test_a_json_array_gives_its_strings_untouched(values: list[str]) -> None:
    assert split(json.dumps(values), len(values)) == tuple(values)


@given(st.text(max_size=60), st.sampled_from([None, 1, 2, 3, 4]))
def test_splitting_loses_no_letter_but_those_of_separators(text: str, count: int | None) -> None:
    without_signs = text.replace("and", "").replace("\\", "")
    letters = [char for char in without_signs if char.isalpha() and char not in "abcdefghABCDEFGH"]
    kept = "".join(split(without_signs, count)) if not without_signs.strip().startswith(("[", "`")) else without_signs
    assert [char for char in kept if char.isalpha() and char not in "abcdefghABCDEFGH"] == letters


@given(st.text(max_size=40))
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    assert clean(clean(text)) == clean(text)


HOSTILE = ["{", r"\boxed{", "[", ",", '"', "'", "(,", '\\"', "1,234", " ", "\n", "“", "()", "1.\n", "', ", "a and "]


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_long_hostile_reply_costs_linear_time(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    begin = time.process_time()
    for answer_format in ("the answer is", "boxed"):
        for count in (1, 4, None):
            split(extract(f"the answer is \\boxed{{{text}}}", answer_format), count)
    assert time.process_time() - begin < 8  # takes below one second; a quadratic way would take minutes
