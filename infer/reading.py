"""How a document is cut for reading, in values that all observers share and that travel between processes.

A document is cut in two ways: into flat windows of C tokens, and into the sections of its tree. Both come from one
pass of the tokenizer, so they are made together (`readings`), once for a document, tokenizer and budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from ..data.counts import Counts
from ..data.formats import parse
from ..data.tokens import Tokenizer
from ..data.tree import Document
from ..errors import ConfigError
from .plan import Section, measured, plan_document

Readings = Mapping[str, "Reading"]
"""Both ways by name: `flat` and `tree`."""


@dataclass(frozen=True)
class Reading:
    """A text and its sections; `wrappers[t]` stands before and after section t where it is shown. `shared` keeps what
    agents derive from the sections (an index, say), for all rollouts over them."""

    text: str = field(repr=False)
    sections: tuple[Section, ...]
    wrappers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    shared: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def source(self, t: int) -> str:
        """The source slice of section `t` (0-based)."""
        return self.text[self.sections[t].start : self.sections[t].end]

    def render(self, t: int) -> str:
        """The slice with what stands around it."""
        before, after = self.wrappers[t]
        return before + self.source(t) + after

    def packed(self) -> Reading:
        """The same without text and tree, to be sent to another process, which has the text."""
        return replace(self, text="", sections=tuple(section.detached() for section in self.sections))


def flat_reading(document: Document, tokenizer: Tokenizer, budget: int) -> Reading:
    """Windows of `budget` tokens; found once for a document, tokenizer and budget while the document lives."""
    if budget < 1:
        raise ConfigError(f"budget must be a positive number of tokens, not {budget!r}")
    key = ("flat", tokenizer.fingerprint, budget)
    if key not in document.derived:
        windows = _windows(measured(document, tokenizer), len(document.text), budget)
        document.derived[key] = Reading(document.text, windows)
    return document.derived[key]


def tree_reading(document: Document, tokenizer: Tokenizer, budget: int) -> Reading:
    """Sections of the tree with base budget C = `budget`; found once, as the windows are."""
    key = ("tree", tokenizer.fingerprint, budget)
    if key not in document.derived:
        plan = plan_document(document, tokenizer, budget=budget)
        document.derived[key] = Reading(document.text, plan.sections, plan.wrappers)
    return document.derived[key]


def readings(text: str, format: str, tokenizer: Tokenizer, budget: int) -> Readings:
    """Both ways to read a text. Raises ParseError if it is not of this format."""
    document = parse(text, format)
    return {
        "flat": flat_reading(document, tokenizer, budget),
        "tree": tree_reading(document, tokenizer, budget),
    }


def _windows(counts: Counts, length: int, budget: int) -> tuple[Section, ...]:
    """A cut inside a character moves to the character's end; the last window reaches the end of the text."""
    inner = [int(counts.ends[k - 1]) for k in range(budget, counts.total, budget)]
    edges = [0, *inner, length]
    return tuple(
        Section(
            index=t,
            kind="text",
            range=None,
            start=start,
            end=end,
            tokens=min(budget, counts.total - t * budget),
            wrapper_tokens=0,
            links=(),
            oversize=False,
            last_of_leaf=False,
        )
        for t, (start, end) in enumerate(pairwise(edges))
    )
