"""JavaScript trees: spans, names and refusals, against the json5 library's reading of the same text."""

from __future__ import annotations

from typing import Any

import json5
import pytest
from hypothesis import example, given, settings
from noisy_javascript import STATIC, documents
from treeagent.data.formats import format_of, parse
from treeagent.data.formats.javascript_labels import label_of
from treeagent.data.tree import Document, Node
from treeagent.errors import InputError, LimitError, ParseError


def read(text: str) -> Any:
    """The value that json5 reads; objects as lists of pairs, so that repeated keys stay."""
    return json5.loads(text, object_pairs_hook=Pairs)


class Pairs(list[Any]):
    """The members of an object."""


def assert_reads_as(document: Document, node: Node, value: Any) -> None:
    """Every leaf's slice and every key, read alone, give what stands at their place in the whole."""
    text, children = document.text, document.children(node)
    starts, ends = document.spans(node)
    assert [(c.start, c.end) for c in children] == list(zip(starts.tolist(), ends.tolist(), strict=True))
    if not children:
        assert repr(read(text[node.content : node.end])) == repr(value)
        return
    keys = [k for k, _ in value] if isinstance(value, Pairs) else [None] * len(children)
    inside = [v for _, v in value] if isinstance(value, Pairs) else value
    for child, key, part in zip(children, keys, inside, strict=True):
        assert_reads_as(document, child, part)
        if key is not None:
            assert read("{" + text[child.start : child.content] + "0}") == [(key, 0)]


@given(STATIC)
@example("{'a':[],b:{},\"a\":[ ],'':'',}")
@example("['\\'', \"'\", 'a\\\\', /* ' */ 1 // ]\n, 2 /* } */,]")
@example("{a: 1, // about a\n b: 2 // about b\n}")
@example("{}")
@example("{é: 'ö', b: ['東', 😀]}".replace("😀", "'😀'"))
def test_every_node_is_the_slice_that_json5_reads_as_its_value(text: str) -> None:
    document = parse(text, "javascript")
    assert_reads_as(document, document.root, read(text))


@given(documents())
@settings(max_examples=150)
def test_children_tile_their_parent_in_order_and_no_two_nodes_share_a_path(text: str) -> None:
    document = parse(text, "javascript")
    stack, paths = [document.root], set()
    while stack:
        node = stack.pop()
        at, children = node.start, document.children(node)
        starts, ends = document.spans(node)
        assert [(c.start, c.end) for c in children] == list(zip(starts.tolist(), ends.tolist(), strict=True))
        for child in children:
            assert at <= child.start <= child.content < child.end <= node.end
            at = child.end
        path = document.path(node)
        assert path not in paths
        paths.add(path)
        stack.extend(children)


def outline(text: str) -> dict[str, str]:
    """Path and text of every node, in document order."""
    document = parse(text, "javascript")
    found, stack = {}, [document.root]
    while stack:
        node = stack.pop()
        found[document.path(node)] = text[node.start : node.end]
        stack.extend(reversed(document.children(node)))
    return found


def test_a_file_is_its_initialisers_and_the_statements_that_hold_none() -> None:
    text = "'use strict';\nconst config = {rules: [1, {b: 2}]};\nrun();\nmodule.exports = config;\n"
    assert outline(text) == {
        "$": text.strip(),
        "code[0]": "'use strict';",
        "config": "const config = {rules: [1, {b: 2}]};",
        "config.rules": "rules: [1, {b: 2}]",
        "config.rules[0]": "1",
        "config.rules[1]": "{b: 2}",
        "config.rules[1].b": "b: 2",
        "code[1]": "run();",
        "code[2]": "module.exports = config;",
    }


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("const x = {a: 1};", "x"),
        ("export let x = [1];", "x"),
        ("var x = ({a: 1})", "x"),
        ("const {p, q} = {p: 1, q: 2};", "{p, q}"),
        ("module.exports = {a: 1};", "module.exports"),
        ("exports.a = module.exports = {a: 1};", "module.exports"),
        ("this.state ||= [0];", "this.state"),
        ("export default {a: 1};", "export default"),
        ("define('x', /* y */ {a: 1}, 3);", "call define argument 1"),
        ("new Map([[1, 2]]);", "call Map argument 0"),
        ("const x = Object.freeze({a: 1});", "call Object.freeze argument 0"),
        ("function f() { const inner = {a: 1}; return inner; }", "inner"),
        ("if (debug) { log.level = [1]; }", "log.level"),
        ("const x = {a: f({b: 1})};", "x"),
    ],
)
def test_an_initialiser_is_named_by_its_variable_or_its_place(statement: str, name: str) -> None:
    document = parse(statement, "javascript")
    (initialiser,) = document.children(document.root)
    assert document.path(initialiser) == name
    assert (initialiser.start, initialiser.end) == (0, len(statement))
    assert statement[initialiser.content] in "{["


