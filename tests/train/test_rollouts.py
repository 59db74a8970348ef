"""Rollouts run in step, and every rank makes as many sampler calls as the busiest one."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from hypothesis import given
from hypothesis import strategies as st
from treeagent.data.rollout import Reply, Request
from treeagent.train.rollouts import in_step


def asks(name: str, times: int) -> Generator[Request, Reply, str]:
    """Asks `name0`, `name1`, ... and returns all replies joined."""
    heard = []
    for turn in range(times):
        reply = yield Request("memory", ({"role": "user", "content": f"{name}{turn}"},), 8)
        heard.append(reply.text)
    return "".join(heard)


class Echo:
    """A sampler that repeats the question and remembers how it was called."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def __call__(self, requests: Sequence[Request]) -> list[Reply]:
        self.sizes.append(len(requests))
        return [Reply(request.messages[0]["content"]) for request in requests]


lengths = st.lists(st.integers(0, 5), max_size=6)


@given(lengths, st.integers(0, 4))
def test_every_rollout_hears_the_replies_to_its_own_questions(times: list[int], batch_size: int) -> None:
    made = in_step([asks(f"<{i}>", n) for i, n in enumerate(times)], Echo(), batch_size=batch_size)
    assert made == ["".join(f"<{i}>{turn}" for turn in range(n)) for i, n in enumerate(times)]


@given(lengths)
def test_a_turn_asks_for_all_open_rollouts_at_once(times: list[int]) -> None:
    echo = Echo()
    in_step([asks("q", n) for n in times], echo)
    assert echo.sizes == [sum(n > turn for n in times) for turn in range(max(times, default=0))]


@given(lengths, lengths, st.integers(0, 4))
def test_ranks_make_equally_many_sampler_calls(mine: list[int], other: list[int], batch_size: int) -> None:
    """`most` is played for two ranks: in turn t a rank has as many open rollouts as have more than t calls."""

    def calls(own: list[int], theirs: list[int]) -> list[int]:
        turns = iter(range(100))

        def most(pending: int) -> int:
            turn = next(turns)
            return max(pending, sum(n > turn for n in theirs))

        echo = Echo()
        in_step([asks("q", n) for n in own], echo, most=most, batch_size=batch_size)
        return echo.sizes

    assert len(calls(mine, other)) == len(calls(other, mine))
    assert sum(calls(mine, other)) == sum(mine)
