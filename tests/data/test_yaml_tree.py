"""YAML trees: spans, labels and refusals, against another library's reading of the same text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from noisy_yaml import documents
from treeagent.data.formats import format_of, parse
from treeagent.data.tree import Document, Node
from treeagent.errors import LimitError, ParseError
from yaml_reading import by_ruamel, children


def assert_reads_as(document: Document, node: Node, value: Any) -> None:
    """The tree has the shape of the independent reading, with spans that nest and do not overlap, free of white space
    at their ends (the value of a block scalar that keeps its line ends apart)."""
    stack = [(node, value)]
    while stack:
        node, value = stack.pop()
        found, inside = document.children(node), children(value)
        assert len(found) == len(inside)
        starts, ends = document.spans(node)
        assert [(c.start, c.end) for c in found] == list(zip(starts.tolist(), ends.tolist(), strict=True))
        edges = [node.start, *(edge for c in found for edge in (c.start, c.end)), node.end]
        assert edges == sorted(edges)
        for child, entry in zip(found, inside, strict=True):
            source = document.text[child.start : child.end]
            assert source
            assert source == source.lstrip()
            below = entry[1] if value[0] == "map" else entry
            assert source == source.rstrip() or "|" in source or ">" in source  # block scalars end with their value
            stack.append((child, below))
        if value[0] == "scalar" and node.divisible:
            assert value[4] not in ("|", ">")


@given(documents())
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@example("[a: b, ? c : d, {x, y: , ? , ? z : }]")
@example("? a\n? b\n: - c\n  - d\n")
@example("? &a\n  k: v\n")
@example("&m\n? k\n: v")
def test_every_node_has_the_children_that_another_library_reads(text: str) -> None:
    document = parse(text, "yaml")
    value = by_ruamel(text)
    if len(value) == 1:
        assert_reads_as(document, document.root, value[0])
        return
    found = document.children(document.root)
    assert len(found) == len(value)
    for child, below in zip(found, value, strict=True):
        assert_reads_as(document, child, below)


def nodes(text: str) -> dict[str, str]:
    """Path to source of all nodes, in document order."""
    document = parse(text, "yaml")
    found, stack = {}, [document.root]
    while stack:
        node = stack.pop(0)
        found[document.path(node)] = text[node.start : node.end]
        stack = document.children(node) + stack
    return found


def test_entries_and_items_are_slices_from_their_key_or_dash() -> None:
    text = "name: Ada\ntags:\n  - x\n  - y: 1\n    z:\nflow: {a: [1, 'b c'], d}\n"
    found = nodes(text)
    assert found["$"] == text.strip()
    assert found["$.tags"] == "tags:\n  - x\n  - y: 1\n    z:"
    assert found["$.tags[1]"] == "- y: 1\n    z:"
    assert found["$.tags[1].z"] == "z:"
    assert found["$.flow.a[1]"] == "'b c'"
    assert list(found) == [
        "$", "$.name", "$.tags", "$.tags[0]", "$.tags[1]", "$.tags[1].y", "$.tags[1].z",
        "$.flow", "$.flow.a", "$.flow.a[0]", "$.flow.a[1]", "$.flow.d",
    ]  # fmt: skip


def test_a_list_without_indentation_and_a_list_in_a_list() -> None:
    found = nodes("k:\n- a\n-\n- - b\n  - c\n")
    assert found["$.k"] == "k:\n- a\n-\n- - b\n  - c"
    assert [found[f"$.k[{i}]"] for i in range(3)] == ["- a", "-", "- - b\n  - c"]
    assert found["$.k[2][1]"] == "- c"


def test_a_comment_belongs_to_the_node_it_precedes() -> None:
    found = nodes("# top\na: 1\n\n# one\n  # two\nb:\n  # inner\n  - x\n")
    assert found["$.a"] == "# top\na: 1"
    assert found["$.b"] == "# one\n  # two\nb:\n  # inner\n  - x"
    assert found["$.b[0]"] == "# inner\n  - x"


def test_a_comment_on_the_line_of_a_value_stays_with_it() -> None:
    found = nodes("a: 1 # of a\nb: # of b\n  - x # of x\n  - y\nc: [1, # of 1\n  2]\n")
    assert found["$.a"] == "a: 1 # of a"
    assert found["$.b[0]"] == "- x # of x"
    assert found["$.c[0]"] == "1, # of 1"


def test_a_comment_that_precedes_nothing_belongs_to_what_it_follows() -> None:
    found = nodes("a: [1\n  # inside\n]\nb:\n  - c\n# end\n")
    assert found["$.a[0]"] == "1\n  # inside"
    assert found["$.b[0]"] == "- c\n# end"
    assert found["$.b"] == "b:\n  - c\n# end"


def test_a_text_of_comments_alone_is_one_leaf() -> None:
    assert nodes("\n# nothing\n\n# here\n") == {"$": "# nothing\n\n# here"}


def test_documents_are_children_with_directives_and_comments_before_them() -> None:
    text = "# one\n%TAG !e! tag:example.org:\n---\na: !e!x 1\n...\n# two\n---\n- b\n---\n"
    found = nodes(text)
    assert found["$"] == text.strip()
    assert found["$doc[0]"] == "# one\n%TAG !e! tag:example.org:\n---\na: !e!x 1\n..."
    assert found["$doc[0].a"] == "a: !e!x 1"
    assert found["$doc[1]"] == "# two\n---\n- b"
    assert found["$doc[1][0]"] == "- b"
    assert found["$doc[2]"] == "---"


def test_a_marker_inside_a_scalar_starts_no_document() -> None:
    found = nodes('note: |\n  a\n  ---\n  b\nq: "p\n\n --- q"\n')
    assert list(found) == ["$", "$.note", "$.q"]
    assert found["$.note"] == "note: |\n  a\n  ---\n  b"


def test_paths_quote_odd_keys_number_repeated_ones_and_place_complex_ones() -> None:
    text = "a: 1\n'a': 2\n\"\\u0061\": 3\nb c: 4\n? [x]\n: 5\n? {k: v}\n: 6\n*r : 7\n? \n: 8\n"
    assert list(nodes(text)) == [
        "$", "$.a", "$.a#2", "$.a#3", '$["b c"]', "$[?4]", "$[?5]", "$[?6]", '$[""]',
    ]  # fmt: skip


def test_escaped_and_folded_keys_are_named_as_they_read() -> None:
    keys = '\'it\'\'s\': 1\n"t\\tq\\"": 2\n"\\ud83d\\ude00": 3\n"\\x41": 4\n'
    text = keys + "? |\n  two\n  lines\n: 5\n? one\n  two\n: 6\n"
    assert list(nodes(text))[1:] == [
        '$["it\'s"]', '$["t\\tq\\""]', '$["😀"]', "$.A", '$["two\\nlines\\n"]', '$["one two"]',
    ]  # fmt: skip


def kinds(text: str) -> list[tuple[str, bool]]:
    document = parse(text, "yaml")
    return [(child.kind, child.atomic) for child in document.children(document.root)]


def test_only_plain_and_quoted_text_is_divisible() -> None:
    texts = "- plain words\n- 'q'\n- \"d\"\n- |\n  block\n- >-\n  folded\n- *alias\n"
    text = texts + "- 12\n- -1.5e3\n- yes it is\n- true\n-\n- ~\n- ''\n- []\n"
    assert kinds(text) == [
        ("string", False), ("string", False), ("string", False), ("block", True), ("block", True), ("alias", True),
        ("number", True), ("number", True), ("string", False), ("true", True), ("null", True), ("null", True),
        ("empty", True), ("array", True),
    ]  # fmt: skip


def test_anchors_tags_and_merge_keys_stay_in_their_entries() -> None:
    found = nodes("base: &b !!map\n  x: &n 1\nsub:\n  <<: *b\n  y: !t &m\n    - 2\n")
    assert found["$.base"] == "base: &b !!map\n  x: &n 1"
    assert found['$.sub["<<"]'] == "<<: *b"
    assert found["$.sub.y[0]"] == "- 2"


def test_the_value_of_an_entry_starts_with_its_anchor_and_tag() -> None:
    text = "k: &a !t\n  v: 1\n"
    document = parse(text, "yaml")
    assert text[document.child(document.root, 0).content :].startswith("&a !t")


def test_a_byte_order_mark_is_character_zero_and_line_ends_of_two_characters_move_no_offset() -> None:
    text = "\ufeffa: é\r\nb:\r\n- 東\r\n- c\r\n"
    assert nodes(text) == {
        "$": text[1:-2], "$.a": "a: é", "$.b": "b:\r\n- 東\r\n- c", "$.b[0]": "- 東", "$.b[1]": "- c",
    }  # fmt: skip
    assert parse(text, "yaml").notes == ("byte order mark",)


def test_a_block_scalar_keeps_what_its_value_keeps() -> None:
    found = nodes("a: |+\n  x\n\nb: |\n  y \n\nc: |-\n  z\n   \n  \nd: >\n  w\n\n# c\n")
    assert found["$.a"] == "a: |+\n  x\n\n"
    assert found["$.b"] == "b: |\n  y "
    assert found["$.c"] == "c: |-\n  z\n   "
    assert found["$.d"] == "d: >\n  w\n\n# c"


def units(text: str) -> list[str]:
    document = parse(text, "yaml")
    leaf = document.leaf_text(document.root)
    return [text[s:e] for s, e in zip(leaf.unit_starts, leaf.unit_ends, strict=True)]


def test_units_of_quoted_scalars_are_escapes_and_doubled_quotes() -> None:
    assert units('!t "a\\n\\x41\\u00e9\\U0001F600\\ud83d\\ude00\\\\\\"b"') == [
        "\\n", "\\x41", "\\u00e9", "\\U0001F600", "\\ud83d\\ude00", "\\\\", '\\"',
    ]  # fmt: skip
    assert units("'it''s ''''q'") == ["''", "''", "''"]
    assert units("'a\\n'") == []
    assert units("plain \\n ''") == []
    assert units('"a\\\r\n b"') == ["\\\r\n"]


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("", 1, 1),
        ("a: 'x", 1, 6),
        ("a: b\n  c: d", 2, 4),
        ("[1, 2", 1, 6),
        ("a:\n\t- b", 2, 1),
        ("x: \x00", 1, 4),
        ("é: 1\nx: \x7f", 2, 4),
        ("\ufeffx: '\ud800'", 1, 6),
        ("- a\n b: c", 2, 3),
        ("%FOO", 1, 5),
        ("a: !e!x 1", 1, 4),
        ("a: %x", 1, 4),
        ('k: "\\ud83d"', 1, 7),
    ],
)
def test_a_broken_text_is_refused_where_it_breaks(text: str, line: int, column: int) -> None:
    with pytest.raises(ParseError) as refusal:
        parse(text, "yaml")
    assert refusal.value.format == "yaml"
    assert refusal.value.line == line
    assert abs(refusal.value.column - column) <= 1  # libyaml points at the fault or right behind it


@pytest.mark.parametrize("opening", ["[", "- ", "? ", "{a: ", "[? "])
def test_nesting_beyond_the_limit_of_the_library_is_refused_by_name(opening: str) -> None:
    with pytest.raises(LimitError, match=r"nested deeper than the 1,000 levels"):
        parse(opening * 200_000, "yaml")


def test_nesting_up_to_the_limit_is_read() -> None:
    depth = 990
    document = parse("[" * depth + "]" * depth, "yaml")
    node, levels = document.root, 1
    while node.n_children:
        node, levels = document.child(node, 0), levels + 1
    assert levels == depth


def test_aliases_are_never_followed() -> None:
    levels = 2_000
    text = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, levels))
    document = parse(text, "yaml")
    assert document.root.n_children == levels
    last = document.child(document.root, levels - 1)
    assert [c.kind for c in document.children(last)] == ["alias", "alias"]
    assert parse("&a [*a, *a]", "yaml").root.n_children == 2


def test_no_constructor_runs() -> None:
    document = parse("- !!python/object/apply:os.system ['false']\n- !!int not a number\n", "yaml")
    assert [c.kind for c in document.children(document.root)] == ["array", "string"]


def test_the_suffixes_name_the_format() -> None:
    assert format_of("a.yaml") == format_of("b.YML") == "yaml"
