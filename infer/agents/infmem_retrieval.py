"""InfMem's own retrieval: BM25 over windows of 500 tokens that are cut inside each section, read or not.

Two released implementations. `legacy`: windows side by side, words, always the best 4, the current section included.
`enhanced`: windows overlap by 100 tokens, other terms, the current section left out, few windows of one section and
no near repetitions as long as there is a choice. Rankings are stable: equal scores keep the order of the document.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from ...data.tokens import Tokenizer

Implementation = Literal["enhanced", "legacy"]

WINDOW = 500  # tokens
OVERLAP = 100  # tokens, enhanced only
LEGACY_TOP_K = 4
LEAST, MOST, USUAL = 3, 20, 8  # what `top_k` is held to, and what it is where it is no number
PER_SECTION = 2
SIMILAR = 0.8
_TERM = re.compile(r"[a-z0-9_]+")
_CJK = re.compile(r"[\u4e00-\u9fff]")


@dataclass(frozen=True)
class Index:
    """The windows of a document in order: their texts, sections and sets of terms, and the BM25 model over their terms
    (None where no window has any)."""

    kind: Implementation
    texts: tuple[str, ...]
    sections: tuple[int, ...]
    terms: tuple[frozenset[str], ...]
    model: Any

    def search(self, query: object, top_k: object, question: str, current: int) -> list[str]:
        """The windows to show while reading section `current`, best first. A query that is no text stands for the
        question, in both kinds: the released legacy code would give up the example. Legacy ignores `top_k`."""
        if self.kind == "legacy":
            order = self._ranking(words(query if isinstance(query, str) else question))
            return [self.texts[i] for i in order[:LEGACY_TOP_K]]
        asked = terms(query) if isinstance(query, str) and query.strip() else terms(question)
        return self._varied(self._ranking(asked), clamp(top_k), current) if asked else []

    def _ranking(self, asked: Sequence[str]) -> list[int]:
        """All windows, highest score first; none scores where the index has no terms."""
        import numpy as np

        if self.model is None:
            return list(range(len(self.texts)))
        return np.argsort(-self.model.get_scores(asked), kind="stable").tolist()

    def _varied(self, ranking: Sequence[int], top_k: int, current: int) -> list[str]:
        """At most two windows of a section and none too similar to one chosen before; then, if that is not enough,
        whatever ranks highest and is not the same text."""
        chosen: list[int] = []
        taken: Counter[int] = Counter()
        for i in ranking[: max(40, 6 * top_k)]:
            if len(chosen) == top_k:
                break
            section = self.sections[i]
            if section == current or taken[section] == PER_SECTION:
                continue
            if all(jaccard(self.terms[i], self.terms[k]) <= SIMILAR for k in chosen):
                chosen.append(i)
                taken[section] += 1
        found = [self.texts[i] for i in chosen]
        for i in ranking:
            if len(found) == top_k:
                break
            if self.sections[i] != current and self.texts[i] not in found:
                found.append(self.texts[i])
        return found


def build_index(sections: Sequence[str], tokenizer: Tokenizer, kind: Implementation) -> Index:
    """The index over the windows of these section texts."""
    from rank_bm25 import BM25Okapi

    cut = [(t, window) for t, text in enumerate(sections) for window in windows(text, tokenizer, kind)]
    split = [(words if kind == "legacy" else terms)(window) for _, window in cut]
    model = BM25Okapi(split) if any(split) else None
    return Index(kind, tuple(w for _, w in cut), tuple(t for t, _ in cut), tuple(map(frozenset, split)), model)


def windows(text: str, tokenizer: Tokenizer, kind: Implementation) -> list[str]:
    """The windows of one section, decoded; the last one ends with the section."""
    ids = tokenizer.encode(text)
    step = WINDOW if kind == "legacy" else WINDOW - OVERLAP
    last = max(len(ids) - WINDOW + step, 1)  # a window that starts here or later would hold nothing new
    return [tokenizer.decode(ids[start : start + WINDOW]) for start in range(0, last, step)] if ids else []


def words(text: str) -> list[str]:
    """The terms of legacy: what stands between blanks, in lower case."""
    return text.lower().split()


def terms(text: str) -> list[str]:
    """The terms of enhanced: runs of ASCII letters, digits and underscores in lower case, then the Chinese characters,
    then the pairs that these make in order."""
    text = text.lower()
    characters = _CJK.findall(text)
    return [*_TERM.findall(text), *characters, *(a + b for a, b in pairwise(characters))]


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    """Shared terms by all terms; 0 where there are none."""
    return len(a & b) / len(a | b) if a or b else 0.0


def clamp(top_k: object) -> int:
    """`top_k` as a whole number from 3 to 20; 8 where it is no number."""
    try:
        number = int(top_k)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError, OverflowError):
        number = USUAL
    return max(LEAST, min(MOST, number))
