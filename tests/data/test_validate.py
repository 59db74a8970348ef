"""The independent check catches what is wrong with an example or a benchmark, one fault at a time."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest
from rich.console import Console
from treeagent.data.catalog import Collection
from treeagent.data.contexts import Counter
from treeagent.data.examples import Plan, Row, example_of, generate
from treeagent.data.tasks import TASKS
from treeagent.data.validate import Validator, validate
from treeagent.data.validate.ledger import Ledger
from treeagent.data.validate.row import Finding, identity
from treeagent.data.validate.wording import faults


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


def with_spec(row: Row, **parts: Any) -> Row:
    """The row with its specification changed; None leaves a part out."""
    spec = {key: value for key, value in {**json.loads(row["spec"]), **parts}.items() if value is not None}
    return changed(row, spec=json.dumps(spec, sort_keys=True))


def problems(row: Row, words: Counter) -> str:
    return "; ".join(Validator([words]).check("test", row))


@pytest.mark.parametrize("task", TASKS)
def test_what_was_built_passes(rows: dict[str, Row], words: Counter, task: str) -> None:
    assert problems(rows[task], words) == ""
    assert identity(rows[task]) == rows[task]["id"]


@pytest.mark.parametrize("task", TASKS)
def test_a_tampered_answer_is_caught(rows: dict[str, Row], words: Counter, task: str) -> None:
    row = changed(rows[task], answers=["999999999"])
    assert "the answer is" in problems(row, words)


@pytest.mark.parametrize("task", ["four_fields", "four_records", "two_fields", "two_records"])
def test_answers_in_another_order_are_caught(rows: dict[str, Row], words: Counter, task: str) -> None:
    row = changed(rows[task], answers=rows[task]["answers"][::-1])
    assert "the answer is" in problems(row, words)


def test_records_named_in_another_order_than_asked_are_caught(rows: dict[str, Row], words: Counter) -> None:
    row = rows["two_records"]
    spec = json.loads(row["spec"])
    swapped = with_spec(row, selectors=spec["selectors"][::-1])
    swapped = changed(swapped, answers=row["answers"][::-1], support=row["support"][::-1])
    assert "in the order of the specification" in problems(swapped, words)


def test_a_missing_tie_is_caught(rows: dict[str, Row], words: Counter) -> None:
    row = rows["most_frequent"]
    spec = json.loads(row["spec"])

    def tie(records: list[Any]) -> list[Any]:
        """Makes another value as frequent as the leader."""
        inside = [r for r in records if all(_holds(r, c) for c in spec.get("conditions", ()))]
        leader, rival = row["answers"][0], next(v for r in inside if (v := _at(r, spec["group"])) != row["answers"][0])
        times = [[_at(r, spec["group"]) for r in inside].count(value) for value in (leader, rival)]
        model = next(r for r in inside if _at(r, spec["group"]) == rival)
        return [*records, *({**model, "id": 10**6 + k} for k in range(times[0] - times[1]))]

    row = with_records(row, tie)
    assert "the answer is" in problems(row, words)
    assert f"not {row['answers']}" in problems(row, words)


def _holds(record: Any, test: Any) -> bool:
    value = _at(record, test["field"])
    return {
        "=": lambda: value == test["value"],
        ">": lambda: value > test["value"],
        "<": lambda: value < test["value"],
        "contains": lambda: test["value"] in value,
    }[test["op"]]()


@pytest.mark.parametrize("task", TASKS)
def test_a_moved_record_is_caught(rows: dict[str, Row], words: Counter, task: str) -> None:
    row = with_records(rows[task], lambda records: records[len(records) // 2 :] + records[: len(records) // 2])
    assert "a support lies between" in problems(row, words)


def test_an_entity_that_is_there_twice_is_caught(rows: dict[str, Row], words: Counter) -> None:
    row = rows["single_field"]
    name = json.loads(row["spec"])["selectors"][0][0]["value"]
    doubled = with_records(row, lambda records: [*records, next(r for r in records if r["name"] == name)])
    assert "2 records are name = " in problems(doubled, words)
    again = with_records(row, lambda records: [*records, {"name": f" {name.upper()}", "id": -1}])
    assert "2 but for case and blanks" in problems(again, words)


def test_an_entity_that_is_gone_is_caught(rows: dict[str, Row], words: Counter) -> None:
    row = rows["single_field"]
    name = json.loads(row["spec"])["selectors"][0][0]["value"]
    gone = with_records(row, lambda records: [r for r in records if r["name"] != name])
    assert "0 records are name = " in problems(gone, words)


def test_an_extremum_with_a_tie_is_caught(rows: dict[str, Row], words: Counter) -> None:
    row = rows["numerical_extremum"]
    spec = json.loads(row["spec"])

    def tie(records: list[Any]) -> list[Any]:
        best = min if spec["extreme"] == "min" else max
        inside = [r for r in records if all(_holds(r, c) for c in spec.get("conditions", ()))]
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


def test_a_field_whose_name_reads_like_a_place_may_be_asked_for() -> None:
    spec = {"task": "single_field", "scope": {"unit": {}}, "fields": [["addressLine1"]]}
    asked = "What is the address line 1 of the shop? Give just the value."
    assert faults(asked, spec, ["x"], []) == []
    assert "path or place" in faults(f"{asked} See line 2.", spec, ["x"], [])[0]


@pytest.mark.parametrize("task", TASKS)
def test_a_question_that_gives_away_the_answer_is_caught(rows: dict[str, Row], words: Counter, task: str) -> None:
    row = rows[task]
    leak = f"{row['question']} Is it {row['answers'][0].upper()}?"
    assert "reveals the answer" in problems(changed(row, question=leak), words)


@pytest.mark.parametrize(
    ("task", "taken", "said"),
    [
        ("single_field", r"(Answer|Give|Reply) [^.]*\.$", "never asks for the values only"),
        ("two_fields", r"\border\w*", "never says that order matters"),
        ("most_frequent", r"tie\w*|tied|equally", "never mentions ties"),
        ("conditional_count", r"(?i)how many|count", "never asks how many"),
        ("numerical_extremum", r"(high|great|larg|low|small)est", "never says"),
    ],
)
def test_a_question_that_leaves_out_a_rule_is_caught(
    rows: dict[str, Row], words: Counter, task: str, taken: str, said: str
) -> None:
    row = rows[task]
    assert said in problems(changed(row, question=re.sub(taken, "…", row["question"])), words)


def test_a_question_about_another_record_is_caught(rows: dict[str, Row], words: Counter) -> None:
    row = rows["single_field"]
    name = json.loads(row["spec"])["selectors"][0][0]["value"]
    assert "does not name" in problems(changed(row, question=row["question"].replace(name, "Elsewhere")), words)


@pytest.mark.parametrize("length", [800, 1100])
def test_a_context_of_another_length_is_caught(rows: dict[str, Row], words: Counter, length: int) -> None:
    assert "tokens under words" in problems(changed(rows["single_field"], length=length), words)


def test_a_context_beyond_all_measure_is_not_even_read(rows: dict[str, Row], words: Counter) -> None:
    assert "no 900 tokens under any" in problems(changed(rows["single_field"], context="[" * 1_000_000), words)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"source": ""}, "source is empty"),
        ({"license": ""}, "license is empty"),
        ({"license": "MIT"}, "those of the parts CC0-1.0"),
        ({"sources": ["test/towns |  | https://example.org"]}, "no source, licence or location"),
        ({"sources": []}, "sources is empty"),
        ({"count": 2}, "2 values are asked for"),
        ({"ordered": True}, "order or kind"),
        ({"answer_kind": "date"}, "unknown answer kind"),
        ({"context": "{"}, "cannot be read"),
        ({"format": "toml"}, "unknown format"),
        ({"spec": "[]"}, "the specification is none"),
        ({"spec": "{"}, "cannot be checked"),
        ({"support": [1.5]}, "a support lies between"),
        ({"support": [0.1, 0.2]}, "2 supports are told"),
        ({"task": "two_fields"}, "of another task"),
    ],
)
def test_a_row_that_is_not_whole_is_caught(
    rows: dict[str, Row], words: Counter, columns: dict[str, Any], said: str
) -> None:
    assert said in problems(changed(rows["single_field"], **columns), words)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"selectors": None}, "names 1 records"),
        ({"fields": [["river"], ["guild"]]}, "asks for 1 fields"),
        ({"fields": [["nowhere"]]}, "no single value nowhere"),
        ({"fields": ["river"]}, "a field that is none"),
        ({"selectors": [[{"field": ["name"], "op": "~", "value": 1}]]}, "a test that is none"),
        ({"scope": {"list": "$.result.towns.*", "unit": {"title": "x"}, "shape": "objects"}}, "cannot be read"),
        ({"scope": {"list": "$.nowhere.*", "unit": {}, "shape": "objects"}}, "nothing lies at the scope"),
        ({"scope": {"list": "nowhere", "unit": {}, "shape": "objects"}}, "is no pattern"),
        ({"answer_kind": "date"}, "order or kind"),
    ],
)
def test_a_specification_that_is_another_is_caught(
    rows: dict[str, Row], words: Counter, parts: dict[str, Any], said: str
) -> None:
    assert said in problems(with_spec(rows["single_field"], **parts), words)


def test_a_column_of_another_kind_is_caught(rows: dict[str, Row], words: Counter) -> None:
    row = {**rows["single_field"], "length": "900"}
    assert "the column length" in problems(row, words)
    assert "the column answers" in problems({**row, "length": 900, "answers": [None]}, words)
    assert "the column support" in problems({**row, "length": 900, "support": ["0.5"]}, words)
    assert "longer than 10,000" in problems({**row, "length": 900, "question": "a" * 200_000}, words)
    assert "the column sources" in problems({k: v for k, v in row.items() if k != "sources"} | {"length": 900}, words)


def test_an_id_that_is_not_the_examples_is_caught(rows: dict[str, Row], words: Counter) -> None:
    assert "the id is not" in problems({**rows["single_field"], "id": "0" * 16}, words)


def test_an_example_that_is_there_twice_is_caught(rows: dict[str, Row], words: Counter) -> None:
    validator = Validator([words])
    assert validator.check("test", rows["single_field"]) == []
    assert "the same example is there twice" in validator.check("test", rows["single_field"])


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


def test_a_base_that_does_not_grow_is_caught() -> None:
    ledger = Ledger()
    found = {n: Finding([], str(n), "b", "single_field", n, kept=b"k", units=(b"u",) * n) for n in (10, 20, 30)}
    assert ledger.add("test", found[20]) == ledger.add("test", found[10]) == []
    found[30].units = (b"u",) * 19
    assert "does not grow" in ledger.add("test", found[30])[0]


def test_supports_that_bunch_are_caught_and_uniform_ones_are_not() -> None:
    rng = Random(1)
    for squeeze, found in ((1.0, 0), (0.3, 1)):
        ledger = Ledger()
        for n in range(200):
            ledger.add("test", Finding([], str(n), "", "single_field", 1, places=(rng.random() * squeeze,)))
        assert len(ledger.spread()) == found


# Whole folders.


@pytest.fixture(scope="module")
def folder(towns: Collection, words: Counter, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A benchmark of two splits, as the builder writes it."""
    import hashlib

    from treeagent.data import benchmark, card

    out = tmp_path_factory.mktemp("benchmark")
    identity: dict[str, Any] = {
        "format": "json",
        "seed": 3,
        "tokenizers": [],
        "tasks": list(TASKS),
        "train": {"per_task": 0},
    }
    splits = {}
    for split in ("dev", "test"):
        lengths = (900, 1800) if split == "test" else (900,)
        identity[split] = {"per_task": 2, "lengths": list(lengths)}
        made = generate(Plan(split, 3, tuple(TASKS), 2, lengths, ("compact",)), [towns], [words])
        splits[split] = benchmark.write_split(out, split, made)
    content = hashlib.sha256(json.dumps({name: s["content"] for name, s in sorted(splits.items())}).encode())
    manifest = {"identity": identity, "content": content.hexdigest(), "splits": splits}
    (out / "README.md").write_text(card.render(manifest, [towns], []))
    (out / "manifest.json").write_text(json.dumps(manifest))
    return out


