"""Questions in processes: the same bytes with any number of them, and after any interruption."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
from treeagent.data.benchmark import read_question
from treeagent.data.catalog import Collection
from treeagent.data.examples import Made, Plan, canonical, generate
from treeagent.data.making import Job, collect, workers
from treeagent.data.tokens import Tokenizer, load_tokenizer
from treeagent.errors import ConfigError, RunError

PLAN = Plan("test", 3, ("single_field", "most_frequent"), 3, (2500, 5000), ("compact",))
TIGHT = Plan("dev", 1, ("most_frequent",), 25, (2500,), ("compact",))


@pytest.fixture(scope="module")
def tokenizers(tiny_model_folder: Path) -> list[Tokenizer]:
    return [load_tokenizer(str(tiny_model_folder))]


def content(made: list[Made]) -> str:
    return hashlib.sha256(b"".join(canonical(row) for question in made for row in question.rows)).hexdigest()


def built(plan: Plan, folder: Path, towns: Collection, tokenizers: list[Tokenizer], number: int = 1) -> list[Made]:
    with workers(number, [plan], [towns], tokenizers) as submit:
        return list(collect(plan, folder, submit, number))


def test_kept_questions_are_those_of_the_plain_way(
    towns: Collection, tokenizers: list[Tokenizer], tmp_path: Path
) -> None:
    plain = [canonical(row) for row in generate(PLAN, [towns], tokenizers)]
    made = built(PLAN, tmp_path, towns, tokenizers)
    assert [canonical(row) for question in made for row in question.rows] == plain
    assert len(list((tmp_path / "test").iterdir())) == 6


@pytest.mark.slow
def test_two_processes_give_the_bytes_of_one(towns: Collection, tokenizers: list[Tokenizer], tmp_path: Path) -> None:
    one = built(TIGHT, tmp_path / "one", towns, tokenizers)
    two = built(TIGHT, tmp_path / "two", towns, tokenizers, number=2)
    assert content(one) == content(two)
    assert len({question.key for question in two}) == TIGHT.per_task
    assert [q.attempt for q in one] == [q.attempt for q in two]
    assert any(q.attempt for q in one)  # some were drawn again, so the order of finishing could have mattered


def test_what_is_finished_is_not_made_again(towns: Collection, tokenizers: list[Tokenizer], tmp_path: Path) -> None:
    before = content(built(PLAN, tmp_path, towns, tokenizers))

    def refuse(job: Job, folder: Path) -> Future[None]:
        raise AssertionError(f"{job} is finished")

    assert content(list(collect(PLAN, tmp_path, refuse, 1))) == before


@pytest.mark.parametrize("damage", [lambda data: data[:-20], lambda data: b"", lambda data: b"x" * len(data)])
def test_a_torn_file_is_made_again(
    towns: Collection, tokenizers: list[Tokenizer], tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    before = content(built(PLAN, tmp_path, towns, tokenizers))
    torn = Job("test", "most_frequent", 1).file(tmp_path)
    torn.write_bytes(damage(torn.read_bytes()))
    assert content(built(PLAN, tmp_path, towns, tokenizers)) == before
    assert len(read_question(torn)[0]) == 2


def test_a_question_file_that_was_being_written_does_not_count(
    towns: Collection, tokenizers: list[Tokenizer], tmp_path: Path
) -> None:
    before = content(built(PLAN, tmp_path, towns, tokenizers))
    place = Job("test", "single_field", 0).file(tmp_path)
    place.rename(place.with_suffix(".123.part"))
    assert content(built(PLAN, tmp_path, towns, tokenizers)) == before


def test_a_process_that_is_ended_is_told_in_words(tmp_path: Path) -> None:
    def broken(job: Job, folder: Path) -> Future[None]:
        future: Future[None] = Future()
        future.set_exception(BrokenProcessPool("gone"))
        return future

    with pytest.raises(RunError, match="the same command goes on"):
        list(collect(PLAN, tmp_path, broken, 2))


def test_a_source_that_holds_too_little_is_refused_before_processes_start(
    towns: Collection, tokenizers: list[Tokenizer]
) -> None:
    plan = Plan("test", 3, ("single_field",), 1, (10**6,), ("compact",))
    with pytest.raises(ConfigError, match="too few for 1,000,000"), workers(2, [plan], [towns], tokenizers):
        pass


@pytest.mark.slow
def test_a_killed_build_goes_on_where_it_was(tiny_model_folder: Path, tmp_path: Path) -> None:
    def command(out: str) -> list[str]:
        words = [sys.executable, "-m", "treeagent", "build", "demo", "--out", str(tmp_path / out)]
        words += ["--tokenizers", str(tiny_model_folder), "--num-proc", "2", "--layouts", "compact"]
        return [
            *words,
            "--train.per_task",
            "0",
            "--dev.per_task",
            "0",
            "--test.per_task",
            "6",
            "--test.lengths",
            "2500",
        ]

    def kept() -> set[Path]:
        return set(tmp_path.glob(".killed.*/questions/test/*.parquet"))

    # Two processes, so that no process of the killed build may be left at work either.
    subprocess.run([*command("whole"), "--num-proc", "1"], check=True, capture_output=True, timeout=300)
    with subprocess.Popen(command("killed"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        until = time.monotonic() + 200
        while not kept() and process.poll() is None and time.monotonic() < until:
            os.sched_yield()
        process.send_signal(signal.SIGKILL)
    before = {path: path.stat().st_mtime_ns for path in kept()}
    assert not (tmp_path / "killed").exists()
    assert before
    ended = subprocess.run(command("killed"), check=True, capture_output=True, timeout=300)
    assert b"Written to" in ended.stdout
    names = [path.relative_to(tmp_path / "whole") for path in (tmp_path / "whole").rglob("*") if path.is_file()]
    assert len(names) == 3
    assert all((tmp_path / "whole" / name).read_bytes() == (tmp_path / "killed" / name).read_bytes() for name in names)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["killed", "whole"]
