"""The run folder survives kills, torn lines, full disks and second writers, and belongs to one run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from treeagent.errors import RunError
from treeagent.infer import store as stores
from treeagent.infer.store import Store, read_results

IDENTITY: dict[str, Any] = {"kind": "evaluate", "budget": 5000, "benchmark": {"limit": None, "examples": "ab"}}
ROWS = [{"key": "k1", "answer": "naïve \ud800 { \n"}, {"key": "k2", "answer": "x" * 50}, {"key": "k3", "answer": ""}]


def _open(folder: Path, **changes: Any) -> Store:
    return Store(folder, IDENTITY | changes, "budget: 5000\n")


def _fill(folder: Path) -> bytes:
    with _open(folder) as store:
        for row in ROWS:
            store.append(row)
    return (folder / "results.jsonl").read_bytes()


def test_results_come_back_as_they_were_stored(tmp_path: Path) -> None:
    _fill(tmp_path / "run")
    assert read_results(tmp_path / "run") == ROWS
    with _open(tmp_path / "run") as store:
        assert store.results == ROWS
    assert (tmp_path / "run" / "config.yaml").read_text() == "budget: 5000\n"


def test_a_file_torn_at_any_byte_loses_only_the_torn_line_and_can_be_completed(tmp_path: Path) -> None:
    whole = _fill(tmp_path / "run")
    path = tmp_path / "run" / "results.jsonl"
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        kept = sum(end <= cut for end in ends)
        assert read_results(tmp_path / "run") == ROWS[:kept]
        with _open(tmp_path / "run") as store:
            assert store.results == ROWS[:kept]
            for row in ROWS[kept:]:
                store.append(row)
        assert path.read_bytes() == whole


def test_zeros_at_the_end_as_after_a_power_cut_are_a_torn_end(tmp_path: Path) -> None:
    whole = _fill(tmp_path / "run")
    path = tmp_path / "run" / "results.jsonl"
    path.write_bytes(whole + b"\0" * 40 + b"\n" + b"\0" * 7)
    with _open(tmp_path / "run") as store:
        assert store.results == ROWS
    assert path.read_bytes() == whole


def test_damage_before_good_lines_is_refused_with_the_line(tmp_path: Path) -> None:
    whole = _fill(tmp_path / "run").splitlines(keepends=True)
    (tmp_path / "run" / "results.jsonl").write_bytes(whole[0] + b"garbage\n" + whole[2])
    with pytest.raises(RunError, match="line 2"):
        _open(tmp_path / "run")


def test_another_run_is_refused_with_the_keys_that_differ(tmp_path: Path) -> None:
    _fill(tmp_path / "run")
    with pytest.raises(RunError, match=r"other benchmark\.examples, budget, extra:"):
        _open(tmp_path / "run", budget=512, extra=1, benchmark={"limit": None, "examples": "cd"})
    assert read_results(tmp_path / "run") == ROWS


def test_a_run_that_stored_nothing_may_be_given_other_settings(tmp_path: Path) -> None:
    _open(tmp_path / "run").close()
    _open(tmp_path / "run", budget=512).close()
    assert stores.read_run(tmp_path / "run")["identity"]["budget"] == 512


def test_the_order_of_keys_and_tuples_for_lists_are_no_difference(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    Store(folder, {"a": (1, 2), "b": 3}, "").close()
    Store(folder, {"b": 3, "a": [1, 2]}, "").close()


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(RunError, match=r"thesis\.tex"):
        _open(tmp_path)
    (tmp_path / "thesis.tex").unlink()
    (tmp_path / "results.jsonl").write_text("")
    with pytest.raises(RunError, match=r"without run.json"):
        _open(tmp_path)


def test_a_folder_that_was_killed_while_it_was_made_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("budget: 5000\n")
    (tmp_path / ".run.json.x7f3").write_text('{"dig')
    assert _fill(tmp_path)


def test_a_path_that_is_a_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be made"):
        _open(tmp_path / "file")


def test_a_second_writer_is_told_who_holds_the_folder(tmp_path: Path) -> None:
    with _open(tmp_path / "run"), pytest.raises(RunError, match=f"in use by process {os.getpid()}"):
        _open(tmp_path / "run")
    _open(tmp_path / "run").close()


def test_a_refused_folder_is_not_left_locked(tmp_path: Path) -> None:
    _fill(tmp_path / "run")
    with pytest.raises(RunError, match="another run"):
        _open(tmp_path / "run", budget=1)
    _open(tmp_path / "run").close()


def test_a_full_disk_keeps_what_was_there_and_says_so(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with pytest.raises(RunError, match=r"cannot be written: .* can be resumed"):
        stores.append_line(Path("/dev/full"), {"key": "x"})


def test_an_atomic_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "file"
    stores.write_atomic(path, "old")
    with pytest.raises(UnicodeEncodeError):
        stores.write_atomic(path, "new \ud800")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_traces_and_failures_lie_beside_the_results(tmp_path: Path) -> None:
    with _open(tmp_path / "run") as store:
        store.trace("memagent.tree+path.k1.0", [{"text": "a"}, {"text": "b"}])
        store.fail({"key": "k1", "error": "out of memory"})
    lines = (tmp_path / "run" / "calls" / "memagent.tree+path.k1.0.jsonl").read_text().splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["a", "b"]
    assert json.loads((tmp_path / "run" / "failures.jsonl").read_text()) == {"key": "k1", "error": "out of memory"}


WRITER = """
import sys, itertools
from pathlib import Path
from treeagent.infer.store import Store
with Store(Path(sys.argv[1]), {"kind": "evaluate"}, "x: 1\\n") as store:
    for i in itertools.count(len(store.results)):
        store.append({"key": i, "answer": "x" * 3000})
"""


def test_a_killed_writer_leaves_whole_lines_and_no_lock(tmp_path: Path) -> None:
    folder, seen = tmp_path / "run", 0
    for _ in range(3):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(folder)])
        _wait(lambda seen=seen: len(read_results(folder)) > seen + 5)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        with Store(folder, {"kind": "evaluate"}, "x: 1\n") as store:
            assert [row["key"] for row in store.results] == list(range(len(store.results)))
            assert len(store.results) > seen
            seen = len(store.results)


def _wait(ready: Any) -> None:
    end = time.monotonic() + 30
    while not ready():
        assert time.monotonic() < end, "the writer wrote nothing"
        time.sleep(0.01)


def test_a_folder_of_something_else_is_left_without_a_trace(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(RunError, match=r"holds no run of this kind \(thesis\.txt\)"):
        _open(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("content", ["[]", "{", "null", '"run"'])
def test_a_damaged_description_of_a_run_is_said_to_be(tmp_path: Path, content: str) -> None:
    _fill(tmp_path / "run")
    (tmp_path / "run" / "run.json").write_text(content)
    for use in (_open, stores.read_run):
        with pytest.raises(RunError, match=r"run\.json cannot be read: "):
            use(tmp_path / "run")
