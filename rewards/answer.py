"""From an agent's final reply to the values it answers with (paper, Appendix C.4).

1. `extract` finds the answer inside the reply, by the rule of the agent's released evaluation.
2. `split` cuts it into values. It may use how many values the question asks for, never the reference.
3. `clean` removes what only surrounds a value: quotation marks, matching brackets, markdown, list signs at the edges.

A model's reply is hostile input: everything here is linear in its length and raises nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from ..errors import ConfigError

AnswerFormat = Literal["the answer is", "boxed"]
ANSWER_FORMATS: tuple[AnswerFormat, ...] = get_args(AnswerFormat)
_CUE = "the answer is"
_BRACE = re.compile(r"\\boxed\{|[{}]")

_PAIRS = {"[": "]", "(": ")", "{": "}", "“": "”", "‘": "’", "«": "»", "‹": "›", "「": "」", "『": "』"}
_CLOSERS = frozenset(_PAIRS.values())
_SAME = frozenset("\"'`*$")
_LEFT_NOISE = frozenset(":•·")
_RIGHT_NOISE = frozenset(",;:")
_LATEX = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|boxed)(?=\{)")

# Quotes count only where a value can begin, so that 6" and d'Or stay text. No pattern runs over a stretch twice.
_QUOTED = re.compile(r"""(?<![^\s,;\[(:])(?:"[^"\n]*"|“[^”\n]*”|'[^'\n]*'(?=\s{0,4}(?:[,;\])\n]|and\s|\Z)))""")
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?!\d|,\d)")
_ENUMERATOR = re.compile(r"\s*(?:[-*•·–]|\(?\d{1,3}[.)]|[a-hA-H][.)])\s+")
_ARRAY_LIMIT = 1 << 20

_NEWLINE = re.compile(r"\n")
_SEMICOLON = re.compile(r";(?:\s{1,4}and(?=\s))?")
_COMMA = re.compile(r",(?:\s{1,4}and(?=\s))?")
_COMMA_AND = re.compile(r",(?:\s{1,4}and(?=\s))?|(?<=\s)and(?=\s)")
_AND = re.compile(r"(?<=\s)and(?=\s)")
_WAYS = (_NEWLINE, _SEMICOLON, _COMMA, _COMMA_AND, _AND)  # in order of preference


def extract(answer_text: str, answer_format: str) -> str:
    """The answer inside a reply, "" where there is none.

    `the answer is`: every `*` is deleted; the text after the last occurrence of exactly this string; whitespace,
    then dots, then whitespace stripped. `boxed`: the content of the balanced `\\boxed{...}` that starts last.
    Raises ConfigError for another format.
    """
    if answer_format == "the answer is":
        _, found, after = answer_text.replace("*", "").rpartition(_CUE)
        return after.strip().strip(".").strip() if found else ""
    if answer_format == "boxed":
        return _last_boxed(answer_text).strip()
    raise ConfigError(f"unknown answer format {answer_format!r}; known: {', '.join(ANSWER_FORMATS)}")


def split(extracted: str, count: int | None = None) -> tuple[str, ...]:
    """The values of an extracted answer; `count` is how many the question asks for (None: it does not say).

    One value asked: the whole text. Several: a JSON array; else the first of newlines, semicolons, commas, "and" that
    yields `count` values; else the way that comes nearest. Separators inside quotation marks and in numbers such as
    1,234 do not count; only where three values are asked, 100,200,300 without any space is three.
    """
    text = clean(extracted)
    if not text:
        return ()
    if count == 1:
        return (text,)
    array = _json_array(extracted)
    if array is not None:
        return array
    body = _unbracketed(extracted)
    chosen = _choose((_parts(body, separator) for separator in _WAYS), count)
    if count is not None and len(chosen) != count and not any(map(str.isspace, body)):
        tight = tuple(body.split(","))
        chosen = tight if len(tight) == count and all(map(str.isdigit, tight)) else chosen
    return chosen or (text,)


