"""Prompt templates: constant texts in files, whose placeholders are filled in one pass.

The values are sections and memories, full of braces; they are never parsed. So a template is cut at its `{name}`
places once, when it is loaded, and filling joins the pieces. Anything else in braces, like `\\boxed{}`, is text.
Each agent has a wording of ours in `prompts/AGENT/NAME.txt`; a folder of imported wording holds `NAME.txt` files of the
same names with the same places.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from ...errors import ConfigError

_PLACE = re.compile(r"\{(\w+)\}")

PLACES: Mapping[tuple[str, str], frozenset[str]] = {
    ("memagent", "memory"): frozenset({"prompt", "memory", "chunk"}),
    ("memagent", "answer"): frozenset({"prompt", "memory"}),
    ("memagent", "answer_boxed"): frozenset({"prompt", "memory"}),
    ("infmem", "system"): frozenset(),
    ("infmem", "plan"): frozenset({"prompt", "retrieval_history", "memory"}),
    ("infmem", "write"): frozenset({"prompt", "retrieve", "chunk", "memory"}),
    ("infmem", "answer"): frozenset({"prompt", "memory"}),
    ("memreread", "memory"): frozenset({"prompt", "memory", "chunk"}),
    ("memreread", "decompose"): frozenset({"question", "memory", "decomposed_history"}),
    ("memreread", "answer"): frozenset({"question", "memory"}),
    ("memreread", "integrate"): frozenset({"question", "memory", "subquestion", "answer"}),
    ("rememr1", "memory"): frozenset({"prompt", "recalled_memory", "memory", "chunk"}),
    ("rememr1", "answer"): frozenset({"prompt", "recalled_memory", "memory"}),
}
"""The places that each template has, by agent and name; the names are those of the released templates."""

NAMES_OF_PROMPTS: Mapping[str, tuple[str, ...]] = {
    agent: tuple(name for owner, name in PLACES if owner == agent) for agent in dict.fromkeys(key[0] for key in PLACES)
}
"""The templates of each agent."""


@dataclass(frozen=True)
class Template:
    """A constant text with named places. `pieces` alternates text and names, and begins and ends with text."""

    source: str

    @property
    def pieces(self) -> list[str]:
        """Text, name, text, name, ..., text."""
        return _PLACE.split(self.source)

    @property
    def places(self) -> frozenset[str]:
        """The names of all places."""
        return frozenset(self.pieces[1::2])

    def fill(self, **values: str) -> str:
        """The text with every place filled. Raises KeyError if a place has no value, TypeError if a value has no
        place."""
        pieces = self.pieces
        unused = values.keys() - set(pieces[1::2])
        if unused:
            raise TypeError(f"the template has no place for {', '.join(sorted(unused))}")
        pieces[1::2] = [values[name] for name in pieces[1::2]]
        return "".join(pieces)


def load(agent: str, name: str, folder: str | Path | None = None) -> Template:
    """The template `NAME.txt` of an agent, to the byte (newlines are part of a prompt): ours, or the one in `folder`.

    Raises ConfigError if the folder has no such file, or one whose places are not those of this agent's template.
    """
    if folder is None:
        return Template(files(__spec__.parent).joinpath("prompts", agent, f"{name}.txt").read_bytes().decode())
    file = Path(folder).expanduser() / f"{name}.txt"
    try:
        template = Template(file.read_bytes().decode())
    except (OSError, UnicodeDecodeError) as error:
        reason = "not UTF-8" if isinstance(error, UnicodeDecodeError) else (error.strerror or "unreadable").lower()
        needed = ", ".join(f"{each}.txt" for each in NAMES_OF_PROMPTS[agent])
        raise ConfigError(f"prompts of {agent}: {file}: {reason}; such a folder holds {needed}") from error
    wanted = PLACES[agent, name]
    for place in sorted(wanted ^ template.places):
        problem = "has no place" if place in wanted else "has an unknown place"
        raise ConfigError(f"prompts of {agent}: {file} {problem} {{{place}}}")
    return template


def fingerprint(templates: Sequence[Template]) -> str:
    """16 hexadecimal digits that change with any character of any template or with their order."""
    parts = [hashlib.sha256(template.source.encode()).digest() for template in templates]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]
