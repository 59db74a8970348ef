"""Record lists found in documents of the shapes that public sources have: their records, keys, places and faults."""

from __future__ import annotations

import json

import pytest
from treeagent.data.formats import parse
from treeagent.data.record_lists.items import MAX_DEPTH, spelling
from treeagent.data.record_lists.lists import RecordList
from treeagent.data.records import find, read
from treeagent.errors import InputError


def found(text: str, format: str) -> list[RecordList]:
    return find(parse(text, format))


def page(body: str) -> str:
    return f"<!DOCTYPE html><html><head><title>t</title></head><body>{body}</body></html>"


# JSON.

QUAKES = {
    "type": "FeatureCollection",
    "metadata": {"count": 2},
    "features": [
        {"type": "Feature", "properties": {"mag": 4.10, "place": "A"}, "geometry": {"coordinates": [1, 2]}, "id": "x1"},
        {"type": "Feature", "properties": {"mag": 2, "place": "B"}, "geometry": {"coordinates": [3, 4]}, "id": "x2"},
    ],
}


@pytest.mark.parametrize("indent", [None, 2])
def test_a_list_of_like_objects_is_found_with_the_places_of_records_and_fields(indent: int | None) -> None:
    text = json.dumps(QUAKES, indent=indent)
    (quakes,) = found(text, "json")
    assert (quakes.path, quakes.pattern, quakes.named) == ("$.features", "$.features.*", "features")
    assert list(quakes.records) == QUAKES["features"]
    assert [json.loads(text[start:end]) for start, end in quakes.spans] == QUAKES["features"]
    start, end = quakes.value_spans(1)["properties", "place"]
    assert text[start:end] == '"B"'


def test_only_lists_of_like_objects_are_record_lists() -> None:
    text = json.dumps({"a": [1, 2], "b": [{"x": 1}, {"y": 2}], "c": [{}, {}], "d": [{"x": 1, "y": 1}, {"x": 2}]})
    assert [one.path for one in found(text, "json")] == ["$.d"]


def test_a_map_of_like_objects_is_a_list_whose_keys_are_told() -> None:
    (plants,) = found('{"plants": {"oak": {"m": 30}, "elm": {"m": 20}, "ash tree": {"m": 25}}}', "json")
    assert plants.pattern == "$.plants.*"
    assert plants.keys == [("oak",), ("elm",), ("ash tree",)]


def test_unlike_members_are_no_records() -> None:
    assert not found('{"meta": {"n": 1}, "page": {"size": 2}, "links": {"next": 3}}', "json")


def test_outer_lists_hide_the_lists_inside_their_records() -> None:
    text = json.dumps([{"inner": [{"k": 1}, {"k": 2}]}, {"inner": [{"k": 3}, {"k": 4}]}])
    assert [one.path for one in found(text, "json")] == ["$"]


def test_numbers_keep_their_spelling() -> None:
    (rows,) = found('[{"a": 1.50, "b": 1E3, "c": -0, "d": 12}, {"a": 0.5, "b": 1e400, "c": 0, "d": 7}]', "json")
    assert [spelling(rows.records[0][key]) for key in "abcd"] == ["1.50", "1E3", "-0", "12"]
    assert rows.records[0]["a"] == 1.5
    assert repr(rows.records[1]["b"]) == "OPAQUE"


def test_a_key_that_stands_twice_is_a_fault() -> None:
    (rows,) = found('[{"a": 1, "a": 2}, {"a": 3}]', "json")
    assert "twice" in rows.fault
    with pytest.raises(InputError, match="twice"):
        read(parse('[{"a": 1, "a": 2}]', "json"), "$")


def test_a_path_that_holds_no_list_is_an_error() -> None:
    document = parse('{"a": {"b": [1]}, "ab": [{}]}', "json")
    for path, reason in (("$.a", "not a list"), ("$.a.b", "not a list"), ("$.c", "nothing")):
        with pytest.raises(InputError, match=reason):
            read(document, path)
    assert read(document, "$.ab").records == [{}]


@pytest.mark.parametrize("depth", [MAX_DEPTH + 5, 50_000])
def test_what_is_nested_too_deep_is_a_fault_and_no_crash(depth: int) -> None:
    text = '[{"x": 1},' + '{"x":' * depth + "1" + "}" * depth + "]"
    (rows,) = found(text, "json")
    assert depth < 1000 or "nested deeper" in rows.fault


# YAML.

OPENAPI_2 = """swagger: "2.0"
info: {title: Pet Store, version: "1.0"}
paths:
  /pets:
    get:
      summary: List pets
      operationId: listPets
      parameters:
        - {name: limit, in: query, type: integer}
        - {name: after, in: query, type: string}
      responses:
        200: {description: All pets}
        "404": {description: None found}
    post: {summary: Add a pet, operationId: addPet, responses: {201: {description: Added}}}
definitions:
  Pet: {type: object, description: A pet}
  Cage: {type: object, description: Where it lives}
"""


