"""Flat maps as lists of entries: each member is a record of its key and its value, in questions and in their check."""

from __future__ import annotations

import io
import json
from typing import Any

import json5
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from treeagent.data.catalog import Collection, Provenance, Table, Unit, identity_of
from treeagent.data.contexts import Counter
from treeagent.data.examples import Plan, Row, example_of, generate
from treeagent.data.formats import parse
from treeagent.data.frames import NATIVE, frame_for
from treeagent.data.records import find
from treeagent.data.tables import examined, tables
from treeagent.data.validate import Validator
from treeagent.data.validate.javascript_reading import read_javascript
from treeagent.data.validate.reading import Scope
from treeagent.data.validate.values import OPAQUE, Unreadable
from treeagent.data.validate.yaml_reading import read_yaml

TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\u2028\u2029\x85\ufeff"),
    max_size=8,
)
KEYS = TEXT.filter(lambda key: key not in ("__proto__", "<<"))
NUMBERS = st.one_of(st.integers(-(10**12), 10**12), st.decimals(-(10**6), 10**6, places=2, allow_nan=False).map(float))
MAPS = st.sampled_from([TEXT, NUMBERS, st.booleans()]).flatmap(
    lambda values: st.dictionaries(KEYS, values, min_size=4, max_size=7)
)


# Finding.


