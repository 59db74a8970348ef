"""Driving rollouts in lock-step, and engines that follow a script."""

from __future__ import annotations

import inspect
from collections.abc import Generator, Sequence

import pytest
from treeagent.data.rollout import Reply, Request
from treeagent.errors import ModelError
from treeagent.infer.engines import Sampling
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
