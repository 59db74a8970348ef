"""Prompt templates: constant texts in files, whose placeholders are filled in one pass.

The values are sections and memories, full of braces; they are never parsed. So a template is cut at its `{name}`
places once, when it is loaded, and filling joins the pieces. Anything else in braces, like `\\boxed{}`, is text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_PLACE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Template:
    """A constant text with named places. `pieces` alternates text and names, and begins and ends with text."""

    source: str

    @property
    def pieces(self) -> list[str]:
        """Text, name, text, name, ..., text."""
        return _PLACE.split(self.source)

    def fill(self, **values: str) -> str:
        """The text with every place filled. Raises KeyError if a place has no value, TypeError if a value has no
        place."""
        pieces = self.pieces
        unused = values.keys() - set(pieces[1::2])
        if unused:
            raise TypeError(f"the template has no place for {', '.join(sorted(unused))}")
        pieces[1::2] = [values[name] for name in pieces[1::2]]
        return "".join(pieces)


@cache
def load(agent: str, name: str) -> Template:
    """The template in `prompts/AGENT/NAME.txt`, to the byte: newlines are part of a prompt."""
    data = files(__spec__.parent).joinpath("prompts", agent, f"{name}.txt").read_bytes()
    return Template(data.decode("utf-8"))


def fingerprint(templates: Sequence[Template]) -> str:
    """16 hexadecimal digits that change with any character of any template or with their order."""
    parts = [hashlib.sha256(template.source.encode()).digest() for template in templates]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]
