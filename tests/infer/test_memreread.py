"""MemReread as a generator: when it asks and rereads, its prompts to the byte, what it keeps and what it flags."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from agent_play import Watched, blocks, play, said
from treeagent.errors import ConfigError
from treeagent.infer import agents
from treeagent.infer.agents import Reply, Request
from treeagent.infer.agents.memreread import history_text, parse_query

LETTERS = {"memory": "R", "controller": "D", "sub_answer": "A", "answer": "A", "integrate": "I"}
TWO = ["first section", "second section"]


def _memreread(**options: Any) -> agents.Agent:
    return agents.build("memreread", tokenizer=None, **options)


def _asking(times: int) -> Callable[[Request], Reply]:
    """A controller that asks so many times, then is silent; everything else says its kind."""
    left = iter([f"<query>What is thing {k}?</query>" for k in range(1, times + 1)])
    return lambda request: Reply(next(left, "") if request.kind == "controller" else request.kind)


def _trace(asked: Sequence[Request]) -> str:
    return "".join(LETTERS[request.kind] for request in asked)


@pytest.mark.parametrize(
    ("nodes", "times", "trace"),
    [
        (4, 9, "RRDRRAIDRRAIDRRAIA"),
        (3, 9, "RRDRRAIDRRAIA"),
        (2, 9, "RRDRRAIA"),
        (5, 9, "RRDRRAIDRRAIDRRAIDRRAIA"),
        (1, 9, "RRA"),
        (4, 0, "RRDA"),
        (4, 1, "RRDRRAIDA"),
        (4, 2, "RRDRRAIDRRAIDA"),
    ],
)
def test_it_rereads_once_less_than_the_release_counts_nodes(nodes: int, times: int, trace: str) -> None:
    asked, outcome = play(_memreread(max_rereads=nodes - 1), "Q?", Watched(TWO), _asking(times))
    assert _trace(asked) == trace
    sections, rereads = 2, trace.count("I")
    assert len(asked) == sections + rereads * (1 + sections + 1 + 1) + (rereads < nodes - 1) + 1
    assert outcome.stopped_at is None


def test_three_rereads_are_the_default() -> None:
    assert _trace(play(_memreread(), "Q?", Watched(TWO), _asking(9))[0]) == "RRDRRAIDRRAIDRRAIA"


def test_requests_carry_the_released_limits_and_never_think() -> None:
    asked, _ = play(_memreread(), "Q?", Watched(TWO), _asking(9))
    for request in asked:
        assert request.max_tokens == (8192 if request.kind == "controller" else 1024)
        assert (request.think_tokens, request.enable_thinking, request.limit) == (0, False, 40960)
        assert [turn["role"] for turn in request.messages] == ["user"]
    assert [request.section for request in asked[:9]] == [0, 1, None, 0, 1, None, None, None, 0]
    assert [request.pass_id for request in asked] == [0, 0, 0, 1, 1, 1, 1, 0, 2, 2, 2, 2, 0, 3, 3, 3, 3, 0]


def test_each_pass_reads_everything_for_its_own_question_from_no_memory() -> None:
    observer = Watched(TWO)
    asked, _ = play(_memreread(), " Q? \n", observer, _asking(2))
    things = ["What is thing 1?", "What is thing 2?"]
    passes = [(0, " Q? \n"), (1, things[0]), (2, things[1])]
    assert observer.observed == [(t, question, k) for k, question in passes for t in (0, 1)]
    assert observer.committed == [(t, "memory", k) for k in range(3) for t in (0, 1)]
    reads = [request for request in asked if request.kind == "memory"]
    for k, question in passes:
        assert blocks(reads[2 * k], "<problem>").startswith(f"<problem> \n{question}\n</problem>\n\n")
        assert "<memory>\nNo previous memory\n</memory>" in said(reads[2 * k])
        assert "<memory>\nmemory\n</memory>" in said(reads[2 * k + 1])


# Prompts.


def test_the_reading_prompt_is_that_of_memagent() -> None:
    theirs, _ = play(agents.build("memagent", tokenizer=None), "Q?", Watched(TWO), [Reply("m")] * 3)
    ours, _ = play(_memreread(), "Q?", Watched(TWO), lambda r: Reply("" if r.kind == "controller" else "m"))
    assert list(map(said, ours[:2])) == list(map(said, theirs[:2]))


def test_the_answer_prompt_is_the_boxed_one_of_memagent() -> None:
    boxed = agents.build("memagent", tokenizer=None, answer_format="boxed")
    theirs, _ = play(boxed, "Q?", Watched(["a"]), [Reply("m")] * 2)
    ours, _ = play(_memreread(max_rereads=0), "Q?", Watched(["a"]), [Reply("m")] * 2)
    assert said(ours[-1]) == said(theirs[-1])
    assert "\\boxed{}" in said(ours[-1])
    assert _memreread().answer_format == "boxed"


def test_the_controller_sees_question_memory_and_history_in_the_released_skeleton() -> None:
    asked, _ = play(_memreread(), "Q?", Watched(TWO), _asking(2))
    first, second, third = (request for request in asked if request.kind == "controller")
    skeleton = ":\n<question>\nQ?\n</question>\n\n<memory>\n{}\n</memory>\n\n<query_history>\n{}\n</query_history>\n\n"
    assert said(first).endswith(skeleton.format("memory", "NO HISTORY"))
    line = "<query>What is thing {}?</query> <result>sub_answer</result>"
    assert said(second).endswith(skeleton.format("integrate", line.format(1)))
    assert said(third).endswith(skeleton.format("integrate", f"{line.format(1)}\n{line.format(2)}"))
    prose = said(first).split("\n<question>\n")[0]
    assert {"<query>", "</query>", "<confirmed>...</confirmed>"} <= set(re.findall(r"</?query>|<c.*?</c\w+>", prose))


def test_the_sub_answer_is_asked_of_the_sub_memory_alone() -> None:
    replies = ["m", "<query>What is X?</query>", "sub m\n", "X is 3", "merged", "", "\\boxed{3}"]
    asked, outcome = play(_memreread(), "Q?", Watched(["a"]), [Reply(text) for text in replies])
    assert blocks(asked[3], "<problem>") == (
        "<problem> \nWhat is X?\n</problem>\n\n<memory>\nsub m\n\n</memory>\n\nYour answer:\n"
    )
    assert outcome.answer_text == "\\boxed{3}"
    assert outcome.memory == "merged"


def test_the_integration_sees_the_reference_in_the_released_skeleton_and_not_the_sub_memory() -> None:
    replies = ["m", "<query>What is X?</query>", "hidden", " X is 3\n", "merged", "", "\\boxed{3}"]
    asked, _ = play(_memreread(), "Q?", Watched(["a"]), [Reply(text) for text in replies])
    assert blocks(asked[4], "<question>\n") == (
        "<question>\nQ?\n</question>\n\n<memory>\nm\n</memory>\n\n<reference>\n<subquestion>\nWhat is X?\n"
        "</subquestion>\n<subanswer>\n X is 3\n\n</subanswer>\n</reference>\n\nUpdated memory:\n"
    )
    assert "hidden" not in said(asked[4])
    assert "<confirmed>...</confirmed>" in said(asked[4])
    assert "<query>What is X?</query> <result> X is 3\n</result>\n</query_history>" in said(asked[5])


def test_nothing_is_stripped_and_only_memories_lose_their_thinking() -> None:
    think = "<think>\n\n</think>\n\n"
    replies = ["m\n", f"{think}<query>What is X?</query>", f"{think}s \n", f"{think}3", f"{think}n \n", "", f"{think}a"]
    observer = Watched(["a"])
    asked, outcome = play(_memreread(), "Q?", observer, [Reply(text) for text in replies])
    assert "<memory>\nm\n\n</memory>" in said(asked[1])
    assert observer.committed == [(0, "m\n", 0), (0, "\n\ns \n", 1)]
    assert "<memory>\n\n\ns \n\n</memory>" in said(asked[3])
    assert f"<subanswer>\n{think}3\n</subanswer>" in said(asked[4])
    assert "<memory>\n\n\nn \n\n</memory>" in said(asked[5])
    assert outcome.memory == "\n\nn \n"
    assert outcome.answer_text == "\n\na"


def test_an_empty_integration_wipes_the_memory_as_in_the_released_evaluation() -> None:
    replies = ["m", "<query>What is X?</query>", "s", "3", "", "", "a"]
    asked, outcome = play(_memreread(), "Q?", Watched(["a"]), [Reply(text) for text in replies])
    assert "<memory>\n\n</memory>" in said(asked[-1])
    assert outcome.memory == ""


# Reading the controller.


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("<query>What is X?</query>", "What is X?"),
        ("so: <query>{What is X?}</query> thus", "What is X?"),
        ("<query>{{What is X?}}</query>", "What is X?"),
        ("<query> {What is X?} </query>", "{What is X?}"),
        ("<query>{ What is X? }</query>", "What is X?"),
        ("<query>abc</query>", None),
        ("<query>abcde</query>", None),
        ("<query>  abcde  </query>", None),
        ("<query>abcdef</query>", "abcdef"),
        ("<query>never closed", None),
        ("never opened</query>", None),
        ("</query><query>", None),
        ("<query></query>", None),
        ("", None),
        ("The memory suffices.", None),
        ("<query>one\ntwo three</query>", "one\ntwo three"),
        ("<query>first one</query> or <query>second</query>", "first one</query> or <query>second"),
        ("<think><query>What is X?</query></think>", "What is X?"),
    ],
)
def test_a_query_is_read_as_the_released_evaluation_reads_it(text: str, query: str | None) -> None:
    assert parse_query(text) == query


def test_the_history_has_one_line_for_each_pair() -> None:
    assert history_text([]) == "NO HISTORY"
    assert history_text([("q", "a")]) == "<query>q</query> <result>a</result>"


# Flags.


@pytest.mark.parametrize(
    ("controller", "valid"),
    [
        ("", True),
        ("  \n", True),
        ("<think>\n\n</think>\n\n", True),
        ("<query>What is X?</query>", True),
        ("A gap: <query>What is X?</query>", True),
        ("The memory suffices.", False),
        ("<query>abc</query>", False),
        ("<query>What is X?", False),
        ("<query>What is X?</query> <query>What is Y?</query>", False),
    ],
)
def test_an_interaction_is_valid_if_the_controller_is_silent_or_has_one_query(controller: str, valid: bool) -> None:
    def reply(request: Request) -> Reply:
        return Reply(controller if request.kind == "controller" else "x")

    _, outcome = play(_memreread(max_rereads=1), "Q?", Watched(["a"]), reply)
    assert outcome.flags == {"valid_interaction": valid, "memory_complete": True}


@pytest.mark.parametrize("broken", [Reply("m", "length"), Reply(" "), Reply("<think>m"), Reply("m", forced_close=True)])
@pytest.mark.parametrize("place", [0, 1, 3, 4, 6])
def test_memory_is_complete_if_every_memory_of_every_pass_is(broken: Reply, place: int) -> None:
    ask = Reply("<query>What is X?</query>")
    replies = [Reply("m"), Reply("m"), ask, Reply("m"), Reply("m"), Reply("a"), Reply("n"), Reply(""), Reply("a")]
    replies[place] = broken
    _, outcome = play(_memreread(), "Q?", Watched(TWO), replies)
    assert outcome.flags == {"valid_interaction": True, "memory_complete": False}


def test_answers_do_not_count_for_the_memory() -> None:
    ask = Reply("<query>What is X?</query>", "length")
    replies = [Reply("m"), ask, Reply("s"), Reply("", "length"), Reply("n"), Reply(""), Reply("", "length")]
    _, outcome = play(_memreread(), "Q?", Watched(["a"]), replies)
    assert outcome.flags == {"valid_interaction": True, "memory_complete": True}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_rereads": -1}, "agent memreread: max_rereads = -1"),
        ({"max_reread": 2}, "unknown option 'max_reread'; did you mean max_rereads"),
        ({"controller_tokens": 0}, "agent memreread: controller_tokens = 0"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        _memreread(**options)


def test_limits_are_options() -> None:
    agent = _memreread(max_tokens=16, controller_tokens=32, request_limit=512)
    asked, _ = play(agent, "Q?", Watched(["a"]), _asking(1))
    assert [request.max_tokens for request in asked] == [16, 32, 16, 16, 16, 32, 16]
    assert {request.limit for request in asked} == {512}
