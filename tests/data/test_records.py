"""Record lists read from a document's own text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from treeagent.data.formats import parse
from treeagent.data.records import find, read
from treeagent.errors import InputError

RECORDS = st.lists(
    st.fixed_dictionaries({"id": st.integers(), "name": st.text(max_size=5), "tags": st.lists(st.text(max_size=3))}),
    min_size=2,
    max_size=5,
)


@given(RECORDS, st.sampled_from([None, 2]))
def test_a_list_is_found_with_its_records_and_their_spans(records: list[dict[str, object]], indent: int | None) -> None:
    text = json.dumps({"meta": {"n": 1}, "page": {"items": records}}, indent=indent)
    (found,) = find(parse(text, "json"))
    assert found.path == "$.page.items"
    assert list(found.records) == records
    assert [json.loads(text[start:end]) for start, end in found.spans] == records
    again = read(parse(text, "json"), "$.page.items")
    assert (again.records, again.spans) == (found.records, found.spans)


def test_only_lists_of_like_objects_are_record_lists() -> None:
    text = json.dumps({"a": [1, 2], "b": [{"x": 1}, {"y": 2}], "c": [{}, {}], "d": [{"x": 1, "y": 1}, {"x": 2}]})
    assert [found.path for found in find(parse(text, "json"))] == ["$.d"]


def test_outer_lists_hide_the_lists_inside_their_records() -> None:
    text = json.dumps([{"inner": [{"k": 1}, {"k": 2}]}, {"inner": [{"k": 3}, {"k": 4}]}])
    assert [found.path for found in find(parse(text, "json"))] == ["$"]


def test_a_path_that_holds_no_list_is_an_error() -> None:
    document = parse('{"a": {"b": [1]}, "ab": [{}]}', "json")
    for path, reason in (("$.a", "not a list"), ("$.a.b", "not a list"), ("$.c", "nothing")):
        with pytest.raises(InputError, match=reason):
            read(document, path)
    assert read(document, "$.ab").records == [{}]


def test_a_record_with_a_key_twice_is_refused() -> None:
    with pytest.raises(InputError, match="twice"):
        read(parse('[{"a": 1, "a": 2}]', "json"), "$")


def test_deep_nesting_is_an_error_and_no_crash() -> None:
    text = "[{}," + '{"a":' * 50_000 + "1" + "}" * 50_000 + "]"
    with pytest.raises(InputError, match="nested deeper"):
        read(parse(text, "json"), "$")
