"""The command `treeagent prompts`: shows an agent's prompts, and imports the released wording of them.

Importing reads files out of the user's own clone of the agent's repository: nothing in it is run, nothing outside it is
read. The folder that it writes holds `NAME.txt` for each prompt and `source.json`, which says where each was found; the
same clone gives the same bytes. An agent uses the folder if its option `prompts` names it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from ..config import suggestion
from ..errors import ConfigError, InputError
from ..rewards.answer import ANSWER_FORMATS
from ..terminal import visible
from .agents import AGENTS, NAMES_OF_PROMPTS, build, released
from .agents.released import ORIGINS, REPOSITORIES, Released
from .agents.templates import load
from .store import write_atomic

SOURCE = "source.json"
"""The file of an imported folder that says where its prompts come from."""

MAX_BYTES = 1 << 19
"""A larger file is not read for prompts; those of the repositories have some 40 KB."""
_MAX_GIT_BYTES = 1 << 24

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_BRANCH = re.compile(r"ref: (refs/[^\s\0]+)")


def show(agent: str, console: Console, *, folder: str | None = None) -> None:
    """Prints the prompts of an agent, ours or those of an imported folder, and the hash by which runs know them.

    Raises ConfigError for an unknown agent and for a folder that holds no prompts of it.
    """
    _check(agent)
    templates = {name: load(agent, name, folder) for name in NAMES_OF_PROMPTS[agent]}
    for name, template in templates.items():
        _line(console, f"{folder or agent}/{name}.txt", style="bold")
        _line(console, template.source.removesuffix("\n"))
        _line(console, "")
    _tell_hashes(console, agent, folder)


def import_prompts(agent: str, clone: str, to: str, console: Console) -> None:
    """Writes the released prompts of an agent, read from a clone of its repository, into the folder `to`, and prints
    where each was found.

    Raises ConfigError for an unknown agent; InputError if the clone is not one of that agent's repository or its
    prompts cannot be read, and if `to` holds anything but an untouched earlier import of the same agent.
    """
    _check(agent)
    root, folder = Path(clone).expanduser(), Path(to).expanduser()
    _check_clone(agent, root)
    data = {file: _read(root, file, MAX_BYTES) for file in released.files(agent)}
    prompts = released.read(agent, {file: _decoded(root, file, content) for file, content in data.items()})
    commit = _commit(root)
    source = {
        "agent": agent,
        "commit": commit,
        "files": {file: {"sha256": _sha256(content)} for file, content in data.items()},
        "prompts": {found.prompt: _origin(found) for found in prompts},
    }
    _write(folder, source, {f"{found.prompt}.txt": found.text for found in prompts})
    _tell(console, agent, prompts, commit, folder)


def _check(agent: str) -> None:
    if agent not in NAMES_OF_PROMPTS:
        raise ConfigError(f"unknown agent {agent!r}; {suggestion(agent, list(NAMES_OF_PROMPTS))}")


def _line(console: Console, text: str, style: str | None = None) -> None:
    console.print(visible(text), style=style, markup=False, highlight=False, soft_wrap=True)


def _tell(console: Console, agent: str, prompts: tuple[Released, ...], commit: str | None, folder: Path) -> None:
    width = max(len(found.prompt) for found in prompts)
    for found in prompts:
        part = "" if found.whole else " (what it says of the tool; the rest of this prompt is ours)"
        _line(console, f"{found.prompt:<{width}}  {found.file}: {found.name}, line {found.line}{part}")
    _line(console, f"commit {commit}" if commit else "commit unknown: no plain git folder there")
    _line(console, f"{len(prompts)} prompts of {agent} in {folder}; its option `prompts` takes this folder")
    _tell_hashes(console, agent, str(folder))


def _tell_hashes(console: Console, agent: str, folder: str | None) -> None:
    """Prints how runs name this wording; of two answer formats each sends other prompts."""
    options = {field.name for field in dataclasses.fields(AGENTS[agent])}
    for form in ANSWER_FORMATS if "answer_format" in options else (None,):
        chosen = {} if form is None else {"answer_format": form}
        digest = build(agent, tokenizer=None, prompts=folder, **chosen).prompts_hash
        _line(console, f"hash of the prompts{f' if answer_format is {form!r}' if form else ''}: {digest}")


def _origin(found: Released) -> dict[str, Any]:
    """What `source.json` says of a prompt; the hash is that of the written file."""
    told = {"file": found.file, "name": found.name, "line": found.line, "whole": found.whole}
    return told | {"sha256": _sha256(found.text.encode())}


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# The clone.


def _check_clone(agent: str, root: Path) -> None:
    """Raises InputError for what is no folder, lacks a file of the agent, or is the clone of another agent."""
    if not root.is_dir():
        raise InputError(f"{root} is no folder; it should be a clone of {REPOSITORIES[agent]}")
    absent = [file for file in released.files(agent) if not (root / file).is_file()]
    others = [name for name in ORIGINS if name != agent and _holds(root, name)]
    if others and (absent or agent == "memagent"):  # whose files the other repositories still have
        raise InputError(
            f"{root} is a clone of {REPOSITORIES[others[-1]]}, the repository of {others[-1]}, not {agent}"
        )
    if absent:
        raise InputError(f"{root} has no {absent[0]}; it should be a clone of {REPOSITORIES[agent]}")


def _holds(root: Path, agent: str) -> bool:
    return all((root / file).is_file() for file in released.files(agent))


def _read(root: Path, file: str, limit: int) -> bytes:
    """A file of the clone. Raises InputError if it lies outside through a link, or is too large."""
    path = (root / file).resolve()
    if not path.is_relative_to(root.resolve()):
        raise InputError(f"{root / file} is a link that leads out of the clone")
    with path.open("rb") as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise InputError(f"{root / file} is larger than {limit:,} bytes")
    return data


def _decoded(root: Path, file: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{root / file} is not UTF-8: byte {error.start}") from error


def _commit(root: Path) -> str | None:
    """The commit that is checked out, as the files of `.git` say it; None where they do not, or not plainly."""
    head = _git(root, "HEAD").strip()
    branch = _BRANCH.fullmatch(head)
    if branch and ".." not in head:
        head = _git(root, branch[1]).strip() or _packed(_git(root, "packed-refs"), branch[1])
    return head if _COMMIT.fullmatch(head) else None


def _packed(references: str, name: str) -> str:
    """The commit of a branch in the text of `packed-refs`."""
    lines = (line.split(" ") for line in references.splitlines())
    return next((words[0] for words in lines if words[1:] == [name]), "")


def _git(root: Path, file: str) -> str:
    try:
        path = root / ".git" / file
        return _read(root, f".git/{file}", _MAX_GIT_BYTES).decode("utf-8") if path.is_file() else ""
    except (InputError, OSError, ValueError):
        return ""


# The folder that is written.


def _write(folder: Path, source: Mapping[str, Any], texts: Mapping[str, str]) -> None:
    """Writes the prompts, and last `source.json`: a folder without it is not finished, and may be imported again."""
    _check_target(folder, source, texts)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write_atomic(folder / name, text)
    write_atomic(folder / SOURCE, json.dumps(source, indent=2) + "\n")


def _check_target(folder: Path, source: Mapping[str, Any], texts: Mapping[str, str]) -> None:
    """Raises InputError unless the folder is new, empty, or as an import of the same agent left it."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder: name another one with --to")
    earlier = _earlier(folder)
    unfinished = tuple(f".{name}." for name in (*texts, SOURCE))  # what a killed import leaves beside them
    strangers = {path.name for path in folder.iterdir() if not path.name.startswith(unfinished)} - texts.keys()
    if earlier.get("agent") != source["agent"] and (earlier or strangers):
        raise InputError(
            f"{folder} is not empty and holds no import of {source['agent']}: name another folder with --to"
        )
    for name, text in texts.items():
        path = folder / name
        if path.exists() and _sha256(path.read_bytes()) not in (_sha256(text.encode()), _recorded(earlier, path.stem)):
            raise InputError(f"{path} is not as an import left it: name another folder with --to")


def _earlier(folder: Path) -> Mapping[str, Any]:
    """What an earlier import wrote about itself; empty if there was none."""
    try:
        source = json.loads((folder / SOURCE).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return source if isinstance(source, dict) else {}


def _recorded(source: Mapping[str, Any], prompt: str) -> Any:
    """The hash of a prompt that an earlier import wrote."""
    try:
        return source["prompts"][prompt]["sha256"]
    except (KeyError, TypeError):
        return None
