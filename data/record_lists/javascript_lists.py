"""Which statements of JavaScript are accepted as units: one static initialiser, read alike by two independent readers.

Our reading comes from tree-sitter's tree, the other from JSON5. Nothing is executed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..formats.javascript_tree import JavascriptDocument
from ..tree import Node
from .items import OPAQUE, Reading
from .javascript_values import initialisers, read_initialiser
from .secret_strings import secret_in

MAX_CHARACTERS = 200_000
"""Length of an initialiser that the second reading is asked about; a longer one is refused."""
_NAME = r"[A-Za-z_$][\w$]*"
_OPENING = re.compile(
    rf"(?:(?:export\s+)?(?:const|let|var)\s+({_NAME})\s*=|({_NAME}(?:\.{_NAME})*)\s*=|export\s+default)\s*\Z"
)
_CLOSING = re.compile(r"\s*;?\s*\Z")


@dataclass(frozen=True)
class Statement:
    """A statement that holds one initialiser: its text, the name of what is initialised, the line (from 1) where it
    begins; the value, and why it is refused ("" where it is accepted)."""

    text: str
    name: str
    line: int
    reading: Reading
    refused: str


def accepted(document: JavascriptDocument, name: str, node: Node) -> tuple[Reading, str]:
    """The reading of an initialiser, and why it is refused ("" where it is accepted)."""
    reading = read_initialiser(document, name, node)
    return reading, _refused(document.text[reading.root.start : reading.root.end], reading)


def statements(document: JavascriptDocument) -> Iterator[Statement]:
    """The statements of a file that initialise something with an object or array, accepted and refused ones. A text
    that is just a literal has none."""
    text, line, at = document.text, 1, 0
    for label, node in initialisers(document):
        if not label:
            return
        reading, refused = accepted(document, label, node)
        start, end = reading.root.start, reading.root.end
        before = document.frame(node)[0].rstrip("{[")
        lead = start - len(before)
        opening = _OPENING.match(before)
        stop = node.end if _CLOSING.match(text[end : node.end]) else end
        name = next(filter(None, opening.groups()), "export default") if opening else label
        if opening is None or stop != node.end:
            refused = refused or "more than the initialiser is in its statement"
        line, at = line + text.count("\n", at, lead), lead
        yield Statement(text[lead:stop].strip(), name, line, reading, refused)


def _refused(source: str, reading: Reading) -> str:
    if reading.faults:
        return f"it holds {reading.faults[0].reason}"
    if len(source) > MAX_CHARACTERS:
        return f"it is longer than {MAX_CHARACTERS:,} characters"
    if secret := secret_in(reading.value):
        return f"it holds what looks like {secret}"
    return _disagreement(source, reading.value)


def _disagreement(source: str, value: Any) -> str:
    import json5  # a slow, pure parser, needed only where JavaScript is built

    try:
        other = json5.loads(source, allow_duplicate_keys=False)
    except (ValueError, RecursionError):
        return "it is no JSON5"
    return "" if same(value, other) else "JSON5 reads another value"


def same(ours: Any, theirs: Any) -> bool:
    """Whether two readings give one value: types, keys in their order, numbers. What has no value in ours must be a
    number in the other."""
    walk = [(ours, theirs)]
    while walk:
        a, b = walk.pop()
        if isinstance(a, dict) and isinstance(b, dict):
            if list(a) != list(b):
                return False
            walk.extend((a[key], b[key]) for key in a)
        elif isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return False
            walk.extend(zip(a, b, strict=True))
        elif not _same_scalar(a, b):
            return False
    return True


def _same_scalar(a: Any, b: Any) -> bool:
    number = isinstance(b, int | float) and not isinstance(b, bool)
    if a is OPAQUE:
        return number
    if isinstance(a, int | float) and not isinstance(a, bool):
        return number and a == b
    return type(a) is type(b) and a == b
