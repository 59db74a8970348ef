"""Which initialisers of JavaScript are accepted as units: static, and read alike by two independent readers.

Our reading comes from tree-sitter's tree, the other from JSON5. Nothing is executed.
"""

from __future__ import annotations

from typing import Any

from ..formats.javascript_tree import JavascriptDocument
from ..tree import Node
from .items import OPAQUE, Reading
from .javascript_values import read_initialiser
from .secrets import secret_in

MAX_CHARACTERS = 400_000
"""Length of an initialiser that the second reading is asked about; a longer one is refused."""


def accepted(document: JavascriptDocument, name: str, node: Node) -> tuple[Reading, str]:
    """The reading of an initialiser, and why it is refused ("" where it is accepted)."""
    reading = read_initialiser(document, name, node)
    start, end = reading.root.start, reading.root.end
    if reading.faults:
        return reading, f"it holds {reading.faults[0].reason}"
    if end - start > MAX_CHARACTERS:
        return reading, f"it is longer than {MAX_CHARACTERS:,} characters"
    if secret := secret_in(reading.value):
        return reading, f"it holds what looks like {secret}"
    return reading, _disagreement(document.text[start:end], reading.value)


def _disagreement(source: str, value: Any) -> str:
    import json5  # a slow, pure parser, needed only where JavaScript is built

    try:
        other = json5.loads(source, allow_duplicate_keys=False)
    except (ValueError, RecursionError):
        return "it is no JSON5"
    return "" if same(value, other) else "JSON5 reads another value"


def same(ours: Any, theirs: Any) -> bool:
    """Whether two readings give one value: types, keys in their order, numbers; an opaque number agrees with any."""
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
        elif a is OPAQUE:
            if isinstance(b, bool) or not isinstance(b, int | float):
                return False
        elif isinstance(a, bool) or isinstance(b, bool) or isinstance(a, str) or a is None:
            if type(a) is not type(b) or a != b:
                return False
        elif isinstance(b, int | float) and not isinstance(b, bool):
            if a != b:
                return False
        else:
            return False
    return True
