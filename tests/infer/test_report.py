"""The table's numbers, worked out by hand."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from treeagent.errors import RunError
from treeagent.infer.report import Paired, mean_of_cells, paired, report, summarise
from treeagent.infer.store import Store


def _row(key: str, score: float, **changes: Any) -> dict[str, Any]:
    row = {"agent": "memagent", "observer": "flat", "key": key, "copy": 0, "task": "field", "format": "json"}
    row |= {"length": 8000, "score": score, "values": ["x"], "failure": "", "calls": 10, "input_tokens": 1000}
    return row | {"cut_replies": 0} | changes


def test_cells_weigh_the_same_however_many_examples_they_hold() -> None:
    rows = [_row("a", 1.0), _row("b", 0.0), _row("c", 0.0), _row("d", 0.0)]  # 1/4
    rows += [_row("e", 1.0, task="count")]  # 1
    rows += [_row("f", 0.5, length=16000), _row("g", 0.0, length=16000)]  # 1/4
    assert mean_of_cells(rows) == pytest.approx((1 / 4 + 1 + 1 / 4) / 3)


def test_formats_weigh_the_same_however_many_cells_they_have() -> None:
    rows = [_row("a", 1.0), _row("b", 0.0, task="count"), _row("c", 1.0, format="html")]
    assert mean_of_cells(rows) == pytest.approx((1 / 2 + 1) / 2)


def test_the_paired_difference_and_its_interval() -> None:
    """Differences 1, 0, 0.5, -0.5: mean 0.25, sample variance ((0.75² + 0.25² + 0.25² + 0.75²) / 3) = 5/12."""
    base = [_row("a", 0.0), _row("b", 1.0), _row("c", 0.5), _row("d", 0.5), _row("e", 1.0, calls=99)]
    rows = [_row("a", 1.0, calls=11), _row("b", 1.0), _row("c", 1.0), _row("d", 0.0, input_tokens=1400), _row("f", 0.0)]
    found = paired(rows, base)
    half = 1.959963984540054 * (5 / 12) ** 0.5 / 2
    assert found is not None
    assert (found.n, found.difference) == (4, 0.25)
    assert (found.half, found.calls, found.input_tokens) == pytest.approx((half, 41 / 40, 4400 / 4000))


def test_one_pair_has_no_interval_and_no_pair_no_comparison() -> None:
    assert paired([_row("a", 1.0)], [_row("a", 0.25)]) == Paired(1, 0.75, None, 1.0, 1.0)
    assert paired([_row("a", 1.0)], [_row("b", 0.0)]) is None
    assert paired([_row("a", 1.0)], [_row("a", 0.0, copy=1)]) is None


def test_a_condition_that_used_nothing_has_no_ratio() -> None:
    found = paired([_row("a", 0.0)], [_row("a", 0.0, calls=0, input_tokens=0)])
    assert found is not None
    assert found.calls is None
    assert found.input_tokens is None


def test_failed_and_empty_answers_stay_in_the_denominator_and_are_counted_apart() -> None:
    rows = [
        _row("a", 1.0),
        _row("b", 0.0, failure="error", values=[]),
        _row("c", 0.0, failure="overflow", values=[]),
        _row("d", 0.0, values=[], cut_replies=3),
    ]
    (line,) = summarise(rows)
    assert line.score == 0.25
    assert (line.examples, line.errors, line.overflows, line.empty, line.cut_replies) == (4, 1, 1, 1, 3)
    assert line.paired is None


def test_lines_come_in_the_order_of_the_recipe_and_compare_within_an_agent() -> None:
    rows = [_row("a", 1.0, observer="treeagent"), _row("a", 0.0), _row("a", 0.5, agent="infmem", observer="tree")]
    lines = summarise(rows, [["memagent", "flat"], ["memagent", "tree"], ["memagent", "treeagent"]])
    assert [(line.agent, line.observer) for line in lines] == [
        ("memagent", "flat"),
        ("memagent", "treeagent"),
        ("infmem", "tree"),
    ]
    assert lines[1].paired == Paired(1, 1.0, None, 1.0, 1.0)
    assert lines[2].paired is None


def _printed(folder: Path) -> str:
    out = io.StringIO()
    report([str(folder)], Console(file=out, width=80))
    return out.getvalue()


def test_the_printed_table_holds_the_numbers_and_what_is_owed(tmp_path: Path) -> None:
    about = {"examples": 3, "conditions": [["memagent", "flat"], ["memagent", "treeagent"]]}
    with Store(tmp_path / "[run]", {"kind": "evaluate"}, "", about) as store:
        for key, score in (("a", 1.0), ("b", 0.0)):
            store.append(_row(key, 0.0))
            store.append(_row(key, score, observer="treeagent", calls=11, input_tokens=900))
    text = _printed(tmp_path / "[run]")
    line = next(line for line in text.splitlines() if "treeagent" in line)
    # differences 1 and 0: mean 0.5, sample deviation 0.7071, half width 1.96 * 0.7071 / 1.4142 = 0.98
    assert line.split() == [
        "memagent",
        "treeagent",
        "2",
        "50.00",
        "+50.00",
        "[-48.00,",
        "148.00]",
        "22",
        "1.100",
        "1,800",
        "0.900",
        "0",
        "0",
        "0",
    ]
    assert "[run]" in text
    assert "2 results are still owed" in text
    assert _printed(tmp_path / "[run]") == text


def test_a_torn_last_line_is_not_counted(tmp_path: Path) -> None:
    with Store(tmp_path / "run", {"kind": "evaluate"}, "") as store:
        store.append(_row("a", 1.0))
    with (tmp_path / "run" / "results.jsonl").open("a") as file:
        file.write(json.dumps(_row("b", 0.0)))
    assert "100.00" in _printed(tmp_path / "run")


def test_a_folder_that_is_no_run_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="holds no evaluation run"):
        _printed(tmp_path)
