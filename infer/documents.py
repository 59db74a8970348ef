"""The documents that rollouts read: cut once each, in this process or in workers, shared by all who read them."""

from __future__ import annotations

import hashlib
import multiprocessing
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from types import TracebackType

from ..data.processes import end_with_parent
from ..data.tokens import Tokenizer
from ..errors import RunError
from .agents import Agent
from .reading import Readings, readings


class Documents:
    """Readings of the documents asked for last, by content, for one tokenizer and budget (C, in tokens).

    `workers` processes cut documents while this one goes on; with 0 it is done here, when asked for. Use it in a
    `with`, or close it, where there are workers.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        budget: int = 5000,
        *,
        capacity: int = 16,
        workers: int = 0,
        agents: Sequence[Agent] = (),
    ) -> None:
        """`capacity`: how many documents are kept for those who ask again; one that is being read lives on without.
        Workers also derive what these `agents` make of sections before any question."""
        self.tokenizer, self.budget, self.capacity, self.workers = tokenizer, budget, max(capacity, 1), workers
        self._agents = tuple(agents)
        self._kept: OrderedDict[tuple[str, bytes], Future[Readings]] = OrderedDict()
        self._pool: ProcessPoolExecutor | None = None

    def readings(self, text: str, format: str) -> Future[Readings]:
        """Both ways to read a text, perhaps not yet there. The result raises ParseError if the text is not of this
        format, RunError if a worker died of it."""
        key = (format, hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
        if key not in self._kept:
            self._kept[key] = self._cut_elsewhere(text, format) if self.workers else self._cut_here(text, format)
        self._kept.move_to_end(key)
        while len(self._kept) > self.capacity:
            self._kept.popitem(last=False)
        return self._kept[key]

    def close(self) -> None:
        """Ends the workers; what they are doing is dropped."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def __enter__(self) -> Documents:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _cut_here(self, text: str, format: str) -> Future[Readings]:
        done: Future[Readings] = Future()
        try:
            done.set_result(readings(text, format, self.tokenizer, self.budget))
        except Exception as error:  # whoever asks for the result gets it, as from a worker
            done.set_exception(error)
        return done

    def _cut_elsewhere(self, text: str, format: str) -> Future[Readings]:
        """Workers send back the cuts alone; the text, which is here, is put in again."""
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self.workers, context, _begin, (self.tokenizer, self.budget, self._agents))
        whole: Future[Readings] = Future()

        def unpack(packed: Future[Readings]) -> None:
            if packed.cancelled():
                whole.cancel()
                return
            error = packed.exception()
            if isinstance(error, BrokenProcessPool):
                error = _died()
            if error is not None:
                whole.set_exception(error)
            else:
                whole.set_result({name: replace(r, text=text) for name, r in packed.result().items()})

        try:
            self._pool.submit(_cut, text, format).add_done_callback(unpack)
        except BrokenProcessPool:  # one died before
            whole.set_exception(_died())
        return whole


def _died() -> RunError:
    return RunError("a process that cuts documents died, of too little memory perhaps: set fewer workers")


_worker: tuple[Tokenizer, int, tuple[Agent, ...]] | None = None


def _begin(tokenizer: Tokenizer, budget: int, agents: tuple[Agent, ...]) -> None:
    global _worker
    _worker = tokenizer, budget, agents
    end_with_parent()


def _cut(text: str, format: str) -> Readings:
    assert _worker is not None
    tokenizer, budget, agents = _worker
    cut = readings(text, format, tokenizer, budget)
    for reading in cut.values():
        for agent in agents:
            reading.shared.update(agent.derive([reading.source(t) for t in range(len(reading.sections))]))
    return {name: reading.packed() for name, reading in cut.items()}
