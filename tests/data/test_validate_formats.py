"""The check's own readings of the four formats: what they find in small contexts, and what hostile ones come to."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from treeagent.data.catalog import Collection, Provenance, Unit, identity_of
from treeagent.data.contexts import Counter
from treeagent.data.examples import Plan, Row, example_of, generate
from treeagent.data.frames import NATIVE, frame_for
from treeagent.data.tables import tables
from treeagent.data.validate import Validator
from treeagent.data.validate.html_reading import read_html
from treeagent.data.validate.javascript_reading import read_javascript
from treeagent.data.validate.json_reading import read_json
from treeagent.data.validate.reading import Reading, Scope, steps_of
from treeagent.data.validate.values import OPAQUE, Unreadable, amount, equal, number_of, spelling
from treeagent.data.validate.yaml_reading import read_yaml


def scope(pattern: str, shape: str = "objects", **unit: str) -> Scope:
    return Scope.of({"unit": unit, "list": pattern, "shape": shape})


def values(reading: Reading) -> list[dict[str, Any]]:
    """The records without what tells their unit and keys."""
    return [{k: v for k, v in record.value.items() if not k.startswith("@")} for record in reading.records]


def slices(text: str, reading: Reading) -> list[str]:
    return [text[record.start : record.end] for record in reading.records]


# Values.


@pytest.mark.parametrize(
    ("raw", "value", "said"),
    [("12", 12, "12"), ("1.50", 1.5, "1.50"), ("-0", 0, "-0"), ("1e3", 1000, "1e3"), ("0.1", 0.1, "0.1")],
)
def test_a_number_keeps_its_spelling(raw: str, value: float, said: str) -> None:
    assert number_of(raw) == value
    assert spelling(number_of(raw)) == said


def test_numbers_without_a_value_have_none() -> None:
    assert number_of("9" * 301) is number_of("1e999") is OPAQUE
    assert amount(OPAQUE) is amount(True) is amount("1,23") is amount("x") is None
    assert spelling(OPAQUE) is spelling(None) is spelling([1]) is None


@pytest.mark.parametrize(("text", "number"), [("1,234.5", 1234.5), ("-3", -3), ("12", 12), ("1,000,000", 10**6)])
def test_a_text_that_people_read_as_a_number_is_one(text: str, number: float) -> None:
    assert amount(text) == amount(number)


def test_equal_is_strict_about_kinds() -> None:
    assert equal(1, 1.0)
    assert not equal(1, True)
    assert not equal("1", 1)
    assert not equal(None, None)


@pytest.mark.parametrize(
    ("pattern", "steps"),
    [("$.a.*", ["a", None]), ('$["b c"][2].*.*', ["b c", 2, None, None]), ("$.*", [None]), ("$", [])],
)
def test_patterns(pattern: str, steps: list[Any]) -> None:
    assert steps_of(pattern) == steps


@pytest.mark.parametrize("pattern", ["a.*", "$.a..b", "$['a']", "$.a.*x", "$[-1]"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(Unreadable):
        steps_of(pattern)


# JSON.


def test_json_records_stand_where_they_are() -> None:
    text = '{"n": 2, "a": {"list": [ {"x": 1.0}, 5,{"x": "é"} ]}, "z": [[]]}\n'
    reading = read_json(text, scope("$.a.list.*"))
    assert values(reading) == [{"x": 1.0}, {"x": "é"}]
    assert slices(text, reading) == ['{"x": 1.0}', '{"x": "é"}']
    assert len(reading.units) == 3


def test_json_records_of_a_map_and_of_a_place() -> None:
    text = '[{"m": {"p": {"x": 1}, "q": {"x": 2}}}, {"m": {}}]'
    assert [r.value["@keys"] for r in read_json(text, scope("$[0].m.*")).records] == [["p"], ["q"]]
    assert values(read_json(text, scope("$[0].m.q"))) == [{"x": 2}]
    assert values(read_json(text, scope("$.*.m.*"))) == [{"x": 1}, {"x": 2}]
    assert read_json(text, scope("$.m.*")).records == []


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1,]", '{"a":1,}', '{"a":1 "b":2}', "[1] x", '{"a":1,"a":2}', "[NaN]", "[01]", '["\t"]', "[1", '{"a"'],
)
def test_what_is_no_json_is_refused(text: str) -> None:
    for pattern in ("$.*", "$.a.*"):
        with pytest.raises(Unreadable, match="no JSON"):
            read_json(text, scope(pattern))


# HTML.

PAGE = "<!DOCTYPE html>\n<html>\n<head><title>t</title></head>\n<body>\n%s\n</body>\n</html>\n"


def page(**articles: str) -> str:
    inside = (f'<article title="{title}">\n{text}\n</article>' for title, text in articles.items())
    return PAGE % "\n".join(inside)


TABLE = (
    "<div><p>One<div>two</div><table><caption>C</caption><tr><th>Name<th>Size &amp; <b>all</b>\n"
    "<tr><td>a<!-- <td>x --><td>1,000<script>document.write('<td>')</script>\n<tr><td colspan=2>no\n"
    "<tr><td>b&nbsp; c<td>2</table></div>"
)


def test_html_tables_are_read_as_people_see_them() -> None:
    text = page(A="<p>none", B=TABLE)
    reading = read_html(text, scope("/div/table", "table"))
    assert values(reading) == [{"Name": "a", "Size & all": "1,000"}, {"Name": "b c", "Size & all": "2"}]
    assert [record.value["@unit"] for record in reading.records] == [{"title": "B"}] * 2
    starts = [text.index("<tr><td>a"), text.index("<tr><td>b")]
    assert [record.start for record in reading.records] == starts
    assert all(record.end <= text.index("\n</article>", starts[1]) + 11 for record in reading.records)


def test_html_units_are_found_by_their_title() -> None:
    text = page(A=TABLE, B=TABLE)
    assert len(read_html(text, scope("/div/table", "table", title="B")).records) == 2
    assert {r.unit for r in read_html(text, scope("/div/table", "table", title="B")).records} == {1}
    twins = page(A=TABLE, a=TABLE)
    with pytest.raises(Unreadable, match="not one"):
        read_html(twins, scope("/div/table", "table", title="A"))


def test_html_definitions_and_items() -> None:
    listed = "<dl><dt>K<dd>1<dt>L<dd>2</dl><ul><li><b class='n x'>a</b><i class=v>1</i><li><b class=n>b</b><p>c</ul>"
    text = page(A=listed)
    assert values(read_html(text, scope("/dl", "definitions"))) == [{"K": "1", "L": "2"}]
    assert values(read_html(text, scope("/ul", "items"))) == [{"n": "a", "v": "1"}, {"n": "b"}]
    pairs = page(A="<table><tr><td>K<td>1<tr><td>L<td>2</table>")
    assert values(read_html(pairs, scope("/table", "definitions"))) == [{"K": "1", "L": "2"}]


def test_html_paths_count_siblings_of_one_name_where_there_are_several() -> None:
    text = page(A="<p>x<div><table><tr><th>n<th>m<tr><td>1<td>2</table></div><div></div>")
    assert len(read_html(text, scope("/div[1]/table", "table")).records) == 1
    assert read_html(text, scope("/div/table", "table")).records == []
    assert read_html(text, scope("/div[1]/table[1]", "table")).records == []
    assert read_html(text, scope("/div[3]/table", "table")).records == []


@pytest.mark.parametrize("inside", ["<!-- open", "<textarea>", "</article>beside<article>", "<table>", "</body>x", ""])
def test_what_stands_in_a_unit_ends_with_it(inside: str) -> None:
    """Read by the standard's rules: a page that is left open takes the next one in."""
    text = page(A=inside, B=TABLE)
    if inside in ("", "</body>x"):  # the end of the article closes these
        assert len(read_html(text, scope("/div/table", "table")).records) == 2
    else:
        with pytest.raises(Unreadable):
            read_html(text, scope("/div/table", "table"))


