"""Questions made in processes, each kept as soon as it is finished.

1. A job is a question: split, task, number. What it gives depends on nothing else, so any process may do it.
2. A finished question lies in a file of its own, written beside its place and moved there: a build that was killed goes
   on where it was, and a torn file never counts.
3. The jobs are collected in order; a question that is there already is drawn again, from the next attempt on. Number of
   processes and interruptions change no byte.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..errors import InputError, RunError
from . import benchmark
from .catalog import Collection
from .examples import Made, Maker, Plan
from .processes import end_with_parent
from .tokens import Tokenizer
from .validate import Validator

_AHEAD = 4  # jobs a process that may be finished before their turn


@dataclass(frozen=True)
class Job:
    """A question to make. `start` is the attempt to begin with, `asked` the keys of questions that are there: both are
    given where a first try made one of these again."""

    split: str
    task: str
    number: int
    start: int = 0
    asked: frozenset[str] = frozenset()

    def file(self, folder: Path) -> Path:
        """Where it is kept when it is finished."""
        return folder / self.split / f"{self.task}-{self.number:06}-{self.start}.parquet"


class Bench:
    """What jobs are done with. Raises ConfigError at once where the sources hold too little for a split."""

    def __init__(
        self, plans: Sequence[Plan], collections: Sequence[Collection], tokenizers: Sequence[Tokenizer]
    ) -> None:
        self._tokenizers = tokenizers
        self._makers = {plan.split: Maker(plan, collections, tokenizers) for plan in plans}

    def make(self, job: Job) -> Made:
        """The question, checked. Raises RunError where it fails its check, which would be a fault of this package."""
        made = self._makers[job.split].question(job.task, job.number, job.start, job.asked)
        validator = Validator(self._tokenizers)
        for row in made.rows:
            problems = validator.check(job.split, row)
            if problems:
                where = f"{row['base_id']} of length {row['length']}"
                raise RunError(f"{job.split}: {where} fails its check: {'; '.join(problems)}")
        return made

    def finish(self, job: Job, folder: Path) -> None:
        """Makes the question and keeps it."""
        made = self.make(job)
        benchmark.write_question(job.file(folder), made.rows, made.attempt)


Submit = Callable[[Job, Path], "Future[None]"]


@contextmanager
def workers(
    number: int, plans: Sequence[Plan], collections: Sequence[Collection], tokenizers: Sequence[Tokenizer]
) -> Iterator[Submit]:
    """What does jobs: this process where `number` is 1, otherwise that many others, each with a copy of the sources."""
    bench = Bench(plans, collections, tokenizers)
    if number == 1:
        yield lambda job, folder: _now(lambda: bench.finish(job, folder))
        return
    context = multiprocessing.get_context("spawn")
    arguments = (list(plans), list(collections), list(tokenizers))
    pool = ProcessPoolExecutor(number, context, initializer=_begin, initargs=arguments)
    try:
        yield lambda job, folder: pool.submit(_finish, job, folder)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def collect(plan: Plan, folder: Path, submit: Submit, number: int) -> Iterator[Made]:
    """The questions of a split in order, no two alike; those that `folder` keeps are not made again."""
    (folder / plan.split).mkdir(parents=True, exist_ok=True)
    ahead = 1 if number == 1 else _AHEAD * number
    jobs = (Job(plan.split, task, place) for task, place in plan.places())
    begun: deque[tuple[Job, Future[None] | None]] = deque()
    asked = set[str]()
    try:
        for job in jobs:
            begun.append((job, _begun(job, folder, submit)))
            if len(begun) >= ahead:
                yield _next(begun.popleft(), asked, folder, submit)
        while begun:
            yield _next(begun.popleft(), asked, folder, submit)
    except BrokenProcessPool as error:
        raise RunError(
            "a process that made questions was ended, perhaps for memory; the same command goes on: "
            "give it fewer with --num-proc"
        ) from error


def made_here(bench: Bench, plan: Plan) -> Iterator[Made]:
    """The questions of a split in order, no two alike, made one after another and kept nowhere."""
    asked = set[str]()
    for task, number in plan.places():
        made = bench.make(Job(plan.split, task, number, 0, frozenset(asked)))
        asked.add(made.key)
        yield made


def _begun(job: Job, folder: Path, submit: Submit) -> Future[None] | None:
    """The work on a job; None where it is finished."""
    return None if job.file(folder).is_file() else submit(job, folder)


def _next(begun: tuple[Job, Future[None] | None], asked: set[str], folder: Path, submit: Submit) -> Made:
    job, future = begun
    while True:
        made = _read(job, future, folder, submit)
        if made.key not in asked:
            asked.add(made.key)
            return made
        job = Job(job.split, job.task, job.number, made.attempt + 1, frozenset(asked))
        future = _begun(job, folder, submit)


def _read(job: Job, future: Future[None] | None, folder: Path, submit: Submit) -> Made:
    if future is not None:
        future.result()
    try:
        rows, attempt = benchmark.read_question(job.file(folder))
    except InputError:  # a file that a crash of the machine left torn
        submit(job, folder).result()
        rows, attempt = benchmark.read_question(job.file(folder))
    return Made(rows, attempt)


def _now(work: Callable[[], None]) -> Future[None]:
    future: Future[None] = Future()
    try:
        future.set_result(work())
    except Exception as error:  # it is raised again where the result is asked for
        future.set_exception(error)
    return future


# In the processes.

_given: dict[str, tuple[Sequence[Plan], Sequence[Collection], Sequence[Tokenizer]]] = {}


def _begin(plans: Sequence[Plan], collections: Sequence[Collection], tokenizers: Sequence[Tokenizer]) -> None:
    """Keeps what it is given; leaves interrupts to the process that started this one, and ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    _given["all"] = (plans, collections, tokenizers)
    end_with_parent()


@cache
def _bench() -> Bench:
    return Bench(*_given["all"])


def _finish(job: Job, folder: Path) -> None:
    _bench().finish(job, folder)
