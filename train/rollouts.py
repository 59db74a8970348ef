"""Many rollouts in step, by one batched sampler per rank.

Rollouts are generators that yield a `Request`, are sent a `Reply`, and return what they made. Each turn sends one
request of every open rollout. Sampling is collective across ranks (weights are gathered or synchronised inside it), so
every rank makes the same number of sampler calls: as many as the busiest rank needs, with an empty list where a rank
has nothing to ask.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

from ..data.rollout import Reply, Request

Made = TypeVar("Made")
Sample = Callable[[Sequence[Request]], Sequence[Reply]]


def in_step(
    rollouts: Sequence[Generator[Request, Reply, Made]],
    sample: Sample,
    *,
    most: Callable[[int], int] = int,
    batch_size: int = 0,
    on_turn: Callable[[int, int], None] = lambda turn, done: None,
) -> list[Made]:
    """Runs all rollouts to their end and returns what they made, in order.

    `most(n)` is the largest n over all ranks (the identity on one rank); `batch_size` bounds the requests of one
    sampler call (0: no bound); `on_turn(turn, done)` is told before each turn its number and how many rollouts have
    ended.
    """
    made: dict[int, Made] = {}
    requests: dict[int, Request] = {}
    for index, rollout in enumerate(rollouts):
        _advance(index, rollout, None, requests, made)
    turn = 0
    while busiest := most(len(requests)):
        turn += 1
        on_turn(turn, len(made))
        asking = sorted(requests)
        size = batch_size or busiest
        for start in range(0, busiest, size):
            batch = asking[start : start + size]
            replies = sample([requests.pop(index) for index in batch])
            for index, reply in zip(batch, replies, strict=True):
                _advance(index, rollouts[index], reply, requests, made)
    return [made[index] for index in range(len(rollouts))]


def _advance(
    index: int,
    rollout: Generator[Request, Reply, Made],
    reply: Reply | None,
    requests: dict[int, Request],
    made: dict[int, Made],
) -> None:
    """Sends one reply (None starts the rollout) and files the next request or the result."""
    try:
        requests[index] = next(rollout) if reply is None else rollout.send(reply)
    except StopIteration as end:
        made[index] = end.value
