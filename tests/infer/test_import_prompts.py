"""The command that imports the released wording from a clone, and the one that shows prompts."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from agent_clones import CLONES, EVALUATION, MEMAGENT, written
from agent_play import Watched, Words, play, said
from treeagent.errors import ConfigError, InputError
from treeagent.infer import agents, prompts
from treeagent.infer.agents import released
from treeagent.infer.agents.templates import NAMES_OF_PROMPTS, load
from treeagent.terminal import console

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def imported(agent: str, clone: Path, to: Path) -> str:
    """Imports, and gives what was printed."""
    out = io.StringIO()
    prompts.import_prompts(agent, str(clone), str(to), console(out, markup=True))
    return out.getvalue()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def refusal(agent: str, clone: Path, to: Path) -> str:
    """The message of a refused import, which has written nothing."""
    before = contents(to) if to.is_dir() else None
    with pytest.raises(InputError) as caught:
        imported(agent, clone, to)
    assert (contents(to) if to.is_dir() else None) == before
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture(params=list(CLONES))
def agent(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def clone(agent: str, tmp_path: Path) -> Path:
    return written(tmp_path / "clone", CLONES[agent])


# What is written.


def test_the_files_hold_what_the_released_code_would_fill_to_the_byte(tmp_path: Path) -> None:
    imported("memagent", written(tmp_path / "clone", MEMAGENT), tmp_path / "to")
    said = 'Now answer like "Therefore, the answer is (insert answer here)".\n\n<problem> \n{prompt}\n</problem>\n\n'
    said += "<memory>\n{memory}\n</memory>\n\nYour answer:\n"
    assert (tmp_path / "to/answer.txt").read_bytes() == said.encode()
    boxed = b"Now answer in \\boxed{}.\n\n<problem> \n{prompt}\n</problem>\n\n<memory>\n{memory}\n</memory>\n\n"
    assert (tmp_path / "to/answer_boxed.txt").read_bytes() == boxed + b"Your answer:\n"
    assert (tmp_path / "to/memory.txt").read_bytes() == (
        b"Read on, and note.\n\n<problem> \n{prompt}\n</problem>\n\n<memory>\n{memory}\n</memory>\n\n"
        b"<section>\n{chunk}\n</section>\n\nUpdated memory:\n"
    )


def test_every_prompt_is_written_and_its_origin_told(agent: str, clone: Path, tmp_path: Path) -> None:
    printed = imported(agent, clone, tmp_path / "to")
    assert contents(tmp_path / "to").keys() == {"source.json"} | {f"{name}.txt" for name in NAMES_OF_PROMPTS[agent]}
    source = json.loads((tmp_path / "to/source.json").read_bytes())
    assert source["agent"] == agent
    assert source["prompts"].keys() == set(NAMES_OF_PROMPTS[agent])
    for file, told in source["files"].items():
        assert told["sha256"] == hashlib.sha256((clone / file).read_bytes()).hexdigest()
    for name, told in source["prompts"].items():
        data = (tmp_path / "to" / f"{name}.txt").read_bytes()
        assert told["sha256"] == hashlib.sha256(data).hexdigest()
        assert told["name"] in (clone / told["file"]).read_text("utf-8")
        assert re.search(rf"^{name} +{told['file']}: {told['name']}, line {told['line']}( |$)", printed, re.MULTILINE)
        assert told["whole"] == (name != "system")
    assert str(tmp_path) not in json.dumps(source)


def test_the_line_told_is_the_line_of_the_definition(tmp_path: Path) -> None:
    clone = written(tmp_path / "clone", CLONES["memreread"])
    imported("memreread", clone, tmp_path / "to")
    told = json.loads((tmp_path / "to/source.json").read_bytes())["prompts"]["integrate"]
    assert (clone / told["file"]).read_text().splitlines()[told["line"] - 1].startswith("INTEGRATING_TEMPLATE = ")


def test_the_same_clone_gives_the_same_bytes_and_may_be_imported_again(agent: str, clone: Path, tmp_path: Path) -> None:
    once = imported(agent, clone, tmp_path / "to").replace("/to;", "/other;")
    first = contents(tmp_path / "to")
    imported(agent, clone, tmp_path / "to")
    assert contents(tmp_path / "to") == first
    assert imported(agent, clone, tmp_path / "other") == once
    assert contents(tmp_path / "other") == first


def test_line_ends_of_another_system_do_not_change_a_prompt(agent: str, clone: Path, tmp_path: Path) -> None:
    imported(agent, clone, tmp_path / "to")
    windows = {name: "\ufeff" + text.replace("\n", "\r\n") for name, text in CLONES[agent].items()}
    imported(agent, written(tmp_path / "windows", windows), tmp_path / "other")
    first, second = contents(tmp_path / "to"), contents(tmp_path / "other")
    assert first.pop("source.json") != second.pop("source.json")
    assert first == second


def test_an_agent_uses_the_folder_and_says_so_by_its_hash(agent: str, clone: Path, tmp_path: Path) -> None:
    imported(agent, clone, tmp_path / "to")
    ours = agents.build(agent, tokenizer=None)
    theirs = agents.build(agent, tokenizer=None, prompts=str(tmp_path / "to"))
    assert ours.prompts_hash != theirs.prompts_hash
    assert theirs == agents.build(agent, tokenizer=None, prompts=str(tmp_path / "to"))


def test_a_rollout_with_the_folder_sends_what_the_released_code_would(agent: str, clone: Path, tmp_path: Path) -> None:
    imported(agent, clone, tmp_path / "to")
    reader = agents.build(agent, tokenizer=Words(), prompts=str(tmp_path / "to"))
    page = '{"prompt": "{memory}"}'
    asked, _ = play(reader, "What?", Watched([page]), lambda _: agents.Reply("{m}"))
    reading = next(said(request) for request in asked if request.kind == "memory")
    answering = said(asked[-1])
    name = {"memagent": "TEMPLATE", "infmem": "TEMPLATE_RETREIVE_RECURRENT", "rememr1": "TEMPLATE"}
    values = {"recalled_memory": "No memory was recalled.", "retrieve": ""}
    first = released_text(clone, agent, name.get(agent, "MEMAGENT_READING_TEMPLATE"))
    assert reading == first.format(prompt="What?", memory="No previous memory", chunk=page, **values)
    name = {"memreread": "ANSWERING_TEMPLATE", "rememr1": "TEMPLATE_FINAL_BOXED"}
    last = released_text(clone, agent, name.get(agent, "TEMPLATE_FINAL"))
    assert answering == last.format(prompt="What?", question="What?", memory="{m}", **values)


def released_text(clone: Path, agent: str, name: str) -> str:
    """A constant of the agent's first file, by running that line of our own clone as Python would."""
    source = (clone / released.files(agent)[0]).read_text("utf-8")
    constant = re.search(rf'^{name} = (""".*?""")$', source, re.MULTILINE | re.DOTALL)
    assert constant
    return ast.literal_eval(constant[1])


