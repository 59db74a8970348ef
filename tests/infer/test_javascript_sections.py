"""Sections of JavaScript: nothing lost, nothing over budget, paths that lead back, renderings that read natively."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import json5
from hypothesis import example, given, settings
from hypothesis import strategies as st
from noisy_javascript import STATIC, documents
from tokenizers_at_hand import trained
from treeagent.data.formats import parse
from treeagent.data.tree import Document, Node
from treeagent.infer import Plan, Section, plan_sections

BUDGETS = st.integers(1, 60)
BUSY = "work(1);\n" * 40


def plan_of(text: str, budget: int, cut: str = "gpt2") -> Plan:
    return plan_sections(text, format="javascript", tokenizer=trained(cut), exact_budget=budget)


def nodes_of(document: Document) -> list[Node]:
    found, stack = [], [document.root]
    while stack:
        found.append(stack.pop())
        stack.extend(reversed(document.children(found[-1])))
    return found


@given(text=documents(), budget=BUDGETS)
def test_sections_and_the_gaps_between_them_are_the_document(text: str, budget: int) -> None:
    """P1, P2."""
    plan = plan_of(text, budget)
    edges = [0, *(edge for s in plan.sections for edge in (s.start, s.end)), len(text)]
    assert edges == sorted(edges)
    assert all(s.start < s.end for s in plan.sections)
    assert "".join(text[a:b] for a, b in pairwise(edges)) == text


@given(text=documents(), budget=BUDGETS)
def test_a_leaf_is_covered_whole_and_a_subtree_that_fits_is_in_one_section(text: str, budget: int) -> None:
    """P3, P10: gaps hold what belongs to opened nodes and nothing of a leaf but the quotes of a split string."""
    tokenizer, plan = trained("qwen2"), plan_of(text, budget, "qwen2")
    covered = [(s.start, s.end) for s in plan.sections]
    for node in nodes_of(plan.document):
        if node.n_children == 0:
            leaf = plan.document.leaf_text(node) if node.divisible else node
            inside = sum(max(0, min(e, leaf.end) - max(s, leaf.start)) for s, e in covered)
            assert inside == leaf.end - leaf.start
        if len(tokenizer.encode(text[node.start : node.end], add_special_tokens=False)) <= budget:
            assert sum(s <= node.start and node.end <= e for s, e in covered) == 1


@given(text=documents(), budget=BUDGETS)
def test_no_section_is_over_budget_but_an_indivisible_leaf(text: str, budget: int) -> None:
    """P4, P10."""
    tokenizer, plan = trained("llama3"), plan_of(text, budget, "llama3")
    for section in plan.sections:
        assert section.tokens == len(tokenizer.encode(text[section.start : section.end], add_special_tokens=False))
        assert section.oversize == (section.tokens > budget)
        assert section.place is not None
        leaf = section.place
        if section.kind == "text":
            units = plan.document.leaf_text(leaf)
            edges = {e for s, t in zip(units.unit_starts, units.unit_ends, strict=True) for e in range(s + 1, t)}
            assert not edges & {section.start, section.end}
        elif section.oversize:
            assert leaf.atomic


@given(text=documents(), budget=BUDGETS)
def test_a_path_leads_back_to_exactly_what_the_section_covers(text: str, budget: int) -> None:
    """P6."""
    plan = plan_of(text, budget)
    document = parse(text, "javascript")
    by_path = {document.path(node): node for node in nodes_of(document)}
    for section in plan.sections:
        node = by_path[section.path]
        if section.range is not None:
            first, last = (document.child(node, i) for i in section.range)
            assert (section.start, section.end) == (first.start, last.end)
        elif section.kind == "subtree":
            assert (section.start, section.end) == (node.start, node.end)
        else:
            assert node.start <= section.start < section.end <= node.end


def same(first: Document, a: Node, second: Document, b: Node) -> None:
    """Two nodes with the same text, kind and descendants."""
    assert (a.kind, first.text[a.content : a.end]) == (b.kind, second.text[b.content : b.end])
    for inside, other in zip(first.children(a), second.children(b), strict=True):
        same(first, inside, second, other)


@given(text=documents(), budget=BUDGETS)
@settings(max_examples=150)
@example(text="x = {a: 1 // one\n, b: [2 // two\n]} // end\n", budget=2)
@example(text="// why\nconst x = /* so */ {a: [1, 2, /* done */], b: 2}, y = [[3, 4]];", budget=2)
def test_a_rendered_section_reads_as_the_nodes_it_covers(text: str, budget: int) -> None:
    """The rendering alone is JavaScript, with one literal around the covered members or elements."""
    plan = plan_of(text, budget)
    for section in plan.sections:
        assert section.place is not None
        parent = section.place if section.kind == "siblings" else section.place.parent
        if section.kind == "text" or parent is None or parent.kind not in ("object", "array"):
            continue
        first, last = section.range or (section.place.ordinal,) * 2
        again = parse(plan.render(section), "javascript")
        whole = again.root if again.root.kind == parent.kind else again.child(again.root, 0)
        covered = plan.document.children(parent)[first : last + 1]
        assert whole.kind == parent.kind
        assert whole.n_children == len(covered)
        for node, other in zip(covered, again.children(whole), strict=True):
            same(plan.document, node, again, other)


@given(text=STATIC, budget=st.integers(1, 8))
@example(text="{note: 'one\\ntwo \\ud83d\\ude00 \\x41 three. Four five six seven eight nine ten' // c\n}", budget=4)
def test_fragments_of_a_split_string_are_strings_that_join_to_it(text: str, budget: int) -> None:
    plan = plan_of(text, budget)
    joined = ""
    for section in plan.sections:
        if section.kind != "text":
            continue
        assert section.place is not None
        leaf = section.place
        assert leaf.parent is not None
        rendered: Any = json5.loads(plan.render(section))
        joined += next(iter(rendered.values())) if leaf.parent.kind == "object" else rendered[0]
        if section.last_of_leaf:
            assert joined == json5.loads(text[leaf.content : leaf.end])
            joined = ""
    assert joined == ""


def shown(text: str, budget: int) -> tuple[list[Section], list[str]]:
    plan = plan_of(text, budget)
    return list(plan.sections), [plan.render(s) for s in plan.sections]


def test_the_rest_of_an_initialisers_statement_is_shown_around_its_members() -> None:
    sections, rendered = shown("define('x', {a: 'one two', b: 'three four'}, 5);", 12)
    assert [s.path for s in sections] == ["call define argument 1.a", "call define argument 1.b"]
    assert rendered == ["define('x', {a: 'one two'}, 5);", "define('x', {b: 'three four'}, 5);"]


def test_comments_of_an_opened_node_are_shown_once() -> None:
    text = "// all\nconst x = {/* list */ a: ['one two three', 'four five six', /* end */]};"
    sections, rendered = shown(text, 18)
    assert [s.path for s in sections] == ["x.a[0]", "x.a[1]"]
    assert rendered[0] == "// all\nconst x = /* … */ /* list */ /* end */ ['one two three'];"
    assert rendered[1] == "['four five six']"


def test_all_of_the_code_around_initialisers_in_a_function_is_in_some_section() -> None:
    text = f"function f() {{\n{BUSY}const a = {{x: 'one two three', y: 2}};\n{BUSY}return a;\n}}\n"
    plan = plan_of(text, 50)
    said = "".join(plan.render(s) for s in plan.sections)
    assert said.count("work(1);") == 80
    assert "function f() {" in said
    assert "const a = {x: 'one two three', y: 2};" in said
    assert "return a;" in said


def test_code_is_never_cut() -> None:
    sections, rendered = shown(f"function f() {{\n{BUSY}}}\nmodule.exports = {{a: 1}};", 10)
    assert (sections[0].path, sections[0].kind, sections[0].oversize) == ("code[0]", "subtree", True)
    assert rendered[0] == f"function f() {{\n{BUSY}}}"


def test_depth_and_breadth_cost_linear_time() -> None:
    import time

    def seconds(text: str) -> float:
        start = time.process_time()
        plan = plan_sections(text, format="javascript", tokenizer=trained("gpt2"), budget=500)
        assert plan.sections
        return time.process_time() - start

    for unit, closer in (
        ("[", "]"),
        ("{a:", "}"),
        ("f({});", ""),
        ("[1],", ""),
        ("x={a:1};", ""),
        ("/* c */ //\n", ""),
    ):
        open, close = ("[", "]") if unit[0] in "[/" else ("", "")
        small, large = (f"{open}{unit * n}{'1' if closer else ''}{closer * n}{close}" for n in (1_000, 8_000))
        seconds(small)
        assert seconds(large) < 8 * 4 * max(seconds(small), 0.02)
