"""The independent check catches what is wrong with a benchmark, one fault at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from treeagent.data.catalog import Collection
from treeagent.data.contexts import Counter
from treeagent.data.examples import Plan, Row, example_of, generate
from treeagent.data.tasks import TASKS
from treeagent.data.validate import Validator


@pytest.fixture(scope="module")
def rows(towns: Collection, words: Counter) -> dict[str, Row]:
    """One row of each task."""
    made = generate(Plan("test", 3, tuple(TASKS), 1, (900,), ("compact",)), [towns], [words])
    return {row["task"]: row for row in made}


def changed(row: Row, **columns: Any) -> Row:
    """The row with other values, and the id that goes with them."""
    row = {**row, **columns}
    return {**row, "id": example_of(row).key}


def with_records(row: Row, change: Callable[[list[Any]], list[Any]]) -> Row:
    """The row with its record list changed, printed as before."""
    response = json.loads(row["context"])
    response["result"]["towns"] = change(response["result"]["towns"])
    return changed(row, context=json.dumps(response, ensure_ascii=False, separators=(",", ":")))


def problems(row: Row, words: Counter) -> str:
    return "; ".join(Validator([words]).check("test", row))


@pytest.mark.parametrize("task", TASKS)
def test_what_was_built_passes(rows: dict[str, Row], words: Counter, task: str) -> None:
    assert problems(rows[task], words) == ""


@pytest.mark.parametrize("task", TASKS)
def test_a_tampered_answer_is_caught(rows: dict[str, Row], words: Counter, task: str) -> None:
    row = changed(rows[task], answers=["999999999"])
    assert "the answer is" in problems(row, words)


@pytest.mark.parametrize("task", TASKS)
def test_a_moved_record_is_caught(rows: dict[str, Row], words: Counter, task: str) -> None:
    row = with_records(rows[task], lambda records: records[len(records) // 2 :] + records[: len(records) // 2])
    assert "the support lies at" in problems(row, words)


def test_an_entity_that_is_there_twice_is_caught(rows: dict[str, Row], words: Counter) -> None:
    row = rows["single_field"]
    name = json.loads(row["spec"])["selectors"][0][0]["value"]
    doubled = with_records(row, lambda records: [*records, next(r for r in records if r["name"] == name)])
    assert "2 records are name = " in problems(doubled, words)


def test_an_entity_that_is_gone_is_caught(rows: dict[str, Row], words: Counter) -> None:
    row = rows["single_field"]
    name = json.loads(row["spec"])["selectors"][0][0]["value"]
    gone = with_records(row, lambda records: [r for r in records if r["name"] != name])
    assert "0 records are name = " in problems(gone, words)


def test_an_extremum_with_a_tie_is_caught(rows: dict[str, Row], words: Counter) -> None:
    row = rows["numerical_extremum"]
    spec = json.loads(row["spec"])
    conditions = {tuple(c["field"]): c["value"] for c in spec.get("conditions", ())}

    def tie(records: list[Any]) -> list[Any]:
        best = min if spec["extreme"] == "min" else max
        inside = [r for r in records if all(_at(r, path) == value for path, value in conditions.items())]
        return [*records, best(inside, key=lambda r: _at(r, spec["measure"]))]

    assert "not unique" in problems(with_records(row, tie), words)


def _at(record: Any, path: Any) -> Any:
    for key in path:
        record = record[key]
    return record


@pytest.mark.parametrize(
    ("leak", "said"),
    [
        ("What areaKm has it?", "the key areaKm"),
        ("Look at $.result.towns.", "path or place"),
        ("It is record 5.", "path or place"),
        ("It is the third record.", "path or place"),
        ("See towns[4].", "path or place"),
    ],
)
def test_a_question_that_gives_away_key_or_place_is_caught(
    rows: dict[str, Row], words: Counter, leak: str, said: str
) -> None:
    row = rows["single_field"]
    assert said in problems(changed(row, question=f"{row['question']} {leak}"), words)


@pytest.mark.parametrize("task", TASKS)
def test_a_question_that_gives_away_the_answer_is_caught(rows: dict[str, Row], words: Counter, task: str) -> None:
    row = rows[task]
    leak = f"{row['question']} Is it {row['answers'][0].upper()}?"
    assert "reveals the answer" in problems(changed(row, question=leak), words)


@pytest.mark.parametrize("length", [800, 1100])
def test_a_context_of_another_length_is_caught(rows: dict[str, Row], words: Counter, length: int) -> None:
    assert "tokens under words" in problems(changed(rows["single_field"], length=length), words)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"source": ""}, "source is empty"),
        ({"license": ""}, "license is empty"),
        ({"count": 2}, "2 values are asked for"),
        ({"answer_kind": "date"}, "unknown answer kind"),
        ({"context": "{"}, "cannot be read"),
    ],
)
def test_a_row_that_is_not_whole_is_caught(
    rows: dict[str, Row], words: Counter, columns: dict[str, Any], said: str
) -> None:
    assert said in problems(changed(rows["single_field"], **columns), words)


def test_an_id_that_is_not_the_examples_is_caught(rows: dict[str, Row], words: Counter) -> None:
    assert "the id is not" in problems({**rows["single_field"], "id": "0" * 16}, words)


def test_an_example_that_is_there_twice_is_caught(rows: dict[str, Row], words: Counter) -> None:
    validator = Validator([words])
    assert validator.check("test", rows["single_field"]) == []
    assert validator.check("test", rows["single_field"]) == ["the same example is there twice"]


def test_a_record_in_two_splits_is_caught(rows: dict[str, Row], words: Counter) -> None:
    validator = Validator([words])
    assert validator.check("test", rows["single_field"]) == []
    (problem,) = validator.check("train", changed(rows["single_field"], base_id="other"))
    assert "also in the split test" in problem


def test_a_lookup_that_changes_with_its_length_is_caught(rows: dict[str, Row], words: Counter) -> None:
    validator = Validator([words])
    assert validator.check("test", rows["single_field"]) == []
    other = changed(rows["single_field"], question="Something else? Answer with the value only.")
    assert any("another question" in problem for problem in validator.check("test", other))
