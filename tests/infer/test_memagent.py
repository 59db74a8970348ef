"""MemAgent as a generator: its calls, its prompts to the byte, what it keeps, what it flags."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from agent_play import play
from hypothesis import given
from hypothesis import strategies as st
from treeagent.errors import ConfigError
from treeagent.infer import agents
from treeagent.infer.agents import Outcome, Reply, Request
from treeagent.infer.agents.replies import after_think, after_think_unstripped, closed
from treeagent.infer.agents.templates import Template

Observers = Callable[[Sequence[str]], Any]


def _prompts(asked: Sequence[Request]) -> list[str]:
    return [request.messages[0]["content"] for request in asked]


def test_three_sections_make_three_memory_calls_and_one_answer_call(texts: Observers) -> None:
    observer = texts(["first", "second", "third"])
    replies = [Reply("m1"), Reply("m2"), Reply("m3"), Reply("Therefore, the answer is 7")]
    asked, outcome = play(agents.build("memagent", tokenizer=None), "  How many?\n", observer, replies)
    assert [request.kind for request in asked] == ["memory", "memory", "memory", "answer"]
    assert [request.section for request in asked] == [0, 1, 2, None]
    assert [request.max_tokens for request in asked] == [1024] * 4
    assert [request.limit for request in asked] == [32768] * 4
    assert all(len(request.messages) == 1 and request.messages[0]["role"] == "user" for request in asked)
    assert all(request.enable_thinking is None and request.think_tokens == 0 for request in asked)
    assert observer.committed == [(0, "m1", 0), (1, "m2", 0), (2, "m3", 0)]
    assert outcome == Outcome(
        "Therefore, the answer is 7", "m3", None, {"valid_interaction": True, "memory_complete": True}
    )


def test_the_reading_prompt_ends_in_the_released_skeleton(texts: Observers) -> None:
    asked, _ = play(agents.build("memagent", tokenizer=None), " Who? ", texts(["a", "b"]), [Reply("m 1\n")] * 3)
    blocks = (
        "\n\n<problem> \nWho?\n</problem>\n\n<memory>\n{}\n</memory>\n\n<section>\n{}\n</section>\n\nUpdated memory:\n"
    )
    assert _prompts(asked)[0].endswith(blocks.replace("{}", "No previous memory", 1).replace("{}", "a", 1))
    assert _prompts(asked)[1].endswith(blocks.replace("{}", "m 1\n", 1).replace("{}", "b", 1))
    before = [prompt.split("\n\n<problem> ")[0] for prompt in _prompts(asked)[:2]]
    assert before[0] == before[1]
    assert not set("<>{}") & set(before[0])


@pytest.mark.parametrize(
    ("answer_format", "asks_for", "not_for"),
    [
        ("the answer is", "Therefore, the answer is (insert answer here)", "boxed"),
        ("boxed", "\\boxed{}", "the answer is"),
    ],
)
def test_the_answer_prompt_ends_in_the_released_skeleton(
    texts: Observers, answer_format: str, asks_for: str, not_for: str
) -> None:
    agent = agents.build("memagent", tokenizer=None, answer_format=answer_format)
    asked, _ = play(agent, "Who?", texts(["a"]), [Reply("m")] * 2)
    prose, rest = _prompts(asked)[1].split("\n\n", 1)
    assert rest == "<problem> \nWho?\n</problem>\n\n<memory>\nm\n</memory>\n\nYour answer:\n"
    assert asks_for in prose
    assert not_for not in prose


def test_a_document_without_sections_is_answered_from_no_memory(texts: Observers) -> None:
    asked, outcome = play(agents.build("memagent", tokenizer=None), "Who?", texts([]), [Reply("nobody")])
    assert len(asked) == 1
    assert "<memory>\nNo previous memory\n</memory>" in _prompts(asked)[0]
    assert outcome.memory == "No previous memory"


def test_an_empty_memory_stays_empty_as_in_the_released_evaluation(texts: Observers) -> None:
    asked, _ = play(agents.build("memagent", tokenizer=None), "Who?", texts(["a", "b"]), [Reply("")] * 3)
    assert "<memory>\n\n</memory>" in _prompts(asked)[1]


@given(st.text(), st.text(), st.text())
def test_values_with_braces_and_place_names_are_shown_as_they_are(question: str, memory: str, section: str) -> None:
    template = Template("A {prompt} B {memory} C {chunk} \\boxed{} D")
    values = {"prompt": question, "memory": memory + "{chunk}", "chunk": section + "{prompt}{0}{"}
    shown = template.fill(**values)
    assert shown == f"A {question} B {memory}{{chunk}} C {section}{{prompt}}{{0}}{{ \\boxed{{}} D"


def test_a_template_is_filled_wholly_or_not_at_all() -> None:
    template = Template("{a} {b}")
    with pytest.raises(KeyError):
        template.fill(a="1")
    with pytest.raises(TypeError, match="no place for c"):
        template.fill(a="1", b="2", c="3")


def test_the_prompts_hash_tells_answer_formats_apart_and_ignores_limits() -> None:
    plain, boxed, capped = (
        agents.build("memagent", tokenizer=None, **options)
        for options in ({}, {"answer_format": "boxed"}, {"max_tokens": 48})
    )
    assert plain.prompts_hash == capped.prompts_hash != boxed.prompts_hash


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("plain  \n", "plain  \n"),
        ("<think>x</think>\n\n m \n", "m"),
        ("a</think>b</think> c", "c"),
        ("<think>never closed", "<think>never closed"),
        ("x</think>", ""),
    ],
)
def test_after_think_keeps_what_follows_the_last_close(text: str, kept: str) -> None:
    assert after_think(text) == kept
    assert after_think_unstripped(text).strip() == kept.strip()


def test_what_follows_the_thinking_can_be_had_as_it_stands() -> None:
    assert after_think_unstripped("<think>x</think> y </think>\n m \n") == "\n m \n"
    assert after_think_unstripped(" plain\n") == " plain\n"


def test_thinking_is_closed_when_nothing_is_left_open() -> None:
    assert closed(Reply("no thinking"))
    assert closed(Reply("<think>x</think> y"))
    assert not closed(Reply("<think>x"))
    assert not closed(Reply("<think>x</think> y <think>"))
    assert not closed(Reply("<think>x</think> y", forced_close=True))


@pytest.mark.parametrize(
    ("replies", "valid", "complete"),
    [
        ([Reply("m"), Reply("a")], True, True),
        ([Reply("m", "length"), Reply("a")], False, False),
        ([Reply("  "), Reply("a")], False, False),
        ([Reply("m"), Reply("a", "length")], False, True),
        ([Reply("m"), Reply("")], False, True),
        ([Reply("<think>m"), Reply("a")], True, False),
        ([Reply("<think>m</think>"), Reply("a")], False, False),
    ],
)
def test_flags_say_whether_replies_ended_and_memories_are_whole(
    texts: Observers, replies: list[Reply], valid: bool, complete: bool
) -> None:
    _, outcome = play(agents.build("memagent", tokenizer=None), "Who?", texts(["a"]), replies)
    assert outcome.flags == {"valid_interaction": valid, "memory_complete": complete}


def test_any_object_with_text_and_finish_is_a_reply(texts: Observers) -> None:
    class Said:
        text, finish = "<think>hm</think> forty", "stop"

    _, outcome = play(agents.build("memagent", tokenizer=None), "Who?", texts(["a"]), [Said(), Said()])
    assert outcome.answer_text == "forty"
    assert outcome.memory == "forty"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("memagnt", {}, "unknown agent 'memagnt'; did you mean memagent"),
        ("memagent", {"max_token": 3}, "unknown option 'max_token'; did you mean max_tokens"),
        ("memagent", {"max_tokens": 0}, "max_tokens = 0"),
        ("memagent", {"answer_format": "json"}, "answer_format = 'json'"),
    ],
)
def test_unknown_agents_and_options_are_refused_by_name(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        agents.build(name, tokenizer=None, **options)