# What is refused.


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    clone = written(tmp_path / "clone", MEMAGENT)
    (clone / EVALUATION / "recurrent.py").write_bytes(b"# caf\xe9\n")
    assert "is not UTF-8: byte 5" in refusal("memagent", clone, tmp_path / "to")


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    clone = written(tmp_path / "clone", MEMAGENT)
    os.truncate(clone / EVALUATION / "recurrent.py", 1 << 40)  # a hole, which takes no space
    assert "larger than" in refusal("memagent", clone, tmp_path / "to")


def test_a_wrong_folder_is_refused_with_the_name_of_the_right_repository(
    agent: str, clone: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    for wrong in (tmp_path / "nowhere", tmp_path / "empty", clone / released.files(agent)[0]):
        assert released.REPOSITORIES[agent] in refusal(agent, wrong, tmp_path / "to")


@pytest.mark.parametrize("other", list(CLONES))
def test_the_clone_of_another_agent_is_refused_with_its_name(
    agent: str, clone: Path, other: str, tmp_path: Path
) -> None:
    if other != agent:
        message = refusal(other, clone, tmp_path / "to")
        assert f"is a clone of {released.REPOSITORIES[agent]}, the repository of {agent}, not {other}" in message


def test_an_unknown_agent_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="memagent"):
        imported("memagnet", tmp_path, tmp_path / "to")
    with pytest.raises(ConfigError, match="memagent"):
        prompts.show("memagnet", console(io.StringIO()))


def test_a_link_out_of_the_clone_is_not_followed_and_one_inside_is(tmp_path: Path) -> None:
    clone = written(tmp_path / "clone", MEMAGENT)
    file = clone / EVALUATION / "recurrent.py"
    file.rename(clone / "moved.py")
    file.symlink_to(clone / "moved.py")
    imported("memagent", clone, tmp_path / "to")
    (clone / "moved.py").rename(tmp_path / "outside.py")
    (clone / "moved.py").symlink_to(tmp_path / "outside.py")
    assert "a link that leads out of the clone" in refusal("memagent", clone, tmp_path / "other")


def test_nothing_in_the_clone_is_run(tmp_path: Path) -> None:
    trap = tmp_path / "run"
    effect = f"open({str(trap)!r}, 'w').write('run')\n"
    files = {name: effect + text + effect for name, text in MEMAGENT.items()}
    for package in ("taskutils", "taskutils/memory_eval", EVALUATION):
        files[f"{package}/__init__.py"] = effect
    clone = written(tmp_path / "clone", files)
    imported("memagent", clone, tmp_path / "to")
    assert not trap.exists()
    assert not list(clone.rglob("__pycache__"))


# The folder that is written.


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    clone = written(tmp_path / "clone", MEMAGENT)
    written(tmp_path / "to", {"notes.md": "mine"})
    assert "is not empty and holds no import of memagent" in refusal("memagent", clone, tmp_path / "to")
    (tmp_path / "file").write_text("")
    assert "is no folder" in refusal("memagent", clone, tmp_path / "file")
    written(tmp_path / "broken", {"source.json": "["})
    assert "is not empty" in refusal("memagent", clone, tmp_path / "broken")


