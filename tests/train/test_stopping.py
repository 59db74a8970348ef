"""Stopping: the first signal ends the run after the step, with a checkpoint; the second ends it at once and says what
is lost; a gradient that is not a number ends it before it is saved. And what to turn when memory runs out."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from treeagent.config import load
from treeagent.errors import RunError
from treeagent.train.config import TrainConfig
from treeagent.train.memory import advice, ran_out
from treeagent.train.stopping import SIGNALS, NanGuard, Stopper


class Run:
    """A trainer's loop as far as callbacks see it."""

    def __init__(self, most: Callable[[int], int] = int) -> None:
        self.said: list[str] = []
        self.stopper = Stopper(most, self.said.append)
        self.state: Any = SimpleNamespace(global_step=0, max_steps=5)
        self.control: Any = SimpleNamespace(should_save=False, should_training_stop=False)
        self.told: tuple[Any, ...] = (None, self.state, self.control)

    def steps(self, count: int, save_every: int = 2) -> None:
        for _ in range(count):
            self.state.global_step += 1
            self.control.should_save = self.state.global_step % save_every == 0
            self.stopper.on_step_end(*self.told)
            if self.control.should_save:
                self.stopper.on_save(*self.told)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_the_run_after_the_step_with_a_checkpoint(number: signal.Signals) -> None:
    run = Run()
    run.stopper.on_train_begin(*run.told)
    before = signal.getsignal(number)
    with run.stopper.listening():
        run.steps(1)
        os.kill(os.getpid(), number)
        assert not run.control.should_training_stop
        run.steps(1, save_every=100)
    assert signal.getsignal(number) is before
    assert (run.control.should_training_stop, run.control.should_save, run.stopper.stopped_at) == (True, True, 2)
    assert run.said == [f"{number.name}: step 2 will be finished and saved, then the run stops; once more: at once"]


def test_a_second_signal_ends_it_at_once_and_says_what_is_lost() -> None:
    run = Run()
    run.stopper.on_train_begin(*run.told)
    with run.stopper.listening():
        run.steps(3)  # saved after step 2
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert run.said[-1] == "stopped at once: steps 3 to 4 are lost; the same command goes on after step 2"


def test_another_processs_signal_stops_this_one_too() -> None:
    run = Run(most=lambda count: max(count, 1))
    run.steps(1)
    assert run.stopper.stopped_at == 1


def test_a_signal_in_the_last_step_changes_nothing() -> None:
    run = Run()
    run.stopper.asked = True
    run.state.global_step = 4
    run.steps(1)
    assert run.stopper.stopped_at is None


def test_a_gradient_that_is_not_a_number_ends_the_run_before_it_is_saved() -> None:
    state: Any = SimpleNamespace(global_step=7)
    told: tuple[Any, ...] = (None, state, None)
    NanGuard().on_log(*told, logs={"loss": 0.1, "grad_norm": 1.0})
    NanGuard().on_log(*told, logs={"train_loss": math.nan})
    with pytest.raises(RunError, match=r"step 7: loss 0\.1, gradient norm nan: not a number"):
        NanGuard().on_log(*told, logs={"loss": 0.1, "grad_norm": math.nan})


def caught(function: Callable[[], Any]) -> BaseException:
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError


def compute_loss() -> None:
    raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")


def sample() -> None:
    raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")


def load_all() -> None:
    raise MemoryError


@pytest.mark.parametrize(
    ("function", "words", "advised"),
    [
        (compute_loss, ["--conversations_per_micro_batch", "4"], "lower conversations_per_micro_batch (now 4);"),
        (compute_loss, ["--gradient_checkpointing", "false"], "learning: set gradient_checkpointing true;"),
        (compute_loss, [], "conversations_per_micro_batch is 1 already, so take more GPUs"),
        (sample, [], "generating: lower generation_batch (now 32);"),
        (sample, ["--generation_batch", "1"], "generation_batch is 1 already"),
        (load_all, [], "divide the weights"),
    ],
)
def test_out_of_memory_names_the_setting_that_bounds_the_part_where_it_ran_out(
    function: Callable[[], None], words: list[str], advised: str
) -> None:
    config = load(TrainConfig, None, ["--out", "x", "--benchmark.folder", "y", *words])
    error = caught(function)
    assert ran_out(error)
    assert advised in advice(error, config)
    assert "\n" not in advice(error, config)


def test_another_error_is_no_lack_of_memory() -> None:
    assert not ran_out(RuntimeError("shapes do not fit"))
