"""What holds for every agent: how it is built, what it may be given to read, and where the observation shows."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from agent_play import Watched, Words, play
from hypothesis import given
from hypothesis import strategies as st
from tokenizers_at_hand import trained
from treeagent.data.formats import parse
from treeagent.errors import ConfigError
from treeagent.infer import agents, observe
from treeagent.infer.agents import AGENTS, Outcome, Reply, Request
from treeagent.infer.agents.templates import NAMES_OF_PROMPTS

NAMES = ["memagent", "infmem", "memreread", "rememr1"]
COUNTING = ["infmem", "rememr1"]
DOCUMENT = json.dumps({"status": "ok", "records": [{"id": i, "place": f"town {i}"} for i in range(12)]}, indent=1)
SAID = (
    '<think>x</think> town 3. ✿FUNCTION✿: retrievesearch\n✿ARGS✿: {"query": "town 7", "top_k": 3}\n✿RESULT✿ '
    "<update>town 4</update><recall>town</recall> <query>Which town is last?</query>"
)
"""A reply that makes every agent do all that it can."""


def _build(name: str, **options: Any) -> agents.Agent:
    return agents.build(name, tokenizer=Words(), **options)


def test_the_four_agents_are_known_by_name() -> None:
    assert list(AGENTS) == list(NAMES_OF_PROMPTS) == NAMES
    assert [_build(name).name for name in NAMES] == NAMES


def test_limits_are_those_of_the_paper() -> None:
    assert [_build(name).request_limit for name in NAMES] == [32768, 32768, 40960, 40960]
    assert [_build(name).answer_format for name in NAMES] == ["the answer is", "the answer is", "boxed", "boxed"]


@pytest.mark.parametrize("name", NAMES)
def test_every_request_carries_the_limits_that_the_agent_has(name: str) -> None:
    asked, _ = play(_build(name, max_tokens=7, request_limit=999), "Q?", Watched(["a", "b"]), lambda _: Reply(SAID))
    assert {request.limit for request in asked} == {999}
    assert {request.max_tokens for request in asked if request.kind != "controller"} == {7}


@pytest.mark.parametrize("name", NAMES)
def test_options_are_checked_without_a_tokenizer(name: str) -> None:
    assert agents.build(name, tokenizer=None).name == name
    with pytest.raises(ConfigError, match=f"agent {name}: unknown option 'request_limits'; did you mean request_limit"):
        agents.build(name, tokenizer=None, request_limits=1)
    with pytest.raises(ConfigError, match=f"agent {name}: max_tokens = 0"):
        agents.build(name, tokenizer=None, max_tokens=0)


def test_an_unknown_agent_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="unknown agent 'memread'; did you mean memreread"):
        agents.build("memread", tokenizer=None)


@pytest.mark.parametrize("name", COUNTING)
def test_an_agent_that_compares_tokens_asks_for_its_tokenizer_at_the_first_step(name: str) -> None:
    run = agents.build(name, tokenizer=None).rollout("Q?", Watched(["a"]))
    with pytest.raises(ConfigError, match=f"agent {name}: reading needs the model's tokenizer"):
        next(run)


@pytest.mark.parametrize("name", COUNTING)
def test_anything_that_can_be_loaded_is_a_tokenizer(name: str, demo_tokenizer: str) -> None:
    for tokenizer in (demo_tokenizer, trained("gpt2"), trained("qwen2"), Words()):
        agent = agents.build(name, tokenizer=tokenizer)
        asked, _ = play(agent, "Q?", Watched(["a town", "b town", "c town"]), lambda _: Reply(SAID))
        assert "town" in asked[-2].messages[-1]["content"]


def test_tokenizers_are_no_option_and_make_no_difference_to_equality() -> None:
    assert agents.build("infmem", tokenizer=None) == agents.build("infmem", tokenizer=Words())
    assert "tokenizer" not in repr(agents.build("infmem", tokenizer=Words()))


@pytest.mark.parametrize("name", NAMES)
def test_one_agent_serves_rollouts_that_run_at_once(name: str) -> None:
    agent, texts = _build(name), ["a town", "b town"]
    alone = play(agent, "Q?", Watched(texts), lambda _: Reply(SAID))
    runs = [agent.rollout("Q?", Watched(texts)) for _ in range(2)]
    asked: list[list[Request]] = [[next(run)] for run in runs]
    ended: list[Outcome] = []
    while len(ended) < 2:
        for run, requests in zip(runs, asked, strict=True):
            try:
                requests.append(run.send(Reply(SAID)))
            except StopIteration as stop:
                ended.append(stop.value)
    assert asked == [alone[0]] * 2
    assert ended == [alone[1]] * 2


@pytest.mark.parametrize("name", NAMES)
def test_any_object_with_these_four_is_an_observer_and_with_these_two_a_reply(name: str) -> None:
    class Notes:
        n = 2

        def text(self, t: int) -> str:
            return f"text {t}"

        def observe(self, t: int, question: str, pass_id: int = 0) -> str:
            return f"shown {t}"

        def commit(self, t: int, memory: str, pass_id: int = 0) -> None:
            pass

    class Said:
        text, finish = SAID, "stop"

    said, outcome = play(_build(name), "Q?", Notes(), lambda _: Said())
    assert said == play(_build(name), "Q?", Notes(), lambda _: Reply(SAID))[0]
    assert set(outcome.flags) == {"valid_interaction", "memory_complete"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", [SAID, "", "STOP", "plain", "<think>", "\ufffd\x00"])
def test_both_flags_are_always_set(name: str, text: str) -> None:
    for finish in ("stop", "length"):
        _, outcome = play(_build(name), "Q?", Watched(["a", "b"]), lambda _, f=finish: Reply(text, f))
        assert {flag: type(value) for flag, value in outcome.flags.items()} == {
            "valid_interaction": bool,
            "memory_complete": bool,
        }


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_no_reply_breaks_an_agent(name: str, data: st.DataObject) -> None:
    tags = [
        "<think>",
        "</think>",
        "✿FUNCTION✿: retrievesearch",
        "\n✿ARGS✿: ",
        '{"query": ',
        '"a"}',
        "<query>",
        "</query>",
    ]
    tags += [
        "STOP",
        "<recall>",
        "</recall>",
        "<update>",
        "</update>",
        "{prompt}",
        "{",
        "}",
        " ",
        "\n",
        "long words",
        "✿",
    ]
    texts = st.lists(st.one_of(st.sampled_from(tags), st.text(max_size=3)), max_size=8).map("".join)
    asked, _ = play(_build(name), "Q?", Watched(["a", "{chunk}"]), lambda _: Reply(data.draw(texts)))
    assert all(isinstance(turn["content"], str) for request in asked for turn in request.messages)


# The observation.


class _Marked(Watched):
    """Shows one mark in place of each section."""

    mark = ""

    def observe(self, t: int, question: str, pass_id: int = 0) -> str:
        return self.mark


def _marked(mark: str) -> Watched:
    observer = _Marked(["a town", "b town", "c town"])
    observer.mark = mark
    return observer


@pytest.mark.parametrize("name", NAMES)
@given(first=st.text(), second=st.text())
def test_two_observations_differ_in_the_section_slot_and_nowhere_else(name: str, first: str, second: str) -> None:
    marks = [f"\x01{text}\x02" for text in (first, second)]
    prompts = []
    for mark in marks:
        asked, outcome = play(_build(name), "Q?", _marked(mark), lambda _: Reply(SAID))
        shown = [request.messages[-1]["content"].count(mark) for request in asked]
        assert shown == [int(request.kind == "memory") for request in asked]
        turns = [[turn["content"].replace(mark, "\x03") for turn in request.messages] for request in asked]
        prompts.append((turns, outcome))
    assert prompts[0] == prompts[1]


@pytest.mark.parametrize("name", NAMES)
def test_the_kinds_of_observation_change_the_section_slot_alone(name: str) -> None:
    document, tokenizer = parse(DOCUMENT, "json"), trained("gpt2")
    agent, left, with_spans = agents.build(name, tokenizer=tokenizer), [], []
    for kind in ("tree", "tree+path", "treeagent"):
        observer = observe.build(kind, document, tokenizer=tokenizer, budget=60)
        noted: list[str] = []
        asked, _ = play(agent, "Which town is last?", _watching(observer, noted), lambda _: Reply(SAID))
        rests, shown = [], iter(noted)
        for request in asked:
            text = request.messages[-1]["content"]
            if request.kind == "memory":
                slot = next(shown)
                assert text.count(slot) == 1
                text = text.replace(slot, "")
            rests.append(text)
        left.append(rests)
        with_spans.append(kind if any(observe.SPANS_LABEL in slot for slot in noted) else "")
    assert with_spans == ["", "", "treeagent"]
    assert left[0] == left[1] == left[2]


def _watching(observer: Any, shown: list[str]) -> Any:
    """The observer, with what it shows noted."""
    plain: Callable[..., str] = observer.observe

    def noting(t: int, question: str, pass_id: int = 0) -> str:
        shown.append(plain(t, question, pass_id))
        return shown[-1]

    observer.observe = noting
    return observer


def test_the_memory_of_an_earlier_section_shows_in_a_later_slot_in_its_own_pass_only() -> None:
    document, tokenizer = parse(DOCUMENT, "json"), trained("gpt2")
    observer = observe.build("treeagent", document, tokenizer=tokenizer, budget=60)
    passes = iter(["town one", "town two"])

    def reply(request: Request) -> Reply:
        if request.kind == "controller":
            return Reply("<query>Which town is last?</query>" if request.pass_id == 0 else "")
        return Reply(f"{next(passes)}." if request.section == 0 else "nothing")

    asked, _ = play(agents.build("memreread", tokenizer=None, max_rereads=1), "Which town?", observer, reply)
    slots = [
        (request.pass_id, request.messages[0]["content"].split("<section>\n")[1])
        for request in asked
        if request.kind == "memory" and request.section
    ]
    linked = [(k, "town one." in slot, "town two." in slot) for k, slot in slots if observe.SPANS_LABEL in slot]
    assert {each[1:] for each in linked if each[0] == 0} == {(True, False)}
    assert {each[1:] for each in linked if each[0] == 1} == {(False, True)}
