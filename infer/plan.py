"""A document's reading plan: its sections with paths, links and wrappers, found once and shared by all who read
it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ..data.counts import Counts
from ..data.formats import parse
from ..data.tokens import Tokenizer, load_tokenizer
from ..data.tree import Document, Node
from ..errors import ConfigError
from .budget import choose_budget, scan_budgets
from .links import residual_links
from .paths import ELIDED, PATH_CHARACTERS, shorten
from .sections import Kind, Piece, Structure

WRAPPER_TOKENS = 256


@dataclass(frozen=True)
class Section:
    """One section. Offsets are characters of the source, `range` the ordinals of grouped siblings (both included);
    `tokens` counts `source[start:end]` alone, `wrapper_tokens` what `render` puts around it; `links` is L_t.

    `oversize` marks what cannot be divided and is over budget, `last_of_leaf` the last span of a split leaf. `place` is
    the subtree's node, the parent of grouped siblings, or the leaf that a span is cut from; None for a flat window."""

    index: int
    kind: Kind
    range: tuple[int, int] | None
    start: int
    end: int
    tokens: int
    wrapper_tokens: int
    links: tuple[int, ...]
    oversize: bool
    last_of_leaf: bool
    place: Node | None = field(default=None, repr=False, compare=False)
    _document: Document | None = field(default=None, repr=False, compare=False)

    @cached_property
    def path(self) -> str:
        """The structural path of `place`; empty for a flat window."""
        if self._document is None or self.place is None:
            return ""
        return self._document.path(self.place)

    def detached(self) -> Section:
        """The same without document and node, a long path without its middle: small, and fit to be pickled."""
        copy = replace(self, place=None, _document=None)
        copy.__dict__["path"] = shorten(self.path, PATH_CHARACTERS)
        return copy

    def to_json(self) -> dict[str, Any]:
        """The section as `treeagent sections --json` prints it."""
        return {
            "index": self.index,
            "kind": self.kind,
            "path": self.path,
            "range": None if self.range is None else list(self.range),
            "start": self.start,
            "end": self.end,
            "tokens": self.tokens,
            "wrapper_tokens": self.wrapper_tokens,
            "links": list(self.links),
            "oversize": self.oversize,
            "last_of_leaf": self.last_of_leaf,
        }


@dataclass(frozen=True)
class Plan:
    """Sections of one document under one tokenizer. `base_budget` is C, `budget` the B used, `flat_count` ceil(tokens
    / C); `wrappers[t]` stands before and after section t in `render`; `elided` counts the wrappers that were
    shortened."""

    document: Document
    counts: Counts
    sections: tuple[Section, ...]
    wrappers: tuple[tuple[str, str], ...]
    base_budget: int
    budget: int
    document_tokens: int
    flat_count: int
    elided: int

    def render(self, section: Section) -> str:
        """The section's source as it would read in its parent's place: the nearest delimiters restored around it."""
        prefix, suffix = self.wrappers[section.index]
        return prefix + self.document.text[section.start : section.end] + suffix


def plan_sections(
    text: str,
    *,
    format: str = "json",
    tokenizer: Any,
    budget: int = 5000,
    exact_budget: int | None = None,
    full_scan: bool = False,
) -> Plan:
    """The sections of `text` (paper, Algorithm 1 and A.2).

    `tokenizer` is anything `load_tokenizer` takes. `budget` is C, from which B is searched by A.2, or with
    `full_scan` over all of [C, 2C-1]; with `exact_budget` B = C is that number. Raises ParseError, ConfigError,
    ModelError.
    """
    document, loaded = parse(text, format), load_tokenizer(tokenizer)
    return plan_document(document, loaded, budget=budget, exact_budget=exact_budget, full_scan=full_scan)


def plan_document(
    document: Document,
    tokenizer: Tokenizer,
    *,
    budget: int,
    exact_budget: int | None = None,
    full_scan: bool = False,
) -> Plan:
    """The plan of a parsed document; found once for a document, tokenizer and budget while the document lives."""
    for name, value in (("budget", budget), ("exact_budget", exact_budget)):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise ConfigError(f"{name} must be a positive number of tokens, not {value!r}")
    if exact_budget is not None and full_scan:
        raise ConfigError("an exact budget leaves nothing to scan")
    key = ("plan", tokenizer.fingerprint, budget, exact_budget, full_scan)
    if key not in document.derived:
        document.derived[key] = _plan(document, measured(document, tokenizer), budget, exact_budget, full_scan)
    return document.derived[key]


