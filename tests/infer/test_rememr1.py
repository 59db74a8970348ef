"""ReMemR1 as a generator: its prompts to the byte, what it stores, what it recalls, what it flags."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from agent_play import Watched, Words, blocks, play, said
from hypothesis import given
from hypothesis import strategies as st
from tokenizers_at_hand import trained
from treeagent.data.tokens import Tokenizer, load_tokenizer
from treeagent.errors import ConfigError
from treeagent.infer import agents
from treeagent.infer.agents import Reply, Request
from treeagent.infer.agents.rememr1 import Memories, drop_recall, parse_recall, similarities, spelled

WORDS = load_tokenizer(Words())
THREE = ["first section", "second section", "third section"]


def _rememr1(**options: Any) -> agents.Agent:
    return agents.build("rememr1", tokenizer=Words(), **options)


def _recalled(request: Request) -> str:
    return said(request).split("<recalled_memory>\n")[1].split("\n</recalled_memory>")[0]


def recall(query: str, memories: Sequence[str], tokenizer: Tokenizer) -> str:
    """What a rollout with these memories recalls."""
    store = Memories(tokenizer)
    for memory in memories:
        store.add(memory)
    return store.recall(query)


def _memory(request: Request) -> str:
    return said(request).split("\n<memory>\n")[1].split("\n</memory>")[0]


def test_one_call_a_section_and_one_answer() -> None:
    observer = Watched(THREE)
    asked, outcome = play(
        _rememr1(), "  Q?\n", observer, [Reply("m1"), Reply(" m2 "), Reply("m3"), Reply("\\boxed{7}")]
    )
    assert [request.kind for request in asked] == ["memory"] * 3 + ["answer"]
    assert [request.section for request in asked] == [0, 1, 2, None]
    for request in asked:
        assert (request.max_tokens, request.think_tokens, request.enable_thinking) == (2048, 0, None)
        assert (request.limit, request.pass_id) == (40960, 0)
        assert [turn["role"] for turn in request.messages] == ["user"]
    assert observer.observed == [(0, "Q?", 0), (1, "Q?", 0), (2, "Q?", 0)]
    assert observer.committed == [(0, "m1", 0), (1, "m2", 0), (2, "m3", 0)]
    assert (outcome.answer_text, outcome.memory, outcome.stopped_at) == ("\\boxed{7}", "m3", None)
    assert _rememr1().answer_format == "boxed"


def test_prompts_have_the_released_skeletons() -> None:
    asked, _ = play(_rememr1(), "Q?", Watched(["a section"]), [Reply("m1"), Reply("a")])
    assert blocks(asked[0], "<problem>") == (
        "<problem> \nQ?\n</problem>\n\n<recalled_memory>\nNo memory was recalled.\n</recalled_memory>\n\n"
        "<memory>\nNo previous memory\n</memory>\n\n<section>\na section\n</section>\n\nUpdated memory:\n"
    )
    assert blocks(asked[1], "<problem>") == (
        "<problem> \nQ?\n</problem>\n\n<recalled_memory>\nNo memory was recalled.\n</recalled_memory>\n\n"
        "<memory>\nm1\n</memory>\n\nYour answer:\n"
    )
    asks_for = set(re.findall(r"</?\w+>", said(asked[0]).split("<problem>")[0]))
    assert asks_for == {f"<{end}{tag}>" for end in ("", "/") for tag in ("thinking", "update", "recall")}
    assert "\\boxed{}" in said(asked[1])


def test_a_recall_is_answered_in_the_next_call_and_the_new_memory_may_be_what_is_recalled() -> None:
    first = "<thinking>hm</thinking> <update>alpha</update>"
    replies = [f"{first} <recall>alpha</recall>", "<update>beta</update>", "<update>gamma</update>", "a"]
    asked, _ = play(_rememr1(), "Q?", Watched(THREE), [Reply(text) for text in replies])
    assert _recalled(asked[1]) == _memory(asked[1]) == first
    assert _recalled(asked[2]) == _recalled(asked[3]) == "No memory was recalled."


def test_a_recall_after_the_last_section_is_answered_in_the_answer_call() -> None:
    replies = ["alpha one", "beta two", "gamma <recall>alpha</recall>", "a"]
    asked, _ = play(_rememr1(), "Q?", Watched(THREE), [Reply(text) for text in replies])
    assert _recalled(asked[3]) == "alpha one"
    assert _memory(asked[3]) == "gamma"


def test_a_missing_or_unclosed_update_changes_nothing() -> None:
    observer = Watched(["a", "b"])
    play(_rememr1(), "Q?", observer, [Reply("no tags"), Reply("<thinking>t</thinking><update>cut"), Reply("a")])
    assert [memory for _, memory, _ in observer.committed] == ["no tags", "<thinking>t</thinking><update>cut"]


def test_an_empty_reply_wipes_the_memory_and_thinking_stays_in_it() -> None:
    asked, _ = play(
        _rememr1(), "Q?", Watched(["a", "b", "c"]), [Reply(""), Reply("<think>x</think>m"), *[Reply("a")] * 2]
    )
    assert _memory(asked[1]) == ""
    assert _memory(asked[2]) == "<think>x</think>m"


def test_the_answer_is_what_follows_any_thinking() -> None:
    _, outcome = play(_rememr1(), "Q?", Watched([]), [Reply("<think>\\boxed{1}</think> \\boxed{2}")])
    assert outcome.answer_text == "\\boxed{2}"
    assert outcome.memory == "No previous memory"


def test_where_no_memory_has_a_token_the_word_none_is_recalled_as_released() -> None:
    asked, _ = play(_rememr1(), "Q?", Watched(["a"]), [Reply("<recall>alpha</recall>"), Reply("a")])
    assert _memory(asked[1]) == ""
    assert _recalled(asked[1]) == "None"


def test_equal_memories_are_stored_once_where_they_first_came() -> None:
    replies = [
        "same x",
        "other y",
        "same x",
        "z <recall>nothing known</recall>",
        "same x <recall>unknown</recall>",
        "a",
    ]
    asked, _ = play(_rememr1(), "Q?", Watched("abcde"), [Reply(text) for text in replies])
    # Nothing is similar, so that the last stored wins: z, although `same x` came again after it.
    assert _recalled(asked[4]) == "z"
    assert _recalled(asked[5]) == "z"


# Parsing.


@pytest.mark.parametrize(
    ("text", "query", "memory"),
    [
        ("<update>a</update><recall>q1</recall>", "q1", "<update>a</update>"),
        ("<recall>q1</recall> x <recall>q2</recall>", "q1</recall> x <recall>q2", "x"),
        ("<recall>one\ntwo</recall> m", None, "m"),
        ("<recall></recall>", None, ""),
        ("<recall> q </recall>", " q ", ""),
        ("<recall>q1</recall>\n<recall>q2</recall>\nm", "q1", "m"),
        ("<recall>q\n</recall><recall>q2</recall>", "q2", ""),
        ("a <recall>never closed", None, "a <recall>never closed"),
        ("a </recall> b", None, "a </recall> b"),
        (" \n m \n", None, "m"),
        ("<thinking><recall>q</recall></thinking>m", "q", "<thinking></thinking>m"),
    ],
)
def test_a_reply_is_read_as_the_released_evaluation_reads_it(text: str, query: str | None, memory: str) -> None:
    assert parse_recall(text) == query
    assert drop_recall(text) == memory


@given(st.lists(st.sampled_from(["<recall>", "</recall>", "\n", "\r\n", " ", "q"]), max_size=12).map("".join))
def test_recalls_are_those_that_the_released_expressions_find(text: str) -> None:
    match = re.search(r"<recall>(.+)</recall>", text)
    assert parse_recall(text) == (match[1] if match else None)
    assert drop_recall(text) == re.sub(r"<recall>.*?</recall>", "", text, flags=re.DOTALL).strip()


@pytest.mark.parametrize("tag", ["<recall>", "<recall>\n", "</recall><recall>", "<update>", "<recall></recall>"])
def test_reading_a_hostile_reply_takes_no_time(tag: str) -> None:
    hostile = tag * 100_000
    _, outcome = play(_rememr1(), "Q?", Watched(["a section"]), [Reply(hostile), Reply("a")])
    assert outcome.memory == ("" if tag.endswith("</recall>") else drop_recall(hostile))
    assert not outcome.flags["valid_interaction"]


def test_half_a_character_is_kept_in_memory_and_recalled() -> None:
    replies = [Reply("one \ud800 <recall>\udfff one</recall>"), Reply("a")]
    agent = agents.build("rememr1", tokenizer=trained("gpt2"))
    asked, outcome = play(agent, "Q?", Watched(["a section"]), replies)
    assert _recalled(asked[1]) == outcome.memory == "one \ud800"


# Recalling.


def test_similarities_are_those_of_scikit_learn_as_released() -> None:
    corpus = ["alpha beta", "beta gamma gamma", "delta"]
    split = [memory.split() for memory in corpus]
    assert similarities(["gamma", "x"], split) == pytest.approx([0, 0.934702, 0], abs=1e-6)
    assert recall("gamma x", corpus, WORDS) == "beta gamma gamma"
    assert similarities(["zzz"], split) == [0, 0, 0]
    assert recall("zzz", corpus, WORDS) == "delta"


def _tfidf(query: Sequence[str], corpus: Sequence[Sequence[str]]) -> list[float]:
    """Cosines by their formula: raw counts, idf ln((1+n)/(1+df))+1, terms of the corpus only."""
    holding = Counter(term for document in corpus for term in set(document))
    idf = {term: math.log((1 + len(corpus)) / (1 + df)) + 1 for term, df in holding.items()}

    def vector(terms: Sequence[str]) -> dict[str, float]:
        counts = Counter(term for term in terms if term in idf)
        return {term: count * idf[term] for term, count in counts.items()}

    def norm(v: dict[str, float]) -> float:
        return math.sqrt(sum(x * x for x in v.values())) or 1.0

    asked = vector(query)
    found = [vector(document) for document in corpus]
    return [sum(asked.get(t, 0) * x for t, x in v.items()) / norm(v) / norm(asked) for v in found]


TEXTS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=5)


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=5))
def test_similarities_follow_the_formula(query: list[str], corpus: list[list[str]]) -> None:
    assert similarities(query, corpus) == pytest.approx(_tfidf(query, corpus), abs=1e-12)


def test_similarities_are_those_of_a_vectorizer_that_splits_texts_itself() -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.metrics.pairwise import cosine_similarity

    tokenizer = trained("gpt2")

    def released(text: str) -> list[str]:
        return [token.replace("Ġ", "") for token in tokenizer.encode(text.lower()).tokens]

    corpus, query = ["Word alpha  beta", "alpha\nALPHA gamma", "naïve città", "  "], "Alpha città"
    options: dict[str, Any] = {"tokenizer": released, "token_pattern": None}
    vectorizer = TfidfVectorizer(**options)
    matrix = vectorizer.fit_transform(corpus)
    ours = [spelled(text, load_tokenizer(tokenizer)) for text in [query, *corpus]]
    expected = cosine_similarity(vectorizer.transform([query]), matrix)[0]
    assert similarities(ours[0], ours[1:]) == pytest.approx(list(expected), abs=1e-12)


def test_the_last_of_equal_memories_is_recalled() -> None:
    assert recall("cat", ["cat one", "dog", "cat two", "owl"], WORDS) == "cat two"


def test_letters_are_compared_without_their_case() -> None:
    assert recall("CAT", ["Cat one", "dog"], WORDS) == "Cat one"


def test_memories_are_compared_by_the_tokens_of_the_model_without_the_mark_of_a_blank() -> None:
    tokenizer = trained("gpt2")
    assert any("Ġ" in token for token in tokenizer.encode("word alpha word").tokens)
    split = spelled("word alpha word", load_tokenizer(tokenizer))
    assert "".join(split) == "wordalphaword"
    assert split == [token.replace("Ġ", "") for token in tokenizer.encode("word alpha word").tokens]
    assert recall("alpha", ["beta beta", "word alpha", "gamma"], load_tokenizer(tokenizer)) == "word alpha"


def test_a_tokenizer_that_only_decodes_spells_its_tokens_too() -> None:
    assert spelled("cat dog", WORDS) == ["cat", "dog"]


# Flags and options.


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("<thinking>t</thinking><update>m</update>", True),
        ("<update>two\nlines</update>", True),
        ("<update>m</update><recall>q</recall>", True),
        ("m", False),
        ("<update>m", False),
        ("<update> </update>", False),
        ("</update>m<update>", False),
        ("<update>m</update><update>n</update>", False),
        ("<update>m</update><recall>q</recall><recall>r</recall>", False),
        ("<update>m</update><recall>one\ntwo</recall>", False),
        ("<update>m</update><recall></recall>", False),
        ("<update>m</update><recall>cut", False),
    ],
)
def test_an_interaction_is_valid_with_one_update_and_at_most_one_recall_a_step(text: str, valid: bool) -> None:
    replies = [Reply("<update>m</update>"), Reply(text), Reply("a", "length")]
    _, outcome = play(_rememr1(), "Q?", Watched(["a", "b"]), replies)
    assert outcome.flags == {"valid_interaction": valid, "memory_complete": True}


@pytest.mark.parametrize(
    ("reply", "complete"),
    [
        (Reply("m"), True),
        (Reply("m", "length"), False),
        (Reply(" "), False),
        (Reply("<recall>q</recall>"), False),
        (Reply("<think>m"), False),
        (Reply("<think>m</think>n"), True),
        (Reply("<thinking>m"), True),
    ],
)
def test_memory_is_complete_if_every_reply_ended_and_left_something(reply: Reply, complete: bool) -> None:
    _, outcome = play(_rememr1(), "Q?", Watched(["a", "b"]), [reply, Reply("m"), Reply("")])
    assert outcome.flags["memory_complete"] == complete


def test_the_released_evaluation_has_one_answer_format() -> None:
    with pytest.raises(ConfigError, match="unknown option 'answer_format'"):
        _rememr1(answer_format="boxed")
