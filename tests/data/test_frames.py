"""Contexts of every format: units stand whole in native syntax, and the question says where it means."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import json5
import lxml.html
import pytest
import yaml
from treeagent.data.catalog import Collection, Field, Provenance, Scope, Table, Unit, identity_of
from treeagent.data.contexts import Counter, Page
from treeagent.data.examples import Plan, Row, generate
from treeagent.data.formats import parse
from treeagent.data.frames import NATIVE, frame_for
from treeagent.data.tasks import TASKS
from treeagent.errors import ConfigError

FORMATS = ("html", "yaml", "javascript")
KINDS = ("apple", "pear", "plum", "fig")
PLAN = Plan("test", 5, tuple(TASKS), 3, (1200, 3000), ("compact",), {"test": 100})
NAME = Field(("name",), "name", "text")
FIELDS = (
    Field(("kind",), "kind of fruit", "text", frozenset({"ask", "condition", "group"})),
    Field(("price",), "price", "number", frozenset({"ask", "condition", "measure"})),
    Field(("stock",), "stock", "number", frozenset({"ask", "measure"})),
    Field(("origin",), "place of origin", "text", frozenset({"ask"})),
    Field(("grower",), "grower", "text", frozenset({"ask"})),
    Field(("quality",), "quality", "text", frozenset({"ask"})),
)


def records_of(shop: int) -> list[dict[str, Any]]:
    """A few goods of a shop, all with names of their own."""
    goods = []
    for i in range(1 + shop * 5 % 9):
        n = shop * 9 + i
        facts = {"origin": f"Valley {n % 7}", "grower": f"Farm {n * 3}", "quality": f"grade {n % 5}"}
        goods.append({"name": f"Good {n}", "kind": KINDS[(n * n) % 4], "price": 7 * n + 1, "stock": n * 13, **facts})
    return goods


def written(format: str, shop: int) -> str:
    """The shop in its format."""
    goods = records_of(shop)
    if format == "html":
        head = "".join(f"<th>{key}</th>" for key in goods[0])
        rows = "".join("<tr>" + "".join(f"<td>{v}</td>" for v in good.values()) + "</tr>\n" for good in goods)
        return f"<p>Welcome &amp; hello</p>\n<table><tr>{head}</tr>\n{rows}</table>"
    value = {"info": {"title": f"Shop {shop}"}, "goods": goods}
    if format == "yaml":
        return yaml.safe_dump(value, sort_keys=False)
    return f"const shop{shop} = {json.dumps(value, indent=1)};"


def shops(format: str, count: int = 40) -> Collection:
    """Shops, with a table in each."""
    units, tables = [], []
    for shop in range(count):
        about = (
            {"title": f"Shop <{shop}>"} if format != "javascript" else {"name": f"shop{shop}", "file": f"s/{shop}.js"}
        )
        text = written(format, shop)
        origin = Provenance("test/shops", "CC0-1.0", "invented", f"https://example.org/{shop}")
        units.append(Unit(text, identity_of([text]), about, origin))
        pattern = {"html": "/table", "yaml": "$.goods.*", "javascript": "$.goods.*"}[format]
        scope = Scope(pattern, about, "table" if format == "html" else "objects")
        spans = [(text.index(f"{good['name']}"), text.index(f"{good['name']}") + 8) for good in records_of(shop)]
        tables.append(
            Table(
                name=f"goods {shop}",
                singular="good",
                plural="goods",
                label="",
                scope=scope,
                records=records_of(shop),
                unit_of=[shop] * len(spans),
                identity=None,
                naming=NAME,
                aliases=None,
                qualifiers=(),
                fields=FIELDS,
                whole=False,
                spans=spans,
            )
        )
    origin = Provenance("test/shops", "CC0-1.0", "invented")
    return Collection("test/shops", format, units, tables, frame_for(format, title="All shops"), NATIVE, origin)


@pytest.fixture(scope="module", params=FORMATS)
def rows(request: pytest.FixtureRequest, words: Counter) -> list[Row]:
    return list(generate(PLAN, [shops(request.param)], [words]))


def units_of(row: Row) -> Sequence[tuple[str, list[dict[str, Any]]]]:
    """What stands in a context, read by other parsers than ours: by the unit's visible name, its records."""
    return units_in(row["format"], row["context"])


@cache
def units_in(format: str, context: str) -> Sequence[tuple[str, list[dict[str, Any]]]]:
    if format == "yaml":
        return [(d["info"]["title"].replace("Shop ", ""), d["goods"]) for d in yaml.load_all(context, yaml.CSafeLoader)]
    if format == "javascript":
        found = []
        for statement in context.split("\n\n"):
            comment, _, code = statement.partition("\n")
            assert comment.startswith("// test/shops s/")
            assert comment.endswith(" (CC0-1.0)")
            name, _, value = code.strip().removeprefix("const ").partition(" = ")
            found.append((name.removeprefix("shop"), json5.loads(value.rstrip(";"))["goods"]))
        return found
    page = lxml.html.document_fromstring(context)
    found = []
    for article in page.xpath("/html/body/article"):
        head, *rest = article.xpath(".//tr")
        keys = [cell.text for cell in head]
        goods = [dict(zip(keys, [cell.text for cell in line], strict=True)) for line in rest]
        found.append((article.get("title").removeprefix("Shop <").rstrip(">"), goods))
    return found


