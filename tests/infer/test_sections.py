"""Sections against an oracle that transcribes Algorithm 1 word by word, and the properties that a reader relies
on."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from noisy_json import documents
from tokenizers_at_hand import FAMILY, corpus, trained
from treeagent.data.counts import SliceCounts
from treeagent.data.formats import parse
from treeagent.data.tokens import Tokenizer, load_tokenizer
from treeagent.data.tree import Document, Node
from treeagent.errors import ConfigError
from treeagent.infer import Plan, Section, plan_sections
from treeagent.infer.sections import Structure

BUDGETS = st.integers(1, 60)
GLUE = re.compile(r'"?(?:[\s\ufeff\[\]{},:]|"(?:[^"\\]|\\.)*"\s*:)*"?')
"""What may lie between sections. The quotation marks at both ends are those of split strings."""


def partition(
    document: Document, node: Node, budget: int, tok: Callable[[int, int], int]
) -> list[tuple[int, int] | Node]:
    """Algorithm 1, line by line; a leaf to be split is returned as itself."""
    if tok(node.start, node.end) <= budget or node.atomic:
        return [(node.start, node.end)]
    if node.n_children == 0:
        return [node]
    found: list[tuple[int, int] | Node] = []
    group: list[Node] = []

    def flush() -> None:
        if group:
            found.append((group[0].start, group[-1].end))
            group.clear()

    for child in document.children(node):
        if tok(child.start, child.end) > budget:
            flush()
            found.extend(partition(document, child, budget, tok))
        else:
            if group and tok(group[0].start, child.end) > budget:
                flush()
            group.append(child)
    flush()
    return found


def as_partition(plan: Plan) -> list[tuple[int, int] | Node]:
    """The plan's sections with the spans of one leaf put together again."""
    found: list[tuple[int, int] | Node] = []
    for section in plan.sections:
        if section.kind != "text":
            found.append((section.start, section.end))
        elif section.last_of_leaf:
            assert section.place is not None
            found.append(section.place)
    return found


def spans_of(parts: list[tuple[int, int] | Node]) -> list[tuple[int, int, bool]]:
    return [(p.start, p.end, True) if isinstance(p, Node) else (*p, False) for p in parts]


@pytest.mark.parametrize("cut", [*FAMILY, "words"])
@given(text=documents(), budget=BUDGETS)
@settings(max_examples=40)
def test_sections_are_those_of_algorithm_1(cut: str, text: str, budget: int) -> None:
    tokenizer = trained(cut)
    plan = plan_sections(text, tokenizer=tokenizer, exact_budget=budget)

    def tok(start: int, end: int) -> int:
        return len(tokenizer.encode(text[start:end], add_special_tokens=False))

    expected = partition(plan.document, plan.document.root, budget, tok)
    assert spans_of(as_partition(plan)) == spans_of(expected)


@given(text=documents(), budget=BUDGETS)
@example(text='{"k":"' + "v" * 80 + '"}', budget=6)
@example(text='[{"a":[],"b":{}},[],{}]', budget=1)
def test_sections_and_the_gaps_between_them_are_the_document(text: str, budget: int) -> None:
    """P1, P2: nothing is doubled or out of order; what lies between is white space, brackets and separators, keys of
    opened members and the quotes of split strings."""
    plan = plan_sections(text, tokenizer=trained("gpt2"), exact_budget=budget)
    edges = [0, *(edge for s in plan.sections for edge in (s.start, s.end)), len(text)]
    assert edges == sorted(edges)
    assert all(s.start < s.end for s in plan.sections)
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        assert GLUE.fullmatch(text[start:end]), text[start:end]


