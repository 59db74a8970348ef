"""What agents are shown: windows, sections, paths, and spans from the memory saved so far."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noisy_json import documents
from tokenizers_at_hand import trained
from treeagent.data.formats import parse
from treeagent.errors import ConfigError
from treeagent.infer.observe import KINDS, SPANS_LABEL, build

DOCUMENT = json.dumps({"status": "ok", "records": [{"id": i, "place": f"town {i}"} for i in range(12)]}, indent=1)


@given(text=documents(), budget=st.integers(1, 30))
def test_flat_windows_tile_the_whole_text_and_are_as_many_as_the_paper_says(text: str, budget: int) -> None:
    tokenizer = trained("gpt2")
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    observer = build("flat", text, format="json", tokenizer=tokenizer, budget=budget)
    assert observer.n == -(-len(ids) // budget)
    shown = [observer.observe(t, "q") for t in range(observer.n)]
    assert "".join(shown) == text
    if text.isascii():
        windows = [ids[i : i + budget] for i in range(0, len(ids), budget)]
        assert shown == [tokenizer.decode(w, skip_special_tokens=False) for w in windows]
        assert [observer.section(t).tokens for t in range(observer.n)] == [len(w) for w in windows]


def test_a_cut_inside_a_character_moves_to_its_end() -> None:
    text = '["😀🙃"]'
    observer = build("flat", text, format="json", tokenizer=trained("gpt2"), budget=1)
    shown = [observer.observe(t, "") for t in range(observer.n)]
    assert "".join(shown) == text
    assert "" in shown, "a window that holds only the rest of a character is empty"


def test_each_kind_adds_one_thing_to_the_section_slot() -> None:
    document = parse(DOCUMENT, "json")
    slots = {}
    for kind in KINDS:
        observer = build(kind, document, tokenizer=trained("gpt2"), budget=40)
        for t in range(observer.n - 1):
            observer.commit(t, f"noted town {t}. other")
        slots[kind] = observer.observe(observer.n - 1, "Which town is last?")
    section = build("tree", document, tokenizer=trained("gpt2"), budget=40)
    last = section.section(section.n - 1)
    assert json.loads(slots["tree"]) == json.loads(DOCUMENT)["records"][-len(json.loads(slots["tree"])) :]
    path = last.path if last.range is None else f"{last.path} [{last.range[0]}, {last.range[1]}]"
    assert slots["tree+path"] == f"{path}\n{slots['tree']}"
    spans = [f"noted town {t}." for t in last.links[:4]]
    assert slots["treeagent"] == "\n".join([slots["tree+path"], SPANS_LABEL, *spans])


def test_without_links_or_matches_the_slot_is_path_and_section() -> None:
    observer = build("treeagent", DOCUMENT, format="json", tokenizer=trained("gpt2"), budget=40)
    assert SPANS_LABEL not in observer.observe(0, "town")
    for t in range(observer.n - 1):
        observer.commit(t, "nothing of use")
    assert SPANS_LABEL not in observer.observe(observer.n - 1, "Which town?")


def test_only_states_saved_before_in_the_same_pass_are_seen() -> None:
    observer = build("treeagent", DOCUMENT, format="json", tokenizer=trained("gpt2"), budget=40)
    last = observer.n - 1
    observer.commit(0, "town zero", pass_id=1)
    assert observer.spans(last, "town") == ()
    assert [s.source for s in observer.spans(last, "town", pass_id=1)] == [0]
    observer.commit(last, "town last", pass_id=1)
    assert [s.source for s in observer.spans(last, "town", pass_id=1)] == [0]


def test_observers_of_one_document_share_sections_and_no_history() -> None:
    document = parse(DOCUMENT, "json")
    one, two = (build("treeagent", document, tokenizer=trained("gpt2"), budget=40) for _ in range(2))
    one.commit(0, "town")
    assert one.section(0) is two.section(0)
    assert two.spans(two.n - 1, "town") == ()


def test_text_is_the_source_without_wrapper() -> None:
    observer = build("treeagent", DOCUMENT, format="json", tokenizer=trained("gpt2"), budget=40)
    section = observer.section(1)
    assert observer.text(1) == DOCUMENT[section.start : section.end]


def test_a_path_of_great_depth_does_not_crowd_out_the_section() -> None:
    depth = 5_000
    observer = build("tree+path", "[" * depth + "1" + "]" * depth, format="json", tokenizer=trained("gpt2"), budget=50)
    path, rendered = observer.observe(0, "").split("\n", 1)
    assert len(path) <= 1_000
    assert "…" in path
    assert "1" in rendered


@pytest.mark.parametrize(("kind", "format"), [("treegent", "json"), ("tree", None)])
def test_an_unknown_observer_or_a_text_without_format_is_refused(kind: str, format: str | None) -> None:
    with pytest.raises(ConfigError):
        build(kind, "[1]", tokenizer=trained("gpt2"), format=format)