def test_openapi_documents_list_operations_parameters_responses_and_schemas() -> None:
    lists = {one.pattern: one for one in found(OPENAPI_2, "yaml")}
    assert set(lists) == {
        "$.paths.*.*",
        "$.paths.*.*.parameters.*",
        "$.paths.*.*.responses.*",
        "$.definitions.*",
    }
    assert lists["$.paths.*.*"].keys == [("/pets", "get"), ("/pets", "post")]
    assert lists["$.paths.*.*.responses.*"].keys[0] == ("/pets", "get", "200")
    assert [row["name"] for row in lists["$.paths.*.*.parameters.*"].records] == ["limit", "after"]


def test_openapi_3_keeps_its_schemas_under_components() -> None:
    text = "openapi: 3.0.0\npaths: {}\ncomponents:\n  schemas:\n    A: {type: string}\n    B: {type: object}\n"
    assert [one.pattern for one in found(text, "yaml")] == ["$.components.schemas.*"]


def test_an_object_among_operations_that_is_none_is_a_fault() -> None:
    text = "swagger: '2.0'\npaths:\n  /a:\n    get: {summary: x}\n    x-extra: {summary: y}\n"
    (operations,) = found(text, "yaml")
    assert "x-extra" in operations.fault


def test_yaml_scalars_are_read_by_their_text() -> None:
    text = """- {a: 12, b: "12", c: 1.0, d: true, e: null, f: ~, g: yes, h: 0x10, i: 'no', j: }
- {a: 007, b: x, c: .5, d: True, e: x, f: x, g: on, h: 1_000, i: "t\\u00e9", j: 2020-01-01}
"""
    first, second = found(text, "yaml")[0].records
    assert list(first.values()) == [12, "12", 1.0, True, None, None, "yes", "0x10", "no", None]
    assert list(second.values()) == ["007", "x", ".5", "True", "x", "x", "on", "1_000", "té", "2020-01-01"]


def test_block_scalars_are_text_and_their_place_is_known() -> None:
    text = "rows:\n- k: |2\n      two\n     lines\n  n: 1\n- k: >-\n    folded\n    text\n  n: 2\n"
    (rows,) = found(text, "yaml")
    assert [row["k"] for row in rows.records] == ["  two\n lines\n", "folded text"]
    start, end = rows.value_spans(1)["k",]
    assert text[start:end].split() == [">-", "folded", "text"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("*x", "alias"),
        ("{<<: *x, b: 2}", "merged"),
        ("!t {a: 3}", "tag"),
        ("{a: 1, a: 2}", "twice"),
        ("{[1]: 2}", "no scalar"),
    ],
)
def test_what_readers_of_yaml_resolve_in_their_own_ways_is_a_fault(row: str, reason: str) -> None:
    lists = found(f"rows:\n- &x {{a: 1}}\n- {{a: 2}}\n- {row}\n", "yaml")
    assert not lists or reason in lists[0].fault


def test_an_alias_beside_a_list_does_not_touch_it() -> None:
    lists = found("base: &b {x: 1}\nother: *b\nrows:\n- {a: 1}\n- {a: 2}\n", "yaml")
    assert [(one.path, one.fault) for one in lists] == [("$.rows", "")]


def test_documents_of_a_stream_are_read_each_for_itself() -> None:
    assert [one.path for one in found("- {a: 1}\n- {a: 2}\n---\nx:\n- {b: 1}\n- {b: 2}\n", "yaml")] == ["$", "$.x"]


# JavaScript.


def test_initialisers_are_searched_each_for_itself() -> None:
    text = """// rules
const rules = {
  "no-eval": { level: 2, fix: false }, "no-var": { level: -1, fix: true }, 'eq': { level: .5, fix: true } };
export default { themes: [{ name: "dark", hue: 0x10 }, { name: "light", hue: 2 }] };
"""
    rules, themes = found(text, "javascript")
    assert (rules.pattern, rules.named, rules.keys[0]) == ("$.*", "rules", ("no-eval",))
    assert [row["level"] for row in rules.records] == [2, -1, 0.5]
    assert spelling(rules.records[2]["level"]) == ".5"
    assert themes.pattern == "$.themes.*"
    assert repr(themes.records[0]["hue"]) == "OPAQUE"
    start, end = themes.value_spans(1)["name",]
    assert text[start:end] == '"light"'


def test_a_flat_object_alone_is_one_record() -> None:
    (colors,) = found("const NamedColors = { red: 1, green: 2, blue: 3 };", "javascript")
    assert (colors.pattern, colors.named, list(colors.records)) == (
        "$",
        "NamedColors",
        [{"red": 1, "green": 2, "blue": 3}],
    )


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        ("a: f()", "a call"),
        ("a: new Date(0)", "a call"),
        ("a: () => 1", "a function"),
        ("a() {}", "a function"),
        ("...b", "a spread"),
        ("a: b", "a reference"),
        ("a: b.c", "a reference"),
        ("b", "a reference"),
        ("a: undefined", "a reference"),
        ("[a]: 1", "a computed key"),
        ("a: `x${1}`", "a template"),
        ("a: /x/", "a regular expression"),
        ("a: 1 + 1", "an expression"),
        ("__proto__: null", "a prototype"),
        ("a: 1, 'a': 2", "twice"),
    ],
)
def test_what_is_not_static_is_a_fault(member: str, reason: str) -> None:
    (rows,) = found(f"const rows = [{{ k: 1, {member} }}, {{ k: 2, a: 3 }}, {{ k: 4, a: 5 }}];", "javascript")
    assert reason in rows.fault