@given(text=documents(), budget=BUDGETS)
def test_every_value_is_covered_once(text: str, budget: int) -> None:
    """P1: with the order above, what is not in a gap is in exactly one section."""
    plan = plan_sections(text, tokenizer=trained("gpt2"), exact_budget=budget)
    document = plan.document
    covered = [(s.start, s.end) for s in plan.sections]
    stack = [document.root]
    while stack:
        node = stack.pop()
        stack.extend(document.children(node))
        if node.n_children == 0:
            leaf = document.leaf_text(node) if node.divisible else None
            start, end = (leaf.start, leaf.end) if leaf else (node.content, node.end)
            inside = sum(max(0, min(e, end) - max(s, start)) for s, e in covered)
            assert inside == end - start


@given(text=documents(), budget=BUDGETS)
def test_a_subtree_that_fits_is_in_one_section(text: str, budget: int) -> None:
    """P3 (Eq. 4)."""
    tokenizer = trained("qwen2")
    plan = plan_sections(text, tokenizer=tokenizer, exact_budget=budget)
    stack = [plan.document.root]
    while stack:
        node = stack.pop()
        stack.extend(plan.document.children(node))
        if len(tokenizer.encode(text[node.start : node.end], add_special_tokens=False)) <= budget:
            assert sum(s.start <= node.start and node.end <= s.end for s in plan.sections) == 1


@given(text=documents(), budget=BUDGETS)
def test_no_section_is_over_budget_but_an_indivisible_leaf(text: str, budget: int) -> None:
    """P4, and the stored count is that of the slice encoded alone."""
    tokenizer = trained("llama3")
    plan = plan_sections(text, tokenizer=tokenizer, exact_budget=budget)
    for section in plan.sections:
        tokens = len(tokenizer.encode(text[section.start : section.end], add_special_tokens=False))
        assert section.tokens == tokens
        assert section.oversize == (tokens > budget)
        if section.oversize:
            assert section.place is not None
            leaf = section.place
            assert section.kind != "siblings"
            assert leaf.n_children == 0
            if section.kind == "text":
                text_of = plan.document.leaf_text(leaf)
                units = set(zip(text_of.unit_starts, text_of.unit_ends, strict=True))
                assert section.end - section.start == 1 or (section.start, section.end) in units
            else:
                assert leaf.atomic


# P5: additive lengths. A token is an `x`, so that keys, brackets and commas cost nothing.


def additive(text: str) -> SliceCounts:
    ends = np.array([i + 1 for i, c in enumerate(text) if c == "x"], np.int64)
    return SliceCounts(text, ends, lambda texts: [t.count("x") for t in texts])


@st.composite
def weighted_trees(draw: st.DrawFn) -> Any:
    leaf = st.integers(1, 9)
    return draw(st.recursive(leaf, lambda inner: st.lists(inner, min_size=1, max_size=5), max_leaves=14))


def written(tree: Any) -> str:
    return json.dumps("x" * tree) if isinstance(tree, int) else "[" + ",".join(map(written, tree)) + "]"


def weight(tree: Any) -> int:
    return tree if isinstance(tree, int) else sum(map(weight, tree))


def optimum(tree: Any, budget: int) -> int:
    """The least number of subtree and sibling sections within the budget, over all feasible partitions."""
    if weight(tree) <= budget:
        return 1
    best = [0] + [10**9] * len(tree)
    for end in range(1, len(tree) + 1):
        for start in range(end):
            if sum(map(weight, tree[start:end])) <= budget:
                best[end] = min(best[end], best[start] + 1)
        best[end] = min(
            best[end], best[end - 1] + (10**9 if isinstance(tree[end - 1], int) else optimum(tree[end - 1], budget))
        )
    return best[-1]


def sequences(tree: Any, budget: int) -> int:
    """How many sibling sequences are packed separately."""
    if weight(tree) <= budget:
        return 1
    runs, inside = 0, False
    for child in tree:
        if weight(child) > budget:
            runs, inside = runs + sequences(child, budget), False
        elif not inside:
            runs, inside = runs + 1, True
    return runs


@given(tree=weighted_trees(), budget=st.integers(9, 20))
@settings(max_examples=200)
def test_on_additive_lengths_the_count_is_the_optimum(tree: Any, budget: int) -> None:
    text = written(tree)
    structure = Structure(parse(text, "json"), additive(text), budget, budget)
    assert structure.count(budget) == optimum(tree, budget)


