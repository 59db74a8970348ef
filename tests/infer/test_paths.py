"""Paths lead back to what they name (P6)."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st
from noisy_json import documents
from tokenizers_at_hand import trained
from treeagent.data.formats import parse
from treeagent.data.tree import Document, Node
from treeagent.infer import plan_sections
from treeagent.infer.paths import path_line, shorten

STEP = re.compile(r'\.([A-Za-z_][A-Za-z0-9_]*)(?:#(\d+))?|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\](?:#(\d+))?')


def resolve(document: Document, path: str) -> Node:
    """Follows a path by reading keys out of the source, with no help from the code that wrote it."""
    assert path[0] == "$"
    node, at = document.root, 1
    while at < len(path):
        step = STEP.match(path, at)
        assert step, path[at:]
        at = step.end()
        children = document.children(node)
        if step[3] is not None:
            node = children[int(step[3])]
            continue
        key = step[1] if step[1] is not None else json.loads(step[4])
        copy = int(step[2] or step[5] or 1)
        decoder = json.JSONDecoder()
        same = [c for c in children if decoder.raw_decode(document.text[c.start : c.end])[0] == key]
        node = same[copy - 1]
    return node


@given(text=documents(), budget=st.integers(1, 40))
def test_a_path_resolves_to_exactly_what_its_section_covers(text: str, budget: int) -> None:
    plan = plan_sections(text, tokenizer=trained("gpt2"), exact_budget=budget)
    fresh = parse(text, "json")
    for section in plan.sections:
        node = resolve(fresh, section.path)
        if section.range is not None:
            first, last = section.range
            assert first < last
            covered = (fresh.child(node, first).start, fresh.child(node, last).end)
        elif section.kind == "text":
            leaf = fresh.leaf_text(node)
            assert leaf.start <= section.start < section.end <= leaf.end
            continue
        else:
            covered = (node.start, node.end)
        assert covered == (section.start, section.end)


def test_a_group_shows_its_parent_and_both_ends() -> None:
    assert path_line("$.records", (1, 2)) == "$.records [1, 2]"
    assert path_line("$.records[0]", None) == "$.records[0]"


def test_a_long_path_loses_its_middle() -> None:
    assert shorten("$.abcdefgh", 7) == "$.a…fgh"
    assert shorten("$.abc", 7) == "$.abc"
