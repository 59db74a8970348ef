"""Reading what servers say, choosing among servers, options: without any server."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from treeagent.config import load, to_yaml
from treeagent.errors import ConfigError
from treeagent.infer.engines import openai_wire
from treeagent.infer.engines.openai_http import Lanes, Server, retry_after
from treeagent.infer.engines.openai_wire import CallError
from treeagent.infer.engines.options import OpenAIOptions

NAMES = [
    *("choices", "message", "text", "content", "finish_reason", "usage", "prompt_tokens", "logprobs"),
    *("id", "data", "meta", "error", "reasoning"),
]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "stop", "length", "x", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=12,
)


@given(ANYTHING, ANYTHING)
def test_whatever_a_server_says_is_a_reply_or_a_call_error(answer: Any, choice: Any) -> None:
    for value in (answer, {"choices": [choice]}, {"choices": [{"message": choice, "logprobs": answer}]}):
        for read in (openai_wire.said, openai_wire.served):
            try:
                found = read(value)
            except CallError:
                continue
            if isinstance(found, openai_wire.Said):
                found.text.encode()
                assert found.finish in ("stop", "length")
        assert isinstance(openai_wire.message_of(value), str)


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("stop", "stop"), ("length", "length"), ("MAX_TOKENS", "length"), (None, "stop"), ("tool_calls", "stop")],
)
def test_an_end_is_a_stop_or_the_limit(reason: str | None, finish: str) -> None:
    answer = {"choices": [{"message": {"content": "x"}, "finish_reason": reason}]}
    assert openai_wire.said(answer).finish == finish


def test_an_empty_text_with_an_end_is_a_reply() -> None:
    for content in (None, ""):
        answer = {"choices": [{"message": {"content": content}, "finish_reason": "stop"}]}
        assert openai_wire.said(answer).text == ""


def test_half_a_character_is_replaced() -> None:
    answer = openai_wire.decoded(b'{"choices": [{"text": "a\\ud83d b \\ud83d\\ude00", "finish_reason": "stop"}]}')
    assert openai_wire.said(answer).text == "a\ufffd b \U0001f600"


@pytest.mark.parametrize(
    ("told", "ids", "logprobs"),
    [
        ({"content": [{"id": 5, "logprob": -1}, {"id": 6, "logprob": -2.5}]}, (5, 6), (-1.0, -2.5)),
        ({"token_logprobs": [-1.0, -2.5], "tokens": ["a", "b"]}, (), (-1.0, -2.5)),
        ({"content": [{"logprob": float("nan")}]}, (), None),
        ({"content": [{"id": 5, "logprob": None}]}, (5,), None),
        ({"content": [{"id": True, "logprob": 0.0}]}, (), (0.0,)),
        ({"content": [7, None]}, (), None),
        ({"token_logprobs": [-1.0, 10**400]}, (), None),
        (None, (), None),
    ],
)
def test_ids_and_logprobs_are_taken_only_if_all_of_them_are(
    told: Any, ids: tuple[int, ...], logprobs: tuple[float, ...] | None
) -> None:
    found = openai_wire.said({"choices": [{"text": "x", "finish_reason": "stop", "logprobs": told}]})
    assert (found.ids, found.logprobs) == (ids, logprobs)


def test_logprobs_that_are_not_one_for_each_id_are_dropped() -> None:
    choice = {"text": "x", "finish_reason": "stop", "token_ids": [1, 2, 3], "logprobs": {"token_logprobs": [-1.0]}}
    found = openai_wire.said({"choices": [choice | {"prompt_token_ids": [7, 8]}]})
    assert (found.prompt_ids, found.ids, found.logprobs) == ((7, 8), (1, 2, 3), None)


@given(st.text() | st.floats().map(str) | st.integers().map(str))
def test_no_header_makes_the_engine_wait_longer_than_two_minutes(text: str) -> None:
    assert 0 <= retry_after({"retry-after": text}, datetime(2030, 1, 1, tzinfo=UTC)) <= 120


def test_a_date_is_compared_with_our_clock_where_the_server_tells_no_date() -> None:
    headers = {"retry-after": "Tue, 01 Jan 2030 00:01:00 GMT"}
    assert retry_after(headers, datetime(2030, 1, 1, tzinfo=UTC)) == 60


# Several servers.


def servers(*names: str) -> list[Server]:
    return [Server(f"http://{name}/v1", key=None, timeout=1.0) for name in names]


def play(scene: Coroutine[Any, Any, None]) -> None:
    """Runs a scene; one that waits for what never comes fails."""
    asyncio.run(asyncio.wait_for(scene, 10))


def test_slots_go_to_the_emptiest_server_and_to_those_who_wait_longest() -> None:
    async def scene() -> None:
        a, b = servers("a", "b")
        lanes = Lanes([a, b], 2, lambda: 0.0)
        assert [await lanes.take() for _ in range(4)] == [a, b, a, b]
        waiting = [asyncio.ensure_future(lanes.take()) for _ in range(3)]
        await asyncio.sleep(0)
        lanes.give(b)
        lanes.give(a)
        await asyncio.sleep(0)
        assert [task.result() for task in waiting[:2]] == [b, a]
        assert not waiting[2].done()
        waiting[2].cancel()
        lanes.give(a)
        assert await lanes.take() is a

    play(scene())


def test_who_failed_at_a_server_goes_to_another_or_waits_for_it() -> None:
    async def scene() -> None:
        a, b = servers("a", "b")
        lanes = Lanes([a, b], 1, lambda: 0.0)
        assert await lanes.take({a}) is b
        avoiding, any_other = asyncio.ensure_future(lanes.take({a})), None
        await asyncio.sleep(0)
        assert not avoiding.done()
        any_other = asyncio.ensure_future(lanes.take())
        await asyncio.sleep(0)
        lanes.give(b)
        await asyncio.sleep(0)
        assert avoiding.result() is b
        await asyncio.sleep(0)
        assert any_other.result() is a
        lanes.give(a)
        assert await lanes.take({a, b}) is a  # it has failed everywhere

    play(scene())


def test_a_turn_that_is_cancelled_as_it_comes_goes_to_the_next() -> None:
    async def scene() -> None:
        (a,) = servers("a")
        lanes = Lanes([a], 1, lambda: 0.0)
        await lanes.take()
        waiting = [asyncio.ensure_future(lanes.take()) for _ in range(2)]
        await asyncio.sleep(0)
        lanes.give(a)
        waiting[0].cancel()
        assert await waiting[1] is a
        assert (waiting[0].cancelled(), a.under_way) == (True, 1)

    play(scene())


def test_who_avoids_what_is_free_keeps_the_place_in_line() -> None:
    async def scene() -> None:
        a, b = servers("a", "b")
        lanes = Lanes([a, b], 1, lambda: 0.0)
        assert [await lanes.take() for _ in range(2)] == [a, b]
        picky = [asyncio.ensure_future(lanes.take({a})) for _ in range(2)]
        await asyncio.sleep(0)
        lanes.give(a)
        lanes.give(b)
        assert await picky[0] is b
        lanes.give(b)
        assert await picky[1] is b

    play(scene())


def test_a_lost_server_rests_and_is_then_tried_by_one_request_at_a_time() -> None:
    async def scene() -> None:
        a, b = servers("a", "b")
        now = 100.0
        lanes = Lanes([a, b], 2, lambda: now)
        lanes.give(await lanes.take(), answered=False)
        assert [await lanes.take() for _ in range(2)] == [b, b]
        last = asyncio.ensure_future(lanes.take())
        await asyncio.sleep(0)
        assert not last.done()
        now = 200.0
        lanes.give(b)
        await asyncio.sleep(0)
        assert last.result() is b
        assert await lanes.take() is a  # on trial, after the others
        more = asyncio.ensure_future(lanes.take())
        await asyncio.sleep(0)
        assert not more.done()
        lanes.give(a, answered=True)
        assert await more is a
        assert await lanes.take() is a

    play(scene())


def test_when_all_servers_are_lost_none_rests() -> None:
    async def scene() -> None:
        (a,) = servers("a")
        lanes = Lanes([a], 2, lambda: 0.0)
        lanes.give(await lanes.take(), answered=False)
        assert [await lanes.take(), await lanes.take()] == [a, a]

    play(scene())


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.booleans()), max_size=60), st.integers(1, 3))
def test_no_server_ever_has_more_than_its_slots_and_none_is_lost(
    moves: list[tuple[int, bool, bool]], concurrency: int
) -> None:
    async def scene() -> None:
        pool = servers("a", "b", "c")
        lanes = Lanes(pool, concurrency, lambda: 0.0)
        tasks: list[asyncio.Future[Server]] = []
        for place, take, flag in moves:
            if take:
                tasks.append(asyncio.ensure_future(lanes.take(pool[:1] if flag else ())))
            elif tasks:
                task = tasks.pop(place % len(tasks))
                if task.done():
                    lanes.give(task.result(), answered=True)
                else:
                    task.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert all(0 <= server.under_way <= concurrency for server in pool)
        await asyncio.sleep(0)
        held = [task.result() for task in tasks if task.done()]
        assert sum(server.under_way for server in pool) == len(held)
        if len(held) < len(tasks):  # who waits finds every server that it would take full
            assert all(server.under_way == concurrency for server in pool[1:])
        for task in tasks:
            task.cancel()

    play(scene())


# Options.


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"base_url": ()}, "at least one"),
        ({"base_url": ("localhost:8000",)}, "no address"),
        ({"base_url": ("ftp://host/v1",)}, "no address"),
        ({"base_url": ("http://host/v1", "http://host/v1/")}, "named twice"),
        ({"base_url": ("http://me:secret@host/v1",)}, "no name, password"),
        ({"base_url": ("http://host/v1?key=secret",)}, "no name, password"),
        ({"base_url": ("http://[/v1",)}, "cannot be read"),
        ({"base_url": ("http://host:99999/v1",)}, "cannot be read"),
        ({"prompt_format": "ids"}, "does nothing with api chat"),
        ({"extra": {"model": "x"}}, "openai.extra.model"),
        ({"extra": {"stream": True}}, "openai.extra.stream"),
        ({"extra": {"x": float("nan")}}, "JSON"),
        ({"extra": {"x": datetime(2030, 1, 1, tzinfo=UTC)}}, "JSON"),
        ({"extra": {"chat_template_kwargs": {"enable_thinking": True}}}, "which agents set"),
        ({"extra": {"chat_template_kwargs": 7}}, "mapping"),
    ],
)
def test_wrong_options_are_refused_without_telling_secrets(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why) as refused:
        OpenAIOptions(**wrong)
    assert "secret" not in str(refused.value)


def test_options_are_written_as_they_are_read(tmp_path: Any) -> None:
    words = ["--base_url", "http://a/v1,http://b/v1", "--extra", "{repetition_penalty: 1.0}", "--omit", "seed"]
    options = load(OpenAIOptions, None, words)
    assert options.base_url == ("http://a/v1", "http://b/v1")
    (tmp_path / "recipe.yaml").write_text(to_yaml(options))
    assert load(OpenAIOptions, tmp_path / "recipe.yaml") == options