def test_every_unit_stands_whole_in_the_context(rows: list[Row]) -> None:
    for row in rows:
        units = units_of(row)
        assert len(units) > 1
        for shop, goods in units:
            expected = [{key: str(value) for key, value in good.items()} for good in records_of(int(shop))]
            assert [{key: str(value) for key, value in good.items()} for good in goods] == expected


def test_contexts_can_be_read_and_fill_their_length(rows: list[Row], words: Counter) -> None:
    for row in rows:
        assert parse(row["context"], row["format"]).text == row["context"]
        assert 0.9 <= words.count(row["context"]) / row["length"] <= 1


def test_answers_are_those_of_the_unit_that_the_question_names(rows: list[Row]) -> None:
    for row in rows:
        spec, by_shop = json.loads(row["spec"]), dict(units_of(row))
        about = spec["scope"]["unit"]
        assert all(value in row["question"] for value in about.values())
        goods = by_shop["".join(c for c in next(iter(about.values())) if c.isdigit())]
        if "selectors" in spec:
            names = [selector[0]["value"] for selector in spec["selectors"]]
            chosen = [next(good for good in goods if good["name"] == name) for name in names]
            expected = [str(good[path[0]]) for good in chosen for path in spec["fields"]]
            assert row["answers"] == expected
            assert all(name in row["question"] for name in names)
        else:
            assert all(word in row["question"].lower() for word in ("good",))
            assert row["count"] == (None if row["task"] == "most_frequent" else 1)


def test_supports_lie_where_the_row_says(rows: list[Row]) -> None:
    for row in rows:
        spec = json.loads(row["spec"])
        for selector, place in zip(spec.get("selectors", ()), row["support"], strict=False):
            name, middle = selector[0]["value"], place * len(row["context"])
            assert abs(row["context"].index(name) + len(name) / 2 - middle) <= len(row["context"]) / 10**4 + 8


def test_lookups_keep_their_unit_while_others_grow(rows: list[Row]) -> None:
    for base in {row["base_id"] for row in rows}:
        small, large = (row for row in rows if row["base_id"] == base)
        assert {shop for shop, _ in units_of(small)} < {shop for shop, _ in units_of(large)}
        assert (small["question"], small["answers"], small["spec"]) == (
            large["question"],
            large["answers"],
            large["spec"],
        )


def test_every_part_of_a_context_is_named_with_its_licence(rows: list[Row]) -> None:
    for row in rows:
        assert len(row["sources"]) == len(units_of(row))
        assert all(line.startswith("test/shops | CC0-1.0 | https://example.org/") for line in row["sources"])
        assert row["license"] == "CC0-1.0"


@pytest.mark.parametrize("format", FORMATS)
def test_a_unit_that_is_too_large_for_the_shortest_context_is_not_asked_about(format: str, words: Counter) -> None:
    plan = Plan("test", 5, ("single_field",), 1, (60, 3000), ("compact",), {"test": 100})
    with pytest.raises(ConfigError, match="only 0 questions found"):
        list(generate(plan, [shops(format)], [words]))


def test_lengths_that_the_source_cannot_fill_are_named(words: Counter) -> None:
    plan = Plan("test", 5, ("single_field",), 1, (1200, 10**5, 10**6), ("compact",), {"test": 100})
    with pytest.raises(ConfigError, match=r"too few for 100,000, 1,000,000 .*; enough for 1,200"):
        generate(plan, [shops("html")], [words])


def test_a_title_cannot_break_out_of_its_attribute() -> None:
    origin = Provenance("s", "CC0-1.0", "a")
    page = Page(
        Collection(
            "c", "html", [Unit("<p>x", "1", {"title": 'a" onload="b'}, origin)], [], frame_for("html"), NATIVE, origin
        ),
        "native",
        [],
    )
    (article,) = lxml.html.document_fromstring(page.text([0])).xpath("//article")
    assert dict(article.attrib) == {"title": 'a" onload="b'}


def test_a_list_at_the_root_needs_no_envelope() -> None:
    origin = Provenance("s", "CC0-1.0", "a")
    units = [Unit(json.dumps({"n": n}), str(n), {}, origin) for n in range(2)]
    for path, envelope, expected in (
        ((), None, [{"n": 0}, {"n": 1}]),
        (("a", "b"), {"a": {"b": None, "c": 1}}, {"a": {"b": [{"n": 0}, {"n": 1}], "c": 1}}),
        (("1", "b"), [0, {}], [0, {"b": [{"n": 0}, {"n": 1}]}]),
    ):
        frame = frame_for("json", envelope=envelope, list_path=path)
        page = Page(Collection("c", "json", units, [], frame, ("indented",), origin), "indented", [])
        assert page.text([0, 1]) == json.dumps(expected, indent=2)
