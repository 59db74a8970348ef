"""Answer scores exactly as the paper defines them (Section 4.2, Appendix C.4).

1. One value asked: 1 if it matches, else 0.
2. Several: matched / max(predicted, reference); position by position where the question orders them, otherwise the
   largest matching between the two multisets.
3. Text matches without regard to case, Unicode form, runs of whitespace, surrounding formatting; signs inside stay.
4. Numbers match within max(0.01, 0.1 % of the reference's magnitude), computed exactly in decimal.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import insort
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, DecimalException

from ..data.rollout import Reference
from .answer import clean, extract, split

ABSOLUTE_TOLERANCE = Decimal("0.01")
RELATIVE_TOLERANCE = Decimal("0.001")
_LONGEST_NUMBER = 400  # characters; a longer run of digits is text
_EXACT = Context(prec=2000)  # digits; enough for any two numbers that parse

_CURRENCY = r"(?:US\$|[$€£¥₹]|USD|EUR|GBP|JPY|CNY|INR|CHF|CAD|AUD)"
_NUMBER = re.compile(
    rf"(?P<sign>[-+])?\s?{_CURRENCY}?\s?(?P<inner>[-+])?"
    r"(?P<digits>\d[\d.,'’ ]*|\.\d+)(?P<exponent>[eE][-+]?\d{1,3})?"
    rf"\s?(?P<suffix>%|{_CURRENCY}|[^\W\d_°][^\d,;:]{{0,40}}[23]?|°(?:\s?[NE])?)?"
)
_SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
# After a number these do not name a unit, or name one of several.
_UNCLEAR_WORDS = """
k m b t g bn mn mm mio mrd lakh crore dozen dozens hundred hundreds thousands millions billions
or to and of not minus plus by point over s w south west e x
"""
_UNCLEAR = frozenset(_UNCLEAR_WORDS.split())
_GROUPED = re.compile(r"\d{1,3}(?:([,.'’ ])\d{3})(?:\1\d{3})*|\d{1,2}(?:,\d{2})+,\d{3}")
_SPACES = dict.fromkeys(map(ord, "\u00a0\u2007\u2009\u202f"), " ")
_MINUS = dict.fromkeys(map(ord, "−–‐‑"), "-")


@dataclass(frozen=True)
class Scored:
    """The values an answer was read as, and their score in [0, 1]."""

    values: tuple[str, ...]
    score: float


def score_answer(answer_text: str, answer_format: str, reference: Reference) -> Scored:
    """Extracts, splits and scores an agent's final reply."""
    values = split(extract(answer_text, answer_format), reference.count)
    return Scored(values, score(values, reference))


def score(values: Sequence[str], reference: Reference) -> float:
    """The score in [0, 1] of predicted values. No value, or no reference value, scores 0."""
    expected = reference.values
    if not values or not expected:
        return 0.0
    if reference.count == 1 and len(expected) == 1:
        return float(len(values) == 1 and matches(values[0], expected[0], reference.kind))
    if reference.ordered:
        matched = sum(matches(v, e, reference.kind) for v, e in zip(values, expected, strict=False))
    elif reference.kind == "number":
        matched = _matched_numbers(values, expected)
    else:
        matched = (Counter(map(normalise, values)) & Counter(map(normalise, expected))).total()
    return matched / max(len(values), len(expected))


def matches(value: str, expected: str, kind: str) -> bool:
    """Whether one predicted value is the expected one. A reference that is no number is compared as text."""
    if kind == "number":
        target = parse_number(expected)
        if target is not None:
            found, (low, high) = parse_number(value), interval(target)
            return found is not None and low <= found <= high
    text = normalise(value)
    return bool(text) and text == normalise(expected)


def normalise(text: str) -> str:
    """The form in which text is compared: NFKC, case folded, single spaces, no surrounding formatting or dots."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    stripped = clean(folded).strip(".").strip()
    return " ".join(clean(stripped).split())


def parse_number(text: str) -> Decimal | None:
    """The one number that `text` states, or None: digits grouped or not, sign, currency, percent, a unit that follows.

    `1,234` and `1.234.567` are grouped, `3,14` and `1.234,56` have a decimal comma, `1.234` a decimal point. A percent
    sign does not divide by 100. NaN, infinities, ranges and letters that may be a scale ("5 m") are no numbers.
    """
    text = clean(text).translate(_SPACES).translate(_MINUS)
    if len(text) > _LONGEST_NUMBER:
        return None
    found = _NUMBER.fullmatch(unicodedata.normalize("NFKC", text).translate(_MINUS))
    if found is None or (found["sign"] and found["inner"]):
        return None
    digits, scale = _plain(found["digits"].strip()), _scale(found["suffix"] or "")
    if digits is None or scale is None:
        return None
    try:
        spelled = f"{found['sign'] or found['inner'] or ''}{digits}{found['exponent'] or ''}"
        return _EXACT.scaleb(_EXACT.create_decimal(spelled), Decimal(scale))
    except DecimalException:
        return None


def _plain(digits: str) -> str | None:
    """Digits with a decimal point and no grouping; None where the reading is not clear."""
    point = max(digits.rfind("."), digits.rfind(","))
    whole, mark, rest = (digits[:point], digits[point], digits[point + 1 :]) if point >= 0 else (digits, "", "")
    if digits.isdigit():
        return digits
    if _GROUPED.fullmatch(digits) and not digits.startswith("0") and (mark != "." or digits.count(".") > 1):
        return re.sub(r"\D", "", digits)
    if not rest.isdigit() and (rest or not whole.isdigit()):
        return None
    if whole == "" or whole.isdigit():
        return f"{whole or '0'}.{rest or '0'}"
    if mark in ".," and _GROUPED.fullmatch(whole) and mark not in whole and rest:
        return re.sub(r"\D", "", whole) + "." + rest
    return None


def _scale(suffix: str) -> int | None:
    """The power of ten that what follows a number means; None where it is not clear."""
    words = [word.strip(".()").lower() for word in suffix.split()]
    if words and words[0] in _SCALES:
        return _SCALES[words[0]] if not _UNCLEAR.intersection(words[1:]) else None
    return None if _UNCLEAR.intersection(words) or len(words) > 5 else 0


def interval(target: Decimal) -> tuple[Decimal, Decimal]:
    """The smallest and the largest number that match `target`."""
    tolerance = max(ABSOLUTE_TOLERANCE, _EXACT.multiply(RELATIVE_TOLERANCE, _EXACT.abs(target)))
    return _EXACT.subtract(target, tolerance), _EXACT.add(target, tolerance)


def _matched_numbers(values: Sequence[str], expected: Sequence[str]) -> int:
    """The size of a largest matching of predicted to expected numbers.

    Each expected number is an interval, each prediction a point. Going through the points upwards and giving each to
    the open interval that ends first is optimal: in any matching, exchanging a point's partner for that interval keeps
    it valid, since every later point in that interval also lies in the partner's, which ends later.
    """
    targets = [parse_number(item) for item in expected]
    found = [parse_number(item) for item in values]
    texts = Counter(normalise(e) for e, t in zip(expected, targets, strict=True) if t is None)
    matched = (texts & Counter(normalise(v) for v, f in zip(values, found, strict=True) if f is None)).total()
    intervals = sorted(interval(t) for t in targets if t is not None)
    ends: list[Decimal] = []
    opened = 0
    for point in sorted(f for f in found if f is not None):
        while opened < len(intervals) and intervals[opened][0] <= point:
            insort(ends, intervals[opened][1])
            opened += 1
        while ends and ends[0] < point:
            ends.pop(0)
        if ends:
            ends.pop(0)
            matched += 1
    return matched