@given(tree=weighted_trees(), base=st.integers(5, 12))
@settings(max_examples=200)
def test_at_twice_the_budget_less_one_the_count_is_within_the_bound(tree: Any, base: int) -> None:
    """Eq. 7 and 10."""
    text, budget = written(tree), 2 * base - 1
    structure = Structure(parse(text, "json"), additive(text), base, budget)
    assert structure.count(budget) <= -(-weight(tree) // base) + sequences(tree, budget) - 1


def test_the_bound_is_tight() -> None:
    """The example of Proposition 3.1: C pairs of lengths C-1 and C need 2C sections at 2C-2, and 2C-1 at 2C-1."""
    base = 6
    tree = [base - 1, base] * base
    text = written(tree)
    structure = Structure(parse(text, "json"), additive(text), base, 2 * base - 1)
    assert structure.count(2 * base - 2) == 2 * base
    assert structure.count(2 * base - 1) <= 2 * base - 1 == weight(tree) // base


@given(text=documents(), base=st.integers(1, 25))
def test_the_structure_counts_what_it_then_cuts_at_any_budget(text: str, base: int) -> None:
    counts = load_tokenizer(trained("gpt2")).measure(text)
    structure = Structure(parse(text, "json"), counts, base, 2 * base - 1)
    fresh = {b: Structure(parse(text, "json"), counts, b, b).count(b) for b in range(base, 2 * base)}
    assert {b: structure.count(b) for b in reversed(fresh)} == fresh
    assert {b: len(structure.pieces(b)[0]) for b in fresh} == fresh


def sections_of(text: str, budget: int, cut: str = "gpt2") -> list[Section]:
    return list(plan_sections(text, tokenizer=trained(cut), exact_budget=budget).sections)


def test_siblings_are_packed_in_order_with_inclusive_ranges() -> None:
    text = json.dumps({"records": [{"id": i, "name": f"site-{i}"} for i in range(12)]})
    counter = load_tokenizer(trained("gpt2"))
    one = counter.count('{"id": 10, "name": "site-10"}')
    sections = sections_of(text, 3 * one)
    assert all(s.kind == "siblings" and s.path == "$.records" for s in sections)
    covered = [i for s in sections if s.range for i in range(s.range[0], s.range[1] + 1)]
    assert covered == list(range(12))
    assert len(sections) in (4, 5)


def test_empty_containers_and_scalars_are_content() -> None:
    sections = sections_of('{"a":[{"id":1,"n":"x"},{"id":2,"n":"y"}],"e":[]}', 1)
    assert [s.path for s in sections if s.kind == "subtree"] == ["$.a[0].id", "$.a[1].id", "$.e"]
    assert [s.path for s in sections if s.kind == "text"] == ["$.a[0].n", "$.a[1].n"]


def test_two_equal_rows_are_two_places() -> None:
    row = load_tokenizer(trained("gpt2")).count('"status ok."')
    first, second = sections_of('["status ok.","status ok."]', row)
    assert (first.start, first.end) == (1, 13)
    assert (second.start, second.end) == (14, 26)


def test_a_document_within_the_budget_is_one_section_at_its_root() -> None:
    (only,) = sections_of(' {"a": 1} ', 100)
    assert (only.kind, only.path, only.range, only.start, only.end, only.links) == ("subtree", "$", None, 1, 9, ())


@pytest.mark.parametrize("budget", [0, -5, 2.5, True])
def test_a_budget_that_is_no_positive_number_is_refused(budget: Any) -> None:
    with pytest.raises(ConfigError, match="positive"):
        plan_sections("[1]", tokenizer=trained("gpt2"), budget=budget)


def test_depth_costs_no_recursion_and_no_quadratic_time() -> None:
    depth = 100_000
    plan = plan_sections("[" * depth + "]" * depth, tokenizer=trained("gpt2"), budget=500)
    (section,) = plan.sections
    assert section.tokens <= plan.budget
    assert section.path == "$" + "[0]" * (depth - (section.end - section.start) // 2)


def test_the_plan_of_a_document_is_found_once() -> None:
    from treeagent.infer.plan import plan_document

    document, tokenizer = parse("[1,2,3]", "json"), load_tokenizer(trained("gpt2"))
    assert isinstance(tokenizer, Tokenizer)
    assert plan_document(document, tokenizer, budget=5) is plan_document(document, tokenizer, budget=5)


def test_every_process_finds_the_same_sections_whatever_its_hash_seed(tmp_path: Path, demo_tokenizer: str) -> None:
    """P9."""
    file = tmp_path / "document.json"
    file.write_text(json.dumps([json.loads(line) for line in corpus(seed=3, lines=60)]), encoding="utf-8")
    command = [sys.executable, "-m", "treeagent", "sections", str(file), "--budget", "100", "--json"]
    printed = {
        subprocess.run(
            [*command, "--tokenizer", demo_tokenizer],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1
    assert printed.pop().count(b"\n") > 10


# Rendering.


@given(text=documents(), budget=BUDGETS)
def test_a_rendered_section_reads_as_the_nodes_it_covers(text: str, budget: int) -> None:
    plan = plan_sections(text, tokenizer=trained("gpt2"), exact_budget=budget)
    for section in plan.sections:
        assert section.place is not None
        place, kind = section.place, section.kind
        if kind == "text":
            continue
        parent = place if kind == "siblings" else place.parent
        rendered = json.loads(
            plan.render(section).removeprefix("\ufeff"), object_pairs_hook=list, parse_int=str, parse_float=str
        )
        whole = parent or place
        value = json.loads(text[whole.content : whole.end], object_pairs_hook=list, parse_int=str, parse_float=str)
        if parent is not None:
            first, last = section.range or (place.ordinal, place.ordinal)
            value = value[first : last + 1]
        assert repr(rendered) == repr(value)


@given(text=documents(), budget=st.integers(1, 8))
@example(text='{"note": "one\\ntwo \\ud83d\\ude00 three. Four five six seven eight nine ten"}', budget=4)
def test_fragments_of_a_split_string_are_strings_that_join_to_it(text: str, budget: int) -> None:
    plan = plan_sections(text, tokenizer=trained("qwen2"), exact_budget=budget)
    joined = ""
    for section in plan.sections:
        if section.kind != "text":
            continue
        assert section.place is not None
        leaf = section.place
        value = (
            json.loads(plan.render(section))
            if leaf.parent is None
            else json.loads(plan.render(section), object_pairs_hook=list)
        )
        if leaf.parent is not None:
            (value,) = value
            value = value if leaf.content == leaf.start else value[1]
        joined += value
        if section.last_of_leaf:
            assert joined == json.loads(text[leaf.content : leaf.end])
            joined = ""
    assert joined == ""


def test_wrapper_tokens_count_what_stands_around_the_slice() -> None:
    plan = plan_sections('{"note": "' + "word " * 40 + '"}', tokenizer=trained("gpt2"), exact_budget=20)
    first = plan.sections[0]
    slice_ = plan.document.text[first.start : first.end]
    assert plan.render(first) == '{"note": "' + slice_ + '"}'
    counter = load_tokenizer(trained("gpt2"))
    assert first.wrapper_tokens == counter.count('{"note": "') + counter.count('"}')


def test_a_wrapper_beyond_its_limit_loses_its_middle_visibly() -> None:
    key = " ".join(f"word{i}" for i in range(400))
    plan = plan_sections(json.dumps({key: "value " * 50}), tokenizer=trained("gpt2"), exact_budget=20)
    assert plan.elided == len(plan.sections) > 1
    assert all(s.wrapper_tokens <= 256 for s in plan.sections)
    assert "…" in plan.render(plan.sections[0])
    assert plan.sections[0].path == f'$["{key}"]'