# YAML.

YAML = """# one
openapi: 3.0.0
info: {title: "A  b", license: {name: MIT}}
paths:
  /x:
    get: {id: one, n: 1.50, t: 2020-01-01, o: yes, z: 012, q: "7"}
    post:
      id: |
        two
      n: ~
---
info:
  title: C
paths:
  /y:
    get: {id: three, also: &a [1], same: *a}
"""


def test_yaml_scalars_have_the_values_that_everyone_agrees_on() -> None:
    reading = read_yaml(YAML, scope("$.paths.*.*"))
    assert [record.value["@keys"] for record in reading.records] == [["/x", "get"], ["/x", "post"], ["/y", "get"]]
    assert [record.value["@unit"] for record in reading.records] == [{"title": "A b"}] * 2 + [{"title": "C"}]
    first, second, third = values(reading)
    assert first == {"id": "one", "n": 1.5, "t": "2020-01-01", "o": "yes", "z": "012", "q": "7"}
    assert spelling(first["n"]) == "1.50"
    assert second == {"id": "two\n", "n": None}
    assert third == {"id": "three", "also": [1], "same": OPAQUE}
    assert slices(YAML, reading)[0] == '{id: one, n: 1.50, t: 2020-01-01, o: yes, z: 012, q: "7"}'
    assert len(read_yaml(YAML, scope("$.paths.*.*", title="C")).records) == 1


