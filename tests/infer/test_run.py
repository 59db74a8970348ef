"""Driving rollouts, in step and each on its own, and engines that follow a script."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections import defaultdict
from collections.abc import Generator, Sequence
from concurrent.futures import Future
from typing import Any

import pytest
from treeagent.data.rollout import Reply, Request
from treeagent.errors import ModelError
from treeagent.infer.engines import Background, Sampling
from treeagent.infer.engines.scripted import Scripted
from treeagent.infer.run import drive


def _ask(word: str, times: int) -> Generator[Request, Reply, list[str]]:
    heard = []
    for i in range(times):
        reply = yield Request("memory", ({"role": "user", "content": f"{word}{i}"},), 8)
        heard.append(reply.text)
    return heard


def _echo(request: Request) -> str:
    return request.messages[0]["content"].upper()


def test_each_rollout_hears_the_replies_to_its_own_requests() -> None:
    rollouts = [_ask("a", 3), _ask("b", 1), _ask("c", 2)]
    assert dict(drive(rollouts, Scripted(_echo), Sampling())) == {0: ["A0", "A1", "A2"], 1: ["B0"], 2: ["C0", "C1"]}


def test_a_rollout_is_handed_over_before_the_next_engine_call() -> None:
    engine = Scripted(_echo)
    driven = drive([_ask("a", 2), _ask("b", 1)], engine, Sampling())
    assert next(driven) == (1, ["B0"])
    assert len(engine.seen) == 2
    assert next(driven) == (0, ["A0", "A1"])
    assert len(engine.seen) == 3


def test_a_rollout_without_requests_needs_no_engine() -> None:
    assert list(drive([_ask("a", 0)], Scripted([]), Sampling())) == [(0, [])]
    assert list(drive([], Scripted([]), Sampling())) == []


def test_pending_requests_go_to_the_engine_together_in_order() -> None:
    calls: list[list[str]] = []

    class Recording(Scripted):
        def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Reply]:
            calls.append([request.messages[0]["content"] for request in requests])
            return super().generate(requests, sampling)

    list(drive([_ask("a", 2), _ask("b", 1), _ask("c", 2)], Recording(_echo), Sampling()))
    assert calls == [["a0", "b0", "c0"], ["a1", "c1"]]


def test_a_script_that_runs_out_says_so() -> None:
    with pytest.raises(ModelError, match="no reply left"):
        dict(drive([_ask("a", 2)], Scripted(["only one"]), Sampling()))


def test_rollouts_are_closed_when_the_engine_fails() -> None:
    rollout = _ask("a", 2)
    with pytest.raises(ModelError):
        dict(drive([rollout], Scripted([]), Sampling()))
    assert inspect.getgeneratorstate(rollout) == inspect.GEN_CLOSED


class Slots(Background):
    """Answers in any order the test likes: request by request, as the test lets them go."""

    def __init__(self) -> None:
        super().__init__()
        self.gates: dict[str, threading.Event] = defaultdict(threading.Event)
        self.most = self.now = 0

    async def answer(self, request: Request, sampling: Sampling) -> Reply:
        word = request.messages[0]["content"]
        self.now += 1
        self.most = max(self.most, self.now)
        if word == "fault":
            raise ModelError("no such model")
        await asyncio.to_thread(self.gates[word].wait, 30)
        self.now -= 1
        return Reply(word.upper())


def test_a_rollout_goes_on_while_another_waits_for_its_reply() -> None:
    with Slots() as engine:
        for word in ("b0", "b1", "b2"):
            engine.gates[word].set()
        driven = drive([_ask("a", 1), _ask("b", 3)], engine, Sampling())
        assert next(driven) == (1, ["B0", "B1", "B2"])
        engine.gates["a0"].set()
        assert list(driven) == [(0, ["A0"])]


def test_no_more_rollouts_are_under_way_than_asked_for() -> None:
    with Slots() as engine:
        for i in range(9):
            engine.gates[f"{i}0"].set()
        assert dict(drive([_ask(str(i), 1) for i in range(9)], engine, Sampling(), most=2)) == {
            i: [f"{i}0"] for i in range(9)
        }
        assert engine.most <= 2


def test_a_rollout_may_wait_for_something_else_without_asking_the_engine() -> None:
    document: Future[str] = Future()

    def reading() -> Generator[Request | Future[str], Any, str]:
        text = yield document
        reply = yield Request("answer", ({"role": "user", "content": text},), 8)
        return reply.text

    engine = Scripted(_echo)
    driven = drive([reading(), _ask("a", 0)], engine, Sampling())
    assert next(driven) == (1, [])
    document.set_result("cut")
    assert list(driven) == [(0, "CUT")]


def test_batches_wait_for_every_rollout_under_way() -> None:
    """What is in a batch must not depend on how fast documents are cut."""
    document: Future[str] = Future()
    batches: list[int] = []

    def reading() -> Generator[Request | Future[str], Any, list[str]]:
        yield document
        return (yield from _ask("late", 1))

    class Counting(Scripted):
        def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Reply]:
            batches.append(len(requests))
            return super().generate(requests, sampling)

    threading.Timer(0.05, document.set_result, ["cut"]).start()
    dict(drive([_ask("a", 2), reading()], Counting(_echo), Sampling()))
    assert batches == [2, 1]


def test_an_error_reaches_the_rollout_that_waits_and_ends_the_run() -> None:
    heard: list[str] = []

    def listening() -> Generator[Request, Reply, None]:
        try:
            yield Request("answer", ({"role": "user", "content": "fault"},), 8)
        except ModelError as error:
            heard.append(str(error))
            raise

    other = _ask("never", 1)
    with Slots() as engine:
        driven = drive([other, listening()], engine, Sampling())
        with pytest.raises(ModelError, match="no such model"):
            list(driven)
    assert heard == ["no such model"]
    assert inspect.getgeneratorstate(other) == inspect.GEN_CLOSED


def test_a_closed_engine_has_no_thread_left_and_cancels_what_waits() -> None:
    engine = Slots()
    future = engine.submit(Request("answer", ({"role": "user", "content": "x"},), 8), Sampling())
    engine.gates["x"].set()
    engine.close()
    engine.close()
    assert future.done()
    assert "Slots" not in {thread.name for thread in threading.enumerate()}


def test_thousands_of_rollouts_run_at_once() -> None:
    class Instant(Background):
        async def answer(self, request: Request, sampling: Sampling) -> Reply:
            return Reply(_echo(request))

    with Instant() as engine:
        done = dict(drive((_ask(f"r{i}.", 2) for i in range(2000)), engine, Sampling()))
    assert done == {i: [f"R{i}.0", f"R{i}.1"] for i in range(2000)}
