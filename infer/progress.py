"""How far an evaluation is: a live line on a terminal, plain lines elsewhere.

Progress is measured in expected calls (sections of C tokens and one answer for each example), so that the time left
is about right long before the first example of a long document ends.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ..data.rollout import Example, Request

_QUIET_S = 10.0


def expected_calls(example: Example, budget: int) -> int:
    """A rough number of calls: by the example's length if the benchmark states it, else by four characters a token."""
    return math.ceil((example.length or len(example.context) / 4) / budget) + 1


class Meter:
    """Counts examples, sections and calls and shows them on the console. Use it in a `with`."""

    def __init__(
        self, console: Console, examples: int, calls: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`examples` and `calls` (expected) of the whole run, those already done included."""
        self._console, self._examples, self._expected, self._clock = console, examples, max(calls, 1), clock
        self.examples = self.sections = self.calls = 0
        self._settled = self._skipped = 0
        self._flying: dict[object, int] = {}
        self._start = self._said = clock()
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), TimeElapsedColumn())
        self._live = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._live.add_task("starting", total=self._expected)

    def __enter__(self) -> Meter:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def skip(self, examples: int, calls: int) -> None:
        """Counts what an earlier run has done."""
        self.examples += examples
        self._settled += calls
        self._skipped += calls

    def called(self, job: object, expected: int, request: Request) -> None:
        """Counts one call of a job with this many expected calls, and shows it."""
        self.calls += 1
        self.sections += request.kind == "memory"
        self._flying[job] = min(self._flying.get(job, 0) + 1, expected)
        self.show()

    def finished(self, job: object, expected: int) -> None:
        """Counts one example as done."""
        self.examples += 1
        self._settled += expected
        self._flying.pop(job, None)
        if self.examples == self._examples:
            self.show(now=True)

    def show(self, now: bool = False) -> None:
        """Shows where things stand: on a terminal always, elsewhere every ten seconds or `now`."""
        self._live.update(self._task, completed=self._done(), description=self.line())
        if not self._console.is_terminal and (now or self._clock() - self._said >= _QUIET_S):
            self._said = self._clock()
            self._console.print(self.line(), highlight=False, soft_wrap=True)

    def line(self) -> str:
        """One line: examples, sections read, calls, time left."""
        return (
            f"{self.examples}/{self._examples} examples, {self.sections} sections, {self.calls} calls, {self._left()}"
        )

    def _done(self) -> int:
        return min(self._settled + sum(self._flying.values()), self._expected)

    def _left(self) -> str:
        done, elapsed = self._done() - self._skipped, self._clock() - self._start
        if self.examples == self._examples:
            return f"done in {_clock(elapsed)}"
        return (
            f"about {_clock(elapsed * (self._expected - self._done()) / done)} left"
            if done > 0
            else "time left unknown"
        )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