@pytest.mark.parametrize(
    "text", ["a: 1\na: 2\n", "a: [1", "a: *b\n? {x: 1}\n: 2\n", "%FOO\na: 1\n...\nb: 2\n", "\t- a"]
)
def test_yaml_that_can_be_read_in_two_ways_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        read_yaml(text, scope("$.*"))


# JavaScript.

SCRIPT = """// a/b lib/x.js (MIT)
const LIST = [ {id: 'o\\'ne', n: +1.50, 'h': 0x10}, /* {no} */ {id: "two", n: -2,}, 3 ];

// a/b lib/y.js (MIT)
module.exports = {rules: {p: {id: "}"}, q: {id: '//'}}}
"""


def test_javascript_is_read_as_data() -> None:
    reading = read_javascript(SCRIPT, scope("$.*", name="LIST", file="lib/x.js"))
    assert values(reading) == [{"id": "o'ne", "n": 1.5, "h": OPAQUE}, {"id": "two", "n": -2}]
    assert spelling(values(reading)[0]["n"]) == "+1.50"
    assert slices(SCRIPT, reading)[1] == '{id: "two", n: -2,}'
    rules = read_javascript(SCRIPT, scope("$.rules.*"))
    assert slices(SCRIPT, rules) == ['{id: "}"}', "{id: '//'}"]
    assert rules.records[1].value["@keys"] == ["q"]
    assert rules.records[1].value["@unit"] == {"name": "module.exports", "file": "lib/y.js"}


@pytest.mark.parametrize(
    "literal",
    [
        "[f()]",
        "[...a]",
        "{a}",
        "{[a]: 1}",
        "[`a`]",
        "[a.b]",
        "[/x/]",
        "{a: 1, a: 2}",
        "[1 + 2]",
        "[function() {}]",
        "[(1)]",
    ],
)
def test_javascript_that_is_no_data_is_refused(literal: str) -> None:
    with pytest.raises(Unreadable):
        read_javascript(f"// a b (c)\nconst x = {literal};\n", scope("$.*"))


# Hostile contexts.

