"""JSON trees: spans, labels and refusals, against the standard library's reading of the same text."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import example, given
from noisy_json import documents
from treeagent.data.formats import parse
from treeagent.data.formats.json_tree import JsonDocument
from treeagent.data.tree import Document, Node
from treeagent.errors import ParseError


class Pairs(list[Any]):
    """The members of an object as the standard library hands them over, duplicates included."""


def read(text: str) -> Any:
    return json.loads(text.removeprefix("\ufeff"), object_pairs_hook=Pairs, parse_float=str, parse_int=str)


def assert_reads_as(document: Document, node: Node, value: Any) -> None:
    """Every node's slice, read alone, gives the value that stands at its place in the whole."""
    text = document.text
    assert repr(read(text[node.content : node.end])) == repr(value)
    children = document.children(node)
    starts, ends = document.spans(node)
    assert [(c.start, c.end) for c in children] == list(zip(starts.tolist(), ends.tolist(), strict=True))
    if isinstance(value, Pairs):
        assert len(children) == len(value)
        for child, (key, inside) in zip(children, value, strict=True):
            member = read("{" + text[child.start : child.end] + "}")
            assert repr(member) == repr(Pairs([(key, inside)]))
            assert_reads_as(document, child, inside)
    elif isinstance(value, list):
        assert len(children) == len(value)
        for child, inside in zip(children, value, strict=True):
            assert child.content == child.start
            assert_reads_as(document, child, inside)
    else:
        assert not children


@given(documents())
@example('{"a":[],"b":{},"a":[ ],"":""}')
@example('"\\\\"')
@example('["\\"", "\\\\\\"", "a\\\\"]')
def test_every_node_is_the_slice_that_the_standard_library_reads_as_its_value(text: str) -> None:
    document = parse(text, "json")
    assert_reads_as(document, document.root, read(text))


def paths(text: str) -> list[str]:
    document = parse(text, "json")
    found, stack = [], [document.root]
    while stack:
        node = stack.pop(0)
        found.append(document.path(node))
        stack = document.children(node) + stack
    return found


def test_paths_name_keys_quote_odd_ones_and_number_elements() -> None:
    assert paths('{"a":[1,{"b c":2}],"x1":{},"é":0,"1a":0,"":0}') == [
        "$", "$.a", "$.a[0]", "$.a[1]", '$.a[1]["b c"]', "$.x1", '$["é"]', '$["1a"]', '$[""]',
    ]  # fmt: skip


def test_a_repeated_key_is_kept_and_numbered() -> None:
    assert paths('{"a":1,"a":2,"\\u0061":3,"b c":4,"b c":5,"a#2":6}') == [
        "$", "$.a", "$.a#2", "$.a#3", '$["b c"]', '$["b c"]#2', '$["a#2"]',
    ]  # fmt: skip


def test_a_key_with_a_lone_surrogate_is_written_escaped_in_its_path() -> None:
    assert paths('{"\\ud800":1}')[1] == '$["\\ud800"]'


@pytest.mark.parametrize("text", ["5", '"x"', "null", "true", "[]", "{}", " 7 ", '[{"a":1}]', '{"s":"\\ud800"}'])
def test_any_value_is_a_legal_root(text: str) -> None:
    document = parse(text, "json")
    assert document.text[document.root.start : document.root.end] == text.strip()


def test_a_byte_order_mark_is_character_zero_and_reported() -> None:
    document = parse('\ufeff{"a":1}', "json")
    assert (document.root.start, document.root.end) == (1, 8)
    assert document.notes == ("byte order mark",)


def test_line_ends_of_two_characters_move_no_offset() -> None:
    document = parse('{\r\n  "a": 1,\r\n  "b": [2]\r\n}\r\n', "json")
    a, b = document.children(document.root)
    assert (document.text[a.start : a.end], document.text[b.start : b.end]) == ('"a": 1', '"b": [2]')


def test_a_number_of_five_thousand_digits_is_a_span() -> None:
    digits = "1" * (sys.get_int_max_str_digits() + 700)
    document = parse(f'{{"n":{digits}}}', "json")
    (member,) = document.children(document.root)
    assert document.text[member.content : member.end] == digits
    assert member.atomic


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("", 1, 1),
        (" \n ", 1, 1),
        ("{", 1, 2),
        ("[1,]", 1, 4),
        ('{"a":NaN}', 1, 6),
        ("[\n  Infinity]", 2, 3),
        ("[1 2]", 1, 4),
        ('"ab\nc"', 1, 4),
        ('{"a" 1}', 1, 6),
        ("01", 1, 1),
        ("[1]x", 1, 4),
        ('["\\\\\\q"]', 1, 5),
        ('{"a":1,}', 1, 8),
        ('["abc', 1, 2),
        ("[1]\r\n]", 2, 1),
        ('["\ud800"]', 1, 3),
        ("\ufeff", 1, 1),
        ("[1.]", 1, 2),
        ("{'a':1}", 1, 2),
        ("nul", 1, 1),
    ],
)
def test_a_broken_text_is_refused_where_it_breaks(text: str, line: int, column: int) -> None:
    with pytest.raises(ParseError) as refusal:
        parse(text, "json")
    assert (refusal.value.line, refusal.value.column) == (line, column)


@pytest.mark.parametrize("broken", ["]", "1]]", '{"a":1,}', "[1,,2]"])
def test_a_fault_deeper_than_the_standard_library_reads_is_still_found(broken: str) -> None:
    depth = 5_000
    with pytest.raises(ParseError) as refusal:
        parse("[" * depth + broken + "]" * depth, "json")
    assert refusal.value.column > depth


def test_nesting_without_end_is_read_without_recursion() -> None:
    depth = 100_000
    document = parse("[" * depth + "]" * depth, "json")
    node, levels = document.root, 1
    while node.n_children:
        node, levels = document.child(node, 0), levels + 1
    assert levels == depth
    assert node.end - node.start == 2


def test_the_grammar_agrees_with_the_standard_library_on_short_texts() -> None:
    """All texts of four characters over an alphabet that spells brackets, numbers, strings and words."""
    from itertools import product

    from treeagent.data.formats.json_tree import _walk

    for letters in product('[]{},:"1-.e 0', repeat=4):
        text = "".join(letters)
        try:
            json.loads(text)
            right = True
        except ValueError:
            right = False
        try:
            _walk(text, 0)
            assert right, text
        except ParseError:
            assert not right, text


def test_units_of_a_string_are_its_escapes_and_pairs() -> None:
    text = '"a\\n\\u00e9\\ud83d\\ude00\\ud800b\\\\"'
    document = parse(text, "json")
    leaf = document.leaf_text(document.root)
    units = [text[s:e] for s, e in zip(leaf.unit_starts, leaf.unit_ends, strict=True)]
    assert units == ["\\n", "\\u00e9", "\\ud83d\\ude00", "\\ud800", "\\\\"]
    assert isinstance(document, JsonDocument)
