"""Engines turn requests into replies. The seam where tests put a script and a cluster puts its servers.

An engine never raises for a single request: what could not be had comes back as a `Reply` with `finish="error"`, and a
request beyond a limit, which it does not send, as `finish="overflow"`. A fault that concerns all requests (a wrong
key, no such model) is raised as ModelError. There are two sorts: `Batched` answers what has been submitted when it is
told to, in the caller's thread; `Background` answers each request as soon as a slot is free.
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from types import TracebackType
from typing import Annotated, Any, Self

from annotated_types import Ge, Gt, Le

from ...config import option
from ...data.rollout import Reply, Request

__all__ = ["Background", "Batched", "Engine", "Sampling"]


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen. The defaults are greedy decoding (paper, C.3)."""

    temperature: Annotated[float, Ge(0), Le(10)] = option(0.0, "0 decodes greedily")
    top_p: Annotated[float, Gt(0), Le(1)] = option(
        1.0, "sample among the likeliest tokens that hold this much probability"
    )
    top_k: Annotated[int, Ge(0)] = option(0, "sample among this many likeliest tokens; 0: among all")
    seed: int = option(42, "makes sampled replies repeatable")


class Engine(ABC):
    """Something that can run a model. Use it in a `with`, or close it."""

    @abstractmethod
    def submit(self, request: Request, sampling: Sampling) -> Future[Reply]:
        """Takes a request and returns at once."""

    def flush(self) -> None:  # noqa: B027 - most engines have nothing to do here
        """Nothing more will be submitted before a reply: whoever answers in batches does it now."""

    def close(self) -> None:  # noqa: B027
        """Gives back what the engine holds (threads, connections, a model). It cannot be used afterwards."""

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Reply]:
        """One reply for each request, in the same order."""
        futures = [self.submit(request, sampling) for request in requests]
        self.flush()
        return [future.result() for future in futures]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Batched(Engine):
    """An engine that answers many requests in one call, in the thread that flushes."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Request, Sampling, Future[Reply]]] = []

    @abstractmethod
    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Reply]:
        """One reply for each request, in the same order."""

    def submit(self, request: Request, sampling: Sampling) -> Future[Reply]:
        """Keeps the request for the next `flush`."""
        future: Future[Reply] = Future()
        self._waiting.append((request, sampling, future))
        return future

    def flush(self) -> None:
        """Answers all that was submitted, together where the sampling is the same."""
        while self._waiting:
            sampling = self._waiting[0][1]
            batch = [(request, future) for request, other, future in self._waiting if other == sampling]
            self._waiting = [job for job in self._waiting if job[1] != sampling]
            replies = self.generate([request for request, _ in batch], sampling)
            for (_, future), reply in zip(batch, replies, strict=True):
                future.set_result(reply)


class Background(Engine):
    """An engine whose requests run as coroutines on an event loop of its own, in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=type(self).__name__, daemon=True)
        self._thread.start()

    @abstractmethod
    async def answer(self, request: Request, sampling: Sampling) -> Reply:
        """The reply to one request; waits for a slot."""

    def submit(self, request: Request, sampling: Sampling) -> Future[Reply]:
        """Starts `answer` on the engine's loop."""
        return self.run(self.answer(request, sampling))

    def run(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Anything else that must happen on the engine's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def shut(self) -> None:
        """What a subclass has to close on the loop."""

    def close(self) -> None:
        """Cancels what is under way, then ends the loop and its thread."""
        if self._loop.is_closed():
            return
        self.run(self._shut()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _shut(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self.shut()
