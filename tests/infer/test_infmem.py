"""InfMem as a generator: when it plans, searches, reads and stops; its prompts to the byte; what it reads in a plan."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from agent_play import Watched, Words, blocks, play, said
from hypothesis import given, settings
from hypothesis import strategies as st
from treeagent.errors import ConfigError
from treeagent.infer import agents
from treeagent.infer.agents import Reply, Request
from treeagent.infer.agents.infmem_protocol import ToolCall, history_text, parse_plan, parse_search

LETTERS = {"controller": "P", "memory": "W", "answer": "F"}
PLANS = {
    "S": "<think>enough</think>\n\nSTOP",
    "M": "<think>hm</think>\n\nlet us see",
    "C": '<think>x</think>\n\n✿FUNCTION✿: retrievesearch\n✿ARGS✿: {"query": "w7 w120", "top_k": 3}',
    "J": "<think>x</think>\n\n✿FUNCTION✿: retrievesearch\n✿ARGS✿: {not json",
    "O": '<think>x</think>\n\n✿FUNCTION✿: websearch\n✿ARGS✿: {"query": "abc"}',
    "E": "",
}
SIX = [" ".join(f"w{50 * t + i}" for i in range(50)) for t in range(6)]


def _infmem(**options: Any) -> agents.Agent:
    return agents.build("infmem", tokenizer=Words(), **options)


def _scripted(script: str) -> Callable[[Request], Reply]:
    """Plans by the letters of `script`; memories `m1`, `m2`, ...; the answer `done`."""
    plans, memories = iter(script), iter(range(1, 100))

    def reply(request: Request) -> Reply:
        if request.kind == "controller":
            return Reply(PLANS[next(plans)])
        return Reply("<think>t</think>\n\n" + (f"m{next(memories)}" if request.kind == "memory" else "done"))

    return reply


def _call(query: object, **others: object) -> str:
    return "✿FUNCTION✿: retrievesearch\n✿ARGS✿: " + json.dumps({"query": query, **others})


def _run(plans: Sequence[str], sections: Sequence[str] = SIX, **options: Any) -> list[Request]:
    """The requests of a rollout whose planner says `plans` and then nothing."""
    left = iter(plans)

    def reply(request: Request) -> Reply:
        return Reply(next(left, "") if request.kind == "controller" else "</think>m")

    return play(_infmem(**options), "Q?", Watched(sections), reply)[0]


@pytest.mark.parametrize(
    ("script", "trace", "step"),
    [
        ("SSSSSS", "PWPWPF", 3),
        ("MSSCCC", "PWPWPF", 3),
        ("SSMSSC", "PWPWPWPWPF", 5),
        ("ESSCCC", "PWPWPF", 3),
        ("SSCSSC", "PWPWPWPWPWPWF", None),
        ("SSOSSO", "PWPWPWPWPWPWF", None),
        ("MMMMMM", "PWPWPWPWPWPWF", None),
        ("SMSMSM", "PWPWPWPWPWPWF", None),
        ("CCCCCC", "PWPWPWPWPWPWF", None),
    ],
)
@pytest.mark.parametrize("bm25", ["enhanced", "legacy"])
def test_three_stops_in_a_row_end_the_reading_and_only_the_first_may_be_a_miss(
    script: str, trace: str, step: int | None, bm25: str
) -> None:
    observer = Watched(SIX)
    asked, outcome = play(_infmem(bm25=bm25), "Q?", observer, _scripted(script))
    assert "".join(LETTERS[request.kind] for request in asked) == trace
    assert outcome.stopped_at == (None if step is None else step - 1)
    read = trace.count("W")
    assert observer.committed == [(t, f"m{t + 1}", 0) for t in range(read)]
    assert [t for t, _, _ in observer.observed] == list(range(read))
    assert outcome.answer_text == "done"
    assert outcome.memory == f"m{read}"


@pytest.mark.parametrize(("early_stop", "trace"), [(1, "PF"), (2, "PWPF"), (4, "PWPWPWPF"), (7, "PW" * 6 + "F")])
def test_how_many_stops_end_the_reading_is_an_option(early_stop: int, trace: str) -> None:
    asked, _ = play(_infmem(early_stop=early_stop), "Q?", Watched(SIX), _scripted("SSSSSS"))
    assert "".join(LETTERS[request.kind] for request in asked) == trace


def test_stopped_before_anything_was_read_it_answers_from_no_memory() -> None:
    observer = Watched(SIX)
    asked, outcome = play(_infmem(early_stop=1), "Q?", observer, _scripted("S"))
    assert "<memory>\nNo previous memory\n</memory>" in said(asked[-1])
    assert outcome.stopped_at == 0
    assert observer.observed == []


def test_a_document_without_sections_is_answered_without_a_plan() -> None:
    asked, outcome = play(_infmem(), "Q?", Watched([]), _scripted(""))
    assert [request.kind for request in asked] == ["answer"]
    assert outcome.flags == {"valid_interaction": True, "memory_complete": True}


def test_every_call_thinks_for_1024_tokens_and_says_1024() -> None:
    asked, _ = play(_infmem(), "  Q?\n", Watched(SIX[:1]), _scripted("C"))
    assert [request.kind for request in asked] == ["controller", "memory", "answer"]
    assert [request.section for request in asked] == [0, 0, None]
    for request in asked:
        assert (request.think_tokens, request.max_tokens, request.enable_thinking) == (1024, 1024, True)
        assert (request.limit, request.pass_id) == (32768, 0)
    assert [[turn["role"] for turn in request.messages] for request in asked] == [
        ["system", "user"],
        ["user"],
        ["user"],
    ]
    assert all("Q?" in said(request) and "  Q?" not in said(request) for request in asked)


def test_thinking_can_be_turned_off() -> None:
    asked, outcome = play(_infmem(think_tokens=0), "Q?", Watched(SIX[:1]), [Reply("STOP"), Reply("m"), Reply("a")])
    assert {(request.think_tokens, request.enable_thinking) for request in asked} == {(0, False)}
    assert outcome.flags == {"valid_interaction": True, "memory_complete": True}


# Prompts.


def test_the_planner_sees_question_history_and_memory_in_the_released_skeleton() -> None:
    asked, _ = play(_infmem(), "Q?", Watched(SIX[:2]), _scripted("CC"))
    assert said(asked[0]).startswith("\n")
    assert blocks(asked[0], "ORIGINAL QUESTION:") == (
        "ORIGINAL QUESTION:\nQ?\n\n<retrieval_history>\n"
        "Current retrieval step: 1  Maximum allowed retrieval steps: 2\n\n</retrieval_history>\n\n\n\n"
        "CURRENT MEMORY:\nNo previous memory\n\n"
    )
    assert blocks(asked[2], "ORIGINAL QUESTION:") == (
        "ORIGINAL QUESTION:\nQ?\n\n<retrieval_history>\n"
        "Current retrieval step: 2  Maximum allowed retrieval steps: 2\nStep 1: query='w7 w120', top_k=3\n"
        "</retrieval_history>\n\n\n\nCURRENT MEMORY:\nm1\n\n"
    )
    assert "retrievesearch" in said(asked[0])
    assert "STOP" in said(asked[0])


def test_the_writer_sees_the_released_skeleton() -> None:
    asked, _ = play(_infmem(), "Q?", Watched(["first section", "second section"]), _scripted("SC"))
    assert blocks(asked[1], "<problem>") == (
        "<problem>\nQ?\n</problem>\n\n<retrieved_chunk>\n\n</retrieved_chunk>\n\n<recurrent_chunk>\nfirst section\n"
        "</recurrent_chunk>\n\n<memory>\nNo previous memory\n</memory>\n\n\nUpdated memory:\n"
    )
    assert blocks(asked[3], "<problem>") == (
        "<problem>\nQ?\n</problem>\n\n<retrieved_chunk>\n[Retrieved #1] first section\n</retrieved_chunk>\n\n"
        "<recurrent_chunk>\nsecond section\n</recurrent_chunk>\n\n<memory>\nm1\n</memory>\n\n\nUpdated memory:\n"
    )


def test_the_answer_prompt_is_that_of_memagent() -> None:
    asked, _ = play(_infmem(), "Q?", Watched(SIX[:1]), _scripted("S"))
    memagent, _ = play(agents.build("memagent", tokenizer=None), "Q?", Watched(SIX[:1]), [Reply("m1"), Reply("a")])
    assert said(asked[-1]) == said(memagent[-1])
    assert "Therefore, the answer is (insert answer here)" in said(asked[-1])
    assert _infmem().answer_format == "the answer is"


def test_the_system_message_is_that_of_the_function_call_format() -> None:
    asked, _ = play(_infmem(), "Q?", Watched(SIX[:1]), _scripted("S"))
    lines = asked[0].messages[0]["content"].split("\n")
    assert lines[:2] == ["# Tools", ""]
    assert lines[2].startswith("## ")
    assert lines[3:6] == ["", "### retrievesearch", ""]
    assert re.fullmatch(r"retrievesearch: \S.*\S Parameters: \{.*\} \S.*\S", lines[6])
    assert lines[7] == ""
    assert lines[8].startswith("## ")
    assert " N " in lines[8]
    markers = [line.split(" ")[0] for line in lines[9:]]
    pair = ["✿FUNCTION✿:", "✿ARGS✿:"]
    results = ["✿RESULT✿:", "✿RESULT✿:", "...", "✿RESULT✿:", "✿RETURN✿:"]
    assert markers == ["", *pair, *pair, "...", *pair, *results]
    assert "[retrievesearch]" in lines[10]


def test_the_schema_of_the_tool_is_the_released_one() -> None:
    asked, _ = play(_infmem(), "Q?", Watched(SIX[:1]), _scripted("S"))
    _, _, rest = asked[0].messages[0]["content"].partition("Parameters: ")
    schema, _ = json.JSONDecoder().raw_decode(rest)
    assert rest.startswith(json.dumps(schema, ensure_ascii=False) + " ")
    descriptions = [described.pop("description") for described in schema["properties"].values()]
    assert all(descriptions)
    assert "3-20" in descriptions[1]
    assert json.dumps(schema) == json.dumps(
        {
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "top_k": {"type": "integer", "minimum": 3, "maximum": 20, "default": 8},
            },
            "required": ["query"],
        }
    )


# The history.


def test_broken_arguments_fall_back_and_other_tools_leave_no_trace() -> None:
    asked, _ = play(_infmem(), "Q?", Watched(SIX), _scripted("CJOSSS"))
    plans, writes = asked[::2], asked[1::2]
    assert "<retrieved_chunk>\n[Retrieved #1] " in said(writes[0])
    assert "<retrieved_chunk>\n\n</retrieved_chunk>" in said(writes[2])
    assert (
        "<retrieval_history>\nCurrent retrieval step: 4  Maximum allowed retrieval steps: 6\n"
        "Step 1: query='w7 w120', top_k=3\nStep 2: query='Q?', top_k=8\n</retrieval_history>"
    ) in said(plans[3])


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ('{"query": "it\'s", "top_k": 50}', 'query="it\'s", top_k=50'),
        ('{"query": "a\\nb"}', "query='a\\nb', top_k=8"),
        ('{"top_k": 5}', "query='Q?', top_k=5"),
        ('{"query": null, "top_k": "5"}', "query=None, top_k=5"),
        ('{"query": ["a", 1], "top_k": null}', "query=['a', 1], top_k=None"),
        ('{"query": "a", "method": "bge", "top_k": 2.5}', "query='a', top_k=2.5"),
        ('["a"]', "query='Q?', top_k=8"),
        ('"a"', "query='Q?', top_k=8"),
        ("7", "query='Q?', top_k=8"),
        ("", "query='Q?', top_k=8"),
        ('```json\n{"query": "a"}\n```', "query='Q?', top_k=8"),
        ("[" * 100_000, "query='Q?', top_k=8"),
        ('{"query": "a", "top_k": ' + "9" * 5000 + "}", "query='Q?', top_k=8"),
    ],
)
def test_the_history_shows_what_the_call_holds_and_falls_back_where_it_is_no_object(arguments: str, shown: str) -> None:
    assert parse_search(ToolCall("retrievesearch", arguments), "Q?").shown == shown


def test_the_history_counts_searches_and_not_sections() -> None:
    two = [parse_search(ToolCall("retrievesearch", f'{{"query": "{q}"}}'), "Q?") for q in "ab"]
    assert history_text(4, 9, two) == (
        "Current retrieval step: 5  Maximum allowed retrieval steps: 9\n"
        "Step 1: query='a', top_k=8\nStep 2: query='b', top_k=8"
    )
    assert history_text(0, 1, []) == "Current retrieval step: 1  Maximum allowed retrieval steps: 1\n"


# Reading a plan.


FN = '✿FUNCTION✿: retrievesearch\n✿ARGS✿: {"query": "abc", "top_k": 5}'
ABC = ToolCall("retrievesearch", '{"query": "abc", "top_k": 5}')


@pytest.mark.parametrize(
    ("text", "calls", "stop"),
    [
        (f"<think>x</think>\n\n{FN}", [ABC], False),
        (f"<think>x</think>\n\n{FN}\n✿RESULT✿: blah", [ABC], False),
        (f"<think>x</think>\n\n{FN}\n✿RETURN✿: blah", [ABC], False),
        (f"<think>should I STOP? no</think>\n{FN}", [], True),
        ("NONSTOP", [], True),
        ("stop", [], False),
        ('<tool_call>{"name": "retrievesearch", "arguments": {"query": "abc"}}</tool_call>', [], False),
        ("", [], False),
        (
            '✿FUNCTION✿: retrievesearch\n✿ARGS✿: {"query": "abc"} and then some explanation',
            [ToolCall("retrievesearch", '{"query": "abc"}')],
            False,
        ),
        (f"<think>{FN}\n</think>", [ABC], False),
        (f"{FN}\n{FN}", [ABC, ABC], False),
        (f"{FN} ✿FUNCTION✿", [ABC], False),
        (f"{FN}\n✿ARGS✿: {{}}", [], False),
        ("✿FUNCTION✿: retrievesearch\n✿ARGS✿:", [], False),
        ("✿FUNCTION✿: f\n✿ARGS✿: ", [ToolCall("f", "")], False),
        ("✿FUNCTION✿:\n\n f \n \n✿ARGS✿:\n{}\n", [ToolCall("f", "{}")], False),
        ("✿FUNCTION✿: f ✿ARGS✿: {}", [ToolCall("f", "{}")], False),
        ("✿FUNCTION✿: two\nlines\n✿ARGS✿: {}", [], False),
        ("✿FUNCTION✿: ✿ARGS✿: {}", [ToolCall("", "{}")], False),
        ("✿FUNCTION✿:\n \n✿ARGS✿: {}", [ToolCall("", "{}")], False),
        ("✿FUNCTION✿:\n\n✿ARGS✿: {}", [], False),
        ("✿FUNCTION✿: f\n✿ARGS✿: ```json\n{}\n``` so", [ToolCall("f", "```json\n{}\n```")], False),
        ("✿FUNCTION✿: f\n✿ARGS✿: {never closed", [ToolCall("f", "{never closed")], False),
        ('✿FUNCTION✿: f\n✿ARGS✿: {"a": "✿"}', [], False),
    ],
)
def test_a_plan_is_read_as_the_released_evaluation_reads_it(text: str, calls: list[ToolCall], stop: bool) -> None:
    assert parse_plan(text) == (tuple(calls), stop)


# The expression of the release; it is cubic in runs of blanks, so that ours is written otherwise.
RELEASED = re.compile(r"✿FUNCTION✿:\s*([^\n]+)\s*✿ARGS✿:\s*([^✿]+?)(?=✿RESULT✿|✿RETURN✿|✿FUNCTION✿|$)", re.DOTALL)
PIECES = [
    "✿FUNCTION✿:",
    "✿ARGS✿:",
    "✿RESULT✿",
    "✿RETURN✿",
    "✿FUNCTION✿",
    "✿",
    " ",
    "  ",
    "\n",
    "\n\n",
    "f",
    "x y",
    "\t",
]


@settings(max_examples=1_000)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_calls_are_those_that_the_released_expression_finds(text: str) -> None:
    found = [(match[1].strip(), match[2].strip()) for match in RELEASED.finditer(text)]
    assert [(call.name, call.arguments) for call in parse_plan(text)[0]] == found


def test_reading_a_hostile_plan_takes_no_time() -> None:
    assert parse_plan("✿FUNCTION✿:" + " " * 20_000 + "\n" * 20_000) == ((), False)
    assert parse_plan("✿FUNCTION✿: f" + " " * 20_000 + "x" * 20_000) == ((), False)
    assert parse_plan("✿FUNCTION✿:" * 100_000) == ((), False)
    assert parse_plan("✿FUNCTION✿: f ✿ARGS✿:" * 50_000) == ((), False)
    assert parse_plan("✿FUNCTION✿: f ✿ARGS✿:✿\n" * 50_000 + FN)[0] == (ABC,)
    assert len(parse_plan("✿FUNCTION✿: f\n✿ARGS✿: {}\n" * 50_000)[0]) == 50_000
    assert parse_plan("✿FUNCTION✿: f\n✿ARGS✿: {" + " " * 100_000 + "✿") == ((), False)


# Searching.


def _retrieved(request: Request) -> str:
    return said(request).split("<retrieved_chunk>\n")[1].split("\n</retrieved_chunk>")[0]


def test_results_are_numbered_and_stand_a_blank_line_apart() -> None:
    asked = _run([_call("cat", top_k=3)], ["now", "cat cat", "dog", "cat dog fox owl", "elk"])
    assert _retrieved(asked[1]) == "[Retrieved #1] cat cat\n\n[Retrieved #2] cat dog fox owl\n\n[Retrieved #3] dog"


def test_of_several_calls_the_last_fills_the_block_and_all_enter_the_history() -> None:
    plan = "\n".join([_call("cat", top_k=3), _call("owl", top_k=4)])
    asked = _run([plan], ["now", "cat", "owl", "fox", "elk"])
    assert _retrieved(asked[1]).startswith("[Retrieved #1] owl\n\n[Retrieved #2] cat")
    assert _retrieved(asked[1]).count("[Retrieved #") == 4
    assert "Step 1: query='cat', top_k=3\nStep 2: query='owl', top_k=4\n" in said(asked[2])


def test_a_later_call_that_finds_nothing_empties_the_block_and_one_of_another_tool_leaves_it() -> None:
    sections = ["now", "cat", "owl"]
    other = '✿FUNCTION✿: other\n✿ARGS✿: {"query": "owl"}'
    assert _retrieved(_run([f"{_call('cat')}\n{_call('?!')}"], sections)[1]) == ""
    assert _retrieved(_run([f"{_call('cat')}\n{other}"], sections)[1]).startswith("[Retrieved #1] cat")


def test_unread_sections_are_searched_and_the_next_block_starts_empty() -> None:
    asked = _run([_call("owl")], ["now", "cat", "owl"])
    assert _retrieved(asked[1]).startswith("[Retrieved #1] owl")
    assert _retrieved(asked[3]) == ""


def test_a_stop_below_the_limit_reads_the_section_without_searching() -> None:
    asked = _run([f"{_call('owl')}\nSTOP"], ["now", "owl"])
    assert _retrieved(asked[1]) == ""
    assert "<recurrent_chunk>\nnow\n" in said(asked[1])


def test_the_text_of_sections_is_searched_and_not_what_their_slot_shows() -> None:
    class Shown(Watched):
        def observe(self, t: int, question: str, pass_id: int = 0) -> str:
            return f"$.path[{t}]\n{super().observe(t, question, pass_id)}"

    asked, _ = play(_infmem(), "Q?", Shown(["now", "cat"]), [Reply(_call("cat")), *[Reply("</think>m")] * 4])
    assert _retrieved(asked[1]) == "[Retrieved #1] cat"
    assert "<recurrent_chunk>\n$.path[0]\nnow\n</recurrent_chunk>" in said(asked[1])


def test_nothing_is_indexed_before_the_first_search_and_then_once() -> None:
    idle, busy = Watched(SIX), Watched(SIX)
    play(_infmem(), "Q?", idle, _scripted("MMMMMM"))
    play(_infmem(), "Q?", busy, _scripted("MCCJCC"))
    assert idle.taken == []
    assert busy.taken == list(range(6))


def test_observers_that_share_what_is_derived_share_the_index() -> None:
    class Sharing(Watched):
        shared: dict[Any, Any]

    shared: dict[Any, Any] = {"mine": 1}
    observers = [Sharing(SIX) for _ in range(3)]
    prompts = []
    for observer, bm25 in zip(observers, ["enhanced", "enhanced", "legacy"], strict=True):
        observer.shared = shared
        prompts.append([said(r) for r in play(_infmem(bm25=bm25), "Q?", observer, _scripted("CCCCCC"))[0]])
    assert [len(observer.taken) for observer in observers] == [6, 0, 6]
    assert prompts[0] == prompts[1] == [said(r) for r in play(_infmem(), "Q?", Watched(SIX), _scripted("CCCCCC"))[0]]
    assert shared["mine"] == 1


# Memory and flags.


@pytest.mark.parametrize(
    ("text", "memory"),
    [
        ("<think>x</think>\n\n m \n", "m"),
        ("<think>x</think> a </think> b", "b"),
        ("<think>cut", "<think>cut"),
        ("  plain \n", "  plain \n"),
        ("<think>x</think>", ""),
        ("", ""),
    ],
)
def test_whatever_follows_the_thinking_becomes_the_memory(text: str, memory: str) -> None:
    observer = Watched(["a"])
    asked, outcome = play(_infmem(), "Q?", observer, [Reply("STOP"), Reply(text), Reply("</think> 7 ")])
    assert observer.committed == [(0, memory, 0)]
    assert outcome.memory == memory
    assert f"<memory>\n{memory}\n</memory>" in said(asked[-1])
    assert outcome.answer_text == "7"


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        (Reply("<think>x</think> new"), "new"),
        (Reply("<think>x\n</think>\n\nnew", forced_close=True), "old"),
        (Reply("<think>cut", "length"), "old"),
        (Reply("new"), "old"),
    ],
)
def test_as_in_released_training_unclosed_thinking_may_leave_the_old_memory(reply: Reply, kept: str) -> None:
    replies = [Reply("STOP"), Reply("</think>old"), Reply("STOP"), reply, Reply("</think>a")]
    observer = Watched(["a", "b"])
    _, outcome = play(_infmem(keep_memory_if_unclosed=True), "Q?", observer, replies)
    assert outcome.memory == kept
    assert observer.committed[-1] == (1, kept, 0)


@pytest.mark.parametrize(
    ("plan", "valid"),
    [
        (PLANS["S"], True),
        (PLANS["C"], True),
        (_call("a"), True),
        (_call("a", top_k=99), True),
        (f"{_call('a')}\n{_call('b')}", True),
        (PLANS["M"], False),
        (PLANS["J"], False),
        (PLANS["O"], False),
        (PLANS["E"], False),
        (_call(None), False),
        (_call(" "), False),
        (_call("a", top_k="5"), False),
        (_call("a", top_k=True), False),
        ('✿FUNCTION✿: retrievesearch\n✿ARGS✿: {"top_k": 5}', False),
        (f"{_call('a')}\n{PLANS['J']}", False),
        (f"{_call('a')}\n{PLANS['O']}", False),
    ],
)
def test_an_interaction_is_valid_if_every_plan_is_stop_or_a_well_formed_call(plan: str, valid: bool) -> None:
    replies = [Reply(plan), Reply("</think>m"), Reply("</think>a")]
    _, outcome = play(_infmem(), "Q?", Watched(["a"]), replies)
    assert outcome.flags == {"valid_interaction": valid, "memory_complete": True}


def test_the_plan_that_ends_the_reading_counts_for_validity_too() -> None:
    _, outcome = play(_infmem(early_stop=1), "Q?", Watched(["a"]), [Reply("hm"), Reply("</think>a")])
    assert outcome.stopped_at == 0
    assert outcome.flags == {"valid_interaction": False, "memory_complete": True}


@pytest.mark.parametrize(
    ("reply", "complete"),
    [
        (Reply("<think>x</think> m"), True),
        (Reply("x</think> m"), True),
        (Reply("<think>x\n</think>\n\nm", forced_close=True), False),
        (Reply("<think>x</think> m", "length"), False),
        (Reply("<think>x</think> "), False),
        (Reply("m"), False),
        (Reply("<think>m"), False),
    ],
)
def test_memory_is_complete_if_the_model_closed_its_thinking_and_ended_by_itself(reply: Reply, complete: bool) -> None:
    replies = [Reply("STOP"), reply, Reply("STOP"), Reply("</think>m"), Reply("a", "length")]
    _, outcome = play(_infmem(), "Q?", Watched(["a", "b"]), replies)
    assert outcome.flags == {"valid_interaction": True, "memory_complete": complete}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bm25": "bge"}, "agent infmem: bm25 = 'bge'"),
        ({"early_stop": 0}, "agent infmem: early_stop = 0"),
        ({"early_stop": True}, "agent infmem: early_stop = True: input should be no switch"),
        ({"name": "memagent"}, "unknown option 'name'"),
        ({"think_tokens": -1}, "agent infmem: think_tokens = -1"),
        ({"early_stops": 1}, "unknown option 'early_stops'; did you mean early_stop"),
        ({"answer_format": "boxed"}, "unknown option 'answer_format'"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        _infmem(**options)