BOMB = "a: &a [x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [*{chr(97 + i)}, *{chr(97 + i)}]\n" for i in range(20)
)
HOSTILE: dict[str, tuple[Callable[[str, Scope], Reading], str]] = {
    "json deep": (read_json, '{"a":' * 100_000),
    "json deep list": (read_json, "[" * 100_000 + "]" * 100_000),
    "json digits": (read_json, "[" + "9" * 200_000 + "]"),
    "json string": (read_json, '["' + "\\u0041" * 100_000),
    "html deep": (read_html, page(A="<div>" * 20_000)),
    "html deep closed": (read_html, page(A="<b>" * 3_000 + "</b>" * 3_000)),
    "html open tags": (read_html, page(A="<a " * 20_000)),
    "html quotes": (read_html, page(A="<a b='" * 3_000)),
    "html attributes": (read_html, page(A="<p " + " ".join(f"a{i}=1" for i in range(20_000)) + ">")),
    "html many quotes": (read_html, page(A="<p " + "a=\"x>\" b='>' " * 3_000 + ">")),
    "html endless tags": (read_html, page(A='<p a="' * 3_000 + '">')),
    "html declarations": (read_html, page(A="<!x <?y " * 3_000 + ">")),
    "html entities": (read_html, '<!DOCTYPE html [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>' + page(A="&b;" * 1_000)),
    "html nul": (read_html, page(A="\x00")),
    "html surrogate": (read_html, page(A="\ud800")),
    "yaml bomb": (read_yaml, BOMB),
    "yaml deep": (read_yaml, "a: " + "[" * 5_000),
    "yaml tags": (read_yaml, "a: !!python/object/apply:os.system ['echo']\n"),
    "yaml indent": (read_yaml, "".join(" " * i + "a:\n" for i in range(1_000))),
    "javascript deep": (read_javascript, "// a b (c)\nx = " + "[" * 100_000),
    "javascript comments": (read_javascript, "/*" * 50_000),
    "javascript comment": (read_javascript, "// " + "a (" * 3_000 + "\nx = []"),
    "javascript digits": (read_javascript, "// a b (c)\nx = [" + "9" * 5_000 + "]"),
    "javascript words": (read_javascript, "// a b (c)\nx = {" + "a: -" * 10_000),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_context_is_read_or_refused_and_never_more(name: str) -> None:
    read, text = HOSTILE[name]
    begun, records, said = time.monotonic(), 0, ""
    pattern, shape = ("/p", "items") if read is read_html else ("$.*", "objects")
    try:
        records = len(read(text, scope(pattern, shape)).records)
    except Unreadable as error:
        said = str(error)
    assert records <= 25
    assert len(said) < 400
    assert time.monotonic() - begun < 30


# Sets of the other formats, made by the builder and then changed.


def origin(number: int) -> Provenance:
    return Provenance("lake survey", "CC0-1.0", "nobody", f"https://example.org/lakes/{number}")


def lake(number: int) -> dict[str, Any]:
    return {"name": f"Lake {number}", "depth": 3 + 7 * number, "basin": f"Basin {number * 7919 % 1000}", "kind": "salt"}


def html_unit(number: int) -> Unit:
    rows = "".join(
        f"<tr><td>{r['name']}</td><td>{r['depth']}</td><td>{r['basin']}</td></tr>\n"
        for r in map(lake, range(number * 3, number * 3 + 3))
    )
    body = f"<table>\n<tr><th>Name</th><th>Depth</th><th>Basin</th></tr>\n{rows}</table>"
    return Unit(body, identity_of([body]), {"title": f"Lakes of region {number}"}, origin(number))


def yaml_unit(number: int) -> Unit:
    records = map(lake, range(number * 3, number * 3 + 3))
    lines = "".join(f"  - {{name: {r['name']}, depth: {r['depth']}, basin: {r['basin']}}}\n" for r in records)
    text = f"title: Lakes of region {number}\nlakes:\n{lines}"
    return Unit(text, identity_of([text]), {"title": f"Lakes of region {number}"}, origin(number))


def javascript_unit(number: int) -> Unit:
    records = map(lake, range(number * 3, number * 3 + 3))
    lines = "".join(f"  {{name: '{r['name']}', depth: {r['depth']}, basin: '{r['basin']}'}},\n" for r in records)
    text = f"const lakes{number} = [\n{lines}];"
    place = Provenance("lake/survey", "MIT", "nobody", f"lake/survey@1:src/{number}.js#L1")
    return Unit(text, identity_of([text]), {"name": f"lakes{number}", "file": f"src/{number}.js"}, place)


MAKE = {"html": html_unit, "yaml": yaml_unit, "javascript": javascript_unit}


def collection(format: str) -> Collection:
    """150 units with three lakes each."""
    units = [MAKE[format](number) for number in range(150)]
    frame = frame_for(format, title="Lakes")
    return Collection(
        f"lakes/{format}", format, units, tables(units, format, name="lakes"), frame, NATIVE, units[0].provenance
    )


FORMATS = ("html", "yaml", "javascript")
LOOKUPS = ("single_field", "two_records", "four_records")


@pytest.fixture(scope="module")
def made(words: Counter) -> dict[tuple[str, str], list[Row]]:
    """Three questions of each task, in two lengths."""
    rows: dict[tuple[str, str], list[Row]] = {}
    for format in FORMATS:
        plan = Plan("test", 5, LOOKUPS, 3, (1500, 3000), NATIVE)
        for row in generate(plan, [collection(format)], [words]):
            rows.setdefault((format, row["task"]), []).append(row)
    return rows


def problems(row: Row, words: Counter) -> str:
    return "; ".join(Validator([words]).check("test", row))


def changed(row: Row, **columns: Any) -> Row:
    row = {**row, **columns}
    return {**row, "id": example_of(row).key}


@pytest.mark.parametrize("task", LOOKUPS)
@pytest.mark.parametrize("format", FORMATS)
def test_what_was_built_in_each_format_passes(made: Any, words: Counter, format: str, task: str) -> None:
    validator = Validator([words])
    assert [validator.check("test", row) for row in made[format, task]] == [[]] * 6


@pytest.mark.parametrize("task", LOOKUPS)
@pytest.mark.parametrize("format", FORMATS)
def test_a_changed_value_is_caught_in_each_format(made: Any, words: Counter, format: str, task: str) -> None:
    for row in made[format, task]:
        answer = row["answers"][0]
        context = row["context"].replace(answer, f"{answer}7")
        assert "the answer is" in problems(changed(row, context=context), words)


@pytest.mark.parametrize("format", FORMATS)
def test_an_entity_that_is_there_twice_is_caught_in_each_format(made: Any, words: Counter, format: str) -> None:
    for row in made[format, "single_field"]:
        name = json.loads(row["spec"])["selectors"][0][0]["value"]
        unit = MAKE[format](149)
        double = Unit(unit.text.replace("Lake 448", name), "", {**unit.about, "title": "More"}, unit.provenance)
        piece = "".join(frame_for(format, title="x").unit(double, "native"))
        if format == "html":
            context = row["context"].replace("\n</body>", f"\n{piece}\n</body>")
        elif format == "yaml":
            context = f"{row['context']}---\n{piece}"
        else:
            context = f"{row['context']}\n{piece}\n"
        said = problems(changed(row, context=context), words)
        if json.loads(row["spec"])["scope"]["unit"]:
            assert "records are" not in said
        else:
            assert "2 records are" in said


@pytest.mark.parametrize("format", FORMATS)
def test_units_in_another_order_are_caught_in_each_format(made: Any, words: Counter, format: str) -> None:
    caught = 0
    for row in made[format, "single_field"]:
        text = row["context"]
        if format == "html":
            head, tail = text.index("<article"), text.index("\n</body>")
            parts = text[head:tail].split("\n<article")
            moved = text[:head] + "\n".join([*("<article" + p for p in parts[:0:-1]), parts[0]]) + text[tail:]
        elif format == "yaml":
            moved = "---\n".join(text.split("---\n")[::-1])
        else:
            moved = "\n\n".join(text.rstrip("\n").split("\n\n")[::-1]) + "\n"
        assert len(moved) == len(text)
        said = problems(changed(row, context=moved), words)
        caught += "a support lies between" in said
        assert said == "" or said.startswith("a support lies between")
    assert caught >= 4  # one that stood in the middle still does


def test_a_licence_that_a_statement_tells_and_the_row_does_not_is_caught(made: Any, words: Counter) -> None:
    row = made["javascript", "single_field"][0]
    foreign = changed(row, context=row["context"].replace("(MIT)", "(GPL-3.0)", 1))
    assert "source and licence of a statement are not told" in problems(foreign, words)
    silent = changed(row, context=row["context"].split("\n", 1)[1])
    assert "without a comment" in problems(silent, words)


def test_a_licence_that_a_document_states_and_the_row_does_not_is_caught(made: Any, words: Counter) -> None:
    row = made["yaml", "single_field"][0]
    stated = changed(row, context=row["context"] + "info: {license: {name: Other terms}}\n")
    assert "the licence of a document is not told: Other terms" in problems(stated, words)


def test_a_page_without_a_source_is_caught(made: Any, words: Counter) -> None:
    row = made["html", "single_field"][0]
    assert "pages have 1 sources" in problems({**row, "sources": row["sources"][:1]}, words)


def test_a_value_that_could_be_taken_for_several_is_caught(made: Any, words: Counter) -> None:
    several = [*made["javascript", "two_records"], *made["javascript", "four_records"]]
    row = next(row for row in several if row["answer_kind"] == "text")
    first, *rest = row["answers"]
    context = row["context"].replace(f"'{first}'", f"'{first}, more'")
    assert "taken for several" in problems(changed(row, context=context, answers=[f"{first}, more", *rest]), words)
