"""What is shown while an evaluation runs."""

from __future__ import annotations

import io

from rich.console import Console
from treeagent.data.rollout import Example, Reference, Request
from treeagent.infer.progress import Meter, expected_calls

READ, ANSWER = Request("memory", (), 8, section=0), Request("answer", (), 8)


class Clock:
    """A clock that moves by hand, in seconds."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def _example(length: int, text: str = "") -> Example:
    return Example(text, "json", "?", Reference(("x",)), length=length)


def test_expected_calls_are_the_windows_of_the_length_and_one_answer() -> None:
    assert expected_calls(_example(2000), 512) == 5
    assert expected_calls(_example(0, "x" * 4096), 512) == 3


def test_time_left_counts_this_runs_calls_only() -> None:
    clock = Clock()
    with Meter(Console(file=io.StringIO()), 4, 20, clock) as meter:
        meter.skip(2, 10)
        assert meter.line() == "2/4 examples, 0 sections, 0 calls, time left unknown"
        clock.now = 30.0
        for _ in range(4):
            meter.called("a", 5, READ)
        meter.called("a", 5, ANSWER)
        assert meter.line() == "2/4 examples, 4 sections, 5 calls, about 0:30 left"
        meter.finished("a", 5)
        assert meter.line() == "3/4 examples, 4 sections, 5 calls, about 0:30 left"
        clock.now = 3661.0
        meter.finished("b", 5)
        assert meter.line() == "4/4 examples, 4 sections, 5 calls, done in 1:01:01"


def test_more_calls_than_expected_never_pass_the_end() -> None:
    with Meter(Console(file=io.StringIO()), 1, 2, Clock()) as meter:
        for _ in range(9):
            meter.called("a", 2, READ)
        assert meter.line() == "0/1 examples, 9 sections, 9 calls, about 0:00 left"


def test_without_a_terminal_plain_lines_come_seldom_and_at_the_end() -> None:
    out, clock = io.StringIO(), Clock()
    with Meter(Console(file=out), 2, 4, clock) as meter:
        for second in range(25):
            clock.now = float(second)
            meter.show()
            meter.called("a", 2, READ)
        meter.finished("a", 2)
        meter.finished("b", 2)
    lines = out.getvalue().splitlines()
    assert [line.split(" examples")[0] for line in lines] == ["0/2", "0/2", "2/2"]
    assert lines[-1].endswith("done in 0:24")
    assert "\x1b" not in out.getvalue()