@pytest.mark.parametrize(
    "code",
    [
        "f();",
        "return_({}.a);",
        "const f = () => ({a: 1});",
        "function f(a = {x: 1}) { return {a}; }",
        "x = a || {b: 1};",
        "class A { static x = {y: 1} }",
        "for (const [a] of [[1]]) b();",
        "label: { a: 1 }",
        "x = a ? [1] : [2];",
    ],
)
def test_a_statement_without_an_initialiser_is_one_indivisible_piece(code: str) -> None:
    document = parse("a();" + code, "javascript")
    _, last = document.children(document.root)
    assert (document.path(last), last.start, last.end, last.atomic) == ("code[1]", 4, 4 + len(code), True)


def test_declarators_of_one_statement_are_initialisers_side_by_side() -> None:
    assert list(outline("const a = {}, n = 1, b = [2];").items())[1:] == [
        ("a", "const a = {}"),
        ("code[0]", "n = 1"),
        ("b", "b = [2];"),
        ("b[0]", "2"),
    ]


def test_a_long_function_opens_into_its_initialisers_and_the_code_between() -> None:
    busy = "work(1);" * 30
    text = f"function f() {{ {busy} const a = {{x: 1}}; {busy} g([2], 3); }}"
    found = outline(text)
    assert list(found) == [
        "$", "statement[0]", "statement[0].code[0]", "a", "a.x", "statement[0].code[1]", "call g argument 0",
        "call g argument 0[0]",
    ]  # fmt: skip
    assert found["a"] == "const a = {x: 1};"
    assert found["call g argument 0"] == "g([2], 3);"


def test_equal_names_and_keys_are_numbered() -> None:
    found = outline("x = {a: 1, 'a': 2, \\u0061: 3}; x = [4]; code = [5]; f();")
    assert list(found) == ["$", "x", "x.a", "x.a#2", "x.a#3", "x#2", "x#2[0]", "code#2", "code#2[0]", "code[0]"]


def test_a_name_that_is_a_path_into_another_initialiser_is_numbered() -> None:
    assert list(outline("w = {dom: {a: 1}}; w.dom = [2]; w.dom.a = {}; w.x = {}; w['dom'] = [];"))[1:] == [
        "w", "w.dom", "w.dom.a", "w.dom#2", "w.dom#2[0]", "w.dom.a#2", "w.x", "w['dom']",
    ]  # fmt: skip


def test_a_hole_is_an_element_and_keeps_the_places_of_the_others() -> None:
    assert outline("[1,,2,]") == {"$": "[1,,2,]", "$[0]": "1", "$[1]": ",", "$[2]": "2"}
    assert list(outline("[ , ,]")) == ["$", "$[0]", "$[1]"]


def test_a_comment_belongs_to_the_member_that_it_precedes_before_a_separator_to_the_one_that_it_follows() -> None:
    found = outline("{/* 1 */ a: 1 /* 2 */, // 3\n b: [2] /* 4 */, /* 5 */}")
    assert found["$.a"] == "/* 1 */ a: 1 /* 2 */"
    assert found["$.b"] == "// 3\n b: [2] /* 4 */"


@pytest.mark.parametrize(
    "member",
    [
        "n: 0x1F",
        "n: 1_000n",
        "n: -.5e3",
        "r: /[}/]{2}/g",
        "t: `a${[1, 2]}`",
        "f: function () { return {a: 1}; }",
        "g(a) {}",
        "get v() { return [1]; }",
        "async *i() {}",
        "...rest",
        "short",
        "[key]: {a: 1}",
        "c: call({a: 1})",
        "v: x.y[0]",
        "e: [1][0]",
        "p: (({a: 1}))",
        "o: a || {b: 1}",
        "k: class { m() {} }",
        "w: () => [1]",
    ],
)
def test_what_is_not_static_is_a_leaf_kept_whole(member: str) -> None:
    document = parse(f"x = {{before: 1, {member}, after: [2]}}", "javascript")
    (initialiser,) = document.children(document.root)
    leaf = document.child(initialiser, 1)
    assert leaf.atomic
    assert document.text[leaf.start : leaf.end] == member


def test_what_has_no_static_key_is_named_by_its_source() -> None:
    names = list(outline("{...base, [k]: 1, 'b c': 2, get v() {}, 0x10: 3, 1.50: 4, $d: 5}"))[1:]
    assert names == ['$["...base"]', '$["[k]"]', '$["b c"]', "$.v", '$["16"]', '$["1.5"]', '$["$d"]']


