"""The wording of prompts: files whose places are checked, ours in the package, imported ones in a folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from agent_play import Watched, Words, play
from treeagent.errors import ConfigError
from treeagent.infer import agents
from treeagent.infer.agents import AGENTS, Reply
from treeagent.infer.agents.templates import NAMES_OF_PROMPTS, PLACES, Template, fingerprint, load

EVERY = sorted(PLACES)


def _folder(agent: str, folder: Path) -> Path:
    """A folder of other wording for the agent, whole."""
    for name in NAMES_OF_PROMPTS[agent]:
        (folder / f"{name}.txt").write_bytes(("Other words. " + load(agent, name).source).encode())
    (folder / "source.json").write_text("{}")
    return folder


@pytest.mark.parametrize(("agent", "name"), EVERY)
def test_our_templates_have_the_places_that_are_named(agent: str, name: str) -> None:
    template = load(agent, name)
    assert template.places == PLACES[agent, name]
    assert len(template.pieces[1::2]) == len(template.places), "each place once"
    assert "\r" not in template.source


def test_every_prompt_file_belongs_to_an_agent() -> None:
    folder = Path(agents.__file__).parent / "prompts"
    files = {(file.parent.name, file.stem) for file in folder.rglob("*.txt")}
    assert files == set(PLACES)


def test_our_prose_names_no_tag_that_the_protocol_lacks() -> None:
    used = {
        "infmem": {"retrieved_chunk", "recurrent_chunk", "problem", "memory", "retrieval_history"},
        "memagent": {"problem", "memory", "section"},
        "rememr1": {"problem", "memory", "section", "recalled_memory", "thinking", "update", "recall"},
        "memreread": {"problem", "memory", "section", "question", "query_history", "query", "confirmed"}
        | {"reference", "subquestion", "subanswer"},
    }
    for agent, name in EVERY:
        assert set(re.findall(r"</?(\w+)>", load(agent, name).source)) <= used[agent], (agent, name)


def test_memreread_has_the_words_of_memagent_where_the_release_has() -> None:
    assert load("memreread", "memory") == load("memagent", "memory")
    boxed = load("memagent", "answer_boxed").source
    assert load("memreread", "answer").source == boxed.replace("{prompt}", "{question}")
    assert load("infmem", "answer") == load("memagent", "answer")


@pytest.mark.parametrize("agent", list(AGENTS))
def test_a_run_with_other_wording_differs_in_the_wording_alone(agent: str, tmp_path: Path) -> None:
    folder = _folder(agent, tmp_path)
    ours = agents.build(agent, tokenizer=Words())
    other = agents.build(agent, tokenizer=Words(), prompts=str(folder))
    assert ours.prompts_hash != other.prompts_hash
    (plain, end), (worded, same) = (
        play(each, "Q?", Watched(["a", "b"]), lambda _: Reply("m")) for each in (ours, other)
    )
    assert end == same
    assert len(plain) == len(worded)
    for one, two in zip(plain, worded, strict=True):
        assert [f"Other words. {turn['content']}" for turn in one.messages] == [
            turn["content"] for turn in two.messages
        ]
        assert (one.kind, one.section, one.max_tokens, one.limit) == (two.kind, two.section, two.max_tokens, two.limit)


@pytest.mark.parametrize(("agent", "name"), [key for key in EVERY if key != ("memagent", "answer_boxed")])
def test_the_hash_changes_with_every_template_that_is_sent(agent: str, name: str, tmp_path: Path) -> None:
    folder = _folder(agent, tmp_path)
    before = agents.build(agent, tokenizer=None, prompts=str(folder)).prompts_hash
    assert before == agents.build(agent, tokenizer=None, prompts=str(folder)).prompts_hash
    file = folder / f"{name}.txt"
    file.write_bytes(file.read_bytes() + b" ")
    assert agents.build(agent, tokenizer=None, prompts=str(folder)).prompts_hash != before


def test_the_hash_is_that_of_the_wording_and_not_of_its_place(tmp_path: Path) -> None:
    for name in NAMES_OF_PROMPTS["rememr1"]:
        (tmp_path / f"{name}.txt").write_bytes(load("rememr1", name).source.encode())
    ours = agents.build("rememr1", tokenizer=None)
    assert agents.build("rememr1", tokenizer=None, prompts=str(tmp_path)).prompts_hash == ours.prompts_hash
    assert fingerprint([Template("a"), Template("b")]) != fingerprint([Template("b"), Template("a")])
    assert fingerprint([Template("ab"), Template("")]) != fingerprint([Template("a"), Template("b")])


@pytest.mark.parametrize(("agent", "name"), [key for key in EVERY if key != ("memagent", "answer_boxed")])
def test_a_folder_without_a_needed_file_is_refused_when_the_agent_is_built(
    agent: str, name: str, tmp_path: Path
) -> None:
    folder = _folder(agent, tmp_path)
    (folder / f"{name}.txt").unlink()
    with pytest.raises(ConfigError, match=f"prompts of {agent}: .*{name}.txt: no such file") as caught:
        agents.build(agent, tokenizer=None, prompts=str(folder))
    assert "\n" not in str(caught.value)
    assert all(f"{each}.txt" in str(caught.value) for each in NAMES_OF_PROMPTS[agent])


def test_only_the_wording_that_is_sent_is_needed(tmp_path: Path) -> None:
    folder = _folder("memagent", tmp_path)
    (folder / "answer_boxed.txt").unlink()
    assert agents.build("memagent", tokenizer=None, prompts=str(folder)).answer_format == "the answer is"
    with pytest.raises(ConfigError, match=r"answer_boxed\.txt"):
        agents.build("memagent", tokenizer=None, prompts=str(folder), answer_format="boxed")


@pytest.mark.parametrize(("agent", "name", "place"), [(*key, place) for key in EVERY for place in sorted(PLACES[key])])
def test_a_template_without_a_place_is_refused(agent: str, name: str, place: str, tmp_path: Path) -> None:
    file = tmp_path / f"{name}.txt"
    file.write_text(load(agent, name).source.replace(f"{{{place}}}", ""))
    with pytest.raises(ConfigError, match=rf"{name}\.txt has no place \{{{place}\}}"):
        load(agent, name, tmp_path)


@pytest.mark.parametrize(("agent", "name"), EVERY)
def test_a_template_with_an_unknown_place_is_refused(agent: str, name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.txt").write_text(load(agent, name).source + "{submemory}")
    with pytest.raises(ConfigError, match=rf"{name}\.txt has an unknown place \{{submemory\}}"):
        load(agent, name, tmp_path)


def test_a_folder_for_another_agent_is_refused(tmp_path: Path) -> None:
    folder = _folder("memagent", tmp_path)
    with pytest.raises(ConfigError, match=r"memory\.txt has no place \{recalled_memory\}"):
        agents.build("rememr1", tokenizer=None, prompts=str(folder))


def test_wording_that_is_not_text_is_refused(tmp_path: Path) -> None:
    folder = _folder("memagent", tmp_path)
    (folder / "memory.txt").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"memory\.txt: not UTF-8"):
        agents.build("memagent", tokenizer=None, prompts=str(folder))
    with pytest.raises(ConfigError, match="no such file"):
        agents.build("memagent", tokenizer=None, prompts=str(tmp_path / "elsewhere"))


def test_templates_are_read_to_the_byte(tmp_path: Path) -> None:
    folder = _folder("memagent", tmp_path)
    (folder / "answer.txt").write_bytes("\r\n\ufeff{memory} \\boxed{} { {prompt}\n\n".encode())
    agent = agents.build("memagent", tokenizer=None, prompts=str(folder))
    asked, _ = play(agent, "Q{memory}", Watched([]), [Reply("a")])
    assert asked[0].messages[0]["content"] == "\r\n\ufeffNo previous memory \\boxed{} { Q{memory}\n\n"