def clean(value: str) -> str:
    """`value` without surrounding whitespace, quotation marks, matching brackets, markdown and LaTeX text commands."""
    if "\\" in value:
        value = _LATEX.sub("", value)
    partner: dict[int, int] | None = None
    left, right = 0, len(value)
    while left < right:
        first, last = value[left], value[right - 1]
        if first.isspace() or first in _LEFT_NOISE:
            left += 1
        elif last.isspace() or last in _RIGHT_NOISE:
            right -= 1
        elif right - left > 1 and first == last and first in _SAME:
            left, right = left + 1, right - 1
        elif _PAIRS.get(first) == last:
            partner = _partners(value) if partner is None else partner
            if partner.get(left) != right - 1:
                break
            left, right = left + 1, right - 1
        else:
            break
    return value[left:right]


def _last_boxed(text: str) -> str:
    """One pass with a stack of open braces; of all closed `\\boxed{`, the one with the greatest start."""
    stack: list[tuple[bool, int]] = []
    best: tuple[int, int] | None = None
    for token in _BRACE.finditer(text):
        if token.group() != "}":
            stack.append((len(token.group()) > 1, token.end()))
        elif stack:
            boxed, start = stack.pop()
            if boxed and (best is None or start > best[0]):
                best = (start, token.start())
    return text[slice(*best)] if best else ""


def _partners(text: str) -> dict[int, int]:
    """For each opening bracket that is closed in order, where it closes."""
    stack: list[int] = []
    partner: dict[int, int] = {}
    for i, char in enumerate(text):
        if char in _PAIRS:
            stack.append(i)
        elif char in _CLOSERS and stack and _PAIRS[text[stack[-1]]] == char:
            partner[stack.pop()] = i
    return partner


def _json_array(text: str) -> tuple[str, ...] | None:
    """The scalars of a flat JSON array, numbers as they are spelled; None if the text is no such array."""
    text = _unfenced(text)
    if not (text.startswith("[") and text.endswith("]")) or len(text) > _ARRAY_LIMIT:
        return None
    try:
        items = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError):
        return None
    if not all(isinstance(item, str | bool | None) for item in items):
        return None
    values = (item if isinstance(item, str) else json.dumps(item) for item in items)
    return tuple(value for value in values if value.strip())


def _unfenced(text: str) -> str:
    """The inside of a markdown code block that holds the whole text."""
    text = text.strip()
    if not (text.startswith("```") and text.endswith("```") and len(text) > 6):
        return text
    return text[3:-3].strip().removeprefix("json").strip()


def _unbracketed(text: str) -> str:
    """The inside of brackets that surround the whole list; quotation marks stay, they may belong to single values."""
    text = _unfenced(text)
    partner = _partners(text)
    left, right = 0, len(text)
    while left < right and partner.get(left) == right - 1:
        left, right = left + 1, right - 1
    return text[left:right]


def _parts(text: str, separator: re.Pattern[str]) -> tuple[str, ...]:
    """The text between the separators that lie outside quotation marks and grouped numbers."""
    closed = sorted(match.span() for pattern in (_QUOTED, _THOUSANDS) for match in pattern.finditer(text))
    parts, begin, k = [], 0, 0
    for match in separator.finditer(text):
        while k < len(closed) and closed[k][1] <= match.start():
            k += 1
        if k < len(closed) and closed[k][0] <= match.start():
            continue
        parts.append(text[begin : match.start()])
        begin = match.end()
    parts = [part for part in (*parts, text[begin:]) if part.strip()]
    return tuple(value for value in map(clean, _without_enumerators(parts)) if value)


def _without_enumerators(parts: Sequence[str]) -> Sequence[str]:
    """Parts without list signs ("- ", "2. "), if every part has one: a single "3. 5" is no list."""
    signs = [_ENUMERATOR.match(part) for part in parts]
    if len(parts) < 2 or not all(signs):
        return parts
    return [part[sign.end() :] for part, sign in zip(parts, signs, strict=True) if sign]


def _choose(ways: Iterable[tuple[str, ...]], count: int | None) -> tuple[str, ...]:
    """The first way that yields `count` values (None: any number above one), else the nearest, else one value."""
    best: tuple[str, ...] = ()
    for way in ways:
        if len(way) > 1 and (count is None or len(way) == count):
            return way
        nearer = count is not None and abs(len(way) - count) < abs(len(best) - count)
        if len(best) < 2 or (len(way) > 1 and nearer):
            best = way
    return best
