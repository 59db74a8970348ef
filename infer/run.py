"""Drives rollouts through an engine: each asks as soon as it can, and holds no slot of the engine while it does not.

Works on anything that yields `Request`s and is sent `Reply`s: an agent's generator, or an environment's. A rollout may
also yield a `Future` of something else, a document that workers are cutting, and is sent its result. One that ends is
handed over at once, so that whoever stores results loses none of the finished ones.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeAlias, TypeVar

from ..data.rollout import Request
from .engines import Engine, Sampling

T = TypeVar("T")
Rolling: TypeAlias = Generator[Request | Future[Any], Any, T]


def drive(
    rollouts: Iterable[Generator[Any, Any, T]], engine: Engine, sampling: Sampling, *, most: int | None = None
) -> Iterator[tuple[int, T]]:
    """Yields `(index, what the rollout returned)` in the order in which they end.

    At most `most` rollouts are under way at once (None: all); the next is taken when one ends. Engines that answer in
    batches are told to once every rollout under way waits for them. An error of an engine or a `Future` is thrown into
    the rollout that waits for it.
    """
    source = enumerate(rollouts)
    under_way: dict[int, Generator[Any, Any, T]] = {}
    asking: set[int] = set()
    inbox: SimpleQueue[tuple[int, Future[Any]]] = SimpleQueue()

    def wait(index: int, wanted: Request | Future[Any]) -> None:
        if isinstance(wanted, Future):
            future = wanted
        else:
            future = engine.submit(wanted, sampling)
            asking.add(index)
        future.add_done_callback(lambda done: inbox.put((index, done)))

    try:
        while True:
            while most is None or len(under_way) < most:
                index, rollout = next(source, (-1, None))
                if rollout is None:
                    break
                under_way[index] = rollout
                try:
                    wait(index, next(rollout))
                except StopIteration as stop:
                    del under_way[index]
                    yield index, stop.value
            if not under_way:
                return
            if inbox.empty() and len(asking) == len(under_way):
                engine.flush()
            index, future = inbox.get()
            asking.discard(index)
            try:
                wait(index, _advance(under_way[index], future))
            except StopIteration as stop:
                del under_way[index]
                yield index, stop.value
    finally:
        for rollout in under_way.values():
            rollout.close()


def _advance(rollout: Generator[Any, Any, Any], future: Future[Any]) -> Any:
    error = future.exception()
    return rollout.throw(error) if error is not None else rollout.send(future.result())
