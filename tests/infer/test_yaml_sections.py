"""Sections of YAML: the properties a reader relies on, and rendered sections read again as what they cover."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from noisy_yaml import documents
from tokenizers_at_hand import trained
from treeagent.data.formats import parse
from treeagent.data.tokens import load_tokenizer
from treeagent.data.tree import Document, Node
from treeagent.infer import Plan, plan_sections
from yaml_reading import by_pyyaml, by_ruamel, children, innermost

BUDGETS = st.integers(1, 60)
SLOW = settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def plan_of(text: str, budget: int, cut: str = "gpt2") -> Plan:
    return plan_sections(text, format="yaml", tokenizer=trained(cut), exact_budget=budget)


def nodes(document: Document) -> list[Node]:
    found, stack = [], [document.root]
    while stack:
        node = stack.pop()
        found.append(node)
        stack.extend(reversed(document.children(node)))
    return found


@given(text=documents(), budget=BUDGETS)
@SLOW
def test_sections_follow_the_document_and_leave_out_no_value(text: str, budget: int) -> None:
    """P1, P2: what lies between sections is white space, indicators, or what belongs to an opened node."""
    plan = plan_of(text, budget)
    edges = [0, *(edge for s in plan.sections for edge in (s.start, s.end)), len(text)]
    assert edges == sorted(edges)
    assert all(s.start < s.end for s in plan.sections)
    assert "".join(text[a:b] for a, b in pairwise(edges)) == text
    covered = [(s.start, s.end) for s in plan.sections]
    for node in nodes(plan.document):
        if node.n_children == 0:
            leaf = plan.document.leaf_text(node) if node.divisible else None
            start, end = (leaf.start, leaf.end) if leaf else (node.start, node.end)
            assert sum(max(0, min(e, end) - max(s, start)) for s, e in covered) == end - start


@given(text=documents(), budget=BUDGETS)
@SLOW
def test_subtrees_that_fit_stay_whole_and_no_section_is_over_budget(text: str, budget: int) -> None:
    """P3, P4, P10, and the stored count is that of the slice encoded alone."""
    tokenizer = trained("qwen2")
    plan = plan_of(text, budget, "qwen2")

    def tokens(start: int, end: int) -> int:
        return len(tokenizer.encode(text[start:end], add_special_tokens=False))

    for node in nodes(plan.document):
        if tokens(node.start, node.end) <= budget:
            assert sum(s.start <= node.start and node.end <= s.end for s in plan.sections) == 1
    for section in plan.sections:
        assert section.tokens == tokens(section.start, section.end)
        assert section.oversize == (section.tokens > budget)
        assert section.place is not None
        leaf = section.place
        if section.kind == "text":
            units = plan.document.leaf_text(leaf)
            spans = list(zip(units.unit_starts, units.unit_ends, strict=True))
            assert not any(s < edge < e for s, e in spans for edge in (section.start, section.end))
            if section.oversize:
                assert section.end - section.start == 1 or (section.start, section.end) in spans
        elif section.oversize:
            assert section.kind == "subtree"
            assert leaf.atomic


_STEP = re.compile(r'\.([A-Za-z_]\w*)(?:#(\d+))?|doc\[(\d+)\]|\[(\d+)\]|\[\?(\d+)\]|\[("(?:[^"\\]|\\.)*")\](?:#(\d+))?')


def at(documents: list[Any], path: str) -> list[Any]:
    """The children of what a path leads to in another library's reading, as entries; the path is all it knows."""
    import json

    assert path.startswith("$")
    steps = list(_STEP.finditer(path, 1))
    assert "$" + "".join(m.group() for m in steps) == path
    if not steps:
        return documents if len(documents) > 1 else children(documents[0])
    value = documents[0]
    for match in steps:
        name, copy, document, item, place, quoted, quoted_copy = match.groups()
        if document is not None:
            value = documents[int(document)]
        elif item is not None:
            value = children(value)[int(item)]
        elif place is not None:
            value = children(value)[int(place)][1]
        else:
            key = name if name is not None else json.loads(quoted)
            same = [v for k, v in children(value) if k[0] == "scalar" and k[3] == key]
            value = same[int(copy or quoted_copy or 1) - 1]
    return [value, *children(value)]


