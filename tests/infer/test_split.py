"""Long strings are cut at legal places, near natural ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tokenizers_at_hand import trained
from treeagent.data.formats import parse
from treeagent.data.tokens import load_tokenizer
from treeagent.infer.split import FILL, split_text

PIECES = st.lists(
    st.sampled_from(
        ["word", " ", ". ", "? ", "\\n", "\\u00e9", "\\ud83d\\ude00", "\\\\", '\\"', "é", "東京", "aaaaaaaaaaaa", "7"]
    ),
    min_size=1,
    max_size=80,
)


@given(pieces=PIECES, budget=st.integers(1, 30))
def test_spans_tile_the_text_within_the_budget_and_cut_no_unit(pieces: list[str], budget: int) -> None:
    text = '"' + "".join(pieces) + '"'
    document = parse(text, "json")
    leaf = document.leaf_text(document.root)
    loaded = load_tokenizer(trained("qwen2"))
    spans = split_text(leaf, loaded.measure(text), budget)
    assert [s for s, _ in spans] == [leaf.start, *(e for _, e in spans[:-1])]
    assert spans[-1][1] == leaf.end
    units = list(zip(leaf.unit_starts, leaf.unit_ends, strict=True))
    for start, end in spans:
        assert not any(s < start < e or s < end < e for s, e in units)
        single = end - start == 1 or (start, end) in units
        assert loaded.count(text[start:end]) <= budget or single


def test_a_sentence_end_that_fills_the_budget_is_preferred_to_a_blank_and_a_blank_to_neither() -> None:
    loaded = load_tokenizer(trained("gpt2"))
    prose = "alpha beta gamma alpha. " * 60
    text = f'"{prose}"'
    document = parse(text, "json")
    spans = split_text(document.leaf_text(document.root), loaded.measure(text), 40)
    assert all(text[s:e].endswith(". ") for s, e in spans)
    words = '"' + "alpha beta gamma " * 60 + '"'
    document = parse(words, "json")
    spans = split_text(document.leaf_text(document.root), loaded.measure(words), 40)
    assert all(words[s:e].endswith(" ") for s, e in spans)
    assert all(loaded.count(words[s:e]) >= FILL * 40 for s, e in spans[:-1])


def test_a_text_without_any_blank_is_filled_to_the_budget() -> None:
    loaded = load_tokenizer(trained("gpt2"))
    text = '"' + "0123456789" * 300 + '"'
    document = parse(text, "json")
    spans = split_text(document.leaf_text(document.root), loaded.measure(text), 50)
    assert all(loaded.count(text[s:e]) == 50 for s, e in spans[:-1])


def test_a_rest_that_fits_is_not_cut_at_a_sentence_end_inside_it() -> None:
    loaded = load_tokenizer(trained("gpt2"))
    text = '"' + "alpha beta gamma alpha. " * 60 + 'alpha beta"'
    document = parse(text, "json")
    leaf, counts = document.leaf_text(document.root), loaded.measure(text)
    for budget in range(20, 80):
        spans = split_text(leaf, counts, budget)
        assert all(counts.count(start, leaf.end) > budget for start, _ in spans[:-1])
