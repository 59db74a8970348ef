"""Sections of HTML pages: the properties that a reader relies on, and rendered sections read again in context."""

from __future__ import annotations

import html
from itertools import pairwise

import pytest
import turbohtml
from hypothesis import given, settings
from hypothesis import strategies as st
from noisy_html import documents, pages
from tokenizers_at_hand import trained
from treeagent.data.formats import parse
from treeagent.data.tree import Document, Node
from treeagent.infer import Plan, Section, plan_sections

BUDGETS = st.integers(1, 60)


def plan_of(text: str, budget: int, cut: str = "gpt2") -> Plan:
    return plan_sections(text, format="html", tokenizer=trained(cut), exact_budget=budget)


def walk(document: Document, top: Node) -> list[Node]:
    found, stack = [], [top]
    while stack:
        node = stack.pop()
        found.append(node)
        stack.extend(reversed(document.children(node)))
    return found


@given(text=documents(), budget=BUDGETS)
@settings(max_examples=60)
def test_sections_and_gaps_are_the_page_and_every_leaf_is_covered(text: str, budget: int) -> None:
    """P1, P2, P3 and P10."""
    plan = plan_of(text, budget)
    edges = [0, *(edge for s in plan.sections for edge in (s.start, s.end)), len(text)]
    assert edges == sorted(edges)
    assert "".join(text[a:b] for a, b in pairwise(edges)) == text
    spans = [(s.start, s.end) for s in plan.sections]
    for node in walk(plan.document, plan.document.root):
        whole = sum(s <= node.start and node.end <= e for s, e in spans)
        if len(trained("gpt2").encode(text[node.start : node.end], add_special_tokens=False)) <= budget:
            assert whole == 1
        if not node.n_children:
            inside = sum(max(0, min(e, node.end) - max(s, node.start)) for s, e in spans)
            assert inside == node.end - node.start
        if node.divisible:
            units = plan.document.leaf_text(node)
            cuts = {edge for span in spans for edge in span}
            for start, end in zip(units.unit_starts, units.unit_ends, strict=True):
                assert not any(start < cut < end for cut in cuts)


@given(text=documents(), budget=BUDGETS)
@settings(max_examples=60)
def test_no_section_is_over_budget_but_what_cannot_be_divided(text: str, budget: int) -> None:
    """P4, for another cutting of words."""
    plan = plan_of(text, budget, "llama3")
    for section in plan.sections:
        tokens = len(trained("llama3").encode(text[section.start : section.end], add_special_tokens=False))
        assert section.tokens == tokens
        assert section.oversize == (tokens > budget)
        if section.oversize:
            assert section.place is not None
            assert section.place.n_children == 0


@given(text=documents(), budget=BUDGETS)
@settings(max_examples=60)
def test_a_path_and_its_range_name_exactly_what_is_covered(text: str, budget: int) -> None:
    """P6, by the paths of a fresh tree."""
    plan = plan_of(text, budget)
    fresh = parse(text, "html")
    nodes = {fresh.path(node): node for node in walk(fresh, fresh.root)}
    for section in plan.sections:
        node = nodes[section.path]
        if section.range is not None:
            covered = fresh.children(node)[section.range[0] : section.range[1] + 1]
            assert (covered[0].start, covered[-1].end) == (section.start, section.end)
        elif section.kind == "subtree":
            assert (node.start, node.end) == (section.start, section.end)
        else:
            assert node.start <= section.start < section.end <= node.end


def shown(plan: Plan, section: Section, seen: set[str]) -> tuple[list[Node], list[Node]]:
    """The elements whose tags the wrapper shows, outermost first, and the nodes covered."""
    assert section.place is not None
    place = section.place
    parent = place if section.kind == "siblings" else place.parent
    first, last = section.range or (place.ordinal, place.ordinal)
    covered = plan.document.children(parent)[first : last + 1] if parent is not None else [place]
    chain: list[Node] = [] if parent is None else [parent]
    walk_up = parent
    while walk_up is not None and plan.document.path(walk_up) not in seen:
        seen.add(plan.document.path(walk_up))
        if walk_up is not parent:
            chain.insert(0, walk_up)
        walk_up = walk_up.parent
    return chain, covered


@given(text=pages(), budget=BUDGETS)
@settings(max_examples=40)
def test_a_rendered_section_reads_as_the_nodes_it_covers(text: str, budget: int) -> None:
    """Reparsed by turbohtml, as a fragment inside the element around it: the same elements, the same text."""
    plan = plan_of(text, budget)
    assert plan.elided == 0
    seen: set[str] = set()
    for section in plan.sections:
        chain, covered = shown(plan, section, seen)
        if section.kind == "text":
            continue
        outer = (chain or covered)[0].parent
        context = name(plan.document, outer) if outer is not None else ""
        context = "div" if "-" in context else context  # turbohtml takes known names only
        rendered = plan.render(section)
        read = (
            turbohtml.parse_fragment(rendered, context, source_locations=True)
            if context not in ("", "html")
            else turbohtml.parse(rendered, source_locations=True)
        )
        tags = [e.tag.lower() for e in read.iter_elements() if e.source_location is not None]
        nodes = chain + [n for top in covered for n in walk(plan.document, top)]
        assert tags == [name(plan.document, n) for n in nodes if n.kind == "element"]
        source = text[section.start : section.end]
        raw = chain and name(plan.document, chain[-1]) in ("textarea", "title")
        expected = html.unescape(source) if raw else turbohtml.parse_fragment(source, "template").text
        assert "".join(read.text.split()) == "".join(expected.split())


def name(document: Document, node: Node) -> str:
    return document.path(node).rsplit("/", 1)[1].split("[")[0]


@given(text=pages(), budget=st.integers(1, 6))
@settings(max_examples=60)
def test_the_fragments_of_a_split_text_join_to_it(text: str, budget: int) -> None:
    plan = plan_of(text, budget, "qwen2")
    joined = ""
    for section in plan.sections:
        if section.kind == "text":
            assert section.place is not None
            leaf = section.place
            joined += text[section.start : section.end]
            if section.last_of_leaf:
                assert joined == text[leaf.start : leaf.end]
                joined = ""
    assert joined == ""


def test_an_opened_elements_attributes_are_said_once_and_its_tags_close() -> None:
    items = "".join(f"<p>item number {i} of many</p>" for i in range(30))
    text = f"<!DOCTYPE html><html lang=en><body class=b><main id=m>{items}</main></body></html>"
    plan = plan_of(text, 60)
    first, second = plan.render(plan.sections[0]), plan.render(plan.sections[1])
    assert first.startswith("<!DOCTYPE html><html lang=en><body class=b><main id=m><p>item number 0")
    assert first.endswith("</p></main></body></html>")
    assert second.startswith("<main id=m><p>")
    assert second.endswith("</p></main>")
    assert plan.sections[1].path == "/html/body/main"


@pytest.mark.parametrize("cell", ["<td>a", "<td>a</td>"])
def test_rows_are_grouped_by_their_place_in_the_table(cell: str) -> None:
    plan = plan_of("<table>" + f"<tr>{cell * 3}" * 40 + "</table>", 200)
    ranges = [s.range for s in plan.sections if s.path == "/html/body/table"]
    assert len(ranges) == len(plan.sections) > 2
    assert [i for r in ranges if r for i in range(r[0], r[1] + 1)] == list(range(40))
