"""Units turned into tables: over all units or inside one, and what is left out with which reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from treeagent.data.catalog import Provenance, Table, Unit, identity_of
from treeagent.data.tables import Examined, examined, tables


def unit(text: str, **about: str) -> Unit:
    return Unit(text, identity_of([text]), about, Provenance("test", "CC0-1.0", "", "here"))


def by_pattern(found: Examined) -> dict[str, Table]:
    return {table.scope.pattern: table for table in found.tables}


OPERATION = """  /{lower}/{i}:
    get:
      summary: Show {title} {i}
      operationId: op{title}{i}
      tags: [t{even}]
      responses: {{'200': {{description: Fine {i}}}, '404': {{description: No}}}}
"""


def api(title: str, paths: int, more: str = "") -> Unit:
    made = (OPERATION.format(lower=title.lower(), title=title, i=i, even=i % 2) for i in range(paths))
    return unit(f"swagger: '2.0'\ninfo: {{title: {title}}}\npaths:\n{''.join(made)}{more}", title=title)


def test_records_of_a_response_are_one_table_over_all_units() -> None:
    rows = [{"name": f"City {i}", "population": 1000 * i + 7, "country": f"C{i % 3}"} for i in range(9)]
    units = [unit(json.dumps(row)) for row in rows]
    (cities,) = tables(units, "json", name="own/x", pattern="$.page.cities.*", named="cities")
    assert (cities.name, cities.singular, cities.plural) == ("own/x$.page.cities.*", "city", "cities")
    assert cities.scope.stored() == {"unit": {}, "list": "$.page.cities.*", "shape": "objects"}
    assert list(cities.unit_of) == list(range(9))
    assert [dict(record) for record in cities.records] == [{**row, "@unit": {}, "@keys": []} for row in rows]
    assert cities.whole


def test_operations_of_all_documents_are_one_table_and_their_places_are_known() -> None:
    units = [api("Pets", 4), api("Cars", 5), api("Books", 1)]
    found = examined(units, "yaml")
    operations = by_pattern(found)["$.paths.*.*"]
    assert (operations.plural, operations.whole, len(operations.records)) == ("operations", True, 10)
    assert operations.records[4]["@unit"] == {"title": "Cars"}
    assert operations.records[4]["@keys"] == ["/cars/0", "get"]
    assert all(operations.described(i) for i in range(10))
    assert operations.spans is not None
    for i, (start, end) in enumerate(operations.spans):
        text = units[operations.unit_of[i]].text[start:end]
        assert text.startswith("summary: ")
        assert operations.records[i]["operationId"] in text


def test_a_document_with_an_object_among_its_operations_must_stand_in_no_context() -> None:
    extra = "  /x:\n    x-note: {summary: none}\n"
    units = [api("Pets", 4), api("Cars", 5), api("Odd", 4, extra), api("Books", 4)]
    found = examined(units, "yaml")
    assert list(found.unfit) == [2]
    kept, settled = found.settled(units)
    assert [one.about["title"] for one in kept] == ["Pets", "Cars", "Books"]
    (operations,) = (table for table in settled if table.scope.pattern == "$.paths.*.*")
    assert set(operations.unit_of) == {0, 1, 2}
    assert not any(table.whole for table in tables(units, "yaml"))


ROW = "<tr><td>Model {}</td><td>{}</td><td>{}</td></tr>"
ROWS = "".join(ROW.format(i, 90 + i * 7, ("diesel", "petrol")[i % 2]) for i in range(6))
CARS = f"<h2>Cars</h2><table><tr><th>Model</th><th>Power (kW)</th><th>Fuel</th></tr>{ROWS}</table>"


def test_a_table_of_a_page_lies_in_the_unit_that_the_page_is_known_by() -> None:
    text = f"<p>x</p>{CARS}"
    found = examined([unit(text, title="Audi"), unit("<p>y</p>", title="Other")], "html")
    (cars,) = found.tables
    assert cars.scope.stored() == {"unit": {"title": "Audi"}, "list": "/table", "shape": "table"}
    assert (cars.whole, cars.label, cars.plural, cars.naming.name) == (False, "Cars", "cars", "model")
    assert {field.name: field.kind for field in cars.fields} == {"power (kW)": "number", "fuel": "text"}
    assert cars.spans is not None
    start, end = cars.spans[2]
    assert text[start:end].startswith("<tr><td>Model 2</td>")


def test_a_page_without_a_name_of_its_own_offers_no_table_inside_it() -> None:
    odd = CARS.replace("Fuel", "Energy").replace("</h2>", "</h2><p>x</p>").replace("<table>", "<div><table>")
    found = examined([unit(CARS, title="Audi"), unit(odd, title="Audi")], "html")
    assert not [table for table in found.tables if not table.whole]


def test_lists_that_a_question_could_not_tell_apart_are_left_out() -> None:
    found = examined([unit(CARS + CARS, title="Audi"), unit("<p>y</p>", title="Other")], "html")
    assert not found.tables
    assert {left.reason for left in found.left_out} == {"another list of the unit is described alike"}


def test_definitions_at_the_same_place_of_many_pages_are_records_known_by_their_pages() -> None:
    text = "<dl><dt>Engine</dt><dd>{}.0 TDI</dd><dt>Seats</dt><dd>{}</dd></dl>"
    pages = [unit(text.format(i, 4 + i), title=f"Car {i}") for i in range(5)]
    (cars,) = examined(pages, "html").tables
    assert (cars.whole, cars.scope.shape, len(cars.records)) == (True, "definitions", 5)
    assert cars.naming.path == ("@unit", "title")
    assert {field.name: field.kind for field in cars.fields} == {"engine": "text", "seats": "number"}


def test_a_list_that_is_another_one_elsewhere_is_no_table_over_all() -> None:
    pages = [
        unit(CARS, title="Audi"),
        unit(CARS.replace("Model<", "Make<").replace("Fuel", "x").replace("Power", "y"), title="B"),
    ]
    found = examined(pages, "html")
    assert [table.whole for table in found.tables] == [False, False]
    assert "another list" in next(left.reason for left in found.left_out if left.unit == -1)


def test_a_page_that_ends_what_stands_around_it_must_stand_in_no_context() -> None:
    found = examined([unit(f"{CARS}</article></div>", title="Audi"), unit("<!-- never closed", title="B")], "html")
    assert set(found.unfit) == {0, 1}


def test_a_flat_object_is_known_by_its_variable() -> None:
    text = "const Sizes = { small: 'S-1', medium: 'M-2', large: 'L-3' };"
    (sizes,) = examined([unit(text, name="Sizes", file="a.js")], "javascript").tables
    assert (sizes.scope.pattern, sizes.naming.path, sizes.plural) == ("$", ("@unit", "name"), "records")
    assert [field.name for field in sizes.fields] == ["small", "medium", "large"]


@pytest.mark.parametrize(
    "text", ["const a = [{ x: f(1) }, { x: 2 }];", "const a = 1;", "const a = [1]; const b = [2];", "const a = {"]
)
def test_what_is_not_one_static_statement_must_stand_in_no_context(text: str) -> None:
    assert list(examined([unit(text, name="a", file="a.js")], "javascript").unfit) == [0]


def test_values_that_no_reader_agrees_on_are_not_in_records() -> None:
    rows = ", ".join(f"{{ name: 'n{i}', hue: 0x{i}f, size: {i * 3} }}" for i in range(4))
    (table,) = examined([unit(f"const themes = [{rows}];", name="themes", file="a.js")], "javascript").tables
    assert [field.name for field in table.fields] == ["size"]
    assert all("hue" not in record for record in table.records)
    assert Path(table.name).name.endswith("$.*")


def test_a_document_that_would_take_the_lists_from_all_must_stand_in_no_context() -> None:
    odd = unit("title: Odd\npaths: {a: {get: {summary: s, tags: &t [x]}, put: {summary: u, tags: *t}}}\n", title="Odd")
    found = examined([api("Pets", 4), odd, api("Cars", 5)], "yaml")
    assert list(found.unfit) == [1]
    (operations,) = (table for table in found.settled([odd] * 3)[1] if table.scope.pattern == "$.paths.*.*")
    assert list(operations.unit_of) == [0] * 4 + [1] * 5
    assert not examined([odd], "yaml").unfit