def said_of(folder: Path, **options: Any) -> str:
    """What the command prints, and its error."""
    from treeagent.errors import InputError, RunError

    console = Console(file=io.StringIO(), width=200)
    error = ""
    try:
        validate(str(folder), console, **options)
    except (RunError, InputError) as failure:
        error = f"\n{type(failure).__name__}: {failure}"
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue() + error


def copied(folder: Path, to: Path) -> Path:
    import shutil

    shutil.copytree(folder, to, dirs_exist_ok=True)
    return to


def rewritten(folder: Path, split: str, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    """Changes the rows of a split; ids, fingerprints and numbers of rows are made to fit."""
    import hashlib

    from treeagent.data import benchmark

    manifest = json.loads((folder / "manifest.json").read_text())
    rows = pq.read_table(folder / manifest["splits"][split]["file"]).to_pylist()
    rows = [{**row, "id": example_of(row).key} for row in change(rows)]
    manifest["splits"][split] = benchmark.write_split(folder, split, rows)
    contents = {name: s["content"] for name, s in sorted(manifest["splits"].items())}
    whole = hashlib.sha256(json.dumps(contents).encode()).hexdigest()
    card = (folder / "README.md").read_text().replace(manifest["content"], whole)
    (folder / "README.md").write_text(card)
    (folder / "manifest.json").write_text(json.dumps({**manifest, "content": whole}))


def test_a_benchmark_as_it_was_built_has_no_failure(folder: Path) -> None:
    said = said_of(folder)
    assert "48 examples checked, none failed" in said
    assert re.search(r"test\W+four_records\W+1,800\W+2\W+0", said)


@pytest.mark.slow
def test_two_processes_find_the_same(folder: Path, tmp_path: Path) -> None:
    broken = copied(folder, tmp_path)
    rewritten(broken, "test", lambda rows: [{**rows[0], "answers": ["nothing"]}, *rows[1:]])
    assert said_of(broken, num_proc=2) == said_of(broken)


def test_failures_are_told_and_the_command_fails(folder: Path, tmp_path: Path) -> None:
    broken = copied(folder, tmp_path)
    rewritten(broken, "test", lambda rows: [{**row, "answers": ["nothing"]} for row in rows])
    said = said_of(broken)
    assert "test 0: test/single_field/0 of 900 tokens: the answer is" in said
    assert said.count(": the answer is") <= 20
    assert re.search(r"and \d+ more", said)
    assert re.search(r"RunError: .*failures among 48 examples", said)


def leaked(rows: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """The rows with an example of the other split put in the place of the first."""
    other = pq.read_table(folder / "data/dev-00000-of-00001.parquet").to_pylist()[0]
    return [{**other, "base_id": "test/single_field/0"}, *rows[1:]]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows, folder: leaked(rows, folder), "also in the split dev"),
        (lambda rows, folder: rows[1:], "1 examples of single_field with 900 tokens in test, not 2"),
        (lambda rows, folder: [*rows, rows[0]], "the same example is there twice"),
        (
            lambda rows, folder: [{**rows[0], "base_id": rows[4]["base_id"]}, *rows[1:]],
            "asks another question",
        ),
        (
            lambda rows, folder: [
                {**row, "license": "CC0-1.0, MIT", "sources": [*row["sources"], "a | MIT | b"]} for row in rows
            ],
            "the card does not attribute a (MIT)",
        ),
        (lambda rows, folder: [{**rows[0], "context": rows[0]["context"][:-1]}, *rows[1:]], "cannot be read"),
    ],
)
def test_a_set_that_was_changed_is_caught(
    folder: Path, tmp_path: Path, change: Callable[[Any, Path], Any], said: str
) -> None:
    broken = copied(folder, tmp_path)
    rewritten(broken, "test", lambda rows: change(rows, folder))
    everything = said_of(broken)
    assert said in everything
    assert "RunError" in everything


