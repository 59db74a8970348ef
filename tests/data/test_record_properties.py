"""Any list of like objects is found, in every format, with the values that an independent parser reads there."""

from __future__ import annotations

import io
import json
from html import escape
from typing import Any

import json5
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import html as lxml_html
from ruamel.yaml import YAML
from treeagent.data.formats import parse
from treeagent.data.formats.javascript_tree import parse_javascript
from treeagent.data.record_lists.javascript_lists import same, statements
from treeagent.data.records import find
from treeagent.data.unit_lists import page_of

KEYS = ["id", "name", "full name", "größe"]
TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\u2028\u2029\x85\ufeff"),
    max_size=8,
)
NUMBERS = st.one_of(st.integers(-(10**12), 10**12), st.decimals(-(10**6), 10**6, places=2, allow_nan=False).map(float))
VALUES = st.one_of(TEXT, NUMBERS, st.booleans(), st.none(), st.lists(TEXT, max_size=3))
RECORDS = st.lists(st.fixed_dictionaries(dict.fromkeys(KEYS, VALUES)), min_size=2, max_size=5)


def fields(record: dict[str, Any]) -> dict[tuple[str, ...], Any]:
    return {(key,): value for key, value in record.items()}


@given(RECORDS, st.sampled_from([None, 2]), st.booleans())
def test_in_json(records: list[dict[str, Any]], indent: int | None, ascii_only: bool) -> None:
    text = json.dumps({"meta": {"n": 1}, "page": {"items": records}}, indent=indent, ensure_ascii=ascii_only)
    (found,) = find(parse(text, "json"))
    assert found.path == "$.page.items"
    assert list(found.records) == json.loads(text)["page"]["items"] == records
    assert [json.loads(text[start:end]) for start, end in found.spans] == records
    for i, record in enumerate(records):
        spelled = {path: json.loads(text[slice(*span)]) for path, span in found.value_spans(i).items()}
        assert spelled == fields(record)


@given(RECORDS, st.booleans())
def test_in_yaml(records: list[dict[str, Any]], flow: bool) -> None:
    writer, out = YAML(typ="safe"), io.StringIO()
    writer.default_flow_style, writer.width, writer.allow_unicode = flow, 4096, True
    writer.dump({"meta": {"n": 1}, "items": records}, out)
    text = out.getvalue()
    (found,) = find(parse(text, "yaml"))
    assert list(found.records) == YAML(typ="safe").load(text)["items"] == records
    for i, record in enumerate(records):
        for path, (start, end) in found.value_spans(i).items():
            if text[start:end] and not isinstance(record[path[0]], list):  # a list's lines need their indentation
                assert YAML(typ="safe").load(text[start:end]) == record[path[0]]


QUOTES = st.sampled_from(["'", '"'])


@given(RECORDS, QUOTES, st.booleans(), st.sampled_from(["const rows =", "module.exports =", "export default"]))
def test_in_javascript(records: list[dict[str, Any]], quote: str, trailing: bool, opening: str) -> None:
    literal = "[" + ", ".join(_object(record, quote) for record in records) + ("," if trailing else "") + "]"
    text = f"// comment\n{opening} {literal};\nlet other = 1;\n"
    (found,) = find(parse(text, "javascript"))
    assert list(found.records) == json5.loads(literal) == records
    assert [json5.loads(text[start:end]) for start, end in found.spans] == records
    (statement,) = statements(parse_javascript(text))
    assert (statement.refused, statement.line, statement.text) == ("", 2, f"{opening} {literal};")
    for i, record in enumerate(records):
        assert {p: json5.loads(text[slice(*span)]) for p, span in found.value_spans(i).items()} == fields(record)


def _object(record: dict[str, Any], quote: str) -> str:
    members = (
        f"{key if key.isidentifier() else json.dumps(key)}: {_spelled(value, quote)}" for key, value in record.items()
    )
    return "{ " + ",\n ".join(members) + " }"


def _spelled(value: Any, quote: str) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_spelled(item, quote) for item in value) + "]"
    if not isinstance(value, str):
        return json.dumps(value)
    return quote + value.replace("\\", "\\\\").replace(quote, "\\" + quote) + quote


WORDS = st.lists(st.sampled_from(["Ulm", "a & b", "<x>", "3,5", "-2", "é", "東京"]), min_size=1, max_size=3).map(
    " ".join
)
MARKUP = st.sampled_from(
    ["{}", "<b>{}</b>", " {}\n", "<a href='#'>{}</a>", "<!-- c -->{}", "<i>{}</i><script>1<2</script>"]
)


@given(
    st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=2, max_size=4),
    st.lists(MARKUP, min_size=12, max_size=12),
    st.booleans(),
    st.booleans(),
)
def test_in_html(rows: list[tuple[str, str, str]], markup: list[str], body: bool, close: bool) -> None:
    cells = iter(markup)
    end = "</td>" if close else ""
    lines = ["<tr>" + "".join(f"<td>{next(cells).format(escape(cell))}{end}" for cell in row) + "</tr>" for row in rows]
    head = "<tr><th>Name</th><th>Other name</th><th>No.</th></tr>"
    table = f"<table>{'<tbody>' if body else ''}{head}{''.join(lines)}</table>"
    document, article = page_of(f"<p>before</p>\n<div>{table}</div>")
    (found,) = [one for one in find(document) if one.shape == "table"]
    tree = lxml_html.document_fromstring(document.text)
    for script in list(tree.iter("script")):
        script.drop_tree()
    expected = [[" ".join(cell.text_content().split()) for cell in row.iter("td")] for row in tree.iter("tr")][1:]
    assert [list(record.values()) for record in found.records] == expected == [list(map(_plain, row)) for row in rows]
    assert not found.fault
    assert article.kind == "element"
    for i, record in enumerate(found.records):
        for path, (start, end_) in found.value_spans(i).items():
            inside = lxml_html.fragment_fromstring(f"<div>{document.text[start:end_]}</div>")
            assert " ".join(inside.text_content().split()) == record[path[0]]


def _plain(cell: str) -> str:
    return " ".join(cell.split())


@pytest.mark.parametrize(
    ("ours", "theirs"), [(1, True), ("1", 1), ([1], [1, 2]), ({"a": 1, "b": 2}, {"b": 2, "a": 1}), (None, 0)]
)
def test_readings_that_differ_are_not_the_same(ours: Any, theirs: Any) -> None:
    assert not same(ours, theirs)
    assert same(ours, ours)