@given(text=documents(), budget=BUDGETS)
@SLOW
@example(text=" - a\n - b\n", budget=60)
@example(text="- b\n---\n?\n? |+\n  first\n...\n# end", budget=1)
@example(text="%TAG ! tag:x,1:\n---\n!k a:\n  # c\n  b: &x !v\n    c: 1\n    d: [1, {e: 2, f: 3}]\n", budget=1)
@example(text="- ? a\n  : b\n- # c\n  k: v\n  # d\n  j: w\n", budget=3)
@example(text="a: [{b: c, d: {e: f}}, # x\n x: {y: z}]\nb: |\n  c\n", budget=1)
def test_a_rendered_section_reads_as_the_nodes_it_covers(text: str, budget: int) -> None:
    """Compared at the level of events: anchors, tags and styles of scalars too (design: directives restored)."""
    plan, whole = plan_of(text, budget), by_ruamel(text)
    for section in plan.sections:
        assert section.place is not None
        place = section.place
        parent = place if section.kind == "siblings" else place.parent
        if section.kind == "text" or "…" in "".join(plan.wrappers[section.index]):
            continue
        rendered = by_ruamel(plan.render(section))
        if parent is None or parent.kind == "stream":
            first, last = section.range or (place.ordinal, place.ordinal)
            assert rendered == (whole if parent is None else whole[first : last + 1])
            continue
        values = at(whole, plan.document.path(parent))
        values = values[1:] if parent.parent is not None else values
        first, last = section.range or (place.ordinal, place.ordinal)
        assert innermost(rendered, values[first : last + 1])


@given(text=documents())
@SLOW
def test_paths_lead_another_library_to_the_same_nodes(text: str) -> None:
    """P6."""
    document, whole = parse(text, "yaml"), by_pyyaml(text)
    for node in nodes(document):
        if node.parent is None or node.kind == "null":
            continue
        value = at(whole, document.path(node))[0]
        assert len(children(value)) == node.n_children
        assert (value[0] == "alias") == (node.kind == "alias")


@given(text=documents(), budget=st.integers(1, 8))
@SLOW
def test_fragments_of_a_split_scalar_join_to_its_source(text: str, budget: int) -> None:
    plan = plan_of(text, budget)
    joined = ""
    for section in plan.sections:
        if section.kind == "text":
            assert section.place is not None
            leaf = plan.document.leaf_text(section.place)
            joined += text[section.start : section.end]
            if section.last_of_leaf:
                assert joined == text[leaf.start : leaf.end]
                joined = ""
    assert joined == ""


def rendered(text: str, budget: int) -> list[str]:
    plan = plan_of(text, budget)
    return [plan.render(section) for section in plan.sections]


def test_keys_and_indentation_of_the_parent_are_put_back() -> None:
    text = "config:\n  # servers, in order\n  servers: &s\n"
    text += "    - host: alpha\n      port: 1\n    - host: beta\n      port: 2\n"
    one = load_tokenizer(trained("gpt2")).count("- host: alpha\n      port: 1")
    assert rendered(text, one) == [
        "config:\n  # servers, in order\n  servers: &s\n    - host: alpha\n      port: 1",
        "  servers: &s\n    - host: beta\n      port: 2",
    ]


def test_what_an_opened_node_says_of_itself_is_shown_once() -> None:
    text = "# licence\n---\n# about a\na: !t # of a\n  b: " + "word " * 20 + "\n  c: " + "word " * 20 + "\n"
    shown = rendered(text, 30)
    assert sum("# licence" in r for r in shown) == 1
    assert sum("# about a" in r for r in shown) == 1
    assert all("a: !t # of a" in r for r in shown)


def test_directives_are_put_back_around_every_section_of_their_document() -> None:
    text = "%TAG !e! tag:example.org:\n---\na:\n  b: !e!x 1\n  c: !e!y 2\n"
    shown = rendered(text, 8)
    assert len(shown) > 1
    assert all(r.startswith("%TAG !e! tag:example.org:\n---\n") for r in shown)


def test_brackets_are_put_back_in_flow_style_and_close_after_a_comment() -> None:
    text = "[{aa: 1, bb: 2}, {cc: 3, # last\n dd: 4}]"
    shown = rendered(text, 6)
    assert [by_pyyaml(r)[0][0] for r in shown] == ["seq", *["map"] * (len(shown) - 1)]
    assert any("# last\n}" in r for r in shown)


def test_a_split_scalar_is_quoted_again_with_its_key() -> None:
    plan = plan_of("k:\n  note: 'it''s " + "word " * 40 + "'\n", 20)
    assert all(s.kind == "text" and s.path == "$.k.note" for s in plan.sections)
    assert all(plan.render(s).startswith("k:\n  note: '") for s in plan.sections)
    assert all(plan.render(s).endswith("'") for s in plan.sections)
    assert [s.last_of_leaf for s in plan.sections] == [False] * (len(plan.sections) - 1) + [True]


def test_a_block_scalar_over_budget_is_one_flagged_section() -> None:
    (section,) = plan_of("spec: |\n" + "  words of a block\n" * 30, 10).sections
    assert section.oversize
    assert section.kind == "subtree"


@pytest.mark.parametrize(
    "unit", ["- a # c\n", "k: [x, {y: z}]\n", "? [a]\n: b\n", "- |\n  x\n   \n", "--- a\n", "- &a !t x\n"]
)
def test_cost_grows_with_the_document(unit: str) -> None:
    import time

    def seconds(many: int) -> float:
        text, best = unit * many, 9.0
        for _ in range(3):
            start = time.process_time()
            document = parse(text, "yaml")
            document.spans(document.root)
            best = min(best, time.process_time() - start)
        return best

    assert seconds(16_000) <= 8 * seconds(4_000)