@pytest.mark.parametrize(
    ("key", "label"),
    [
        ("'a\\\nb'", "ab"),
        ('"\\x41\\u{1F600}\\0"', "A😀\0"),
        ("\\u0061b", "ab"),
        ("'\\v\\q'", "\vq"),
        ("1e3", "1000"),
        ("0b11", "3"),
        ("10n", "10"),
        ("1e400", "1e400"),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_a_label_is_what_the_key_stands_for(key: str, label: str) -> None:
    assert label_of(key) == label


@pytest.mark.parametrize(
    "literal", ["'a\\n\\u{1F600}\\ud83d\\ude00\\x41\\0\\\\b'", "`a\\n\\u{1F600}\\ud83d\\ude00\\x41\\0\\\\b`"]
)
def test_units_of_a_string_are_its_escapes_and_pairs(literal: str) -> None:
    text = f"[{literal}]"
    document = parse(text, "javascript")
    leaf = document.leaf_text(document.child(document.root, 0))
    units = [text[s:e] for s, e in zip(leaf.unit_starts, leaf.unit_ends, strict=True)]
    assert units == ["\\n", "\\u{1F600}", "\\ud83d\\ude00", "\\x41", "\\0", "\\\\"]


@pytest.mark.parametrize(
    "text", ["{}", "[]", "{a}", "{a, b}", "{f() {}}", "{...x}", "// c\n{a: 1} // d", "\ufeff[1]", "{a: 1};"]
)
def test_a_text_that_is_just_a_literal_is_its_tree(text: str) -> None:
    document = parse(text, "javascript")
    root = document.root
    assert root.kind in ("object", "array")
    assert text[root.start : root.end] == text.removeprefix("\ufeff")
    assert document.path(root) == "$"


def test_a_byte_order_mark_is_character_zero_and_reported() -> None:
    document = parse("\ufeff{é: [1]}", "javascript")
    (member,) = document.children(document.root)
    assert document.text[member.content : member.end] == "[1]"
    assert document.notes == ("byte order mark",)


def test_files_are_known_by_their_suffix() -> None:
    assert {format_of(f"a.{suffix}") for suffix in ("js", "mjs", "cjs")} == {"javascript"}


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("", 1, 1),
        ("const a = {x: 1", 1, 11),
        ("f();\nconst a = {x: };", 2, 14),
        ("{a: 1,, b: 2}", 1, 7),
        ("{é: 1,\n/* c */, b: 2}", 2, 8),
        ("{,}", 1, 2),
        ("let a = [1 2];", 1, 12),
        ("f(;", 1, 3),
        ("[1]]", 1, 4),
        ("'\ud800'", 1, 2),
        ("[1, /* c", 1, 1),
        ("\0", 1, 1),
    ],
)
def test_a_broken_text_is_refused_where_it_breaks(text: str, line: int, column: int) -> None:
    with pytest.raises(ParseError) as refusal:
        parse(text, "javascript")
    assert (refusal.value.line, refusal.value.column) == (line, column)


@pytest.mark.parametrize("unit", ["[", "{a:", "f({a:", "a=>{b=[", "`${"])
@pytest.mark.parametrize("closed", [True, False])
def test_nesting_without_end_is_read_or_refused_without_recursion(unit: str, closed: bool) -> None:
    closers = "".join({"[": "]", "{": "}", "(": ")", "`": "`"}.get(c, "") for c in reversed(unit))
    text = unit * 100_000 + ("1" + closers * 100_000 if closed else "")
    try:
        document = parse(text, "javascript")
    except ParseError:
        assert not closed
        return
    assert closed
    node, levels = document.root, 1
    while node.n_children and levels < 2_000:
        node, levels = document.child(node, 0), levels + 1


def test_more_open_brackets_than_the_limit_are_refused_by_name() -> None:
    with pytest.raises(LimitError, match="1,000,000 brackets"):
        parse("[" * 1_000_001, "javascript")


@pytest.mark.parametrize("text", ["{\ufeff, b: 2}", "{\u2003, b: 2}", "{a: 1,\ufeff, b: 2}"])
def test_a_missing_member_is_refused_behind_any_white_space(text: str) -> None:
    with pytest.raises(ParseError, match="expected a member"):
        parse(text, "javascript")


@pytest.mark.parametrize("times", [1, 40])
def test_errors_that_the_parser_never_makes_sense_of_end_in_a_limit(times: int) -> None:
    with pytest.raises(InputError):
        parse("p(},v>g(>{</</(>{</</(>{</</>;}" * times, "javascript")