def measured(document: Document, tokenizer: Tokenizer) -> Counts:
    """The counts over a document, made once for a document and tokenizer while the document lives."""
    key = ("counts", tokenizer.fingerprint)
    if key not in document.derived:
        document.derived[key] = tokenizer.measure(document.text)
    return document.derived[key]


def _plan(document: Document, counts: Counts, budget: int, exact_budget: int | None, full_scan: bool) -> Plan:
    base = budget if exact_budget is None else exact_budget
    flat = max(1, -(-counts.total // base))
    structure = Structure(document, counts, base, 2 * base - 1 if exact_budget is None else base)
    search = scan_budgets if full_scan else choose_budget
    chosen = search(structure.count, flat, base) if exact_budget is None else base
    pieces, lasts = structure.pieces(chosen)
    links = residual_links(lasts, len(pieces))
    wrappers = _Wrappers(document, counts)
    around = tuple(wrappers.around(piece) for piece in pieces)
    sections = tuple(
        _section(index, piece, links[index], document, counts, chosen, wrappers.tokens(*around[index]))
        for index, piece in enumerate(pieces)
    )
    return Plan(document, counts, sections, around, base, chosen, counts.total, flat, wrappers.elided)


def _section(
    index: int, piece: Piece, links: tuple[int, ...], document: Document, counts: Counts, budget: int, wrapper: int
) -> Section:
    tokens = counts.count(piece.start, piece.end)
    return Section(
        index=index,
        kind=piece.kind,
        range=piece.range,
        start=piece.start,
        end=piece.end,
        tokens=tokens,
        wrapper_tokens=wrapper,
        links=links,
        oversize=tokens > budget,
        last_of_leaf=piece.last_of_leaf,
        place=piece.place,
        _document=document,
    )


class _Wrappers:
    """What stands around pieces, asked for in document order: the nearest parent's delimiters, and around them what
    nodes opened since the last piece say of themselves. At most `WRAPPER_TOKENS`, the rest elided visibly and
    counted."""

    def __init__(self, document: Document, counts: Counts) -> None:
        self._document, self._counts = document, counts
        self._introduced: set[int] = set()
        self.elided = 0

    def around(self, piece: Piece) -> tuple[str, str]:
        start, end = (piece.place.start, piece.place.end) if piece.kind == "text" else (piece.start, piece.end)
        prefix, suffix = self._document.wrapper(piece.parent, self._newly_opened(piece), start, end)
        if piece.kind == "text":
            before, after = self._document.quotes(piece.place)
            prefix, suffix = prefix + before, after + suffix
        if self.tokens(prefix, suffix) > WRAPPER_TOKENS:
            self.elided += 1
            suffix = self._elide(suffix, WRAPPER_TOKENS // 4)
            prefix = self._elide(prefix, WRAPPER_TOKENS - self.tokens("", suffix))
        return prefix, suffix

    def _newly_opened(self, piece: Piece) -> list[Node]:
        """The opened nodes that no piece before belongs to, outermost first; the nearest parent, if new, is the
        last."""
        found: list[Node] = []
        walk = piece.parent
        while walk is not None and id(walk) not in self._introduced:
            self._introduced.add(id(walk))
            found.append(walk)
            walk = walk.parent
        return found[::-1]

    def tokens(self, prefix: str, suffix: str) -> int:
        """Tokens of both, each encoded alone."""
        return sum(self._counts.counts_of([prefix, suffix]))

    def _elide(self, text: str, most: int) -> str:
        if self.tokens(text, "") <= most:
            return text
        keep = min(len(text) // 2, 4 * most)
        while True:
            short = text[:keep] + ELIDED + text[len(text) - keep :]
            if not keep or self.tokens(short, "") <= most:
                return short
            keep = keep * 3 // 4