@given(MAPS, st.booleans())
def test_a_flat_map_in_javascript_gives_a_record_for_each_member(held: dict[str, Any], inside: bool) -> None:
    members = ",\n".join(f"  {_key(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in held.items())
    literal = f"{{\n{members}\n}}"
    text = f"const sizes = {f'{{ deep: {literal}, x: null }}' if inside else literal};\n"
    found = next(one for one in find(parse(text, "javascript")) if one.shape == "entries")
    assert found.pattern == ("$.deep.*" if inside else "$.*")
    assert [keys[-1] for keys in found.keys] == list(held)
    assert [record["@value"] for record in found.records] == list(json5.loads(literal).values()) == list(held.values())
    assert [json5.loads(text[start:end]) for start, end in found.spans] == list(held.values())


def _key(key: str) -> str:
    return key if key.isascii() and key.isidentifier() else json.dumps(key, ensure_ascii=False)


@given(MAPS, st.booleans())
def test_a_flat_map_in_yaml_gives_a_record_for_each_member(held: dict[str, Any], flow: bool) -> None:
    writer, out = YAML(typ="safe"), io.StringIO()
    writer.default_flow_style, writer.width, writer.allow_unicode = flow, 4096, True
    writer.dump({"sizes": held, "n": None}, out)
    (found,) = find(parse(out.getvalue(), "yaml"))
    assert (found.pattern, found.shape) == ("$.sizes.*", "entries")
    read = YAML(typ="safe").load(out.getvalue())["sizes"]
    assert {keys[-1]: record["@value"] for keys, record in zip(found.keys, found.records, strict=True)} == read


@pytest.mark.parametrize(
    "members",
    [
        "a: 1, b: 2, c: 3",
        "a: 1, b: 2, c: 3, d: 'x'",
        "a: 1, b: 2, c: 3, d: true",
        "a: 1, b: 2, c: 3, d: 4, e: {x: 1}",
        "a: 1, b: 2, c: 3, d: 4, e: [[1]]",
        "a: 1, b: 2, c: 3, d: 4, e: null, f: null",
        "a: 0x1, b: 0x2, c: 0x3, d: 0x4",
    ],
)
def test_few_or_unlike_members_are_no_entries(members: str) -> None:
    assert all(one.shape == "objects" for one in find(parse(f"const m = {{ {members} }};", "javascript")))


def test_a_member_without_a_single_value_is_an_entry_without_one() -> None:
    (found, _) = find(parse("const m = { a: 1, b: 2, c: 3, d: 4, e: [5] };", "javascript"))
    assert [dict(record) for record in found.records] == [*({"@value": i} for i in range(1, 5)), {}]


# Tables.


def statement(text: str, name: str = "sizes", file: str = "a.js") -> Unit:
    about = {"name": name, "file": file}
    return Unit(text, identity_of([text, file]), about, Provenance("a/b", "MIT", "", f"a/b:{file}#L1"))


def table_of(literal: str, name: str = "levels") -> Table:
    found = examined([statement(f"const {name} = {literal};", name)], "javascript")
    return next(table for table in found.tables if table.scope.shape == "entries")


def test_entries_are_named_by_their_keys_and_have_one_value() -> None:
    table = table_of("{ 'no-undef': 'error', 'no-var': 'warn', eqeqeq: 'error', semi: 'off', quotes: 'warn' }")
    assert table.scope.stored() == {"unit": {"name": "levels", "file": "a.js"}, "list": "$.*", "shape": "entries"}
    assert (table.singular, table.plural, table.whole) == ("level", "levels", False)
    assert (table.naming.path, [field.path for field in table.fields]) == (("@keys", "0"), [("@value",)])
    assert (table.fields[0].name, table.fields[0].kind) == ("value", "text")
    assert table.fields[0].roles >= {"ask", "condition"}
    assert table.described(1) == (table.naming,)


def test_numbers_of_entries_are_compared_and_those_that_repeat_counted() -> None:
    literal = "{" + ", ".join(f"k{i}: {(i % 4) * 100}" for i in range(12)) + "}"
    assert table_of(literal).fields[0].roles == {"ask", "condition", "measure", "group"}


@pytest.mark.parametrize(
    ("name", "plural"),
    [("aliasToReal", "entries"), ("htmlEscapes", "HTML escapes"), ("values", "values"), ("commonjs", "entries")],
)
def test_entries_are_called_by_the_name_of_their_map_where_it_is_a_plural(name: str, plural: str) -> None:
    assert table_of("{ a: 'x1', b: 'x2', c: 'x3', d: 'x4' }", name).plural == plural


def test_values_that_only_repeat_their_keys_are_not_asked_for() -> None:
    literal = "{ ClampToEdge: 'clamp-to-edge', Repeat: 'repeat', MirrorRepeat: 'mirror-repeat', Other: 'x' }"
    found = examined([statement(f"const modes = {literal};", "modes")], "javascript")
    assert not any(table.scope.shape == "entries" for table in found.tables)


def test_keys_that_are_written_with_escapes_name_nothing() -> None:
    found = examined([statement(r"const m = { '\xc0': 'A', '\xc1': 'B', '\xc2': 'C', '\xc3': 'D' };")], "javascript")
    assert not any(table.scope.shape == "entries" for table in found.tables)
    assert "its keys are written with escapes" in [left.reason for left in found.left_out]


def test_maps_at_the_same_place_of_several_units_are_one_table_over_all() -> None:
    literal = "{{ name: '{0}', dictionary: {{ Zoom: 'zoom {0}', Pan: 'pan {0}', Reset: 'r{0}', Box: 'b{0}' }} }}"
    units = [statement(f"const m = {literal.format(i)};", "m", f"{i}.js") for i in range(3)]
    (table,) = (table for table in tables(units, "javascript") if table.scope.shape == "entries")
    assert (table.whole, table.plural, len(table.records)) == (True, "dictionary entries", 12)
    described = table.described(0)
    assert described is not None
    assert [field.path for field in described] == [("@keys", "0"), ("@unit", "file")]


# The check's own reading.

SCRIPT = "// a/b lib/x.js (MIT)\nvar map = {a: 'x', \"b c\": 'y', d: [1], e: null};\n"


def scope(pattern: str, **unit: str) -> Scope:
    return Scope.of({"unit": unit, "list": pattern, "shape": "entries"})


def test_the_check_reads_entries_for_itself() -> None:
    records = read_javascript(SCRIPT, scope("$.*", name="map", file="lib/x.js")).records
    assert [record.value["@keys"] for record in records] == [["a"], ["b c"], ["d"], ["e"]]
    assert [record.value.get("@value") for record in records] == ["x", "y", None, None]
    assert [SCRIPT[record.start : record.end] for record in records] == ["'x'", "'y'", "[1]", "null"]
    stream = "title: A\nsizes: {s: 1, m: 2.50}\n"
    assert [r.value["@value"] for r in read_yaml(stream, scope("$.sizes.*", title="A")).records] == [1, 2.5]


@pytest.mark.parametrize("literal", ["{a: 1, b: 'x'}", "{a: 1, b: true}", "{a: 1, b: 0x10}"])
def test_the_check_refuses_values_of_several_kinds(literal: str) -> None:
    with pytest.raises(Unreadable, match="not of one kind"):
        read_javascript(f"// a b (c)\nx = {literal};\n", scope("$.*"))
    assert repr(OPAQUE) == "OPAQUE"


@pytest.mark.parametrize("pattern", ["$", "$.a"])
def test_the_check_refuses_a_place_that_has_no_members(pattern: str) -> None:
    with pytest.raises(Unreadable, match="members of a map"):
        read_javascript("// a b (c)\nx = {a: {b: 1}};\n", scope(pattern))


# Sets that are made of entries, and then changed.

TASKS = ("single_field", "two_records", "four_records", "conditional_count", "most_frequent", "numerical_extremum")
RECORD_TASKS = ("two_fields", "four_fields")
COLORS = ("teal", "coral", "olive", "ochre")


def members(number: int) -> dict[str, str]:
    """Members of one unit's map as they are spelled: colours in every second unit, numbers in the others."""
    keys = [f"{word}{number}" for word in ("roof", "door", "wall", "floor", "fence", "gate", "stair", "tower")]
    if number % 2:
        return {key: f"{(number * 8 + i) * 37 % 997 + i}.50" for i, key in enumerate(keys)}
    return {key: json.dumps(COLORS[min(3, (number * 5 + i * 3) % 7)]) for i, key in enumerate(keys)}


def unit(number: int, format: str) -> Unit:
    origin = Provenance("town/house", "MIT", "nobody", f"town/house@1:src/{number}.js#L1")
    if format == "yaml":
        lines = "".join(f"  {key}: {value}\n" for key, value in members(number).items())
        text = f"title: House {number}\nparts:\n{lines}"
        return Unit(text, identity_of([text]), {"title": f"House {number}"}, origin)
    lines = "".join(f"  '{key}': {value},\n" for key, value in members(number).items())
    text = f"const house{number} = {{\n{lines}}};"
    return Unit(text, identity_of([text]), {"name": f"house{number}", "file": f"src/{number}.js"}, origin)


@pytest.fixture(scope="module")
def made(words: Counter) -> dict[tuple[str, str], list[Row]]:
    """Four questions of each task."""
    rows: dict[tuple[str, str], list[Row]] = {}
    for format in ("javascript", "yaml"):
        units = [unit(number, format) for number in range(150)]
        found = tables(units, format, whole=False, name="houses")
        houses = Collection("houses", format, units, found, frame_for(format), NATIVE, units[0].provenance)
        tasks = (*TASKS, *RECORD_TASKS) if format == "javascript" else TASKS
        for row in generate(Plan("test", 5, tasks, 4, (900,), NATIVE), [houses], [words]):
            rows.setdefault((format, row["task"]), []).append(row)
    return rows


def problems(row: Row, words: Counter, **columns: Any) -> str:
    row = {**row, **columns}
    return "; ".join(Validator([words]).check("test", {**row, "id": example_of(row).key}))


EACH = [(format, task) for format in ("javascript", "yaml") for task in TASKS]


@pytest.mark.parametrize(("format", "task"), [*EACH, *(("javascript", task) for task in RECORD_TASKS)])
def test_what_was_built_from_flat_maps_passes(made: Any, words: Counter, format: str, task: str) -> None:
    assert [problems(row, words) for row in made[format, task]] == [""] * 4


def test_numbers_answer_as_they_are_spelled(made: Any) -> None:
    rows = [*made["javascript", "numerical_extremum"], *made["javascript", "single_field"]]
    numbers = [row["answers"][0] for row in rows if row["answer_kind"] == "number"]
    assert numbers
    assert all(number.endswith(".50") for number in numbers)


def test_questions_name_entries_and_where_they_lie(made: Any) -> None:
    for row in made["javascript", "single_field"]:
        spec = json.loads(row["spec"])
        assert all(part in row["question"] for part in spec["scope"]["unit"].values())
        assert spec["selectors"][0][0]["value"] in row["question"]
    for row in made["javascript", "four_fields"]:
        (name,) = {test["value"] for selector in json.loads(row["spec"])["selectors"] for test in selector}
        assert row["question"].count(name) == 1


@pytest.mark.parametrize(("format", "task"), EACH)
def test_a_wrong_answer_is_caught(made: Any, words: Counter, format: str, task: str) -> None:
    for row in made[format, task]:
        wrong = ["77", *row["answers"][1:]]
        assert "the answer is" in problems(row, words, answers=wrong)


@pytest.mark.parametrize("format", ["javascript", "yaml"])
def test_a_changed_map_is_caught(made: Any, words: Counter, format: str) -> None:
    for row in made[format, "single_field"]:
        if json.loads(row["spec"])["scope"]["shape"] != "entries":
            continue
        name, value = json.loads(row["spec"])["selectors"][0][0]["value"], row["answers"][0]
        entry = f"'{name}': " if format == "javascript" else f"  {name}: "
        at = row["context"].index(entry) + len(entry)
        before, after = row["context"][:at], row["context"][at:]
        spelled = value if row["answer_kind"] == "number" else json.dumps(value)
        other = "4.25" if row["answer_kind"] == "number" else '"rust"'
        assert "the answer is" in problems(row, words, context=before + after.replace(spelled, other, 1))
        renamed = before.removesuffix(entry) + entry.replace(name, f"x{name}") + after
        assert "0 records are" in problems(row, words, context=renamed)
        twice = before + after.replace(spelled, f"{spelled},\n  {entry}{spelled}", 1)
        twice = twice if format == "javascript" else before + after.replace(spelled, f"{spelled}\n{entry}{spelled}", 1)
        assert "cannot be read" in problems(row, words, context=twice)
        assert "not of one kind" in problems(row, words, context=before + after.replace(spelled, "true", 1))
