"""Examples, against answers found by plain loops over the context."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from treeagent.data.catalog import Collection
from treeagent.data.contexts import Counter, Page
from treeagent.data.drawing import round_number, shuffled
from treeagent.data.examples import Plan, Row, example_of, generate
from treeagent.data.own import collections
from treeagent.data.tasks import TASKS
from treeagent.errors import ConfigError

LENGTHS = (900, 1800, 5000)
LAYOUTS = ("compact", "spaced", "indented")


@pytest.fixture(scope="module")
def rows(towns: Collection, words: Counter) -> list[Row]:
    plan = Plan("test", 7, tuple(TASKS), 12, LENGTHS, LAYOUTS)
    return list(generate(plan, [towns], [words]))


def listed(row: Row) -> list[dict[str, Any]]:
    return json.loads(row["context"])["result"]["towns"]


def look_up(record: Any, path: Sequence[str]) -> Any:
    for key in path:
        record = record[key]
    return record


def passing(row: Row) -> list[dict[str, Any]]:
    """The listed records that meet all conditions, by the meaning of the operators."""
    found = listed(row)
    for condition in json.loads(row["spec"]).get("conditions", ()):
        value, path = condition["value"], condition["field"]
        test = {
            "=": lambda x, value=value: x == value,
            ">": lambda x, value=value: x > value,
            "<": lambda x, value=value: x < value,
            "contains": lambda x, value=value: value in x,
        }[condition["op"]]
        found = [record for record in found if test(look_up(record, path))]
    return found


def test_every_task_has_every_length_equally_often(rows: list[Row]) -> None:
    cells = [(row["task"], row["length"]) for row in rows]
    assert {cells.count(cell) for cell in cells} == {12}
    assert len(set(cells)) == len(TASKS) * len(LENGTHS)


def test_contexts_fill_their_length(rows: list[Row], words: Counter) -> None:
    shares = [words.count(row["context"]) / row["length"] for row in rows]
    assert min(shares) >= 0.9
    assert max(shares) <= 1


def test_contexts_keep_the_envelope_around_the_list(rows: list[Row]) -> None:
    for row in rows:
        response = json.loads(row["context"])
        assert response["status"] == {"code": 200}
        assert list(response["result"]) == ["total", "towns", "next"]


def test_a_lookup_names_one_record_and_asks_its_value(rows: list[Row]) -> None:
    for row in (row for row in rows if row["task"] == "single_field"):
        spec = json.loads(row["spec"])
        (selector,) = spec["selectors"]
        name = next(test["value"] for test in selector if test["field"] == ["name"])
        (record,) = [record for record in listed(row) if record["name"] == name]
        value = look_up(record, spec["fields"][0])
        assert row["answers"] == [value if isinstance(value, str) else json.dumps(value)]
        assert name in row["question"]


def test_a_count_is_the_number_of_records_that_pass(rows: list[Row]) -> None:
    for row in (row for row in rows if row["task"] == "conditional_count"):
        assert row["answers"] == [str(len(passing(row)))]
        assert 1 <= len(passing(row)) < len(listed(row))


def test_an_extremum_is_unique_and_clear_of_the_next(rows: list[Row]) -> None:
    for row in (row for row in rows if row["task"] == "numerical_extremum"):
        spec = json.loads(row["spec"])
        ranked = sorted(passing(row), key=lambda record: look_up(record, spec["measure"]))
        if spec["extreme"] == "max":
            ranked.reverse()
        first, second = (look_up(record, spec["measure"]) for record in ranked[:2])
        assert abs(first - second) > max(0.01, 0.001 * abs(first))
        value = look_up(ranked[0], spec["fields"][0])
        assert row["answers"] == [value if isinstance(value, str) else json.dumps(value)]


def test_a_lookup_keeps_question_answer_and_records_while_distractors_grow(rows: list[Row]) -> None:
    for base in {row["base_id"] for row in rows}:
        family = sorted((row for row in rows if row["base_id"] == base), key=lambda row: row["length"])
        assert len({row["question"] for row in family}) == 1
        names = [{record["name"] for record in listed(row)} for row in family]
        assert names[0] < names[1] < names[2]
        if family[0]["task"] == "single_field":
            assert len({tuple(row["answers"]) for row in family}) == 1


def test_supports_lie_where_the_row_says_and_everywhere(rows: list[Row]) -> None:
    placed = [row for row in rows if row["task"] != "conditional_count"]
    for row in placed:
        at = row["context"][int(row["support"][0] * len(row["context"])) :]
        spec = json.loads(row["spec"])
        name = spec["selectors"][0][0]["value"] if "selectors" in spec else None
        assert name is None or f'"{name}"' not in at[: at.find("}")]  # the name stands before the record's middle
    places = sorted(row["support"][0] for row in placed)
    assert max(b - a for a, b in zip([0.0, *places], [*places, 1.0], strict=True)) < 0.12


def test_no_question_is_asked_twice(rows: list[Row]) -> None:
    specs = [row["spec"] for row in rows if row["length"] == LENGTHS[0]]
    assert len(set(specs)) == len(specs)


def test_questions_end_by_asking_for_values_only(rows: list[Row]) -> None:
    for row in rows:
        assert any(word in row["question"].split(". ")[-1].split("? ")[-1] for word in ("only", "just", "nothing but"))


def test_aggregations_state_their_scope(rows: list[Row]) -> None:
    for row in rows:
        if not row["task"].endswith(("field", "fields", "records")):
            assert any(word in row["question"].lower() for word in ("all", "every", "complete list"))


def test_a_row_gives_its_example(rows: list[Row]) -> None:
    example = example_of(rows[0])
    assert example.key == rows[0]["id"]
    assert example.reference.values == tuple(rows[0]["answers"])
    assert (example.context, example.reference.count) == (rows[0]["context"], 1)


def test_another_seed_gives_other_questions(towns: Collection, words: Counter, rows: list[Row]) -> None:
    other = generate(Plan("test", 8, ("single_field",), 2, (900,), LAYOUTS), [towns], [words])
    assert {row["question"] for row in other}.isdisjoint(row["question"] for row in rows)


def test_a_length_beyond_the_records_is_refused_at_once(towns: Collection, words: Counter) -> None:
    with pytest.raises(ConfigError, match=r"test\.lengths: .* tokens"):
        generate(Plan("test", 1, ("single_field",), 1, (10**6,), LAYOUTS), [towns], [words])


def test_more_questions_than_there_are_is_an_error(towns: Collection, words: Counter) -> None:
    plan = Plan("dev", 1, ("single_field",), 1000, (900,), LAYOUTS)
    with pytest.raises(ConfigError, match=r"only [0-9]+ questions found for single_field"):
        list(generate(plan, [towns], [words]))


def test_parts_that_cannot_fill_a_context_are_told(words: Counter, tmp_path: Path) -> None:
    notes = [{"name": f"Note {i}", "size": i * 37, "text": " ".join(["word"] * 400)} for i in range(40)]
    (tmp_path / "notes.json").write_text(json.dumps(notes))
    each = words.count(json.dumps(notes[0]))
    plan = Plan("test", 1, ("single_field",), 1, (int(3.8 * each),), ("compact",))
    with pytest.raises(ConfigError, match="too alike in size"):
        list(generate(plan, collections(tmp_path), [words]))


def test_tokenizers_that_no_text_suits_together_are_named(towns: Collection, words: Counter) -> None:
    class Characters:
        name = "characters"

        def count(self, text: str) -> int:
            return len(text)

    with pytest.raises(ConfigError, match=r"words counts .* where characters counts"):
        list(generate(Plan("test", 1, ("single_field",), 1, (3000,), LAYOUTS), [towns], [words, Characters()]))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_page_prints_what_json_would_print(towns: Collection, words: Counter, layout: str) -> None:
    options = {"compact": {"separators": (",", ":")}, "spaced": {}, "indented": {"indent": 2}}[layout]
    response = {
        "status": {"code": 200},
        "result": {"total": 400, "towns": list(towns.tables[0].records[:5]), "next": None},
    }
    assert Page(towns, layout, [words]).text(range(5)) == json.dumps(response, ensure_ascii=False, **options)


def test_a_lazy_shuffle_gives_every_item_once() -> None:
    from random import Random

    items = list(range(50))
    first, second = list(shuffled(Random(1), items)), list(shuffled(Random(2), items))
    assert sorted(first) == sorted(second) == items
    assert first != second


@pytest.mark.parametrize(
    ("value", "rounded"),
    [(48_213, 48_000), (7, 7), (-48.7, -48), (104_993, 100_000), (0.5, 0.5), (0.0347, 0.035), (4.0, 4)],
)
def test_bounds_are_numbers_that_people_would_choose(value: float, rounded: int) -> None:
    assert round_number(value) == rounded
