"""What a question must say and must not: order, ties and values only; no answer, key, path, index or place.

Names and values by which a specification tells records apart must stand in the question as they are, in its order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .execution import Spec, is_lookup
from .reading import UNIT
from .values import spelling

_PATH = re.compile(r"\$[.\[]|\[\d+\]|\w\[\"|(?<!\w)//?\w+\[\d|->|\b(?:json|x) ?path\b", re.IGNORECASE)
_PLACE = re.compile(
    r"\b(?:first|second|third|fourth|fifth|last|\d+(?:st|nd|rd|th))\s+(?:record|entry|item|element|object|row|line)\b"
    r"|\b(?:index|position|offset|line|row|record|entry|item|element)\s+(?:no\.?|number|#)?\s*\d+\b",
    re.IGNORECASE,
)
_ODD = re.compile(r"[a-z0-9]+[A-Z]\w*|\w*[a-z0-9]_+\w+|_\w+|\$\w+|@\w+")
_SAYS: Mapping[str, re.Pattern[str]] = {
    "asks for the values only": re.compile(r"\b(?:only|just|nothing but)\b", re.I),
    "says that order matters": re.compile(r"\b(?:order|sequence|respectively)\b", re.I),
    "mentions ties": re.compile(r"\b(?:ties?|tied|equally)\b", re.I),
    "states its scope": re.compile(r"\b(?:all|every|whole|complete|entire|total|across|throughout|together)\b", re.I),
    "asks how many": re.compile(r"\bhow many\b|\bnumber of\b|\bcount\b", re.I),
    "asks for the most frequent": re.compile(r"\b(?:most|oftenest)\b", re.I),
    "max": re.compile(r"\b(?:highest|greatest|largest|maximum|biggest|most)\b", re.I),
    "min": re.compile(r"\b(?:lowest|smallest|least|minimum|fewest)\b", re.I),
    ">": re.compile(r"\b(?:above|greater|exceeds?|more|over|higher|larger)\b", re.I),
    "<": re.compile(r"\b(?:below|less|lower|under|fewer|smaller)\b", re.I),
}
_LIST = re.compile(r'in the (?:table|list) "([^"]*)"')


def faults(question: str, spec: Spec, answers: Sequence[str], keys: Sequence[str]) -> list[str]:
    """What is wrong with the question. `keys` are names of the context that are no words for people."""
    rest = _without_names(question, spec)
    return [*_missing(question, rest, spec), *_revealed(question, rest, spec, answers, keys)]


def label_of(question: str) -> str:
    """How the question describes the list, "" if it does not."""
    found = _LIST.search(question)
    return found[1] if found else ""


def odd_words(question: str, spec: Spec) -> list[str]:
    """Words of the question that look like keys of programs, names of records left out."""
    return _ODD.findall(_without_names(question, spec))


def _missing(question: str, rest: str, spec: Spec) -> list[str]:
    tests = [*spec.get("conditions", ())]
    says = ["asks for the values only"]
    if spec.get("ordered"):
        says.append("says that order matters")
    if not is_lookup(spec):
        says += [test["op"] for test in tests if test["op"] in _SAYS]
        says += {
            "most_frequent": ["mentions ties", "asks for the most frequent"],
            "conditional_count": ["asks how many"],
        }.get(spec["task"], [spec.get("extreme", "max")])
        if not spec["scope"]["unit"]:
            says.append("states its scope")
    problems = [f"the question never {_told(name)}" for name in says if not _SAYS[name].search(rest)]
    at = 0
    for selector in spec.get("selectors", ()):
        for test in selector:
            place = _found(question, test["value"], at)
            if place < 0:
                behind = "in the order of the specification" if _found(question, test["value"], 0) >= 0 else "at all"
                problems.append(f"the question does not name {spelling(test['value'])!r} {behind}")
            at = max(at, place)
    for value in [*(test["value"] for test in tests), *spec["scope"]["unit"].values()]:
        if _found(question, value, 0) < 0:
            problems.append(f"the question does not say {spelling(value)!r}")
    return problems


def _told(name: str) -> str:
    return {"max": "says highest", "min": "says lowest", ">": "says above", "<": "says below"}.get(name, name)


def _spellings(value: Any) -> list[str]:
    """How a question may spell a value: with commas between groups of digits, with single quotes inside double ones."""
    said = spelling(value) or ""
    grouped = [f"{value:,}"] if isinstance(value, int | float) and not isinstance(value, bool) else []
    return [said, said.replace('"', "'"), *grouped]


def _found(question: str, value: Any, start: int) -> int:
    """Where the value ends in the question, -1 where it does not stand there."""
    for said in _spellings(value):
        found = re.compile(rf"(?<!\w){re.escape(said)}(?!\w)").search(question, start) if said else None
        if found:
            return found.end()
    return -1


def _without_names(question: str, spec: Spec) -> str:
    """The question without the values that name records, units and lists."""
    tests = [*spec.get("conditions", ()), *(test for selector in spec.get("selectors", ()) for test in selector)]
    values = [*(test["value"] for test in tests), *spec["scope"]["unit"].values(), label_of(question)]
    said = {text for value in values for text in _spellings(value) if text}
    for text in sorted(said, key=len, reverse=True):
        question = re.sub(rf"(?<!\w){re.escape(text)}(?!\w)", "…", question)
    return question


def _paths(spec: Spec) -> list[Sequence[str]]:
    """The fields that the specification means."""
    tests = [*spec.get("conditions", ()), *(test for selector in spec.get("selectors", ()) for test in selector)]
    asked = [*spec.get("fields", ()), *(spec[key] for key in ("measure", "group") if key in spec)]
    return [*asked, *(test["field"] for test in tests)]


def _bare(text: str) -> str:
    """Its letters and digits: the field addressLine1 is called address line 1, which is no place."""
    return re.sub(r"[\W_]+", "", text).casefold()


def _revealed(question: str, rest: str, spec: Spec, answers: Sequence[str], keys: Sequence[str]) -> list[str]:
    problems = [f"the question names the key {key}" for key in keys[:1]]
    names = {_bare(step) for path in _paths(spec) for step in path}
    places = [hit[0] for hit in _PLACE.finditer(rest) if not any(_bare(hit[0]) in name for name in names)]
    for hit in (*(hit[0] for hit in _PATH.finditer(rest)), *places):
        problems.append(f"the question gives a path or place: {hit}")
    for path in [*spec.get("fields", ()), *(spec[key] for key in ("measure", "group") if key in spec)]:
        if len(path) > 1 and path[0] != UNIT and re.search(rf"(?<!\w){re.escape('.'.join(path))}(?!\w)", rest):
            problems.append(f"the question gives a path: {'.'.join(path)}")
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", question).casefold()
    for answer in answers:
        said = re.sub(r"(?<=\d),(?=\d{3})", "", answer).casefold()
        if re.search(rf"(?<![\w.]){re.escape(said)}(?!\w)", plain):
            problems.append(f"the question reveals the answer {answer}")
    return problems
