"""InfMem's retrieval: windows inside sections, BM25 as published, and what each of the two implementations selects."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import pytest
from agent_play import Words
from hypothesis import given
from hypothesis import strategies as st
from tokenizers_at_hand import trained
from treeagent.data.tokens import load_tokenizer
from treeagent.infer.agents.infmem_retrieval import Implementation, Index, build_index, clamp, terms, windows

WORDS = load_tokenizer(Words())


def _index(sections: Sequence[str], kind: Implementation = "enhanced") -> Index:
    return build_index(sections, WORDS, kind)


def _numbered(start: int, end: int) -> str:
    return " ".join(f"w{i}" for i in range(start, end))


@pytest.mark.parametrize(
    ("size", "legacy", "enhanced"),
    [
        (0, [], []),
        (1, [(0, 1)], [(0, 1)]),
        (500, [(0, 500)], [(0, 500)]),
        (501, [(0, 500), (500, 501)], [(0, 500), (400, 501)]),
        (900, [(0, 500), (500, 900)], [(0, 500), (400, 900)]),
        (901, [(0, 500), (500, 901)], [(0, 500), (400, 900), (800, 901)]),
        (1250, [(0, 500), (500, 1000), (1000, 1250)], [(0, 500), (400, 900), (800, 1250)]),
    ],
)
def test_windows_hold_500_tokens_and_overlap_by_100_in_enhanced(
    size: int, legacy: list[tuple[int, int]], enhanced: list[tuple[int, int]]
) -> None:
    text = _numbered(0, size)
    assert windows(text, WORDS, "legacy") == [_numbered(*window) for window in legacy]
    assert windows(text, WORDS, "enhanced") == [_numbered(*window) for window in enhanced]


def test_windows_never_reach_into_another_section() -> None:
    for kind in ("legacy", "enhanced"):
        index = build_index([_numbered(0, 600), "short", "", _numbered(0, 10)], WORDS, kind)
        assert index.sections == (0, 0, 1, 3)
        assert index.texts[2:] == ("short", _numbered(0, 10))


def test_windows_are_token_ids_decoded_so_that_a_cut_inside_a_character_shows() -> None:
    tokenizer = load_tokenizer(trained("gpt2"))
    text = "\N{GRINNING FACE}" * 130
    ids = tokenizer.encode(text)
    assert len(ids) > 501
    assert windows(text, tokenizer, "legacy") == [tokenizer.decode(ids[i : i + 500]) for i in range(0, len(ids), 500)]


def _okapi(documents: Sequence[Sequence[str]], query: Sequence[str]) -> list[float]:
    """BM25 Okapi by its formula: k1 1.5, b 0.75; an idf below zero becomes a quarter of the mean idf."""
    n, mean = len(documents), sum(map(len, documents)) / len(documents)
    holding = Counter(term for document in documents for term in dict.fromkeys(document))
    idf = {term: math.log(n - k + 0.5) - math.log(k + 0.5) for term, k in holding.items()}
    floor = 0.25 * (sum(idf.values()) / len(idf))
    idf = {term: value if value >= 0 else floor for term, value in idf.items()}
    scores = []
    for document in documents:
        weight = 1 - 0.75 + 0.75 * len(document) / mean
        counts = [(idf.get(term, 0), document.count(term)) for term in query]
        scores.append(sum(each * (f * 2.5 / (f + 1.5 * weight)) for each, f in counts))
    return scores


SHORT_TEXTS = st.lists(st.lists(st.sampled_from("abcde"), min_size=1, max_size=6).map(" ".join), min_size=1, max_size=8)
QUERIES = st.lists(st.sampled_from("abcdex"), max_size=4)


@given(SHORT_TEXTS, QUERIES)
def test_legacy_shows_the_four_best_by_bm25_and_equals_in_document_order(texts: list[str], query: list[str]) -> None:
    scores = _okapi([text.split() for text in texts], query)
    best = sorted(range(len(texts)), key=lambda i: (-round(scores[i], 9), i))[:4]
    assert _index(texts, "legacy").search(" ".join(query), 9, "", 0) == [texts[i] for i in best]


def test_legacy_ignores_top_k_and_searches_the_current_section() -> None:
    index = _index([f"a w{t}" for t in range(6)] + ["needle"], "legacy")
    for top_k in (1, 3, 20, None):
        found = index.search("Needle", top_k, "q", 6)
        assert found == ["needle", "a w0", "a w1", "a w2"]


def test_legacy_terms_are_words_with_their_signs() -> None:
    index = _index(["x y z", "foo, bar", "foo bar"], "legacy")
    assert index.search("FOO", 4, "q", 0)[0] == "foo bar"
    assert index.search("foo,", 4, "q", 0)[0] == "foo, bar"


def test_legacy_without_a_known_term_shows_the_first_windows() -> None:
    assert _index([f"w{t}" for t in range(6)], "legacy").search("", 8, "q", 0) == ["w0", "w1", "w2", "w3"]


@pytest.mark.parametrize("kind", ["legacy", "enhanced"])
@pytest.mark.parametrize("query", [None, 7, ["owl"], {"owl": 1}])
def test_a_query_that_is_no_text_stands_for_the_question(kind: Implementation, query: object) -> None:
    assert _index(["now", "cat", "owl", "elk"], kind).search(query, 3, "the owl", 0)[0] == "owl"


def test_enhanced_takes_a_blank_query_for_the_question_and_finds_nothing_without_terms() -> None:
    index = _index(["now", "cat", "owl", "elk"])
    assert index.search(" \n\t ", 3, "the owl", 0)[0] == "owl"
    assert index.search("?!", 3, "the owl", 0) == []
    assert index.search(None, 3, "?!", 0) == []


def test_enhanced_terms_are_letters_digits_underscores_then_chinese_characters_and_their_pairs() -> None:
    assert terms("Foo_1-BAR, naïve") == ["foo_1", "bar", "na", "ve"]
    assert terms("汉字 a 汉") == ["a", "汉", "字", "汉", "汉字", "字汉"]
    assert terms("日") == ["日"]
    assert terms("かな é") == []


def test_enhanced_leaves_out_the_current_section() -> None:
    index = _index(["needle one", "two", "three"])
    assert index.search("needle", 3, "q", 0) == ["two", "three"]
    assert index.search("needle", 3, "q", 1) == ["needle one", "three"]


@pytest.mark.parametrize(
    ("given", "held"),
    [
        *[(3, 3), (20, 20), (8, 8), (1, 3), (0, 3), (-5, 3), (21, 20), (10**9, 20)],
        *[("5", 5), ("x", 8), ("", 8), (None, 8), ([5], 8)],
        *[(4.9, 4), (True, 3), (float("inf"), 8), (float("nan"), 8)],
    ],
)
def test_top_k_is_held_to_3_to_20_and_is_8_where_it_is_no_number(given: object, held: int) -> None:
    assert clamp(given) == held
    sections = ["now"] + [f"cat w{t}" for t in range(30)]
    assert len(_index(sections).search("cat", given, "q", 0)) == held


def _long(*rare: str) -> str:
    """A section of three windows in enhanced, each with the word `needle` and hardly a word in common."""
    parts = [_numbered(1000 * i, 1000 * i + 399) + " needle" for i in range(3)]
    return " ".join([*parts, *rare])


def test_enhanced_takes_at_most_two_windows_of_a_section_as_long_as_others_are_left() -> None:
    index = _index([_long(), "now", "cat", "elk"])
    assert index.sections == (0, 0, 0, 1, 2, 3)
    assert index.search("needle", 3, "q", 1)[2] == "cat"
    assert index.search("needle", 4, "q", 1)[2:] == ["cat", "elk"]


def test_enhanced_fills_up_from_the_ranking_without_these_rules() -> None:
    index = _index([_long(), "now"])
    found = index.search("needle", 3, "q", 1)
    assert sorted(found) == sorted(index.texts[:3])
    ranked = sorted(range(3), key=lambda i: (-_okapi([terms(text) for text in index.texts], ["needle"])[i], i))
    assert found == [index.texts[i] for i in ranked]


def test_enhanced_skips_what_is_nearly_the_same_and_fills_up_with_it_last() -> None:
    alike = [_numbered(0, 50) + f" needle x{t}" for t in range(2)]  # 51 of 53 terms shared
    index = _index([*alike, "now", "cat"])
    assert index.search("needle", 3, "q", 2) == [alike[0], "cat", alike[1]]


def test_enhanced_keeps_a_window_that_shares_exactly_four_fifths() -> None:
    index = _index(["needle a b c d", "needle a b c", "now", "cat", "elk"])
    assert index.search("needle", 3, "q", 2) == ["needle a b c", "needle a b c d", "cat"]


def test_enhanced_never_shows_the_same_text_twice_while_filling_up() -> None:
    assert _index(["needle a", "needle a", "cat", "now"]).search("needle", 8, "q", 3) == ["needle a", "cat"]


def test_enhanced_looks_for_variety_among_the_best_40_or_six_times_top_k() -> None:
    alike = [_numbered(0, 60) + f" needle x{t}" for t in range(45)]
    index = _index([*alike, "now", *(f"cat{t}" for t in range(45))])
    # Among the best 40 all but the first are near repetitions; the fill then follows the ranking.
    assert index.search("needle", 3, "q", 45) == alike[:3]
    assert index.search("needle", 6, "q", 45) == alike[:6]
    # Of the best 48 the last three are others.
    assert index.search("needle", 8, "q", 45) == [alike[0], "cat0", "cat1", *alike[1:6]]


@pytest.mark.parametrize(("alike", "varied"), [(39, True), (40, False)])
def test_the_fortieth_window_is_the_last_that_variety_is_looked_for_in(alike: int, varied: bool) -> None:
    same = [_numbered(0, 60) + f" needle x{t}" for t in range(alike)]
    index = _index([*same, *(f"cat{t}" for t in range(45)), "now"])
    assert index.search("needle", 3, "q", alike + 45) == ([same[0], "cat0", same[1]] if varied else same[:3])


def test_windows_without_any_term_neither_break_nor_score() -> None:
    assert _index(["-- ??", "!!", "**"]).search("cat", 3, "q", 0) == ["!!", "**"]
    assert _index(["now"]).search("cat", 3, "q", 0) == []
    assert _index(["", ""], "legacy").search("cat", 3, "q", 0) == []