def test_the_import_of_another_agent_is_left_alone(tmp_path: Path) -> None:
    imported("rememr1", written(tmp_path / "rememr1", CLONES["rememr1"]), tmp_path / "to")
    message = refusal("memagent", written(tmp_path / "clone", MEMAGENT), tmp_path / "to")
    assert "holds no import of memagent" in message


def test_a_prompt_changed_by_hand_is_not_written_over(tmp_path: Path) -> None:
    clone = written(tmp_path / "clone", MEMAGENT)
    imported("memagent", clone, tmp_path / "to")
    (tmp_path / "to/memory.txt").write_text("mine {prompt} {memory} {chunk}")
    assert "memory.txt is not as an import left it" in refusal("memagent", clone, tmp_path / "to")


def test_a_newer_clone_may_be_imported_over_an_older(tmp_path: Path) -> None:
    imported("memagent", written(tmp_path / "clone", MEMAGENT), tmp_path / "to")
    newer = {name: text.replace("note.", "remember.") for name, text in MEMAGENT.items()}
    imported("memagent", written(tmp_path / "clone", newer), tmp_path / "to")
    assert (tmp_path / "to/memory.txt").read_text().startswith("Read on, and remember.")


def test_an_import_that_was_interrupted_can_be_repeated(tmp_path: Path) -> None:
    clone = written(tmp_path / "clone", MEMAGENT)
    imported("memagent", clone, tmp_path / "whole")
    whole = contents(tmp_path / "whole")
    written(tmp_path / "to", {"memory.txt": whole["memory.txt"].decode(), ".answer.txt.123": "torn"})
    imported("memagent", clone, tmp_path / "to")
    assert contents(tmp_path / "to") == whole | {".answer.txt.123": b"torn"}


# The commit.


@pytest.mark.parametrize(
    ("files", "commit"),
    [
        ({"HEAD": f"{COMMIT}\n"}, COMMIT),
        ({"HEAD": "ref: refs/heads/main\n", "refs/heads/main": f"{COMMIT}\n"}, COMMIT),
        ({"HEAD": "ref: refs/heads/a/b\n", "packed-refs": f"# pack\n{COMMIT} refs/heads/a/b\n^{COMMIT}\n"}, COMMIT),
        ({"HEAD": "ref: refs/heads/main\n", "packed-refs": f"{COMMIT} refs/heads/other\n"}, None),
        ({"HEAD": "ref: refs/../../commit\n"}, None),
        ({"HEAD": "ref: refs/heads/main\n", "refs/heads/main": "ssh-key of somebody\n"}, None),
        ({"HEAD": "\udcff"}, None),
        ({}, None),
    ],
)
def test_the_commit_is_read_from_the_files_of_git(files: dict[str, str], commit: str | None, tmp_path: Path) -> None:
    clone = written(tmp_path / "clone", {**MEMAGENT, "commit": COMMIT})
    for name, text in files.items():
        (clone / ".git" / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / ".git" / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    printed = imported("memagent", clone, tmp_path / "to")
    assert json.loads((tmp_path / "to/source.json").read_bytes())["commit"] == commit
    assert (f"commit {commit}" if commit else "commit unknown") in printed


def test_the_commit_of_a_real_repository_is_the_one_that_git_says(tmp_path: Path) -> None:
    clone = written(tmp_path / "clone", MEMAGENT)
    git = ["git", "-C", str(clone), "-c", "user.name=x", "-c", "user.email=x@x", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *words], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    for _ in range(2):
        imported("memagent", clone, tmp_path / "to")
        assert json.loads((tmp_path / "to/source.json").read_bytes())["commit"] == head
        subprocess.run([*git, "pack-refs", "--all"], check=True)


# Showing.


def shown(agent: str, **options: Any) -> str:
    out = io.StringIO()
    prompts.show(agent, console(out, markup=True), **options)
    return out.getvalue()


def test_every_prompt_is_shown_as_it_is_with_its_file(agent: str) -> None:
    text = shown(agent)
    for name in NAMES_OF_PROMPTS[agent]:
        assert f"{agent}/{name}.txt" in text
        assert load(agent, name).source.removesuffix("\n") in text


def test_imported_prompts_are_shown_with_control_characters_made_visible(tmp_path: Path) -> None:
    foreign = r"\x1b[31m[bold]Read[/] \u202eon"  # escapes of the source: the imported text holds the characters
    files = {name: text.replace("Read on", foreign) for name, text in MEMAGENT.items()}
    imported("memagent", written(tmp_path / "clone", files), tmp_path / "to")
    text = shown("memagent", folder=str(tmp_path / "to"))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "␛[31m[bold]Read[/] <U+202E>on, and note." in text


def test_the_hash_shown_is_that_of_the_agent_and_the_one_that_import_printed(
    agent: str, clone: Path, tmp_path: Path
) -> None:
    printed = imported(agent, clone, tmp_path / "to")
    last = shown(agent, folder=str(tmp_path / "to")).splitlines()[-1]
    assert last == printed.splitlines()[-1]
    assert last != shown(agent).splitlines()[-1]
    default = agents.build(agent, tokenizer=None, prompts=str(tmp_path / "to"))
    assert f": {default.prompts_hash}\n" in printed
