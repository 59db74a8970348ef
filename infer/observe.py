"""What an agent is shown of a document: the four kinds of observation (paper, Eq. 3 and 16).

`flat` shows windows of C tokens; `tree` the sections, rendered; `tree+path` their structural paths too; `treeagent`
also the spans that residual links find in the memory saved so far. All of it goes into the section slot of the
agent's own prompt. Sections are shared through the document; what an observer keeps for itself is the history H of
one rollout.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal, Protocol, get_args

from ..data.counts import Counts
from ..data.formats import parse
from ..data.tokens import Tokenizer, load_tokenizer
from ..data.tree import Document
from ..errors import ConfigError
from . import agents
from .paths import path_line, shorten
from .plan import Plan, Section, measured, plan_document
from .spans import Span, retrieve

Kind = Literal["flat", "tree", "tree+path", "treeagent"]
KINDS: tuple[Kind, ...] = get_args(Kind)

SPANS_LABEL = "Notes from earlier sections that this one completes:"
PATH_CHARACTERS = 1_000  # a longer path is shown without its middle, so that deep nesting never crowds out content


class Observer(agents.Observer, Protocol):
    """What an agent reads, and what those who run agents may know besides."""

    kind: Kind

    def section(self, t: int) -> Section:
        """Section `t` (0-based): where it lies, its tokens, its links."""
        ...

    def spans(self, t: int, question: str, pass_id: int = 0) -> tuple[Span, ...]:
        """What links find for section `t` in the memory saved in this pass."""
        ...


class Flat:
    """Windows of C token ids of the whole text, ceil(tokens / C) of them; no labels, no wrapper, no history."""

    kind: Kind = "flat"

    def __init__(self, text: str, sections: Sequence[Section]) -> None:
        self._text, self._sections = text, sections

    @property
    def n(self) -> int:
        return len(self._sections)

    def section(self, t: int) -> Section:
        return self._sections[t]

    def text(self, t: int) -> str:
        return self._text[self._sections[t].start : self._sections[t].end]

    def observe(self, t: int, question: str, pass_id: int = 0) -> str:
        return self.text(t)

    def spans(self, t: int, question: str, pass_id: int = 0) -> tuple[Span, ...]:
        return ()

    def commit(self, t: int, memory: str, pass_id: int = 0) -> None:
        pass


class Structured:
    """Sections of the tree, with what `kind` adds to them. `dedup_spans` shows equal spans of several states once."""

    def __init__(self, kind: Kind, plan: Plan, tokenizer: Tokenizer, *, dedup_spans: bool = False) -> None:
        self.kind: Kind = kind
        self._plan, self._tokenizer, self._dedup = plan, tokenizer, dedup_spans
        self._history: dict[int, dict[int, str]] = defaultdict(dict)

    @property
    def n(self) -> int:
        return len(self._plan.sections)

    def section(self, t: int) -> Section:
        return self._plan.sections[t]

    def text(self, t: int) -> str:
        section = self.section(t)
        return self._plan.document.text[section.start : section.end]

    def observe(self, t: int, question: str, pass_id: int = 0) -> str:
        section = self.section(t)
        lines = [self._plan.render(section)]
        if self.kind != "tree":
            lines.insert(0, path_line(shorten(section.path, PATH_CHARACTERS), section.range))
        if spans := self.spans(t, question, pass_id):
            lines += [SPANS_LABEL, *(span.text for span in spans)]
        return "\n".join(lines)

    def spans(self, t: int, question: str, pass_id: int = 0) -> tuple[Span, ...]:
        if self.kind != "treeagent":
            return ()
        saved = self._history[pass_id]
        states = ((source, saved[source]) for source in self.section(t).links if source in saved)
        return retrieve(question, states, self._tokenizer, dedup=self._dedup)

    def commit(self, t: int, memory: str, pass_id: int = 0) -> None:
        self._history[pass_id][t] = memory


def build(
    kind: str,
    document: Document | str,
    *,
    tokenizer: Any,
    budget: int = 5000,
    format: str | None = None,
    dedup_spans: bool = False,
) -> Observer:
    """An observer with an empty history. `document` is a `Document`, or text together with its `format`; `budget` is
    C."""
    if kind not in KINDS:
        raise ConfigError(f"unknown observer {kind!r}; known: {', '.join(KINDS)}")
    if isinstance(document, str):
        if format is None:
            raise ConfigError("a document given as text needs format=, for example format='json'")
        document = parse(document, format)
    loaded = load_tokenizer(tokenizer)
    if kind == "flat":
        return Flat(document.text, flat_sections(document, loaded, budget))
    return Structured(kind, plan_document(document, loaded, budget=budget), loaded, dedup_spans=dedup_spans)


def flat_sections(document: Document, tokenizer: Tokenizer, budget: int) -> tuple[Section, ...]:
    """The windows of `Flat`; found once for a document, tokenizer and budget while the document lives."""
    if budget < 1:
        raise ConfigError(f"budget must be a positive number of tokens, not {budget!r}")
    key = ("flat", tokenizer.fingerprint, budget)
    if key not in document.derived:
        document.derived[key] = _windows(measured(document, tokenizer), len(document.text), budget)
    return document.derived[key]


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
