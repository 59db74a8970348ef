"""The independent check of a benchmark: nothing is taken from how it was made.

Each context is parsed again, the records are read from its text, and the stored specification is executed by the code
below, which shares none with the tasks. Checked: answer, uniqueness of every named record and extremum, length under
every tokenizer, position of the support, what the question reveals, identity, licence and source; over the whole
benchmark: no record in two splits, one question and answer for a lookup at all lengths.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ..errors import InputError
from .contexts import LEAST_SHARE
from .contexts import Counter as TokenCounter
from .formats import parse
from .rollout import Example, Reference
from .tree import Document, Node

_KEY = re.compile(r'"([^"\\]+)"\s*:')
_PATH_SIGNS = re.compile(r"\$[.\[]|\[\d+\]|\w\.\w+\[|->|\bJSON ?path\b", re.IGNORECASE)
_PLACES = re.compile(
    r"\b(?:first|second|third|fourth|fifth|last|\d+(?:st|nd|rd|th))\s+(?:record|entry|item|element|object|row|line)"
    r"|\b(?:index|position|offset|line|row|record|entry|item|element)\s+(?:no\.?|number|#)?\s*\d",
    re.IGNORECASE,
)
_PLAIN_KEY = re.compile(r"[a-z]{4,}\Z")
_LOOKUPS = re.compile(r"_fields?$|_records$")


@dataclass(frozen=True)
class _Found:
    records: list[Any]
    spans: list[tuple[int, int]]


class Validator:
    """Checks rows one after another; remembers hashes only, so that any number of rows fits."""

    def __init__(self, tokenizers: Sequence[TokenCounter]) -> None:
        self._tokenizers = tokenizers
        self._split_of: dict[bytes, str] = {}
        self._ids: set[str] = set()
        self._lookups: dict[str, tuple[Any, ...]] = {}

    def check(self, split: str, row: Mapping[str, Any]) -> list[str]:
        """What is wrong with the row, in words; empty if nothing."""
        try:
            document = parse(row["context"], row["format"])
            spec = json.loads(row["spec"])
            if row["format"] != "json":
                return [*self._length(row), *_form(row), *self._identity(row)]
            found = _records(document, spec["scope"]["list"])
        except InputError as error:
            return [f"the context cannot be read: {error}"]
        return [
            *self._length(row),
            *_answer(row, spec, found),
            *_question(row, document),
            *_form(row),
            *self._identity(row),
            *self._leaks(split, row, found),
        ]

    def _length(self, row: Mapping[str, Any]) -> list[str]:
        counts = {tokenizer.name: tokenizer.count(row["context"]) for tokenizer in self._tokenizers}
        low, high = LEAST_SHARE * row["length"], row["length"]
        return [
            f"{count} tokens under {name}, not {low:.0f} to {high}"
            for name, count in counts.items()
            if not low <= count <= high
        ]

    def _identity(self, row: Mapping[str, Any]) -> list[str]:
        problems = []
        if row["id"] in self._ids:
            problems.append("the same example is there twice")
        self._ids.add(row["id"])
        if row["id"] != _key(row):
            problems.append("the id is not that of the example")
        if _LOOKUPS.search(row["task"]):
            same = (row["question"], tuple(row["answers"]), row["spec"])
            if self._lookups.setdefault(row["base_id"], same) != same:
                problems.append(f"{row['base_id']} asks another question at another length")
        return problems

    def _leaks(self, split: str, row: Mapping[str, Any], found: _Found) -> list[str]:
        """Records seen in another split; one is named."""
        for record in found.records:
            name = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).digest()[:12]
            other = self._split_of.setdefault(name, split)
            if other != split:
                return [f"a record of it is also in the split {other}: {json.dumps(record)[:80]}"]
        return []


def _answer(row: Mapping[str, Any], spec: Mapping[str, Any], found: _Found) -> list[str]:
    """Executes the specification; compares answers and the places of the support."""
    values, supports, problems = _execute(spec, found.records)
    if problems:
        return problems
    expected = [value if isinstance(value, str) else json.dumps(value) for value in values]
    if expected != list(row["answers"]):
        problems.append(f"the answer is {expected}, not {row['answers']}")
    if row["count"] != (None if spec["task"] == "most_frequent" else len(expected)):
        problems.append(f"{row['count']} values are asked for, {len(expected)} answer")
    places = [sum(found.spans[i]) / 2 / len(row["context"]) for i in supports]
    if len(places) != len(row["support"]) or any(
        abs(a - b) > 0.001 for a, b in zip(places, row["support"], strict=True)
    ):
        problems.append(f"the support lies at {[round(place, 4) for place in places]}, not {row['support']}")
    return problems


def _execute(spec: Mapping[str, Any], rows: Sequence[Any]) -> tuple[list[Any], list[int], list[str]]:
    """Values, places of the supporting records in the list, and why there is no one answer."""
    if "selectors" in spec:
        chosen = []
        for selector in spec["selectors"]:
            hits = [i for i, row in enumerate(rows) if all(_passes(test, row) for test in selector)]
            if len(hits) != 1:
                return [], [], [f"{len(hits)} records are {_words(selector)}, not one"]
            chosen += hits
        values = [_get(rows[i], field) for i in chosen for field in spec["fields"]]
        missing = any(value is None or isinstance(value, list | dict) for value in values)
        return values, chosen, ["a record has no such single value"] if missing else []
    inside = [i for i, row in enumerate(rows) if all(_passes(test, row) for test in spec.get("conditions", ()))]
    if spec["task"] == "conditional_count":
        return [len(inside)], inside, [] if inside else ["nothing is counted"]
    if spec["task"] == "numerical_extremum":
        return _extremum(spec, rows, inside)
    if spec["task"] == "most_frequent":
        return _frequent(spec, rows, inside)
    return [], [], [f"unknown task {spec['task']}"]


def _frequent(
    spec: Mapping[str, Any], rows: Sequence[Any], inside: Sequence[int]
) -> tuple[list[Any], list[int], list[str]]:
    """The values that occur most often, by where they first occur."""
    values = {i: value for i in inside if (value := _get(rows[i], spec["group"])) not in (None, "")}
    counts = Counter(values.values())
    top = max(counts.values(), default=0)
    if top < 2:
        return [], [], ["no value occurs twice"]
    leaders = [value for value, times in counts.items() if times == top]
    return leaders, [i for i, value in values.items() if counts[value] == top], []


def _records(document: Document, pattern: str) -> _Found:
    """The elements of the list that a pattern `$.a.b.*` means."""
    node: Node = document.root
    for step in pattern.removeprefix("$").split(".")[1:-1]:
        node = next((c for c in document.children(node) if document.step(c) == f".{step}"), node)
    children = document.children(node)
    if node.kind != "array":
        raise InputError(f"{pattern} is not a list")
    values = [json.loads(document.text[child.content : child.end]) for child in children]
    return _Found(values, [(child.content, child.end) for child in children])


def _extremum(
    spec: Mapping[str, Any], rows: Sequence[Any], inside: Sequence[int]
) -> tuple[list[Any], list[int], list[str]]:
    """The one record with the extreme value; the next value must lie beyond the tolerance of the score."""
    sign = 1 if spec["extreme"] == "max" else -1
    measured = [
        (sign * Decimal(str(value)), i) for i in inside if (value := _get(rows[i], spec["measure"])) is not None
    ]
    ranked = sorted(measured, reverse=True)
    if not ranked:
        return [], [], ["no record in the scope has the measure"]
    best, winner = ranked[0]
    if len(ranked) > 1 and best - ranked[1][0] <= max(Decimal("0.01"), abs(best) / 1000):
        return [], [], [f"the extremum is not unique: {best} and {ranked[1][0]}"]
    return [_get(rows[winner], field) for field in spec["fields"]], [winner], []


def _get(row: Any, path: Sequence[str]) -> Any:
    for key in path:
        row = row.get(key) if isinstance(row, dict) else None
    return row


_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda found, value: found == value and type(found) is type(value),
    ">": lambda found, value: isinstance(found, int | float) and found > value,
    "<": lambda found, value: isinstance(found, int | float) and found < value,
    "contains": lambda found, value: isinstance(found, list) and found.count(value) > 0,
}


def _passes(test: Mapping[str, Any], row: Any) -> bool:
    return _TESTS[test["op"]](_get(row, test["field"]), test["value"])


def _words(selector: Sequence[Mapping[str, Any]]) -> str:
    return " and ".join(f"{'.'.join(test['field'])} {test['op']} {test['value']!r}" for test in selector)


def _question(row: Mapping[str, Any], document: Document) -> list[str]:
    """What the question must not say: a key that is no plain word, a path or place, an answer."""
    question, problems = row["question"], []
    words = set(re.findall(r"[\w$-]+", question))
    keys = {key for key in _KEY.findall(document.text) if key in words and not _PLAIN_KEY.match(key)}
    if keys:
        problems.append(f"the question names the key {min(keys)}")
    for pattern in (_PATH_SIGNS, _PLACES):
        if hit := pattern.search(question):
            problems.append(f"the question gives a path or place: {hit.group()}")
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", question).casefold()
    for answer in row["answers"]:
        if re.search(rf"(?<![\w.]){re.escape(answer.casefold())}(?!\w)", plain):
            problems.append(f"the question reveals the answer {answer}")
    return problems


def _form(row: Mapping[str, Any]) -> list[str]:
    problems = [
        f"{column} is empty" for column in ("source", "license", "question", "answers", "support") if not row[column]
    ]
    if any(not 0 <= place <= 1 for place in row["support"]):
        problems.append("a support lies outside the context")
    if row["answer_kind"] not in ("text", "number"):
        problems.append(f"unknown answer kind {row['answer_kind']}")
    return problems


def _key(row: Mapping[str, Any]) -> str:
    reference = Reference(tuple(row["answers"]), row["answer_kind"], row["ordered"], row["count"])
    named = {name: row[name] for name in ("context", "format", "question", "task", "length", "base_id", "spec")}
    return Example(reference=reference, **named).key
