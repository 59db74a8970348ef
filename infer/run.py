"""Drives rollouts through an engine: in lock-step, one engine call for the pending requests of all of them.

Works on anything that yields `Request`s and is sent `Reply`s: an agent's generator, or an environment's. A rollout is
handed over as soon as it ends, so that whoever stores results loses none of the finished ones.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import TypeVar

from ..data.rollout import Reply, Request
from .engines import Engine, Sampling

T = TypeVar("T")


def drive(
    rollouts: Sequence[Generator[Request, Reply, T]], engine: Engine, sampling: Sampling
) -> Iterator[tuple[int, T]]:
    """Yields `(index, what the rollout returned)` in the order in which they end; rollouts that end together, by
    index."""
    pending: dict[int, Request] = {}
    inbox: list[tuple[int, Reply | None]] = [(i, None) for i in range(len(rollouts))]
    try:
        while inbox:
            for i, reply in inbox:
                try:
                    pending[i] = next(rollouts[i]) if reply is None else rollouts[i].send(reply)
                except StopIteration as stop:
                    yield i, stop.value
            waiting = list(pending)
            replies = engine.generate([pending.pop(i) for i in waiting], sampling) if waiting else []
            inbox = list(zip(waiting, replies, strict=True))
    finally:
        for rollout in rollouts:
            rollout.close()
