"""One example examined by itself: everything that can be told without the others.

The context is read again, the specification executed, the question weighed. Whatever a context or a specification
holds, the outcome is a `Finding`; what is hostile or torn is a problem told in words.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from . import wording
from .execution import Answer, Spec, execute, form, is_lookup
from .html_reading import read_html, text_between
from .javascript_reading import origin_of, read_javascript
from .json_reading import read_json
from .reading import Reading, Scope, digest_of
from .values import Unreadable, amount, folded
from .yaml_reading import read_yaml, stated_license

FULL = 0.9
"""The share of its length that a context must fill."""
MOST_PER_TOKEN = 200
"""Characters that a token may stand for on the average; a context beyond is not read."""
LONGEST_QUESTION = 10_000
"""Characters of a question; a longer one is not weighed."""
NEAR = 0.0002
"""By how much the place of a support may be rounded."""
COLUMNS: Mapping[str, type | tuple[type, ...]] = {
    "id": str,
    "base_id": str,
    "task": str,
    "format": str,
    "length": int,
    "context": str,
    "question": str,
    "answers": list,
    "answer_kind": str,
    "ordered": bool,
    "count": (int, type(None)),
    "spec": str,
    "source": str,
    "license": str,
    "sources": list,
    "support": list,
}
_BREAKS = re.compile(r"[;|\n\r]|,(?!\d{3}(?!\d))|(?:^|\s)and(?:\s|$)", re.IGNORECASE)
_READERS: Mapping[str, Callable[[str, Scope], Reading]] = {
    "json": read_json,
    "html": read_html,
    "yaml": read_yaml,
    "javascript": read_javascript,
}
Row = Mapping[str, Any]


class Counter(Protocol):
    """What counts tokens."""

    @property
    def name(self) -> str: ...

    def count(self, text: str) -> int: ...


@dataclass
class Finding:
    """What is wrong with an example, and what the others must be compared with: identities of its units and supports,
    of what a base keeps at every length, and where its supports lie."""

    problems: list[str] = field(default_factory=list)
    id: str = ""
    base_id: str = ""
    task: str = ""
    length: int = 0
    format: str = ""
    units: tuple[bytes, ...] = ()
    supports: tuple[bytes, ...] = ()
    kept: bytes = b""
    places: tuple[float, ...] = ()
    credits: frozenset[tuple[str, str]] = frozenset()


def examine(row: Row, tokenizers: Sequence[Counter]) -> Finding:
    """What can be told of one example."""
    wrong = [name for name, kind in COLUMNS.items() if not isinstance(row.get(name), kind)]
    for name, kind in (("answers", str), ("sources", str), ("support", float)) if not wrong else ():
        wrong += [name] if not all(isinstance(item, kind) for item in row[name]) else []
    if wrong:
        return Finding([f"the column {wrong[0]} is missing or of another kind"], task=str(row.get("task")))
    found = Finding([], row["id"], row["base_id"], row["task"], row["length"], row["format"])
    found.credits = frozenset((source, license) for source, license, _ in map(_credit, row["sources"]))
    found.problems = [*_form(row), *_length(row, tokenizers)]
    if row["id"] != identity(row):
        found.problems.append("the id is not that of the example")
    if len(row["question"]) > LONGEST_QUESTION:
        found.problems.append(f"the question is longer than {LONGEST_QUESTION:,} characters")
        return found
    if len(row["context"]) > MOST_PER_TOKEN * max(1, row["length"]):
        return found
    try:
        _read(found, row)
    except Unreadable as error:
        found.problems.append(f"the context cannot be read: {error}")
    except ImportError:
        raise
    except Exception as error:  # whatever a hostile row does to a reader is a problem of the row, told as such
        found.problems.append(f"the example cannot be checked: {type(error).__name__}: {str(error)[:120]}")
    return found


def identity(row: Row) -> str:
    """The id that belongs to an example: a hash of all that is asked and answered."""
    reference = {"values": row["answers"], "kind": row["answer_kind"], "ordered": row["ordered"], "count": row["count"]}
    names = ("context", "format", "question", "task", "length", "base_id", "spec")
    whole = {name: row[name] for name in names} | {"reference": reference}
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:16]


def _form(row: Row) -> list[str]:
    """Columns that are empty or contradict each other."""
    texts = ("base_id", "source", "license", "question", "answers", "support", "sources")
    problems = [f"{column} is empty" for column in texts if not row[column]]
    if row["answer_kind"] not in ("text", "number"):
        problems.append(f"unknown answer kind {row['answer_kind']}")
    elif row["answer_kind"] == "number" and any(amount(_plain(answer)) is None for answer in row["answers"]):
        problems.append("an answer is no number")
    if row["length"] <= 0:
        problems.append("the length is no number of tokens")
    return [*problems, *_licenses(row)]


def _plain(answer: str) -> Any:
    try:
        return float(answer)
    except ValueError:
        return answer


def _credit(line: str) -> tuple[str, str, str]:
    parts = line.split(" | ", 2)
    return (parts[0].strip(), parts[1].strip(), parts[2].strip()) if len(parts) == 3 else ("", "", "")


def _licenses(row: Row) -> list[str]:
    """Whether every part has a source, a licence and a place, and the licences are those of the example."""
    credits = [_credit(line) for line in row["sources"]]
    if any(not all(credit) for credit in credits):
        return ["a part of the context has no source, licence or location"]
    stated = ", ".join(sorted({license for _, license, _ in credits}))
    return [] if stated == row["license"] else [f"the licence is {row['license']}, those of the parts {stated}"]


def _length(row: Row, tokenizers: Sequence[Counter]) -> list[str]:
    low, high = FULL * row["length"], row["length"]
    if len(row["context"]) > MOST_PER_TOKEN * max(1, high):
        return [f"{len(row['context']):,} characters are no {high:,} tokens under any tokenizer"]
    counts = {tokenizer.name: tokenizer.count(row["context"]) for tokenizer in tokenizers}
    return [
        f"{count} tokens under {name}, not {low:.0f} to {high}"
        for name, count in counts.items()
        if not low <= count <= high
    ]


def _read(found: Finding, row: Row) -> None:
    """Reads the context and compares what it says with what the row says."""
    spec = json.loads(row["spec"])
    problems = form(spec)
    if problems or row["format"] not in _READERS:
        found.problems += problems or [f"unknown format {row['format']}"]
        return
    if spec["task"] != row["task"] or json.dumps(spec, sort_keys=True) != row["spec"]:
        found.problems.append("the specification is of another task, or not canonical")
    reading = _READERS[row["format"]](row["context"], Scope.of(spec.get("scope")))
    answer = execute(spec, reading.records)
    found.units = tuple(unit.digest for unit in reading.units)
    chosen = [reading.records[i] for i in answer.supports]
    found.supports = tuple(_digest(record.value) for record in chosen) if is_lookup(spec) else ()
    kept = [row["question"], row["spec"], row["format"], row["task"], row["source"]]
    if is_lookup(spec):
        kept += [row["answers"], [support.hex() for support in found.supports]]
    found.kept = digest_of(json.dumps(kept))
    found.places = tuple(row["support"])
    found.problems += answer.problems or [*_answer(row, spec, answer), *_places(row, reading, answer)]
    found.problems += _question(row, spec, reading)
    found.problems += _origins(row, reading)


def _digest(value: Any) -> bytes:
    return digest_of(json.dumps(value, sort_keys=True, default=str))


def _answer(row: Row, spec: Spec, answer: Answer) -> list[str]:
    """Whether values, their number, order and kind are those of the specification."""
    problems = []
    ties = spec["task"] == "most_frequent"
    if (sorted(answer.values) if ties else answer.values) != (sorted(row["answers"]) if ties else row["answers"]):
        problems.append(f"the answer is {answer.values}, not {row['answers']}")
    asked = None if ties else len(answer.values)
    if asked != 1 and any(_BREAKS.search(value) for value in answer.values):
        problems.append("a value could be taken for several")
    if row["count"] != asked:
        problems.append(f"{row['count']} values are asked for, {asked} answer")
    if row["ordered"] != bool(spec.get("ordered")) or row["answer_kind"] != spec.get("answer_kind"):
        problems.append("order or kind of the answer are not those of the specification")
    return problems


def _places(row: Row, reading: Reading, answer: Answer) -> list[str]:
    """Whether the supports lie where the supporting records stand."""
    whole = len(row["context"])
    told = row["support"]
    if len(told) != len(answer.supports):
        return [f"{len(told)} supports are told, {len(answer.supports)} records support the answer"]
    for place, index in zip(told, answer.supports, strict=True):
        record = reading.records[index]
        low, high = record.start / whole - NEAR, record.end / whole + NEAR
        if not isinstance(place, float) or not low <= place <= high:
            return [f"a support lies between {low:.4f} and {high:.4f}, not at {place}"]
    return []


def _question(row: Row, spec: Spec, reading: Reading) -> list[str]:
    odd = wording.odd_words(row["question"], spec)
    keys = [word for word in odd if _is_key(word, row["context"], row["format"])]
    problems = wording.faults(row["question"], spec, row["answers"], keys)
    label = wording.label_of(row["question"])
    if label and spec["scope"]["unit"] and row["format"] == "html":
        unit = next(reading.units[record.unit] for record in reading.records[:1])
        seen = folded(text_between(row["context"][unit.start : unit.end]))
        if folded(label) not in seen and folded(label) not in seen.replace('"', "'"):
            problems.append(f"nothing in its unit is described as {label}")
    return problems


def _is_key(word: str, context: str, format: str) -> bool:
    """Whether the word is a key of the context, or, in HTML, one of its classes or identifiers."""
    if format == "html":
        return re.search(rf"\b(?:class|id)\s*=\s*[\"'](?:[^\"'<>]*\s)?{re.escape(word)}[\s\"']", context) is not None
    return re.search(rf"(?<![\w$]){re.escape(word)}[\"']?\s*:", context) is not None


def _origins(row: Row, reading: Reading) -> list[str]:
    """Whether the origin that a unit tells of itself is among the sources of the example."""
    credits = [_credit(line) for line in row["sources"]]
    if len(credits) > max(1, len(reading.units)) or len(set(credits)) < len(credits):
        return ["the sources are more than the parts of the context, or one is there twice"]
    if row["format"] == "html" and len(credits) < len(reading.units):
        return [f"{len(reading.units)} pages have {len(credits)} sources"]
    if row["format"] == "javascript":
        for unit in reading.units:
            said = origin_of(unit.said)
            if said is None:
                return ["a statement stands without a comment that tells source and licence"]
            if not any(_is_origin(said, credit) for credit in credits):
                return [f"the source and licence of a statement are not told: {unit.said}"]
    if row["format"] == "yaml" and not row["source"].startswith("own"):
        stated = " ".join(license for _, license, _ in credits)
        for unit in reading.units:
            license = stated_license(row["context"][unit.start : unit.end])
            if license and license not in stated:
                return [f"the licence of a document is not told: {license}"]
    return []


def _is_origin(said: tuple[str, str], credit: tuple[str, str, str]) -> bool:
    place, license = said
    source, theirs, location = (" ".join(part.split()) for part in credit)
    file = place.removeprefix(source).strip()
    return license == theirs and place.startswith(source) and bool(file) and file in location
