"""Span retrieval over saved memory states (paper, Appendix A.3).

States are cut at line and sentence ends; a span's score is the overlap of its terms with the question's:
sum of min(c_q, c_z) over shared terms, plus a quarter for each shared term. Spans without overlap are dropped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..data.tokens import Tokenizer
from .agents.replies import encodable

MOST_SPANS = 4
SPAN_TOKENS = 96
SHARED_TERM = 0.25
_FUNCTION_WORDS = (
    "a about above after again against all also am an and any are as at be because been before being "
    "below between both but by can could did do does doing down during each few for from further had has "
    "have having he her here hers him his how i if in into is it its itself just me more most my no nor "
    "not of off on once only or other our out over own per s same she should so some such t than that the "
    "their them then there these they this those through to too under until up us very was we were what "
    "when where which while who whom whose why will with would you your "
)
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
_SPAN_END = re.compile(r"[\r\n]+|(?<=[.!?])[ \t]+|(?<=[。！？])")
_TERM = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass(frozen=True)
class Span:
    """A stretch of a saved state: the section it was saved after, its text (cut to the limit), its score uncut."""

    source: int
    text: str
    score: float


def terms(text: str) -> Counter[str]:
    """Lower-case terms with their counts; camelCase and snake_case are split, function words left out."""
    words = (part.lower() for word in _TERM.findall(text) for part in _CAMEL.split(word))
    return Counter(word for word in words if word not in FUNCTION_WORDS)


def split_spans(text: str) -> Iterator[str]:
    """The lines and sentences of a text, white space trimmed, empty ones left out."""
    return (span for part in _SPAN_END.split(text) if (span := part.strip()))


def overlap(question: Counter[str], span: Counter[str]) -> float:
    """The score of a span (Appendix A.3): sum of min(c_q, c_z) over shared terms, plus `SHARED_TERM` for each."""
    shared = question.keys() & span.keys()
    return sum(min(question[term], span[term]) for term in shared) + SHARED_TERM * len(shared)


def retrieve(
    question: str, states: Iterable[tuple[int, str]], tokenizer: Tokenizer, *, dedup: bool = False
) -> tuple[Span, ...]:
    """The best spans of the states (section index, memory), at most `MOST_SPANS`, each cut to `SPAN_TOKENS` tokens.

    Ranked by score; among equals the earlier section and the earlier place in its state come first. With `dedup` a
    text is taken once.
    """
    wanted = terms(question)
    found = [
        (-score, source, order, span)
        for source, memory in states
        for order, span in enumerate(split_spans(memory))
        if (score := overlap(wanted, terms(span))) > 0
    ]
    best: list[Span] = []
    seen: set[str] = set()
    for negative, source, _, span in sorted(found):
        if len(best) == MOST_SPANS:
            break
        if not (dedup and span in seen):
            seen.add(span)
            best.append(Span(source, cut_to(span, SPAN_TOKENS, tokenizer), -negative))
    return tuple(best)


def cut_to(text: str, most: int, tokenizer: Tokenizer) -> str:
    """The longest beginning of `text` that ends at one of its own tokens and has at most `most` tokens encoded
    alone."""
    if len(text) <= most and text.isascii():  # a token is at least a byte
        return text
    counts = tokenizer.measure(encodable(text))
    if counts.total <= most:
        return text
    end = int(counts.ends[most - 1])
    while end and counts.count(0, end) > most:
        end -= 1
    return text[:end]