# HTML.

TABLE = """<h2>Rivers of Europe<a href="#r">¶</a></h2>
<table>
  <tr><th>Name</th><th>Length <small>(km)</small></th><th></th></tr>
  <tr><td><a href="/volga">Volga</a></td><td>3,531</td><td>x</td></tr>
  <tr><td>Danube &amp; more</td><td> 2,850
  </td><td>y</td></tr>
</table>"""


def test_a_table_with_headings_is_found_under_the_heading_before_it() -> None:
    text = page(TABLE)
    (rivers,) = found(text, "html")
    assert (rivers.pattern, rivers.shape, rivers.label, rivers.fault) == ("/table", "table", "Rivers of Europe", "")
    assert list(rivers.records) == [
        {"Name": "Volga", "Length (km)": "3,531"},
        {"Name": "Danube & more", "Length (km)": "2,850"},
    ]
    start, end = rivers.value_spans(1)["Length (km)",]
    assert text[start:end] == "2,850"
    start, end = rivers.spans[0]
    assert text[start:end].startswith("<tr><td><a")


def test_a_caption_names_a_table_before_a_heading_does() -> None:
    (rows,) = found(page(TABLE.replace("<table>", "<table><caption>Long ones</caption><tbody>")), "html")
    assert rows.label == "Long ones"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("<td>Danube &amp; more</td>", "<td rowspan=2>Danube</td>"), "span"),
        (("<td>x</td>", ""), "different numbers"),
        (("<tr><th>Name", "<tr><td>a</td><td>b</td></tr><tr><th>Name"), "before the headings"),
        (("<td>x</td></tr>", "<td>x</td></tr><tr><th>Name</th><th>L</th><th>z</th></tr>"), "several rows of headings"),
        (("<td>y</td>", "<td><table><tr><td>1</td></tr></table></td>"), "another table"),
        (("<th></th>", "<th>Name</th>"), "one heading"),
    ],
)
def test_a_table_that_readers_may_divide_otherwise_has_a_fault(change: tuple[str, str], reason: str) -> None:
    lists = [one for one in found(page(TABLE.replace(*change)), "html") if one.shape == "table"]
    assert reason in lists[0].fault


def test_a_cell_whose_words_a_line_break_parts_is_not_clear() -> None:
    (rows,) = found(page(TABLE.replace("3,531", "3,531<br>km").replace("Danube &amp; more", "Da<b>nube</b>")), "html")
    assert rows.unclear == {("Length (km)",)}
    assert rows.records[1]["Name"] == "Danube"


def test_scripts_styles_comments_and_hidden_text_are_no_visible_text() -> None:
    body = TABLE.replace("3,531", "<!-- 1 --><script>2</script>3,531<style>4</style>")
    (rows,) = found(page(body.replace("2,850", "<span style='display: none'>0</span>2,850")), "html")
    assert rows.records[0]["Length (km)"] == "3,531"
    assert rows.unclear == {("Length (km)",)}


def test_definition_lists_and_tables_of_labels_are_one_record() -> None:
    body = (
        "<h1>A5</h1><dl><dt>Engine:<dd>2.0 TDI<dt>Seats:<dd>5</dl><table><tr><th>Price<td>9<tr><th>Doors<td>3</table>"
    )
    lists = found(page(body), "html")
    assert [one.shape for one in lists] == ["definitions", "definitions"]
    assert [list(one.records) for one in lists] == [
        [{"Engine:": "2.0 TDI", "Seats:": "5"}],
        [{"Price": "9", "Doors": "3"}],
    ]


def test_a_term_with_two_definitions_is_a_fault() -> None:
    (terms,) = found(page("<dl><dt>a<dd>1<dd>2<dt>b<dd>3</dl>"), "html")
    assert "several definitions" in terms.fault


def test_elements_that_repeat_are_records_of_their_classes() -> None:
    quote = '<div class="quote big"><span class="text">{}</span> by <small class="author x">{}</small></div>'
    body = "<h2>Quotes</h2><div id=q>" + "".join(quote.format(f"t{i}", f"a{i}") for i in range(3)) + "<p>end</p></div>"
    (quotes,) = found(page(body), "html")
    assert (quotes.pattern, quotes.shape, quotes.hidden) == ("/div", "items", True)
    assert quotes.records[2] == {"text": "t2", "author": "a2"}


def test_tag_soup_gives_what_it_holds_and_never_a_crash() -> None:
    text = "<table><tr><th>A<th>B<tr><td>1<td>2</b><tr><td>3<td>4<p></table><td>x<dl><dt>y</table></dl>"
    assert list(found(text, "html")[0].records) == [{"A": "1", "B": "2"}, {"A": "3", "B": "4"}]