def test_a_torn_file_is_caught(folder: Path, tmp_path: Path) -> None:
    broken = copied(folder, tmp_path)
    file = broken / "data/test-00000-of-00001.parquet"
    file.write_bytes(file.read_bytes()[:-100])
    said = said_of(broken)
    assert "test-00000-of-00001.parquet cannot be read" in said
    assert "the manifest says rows 32, the file 0" in said
    file.unlink()
    assert "cannot be read" in said_of(broken)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m["splits"]["test"].update(rows=31), "the manifest says rows 31, the file 32"),
        (lambda m: m["splits"]["test"].update(content="0"), "the manifest says content 0"),
        (lambda m: m["splits"]["test"].update(sha256="0"), "the manifest says sha256 0"),
        (lambda m: m["splits"]["test"].update(lengths=[900]), "the manifest says lengths [900]"),
        (lambda m: m["splits"]["test"].update(tasks=["two_fields"]), "the manifest says tasks"),
        (lambda m: m["splits"]["test"].update(file="../x.parquet"), "outside the folder"),
        (lambda m: m["splits"].pop("dev"), "the split dev is missing"),
        (lambda m: m["identity"].pop("train"), "does not say how many examples train has"),
        (lambda m: m["identity"].update(format="yaml"), "the card has no configuration yaml"),
        (lambda m: m["identity"].update(tokenizers=["0123"]), "The tokenizer 0123 is not at hand"),
        (lambda m: m.update(content="0"), "the manifest says content 0"),
        (lambda m: m.pop("splits"), "InputError"),
        (lambda m: m.update(splits={"test": 1}), "InputError"),
        (lambda m: m["splits"]["test"].update(rows="many"), "InputError"),
        (lambda m: m["identity"].update(tokenizers=3), "InputError"),
        (lambda m: m["identity"].update(test={"per_task": 2, "lengths": "all"}), "InputError"),
    ],
)
def test_an_edited_manifest_is_caught(folder: Path, tmp_path: Path, change: Callable[[Any], Any], said: str) -> None:
    broken = copied(folder, tmp_path)
    manifest = json.loads((broken / "manifest.json").read_text())
    change(manifest)
    (broken / "manifest.json").write_text(json.dumps(manifest))
    assert said in said_of(broken)


