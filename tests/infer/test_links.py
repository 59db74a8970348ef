"""Residual links by their definition (Eq. 14-15), node by node over the whole tree."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from noisy_json import documents
from tokenizers_at_hand import trained
from treeagent.infer import Plan, plan_sections
from treeagent.infer.links import residual_links


def by_definition(plan: Plan) -> list[tuple[int, ...]]:
    """For every parent and child in the tree: l(v) < l(p) gives a link. l(v) is the last section whose source meets
    v."""

    def last(start: int, end: int) -> int | None:
        met = [s.index for s in plan.sections if s.start < end and start < s.end]
        return max(met, default=None)

    found: list[set[int]] = [set() for _ in plan.sections]
    stack = [plan.document.root]
    while stack:
        parent = stack.pop()
        target = last(parent.start, parent.end)
        for child in plan.document.children(parent):
            stack.append(child)
            source = last(child.start, child.end)
            if source is not None and target is not None and source < target:
                found[target].add(source)
    return [tuple(sorted(sources)) for sources in found]


@given(text=documents(), budget=st.integers(1, 40))
def test_links_are_those_of_the_definition(text: str, budget: int) -> None:
    plan = plan_sections(text, tokenizer=trained("gpt2"), exact_budget=budget)
    assert [s.links for s in plan.sections] == by_definition(plan)


def test_children_are_linked_to_the_last_section_of_their_parent() -> None:
    text = json.dumps({"a": ["word word word", "more more more"], "b": [["one two three"], ["four five six"]]})
    plan = plan_sections(text, tokenizer=trained("gpt2"), exact_budget=12)
    assert [s.links for s in plan.sections] == by_definition(plan)
    assert plan.sections[-1].links[0] == 1, "the root's first child ends in section 1"


def test_targets_that_coincide_share_their_sources() -> None:
    assert residual_links([[0, 1], [1, 3], [3]], 4) == ((), (0,), (), (1,))
