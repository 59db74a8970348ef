"""Span retrieval (Appendix A.3), against scores worked out by hand."""

from __future__ import annotations

from collections import Counter

from tokenizers_at_hand import trained
from treeagent.data.tokens import Tokenizer, load_tokenizer
from treeagent.infer.spans import SPAN_TOKENS, cut_to, overlap, retrieve, split_spans, terms


def tokenizer() -> Tokenizer:
    return load_tokenizer(trained("gpt2"))


def test_terms_split_camel_case_and_underscores_and_drop_function_words() -> None:
    assert terms("The maxWindSpeed of HTTPServer is wind_speed 12") == Counter(
        {"max": 1, "wind": 2, "speed": 2, "http": 1, "server": 1, "12": 1}
    )


def test_spans_are_lines_and_sentences() -> None:
    text = "One two. Three four!\nfive\r\n\n  six? seven。八。九"
    assert list(split_spans(text)) == ["One two.", "Three four!", "five", "six?", "seven。", "八。", "九"]


def test_a_score_counts_shared_occurrences_and_a_quarter_for_each_shared_term() -> None:
    question = terms("wind wind speed of Oslo")
    assert overlap(question, terms("wind wind wind in Oslo")) == 2 + 1 + 0.25 * 2
    assert overlap(question, terms("rain")) == 0


def test_the_best_four_come_first_and_ties_by_section_then_place() -> None:
    states = [(2, "Oslo speed. Oslo."), (5, "Oslo.\nnothing here\nOslo."), (7, "Oslo wind speed.")]
    found = retrieve("wind speed in Oslo", states, tokenizer())
    assert [(s.source, s.text) for s in found] == [
        (7, "Oslo wind speed."),
        (2, "Oslo speed."),
        (2, "Oslo."),
        (5, "Oslo."),
    ]
    assert [s.score for s in found] == [3.75, 2.5, 1.25, 1.25]


def test_equal_texts_of_several_states_are_kept_unless_told_otherwise() -> None:
    states = [(0, "Oslo."), (1, "Oslo."), (2, "Oslo city.")]
    assert [s.source for s in retrieve("Oslo", states, tokenizer())] == [0, 1, 2]
    assert [s.source for s in retrieve("Oslo", states, tokenizer(), dedup=True)] == [0, 2]


def test_nothing_shared_retrieves_nothing() -> None:
    assert retrieve("where is the", [(0, "where is the")], tokenizer()) == ()


def test_a_span_is_scored_whole_and_shown_up_to_its_limit() -> None:
    long = "alpha " * 300 + "Oslo"
    (span,) = retrieve("Oslo", [(0, long)], tokenizer())
    assert span.score == 1.25
    assert tokenizer().count(span.text) == SPAN_TOKENS
    assert long.startswith(span.text)


def test_a_cut_leaves_whole_characters() -> None:
    emoji = "😀🙃" * 100
    cut = cut_to(emoji, 10, tokenizer())
    assert emoji.startswith(cut)
    assert tokenizer().count(cut) <= 10 < tokenizer().count(emoji[: len(cut) + 1])


def test_half_a_character_in_a_memory_is_shown_as_it_stands() -> None:
    long = "Oslo \ud800 " * 100
    (span,) = retrieve("Oslo", [(0, long)], tokenizer())
    assert long.startswith(span.text)
    assert "\ud800" in span.text
    assert len(span.text) < len(long) - 100
