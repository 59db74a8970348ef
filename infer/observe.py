"""What an agent is shown of a document: the four kinds of observation (paper, Eq. 3 and 16).

`flat` shows windows of C tokens; `tree` the sections, rendered; `tree+path` their structural paths too; `treeagent`
also the spans that residual links find in the memory saved so far. All of it goes into the section slot of the
agent's own prompt. Sections are shared through the document; what an observer keeps for itself is the history H of
one rollout.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Literal, Protocol, get_args

from ..data.formats import parse
from ..data.tokens import Tokenizer, load_tokenizer
from ..data.tree import Document
from ..errors import ConfigError
from . import agents
from .paths import PATH_CHARACTERS, path_line, shorten
from .plan import Section
from .reading import Reading, Readings, flat_reading, tree_reading
from .spans import Span, retrieve

Kind = Literal["flat", "tree", "tree+path", "treeagent"]
KINDS: tuple[Kind, ...] = get_args(Kind)

SPANS_LABEL = "Notes from earlier sections that this one completes:"


class Observer(agents.Observer, Protocol):
    """What an agent reads, and what those who run agents may know besides."""

    kind: Kind
    shared: dict[Any, Any]
    """What agents derive from these sections, for all rollouts over them."""

    def section(self, t: int) -> Section:
        """Section `t` (0-based): where it lies, its tokens, its links."""
        ...

    def spans(self, t: int, question: str, pass_id: int = 0) -> tuple[Span, ...]:
        """What links find for section `t` in the memory saved in this pass."""
        ...


class Flat:
    """Windows of C token ids of the whole text, ceil(tokens / C) of them; no labels, no wrapper, no history."""

    kind: Kind = "flat"

    def __init__(self, reading: Reading) -> None:
        self._reading, self.shared = reading, reading.shared

    @property
    def n(self) -> int:
        return len(self._reading.sections)

    def section(self, t: int) -> Section:
        return self._reading.sections[t]

    def text(self, t: int) -> str:
        return self._reading.source(t)

    def observe(self, t: int, question: str, pass_id: int = 0) -> str:
        return self._reading.source(t)

    def spans(self, t: int, question: str, pass_id: int = 0) -> tuple[Span, ...]:
        return ()

    def commit(self, t: int, memory: str, pass_id: int = 0) -> None:
        pass


class Structured:
    """Sections of the tree, with what `kind` adds to them. `dedup_spans` shows equal spans of several states once."""

    def __init__(self, kind: Kind, reading: Reading, tokenizer: Tokenizer, *, dedup_spans: bool = False) -> None:
        self.kind: Kind = kind
        self._reading, self.shared = reading, reading.shared
        self._tokenizer, self._dedup = tokenizer, dedup_spans
        self._history: dict[int, dict[int, str]] = defaultdict(dict)

    @property
    def n(self) -> int:
        return len(self._reading.sections)

    def section(self, t: int) -> Section:
        return self._reading.sections[t]

    def text(self, t: int) -> str:
        return self._reading.source(t)

    def observe(self, t: int, question: str, pass_id: int = 0) -> str:
        section = self.section(t)
        lines = [self._reading.render(t)]
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
    check(kind)
    if isinstance(document, str):
        if format is None:
            raise ConfigError("a document given as text needs format=, for example format='json'")
        document = parse(document, format)
    loaded = load_tokenizer(tokenizer)
    if kind == "flat":
        return Flat(flat_reading(document, loaded, budget))
    return Structured(check(kind), tree_reading(document, loaded, budget), loaded, dedup_spans=dedup_spans)


def over(kind: str, readings: Readings, tokenizer: Tokenizer) -> Observer:
    """An observer with an empty history, over what `Documents` has cut."""
    return Flat(readings["flat"]) if check(kind) == "flat" else Structured(check(kind), readings["tree"], tokenizer)


def check(kind: str) -> Kind:
    """The kind, if there is such a one. Raises ConfigError."""
    for known in KINDS:
        if kind == known:
            return known
    raise ConfigError(f"unknown observer {kind!r}; known: {', '.join(KINDS)}")