def test_what_a_benchmark_says_never_steers_the_terminal(folder: Path, tmp_path: Path) -> None:
    broken = copied(folder, tmp_path)
    rewritten(broken, "test", lambda rows: [{**rows[0], "task": "[/b]\x1b[2J", "base_id": "[/red]"}, *rows[1:]])
    manifest = json.loads((broken / "manifest.json").read_text())
    manifest["identity"]["tokenizers"] = ["[/x]\x1b"]
    (broken / "manifest.json").write_text(json.dumps(manifest))
    said = said_of(broken)
    assert "[/b]" in said
    assert "[/red] of 900 tokens" in said
    assert "[/x]" in said
    assert "\x1b" not in said


def test_a_card_that_is_gone_or_says_otherwise_is_caught(folder: Path, tmp_path: Path) -> None:
    broken = copied(folder, tmp_path)
    card = broken / "README.md"
    card.write_text(card.read_text().replace("CC0-1.0", "MIT"))
    assert "the card does not attribute test/towns (CC0-1.0)" in said_of(broken)
    card.unlink()
    assert "there is no dataset card" in said_of(broken)


def test_a_file_or_licence_that_nothing_accounts_for_is_caught(folder: Path, tmp_path: Path) -> None:
    broken = copied(folder, tmp_path)
    (broken / "data" / "more.parquet").write_bytes(b"")
    card = broken / "README.md"
    card.write_text(re.sub("license: .*", "license: wtfpl", card.read_text(), count=1))
    said = said_of(broken)
    assert "the manifest does not name data/more.parquet" in said
    assert "the card does not state the licence" in said


def test_a_folder_that_is_no_benchmark_is_refused(tmp_path: Path) -> None:
    assert "InputError" in said_of(tmp_path)
