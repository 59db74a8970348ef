"""JavaScript read as JSON5: a small scanner cuts statements and finds places, the json5 library says what they mean.

Only `NAME = LITERAL` (with const, let, var, export), dotted names and `export default LITERAL` are read; a statement
stands under a comment that tells where it comes from. Nothing is executed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .reading import (
    KEYS,
    MOST_DEPTH,
    UNIT,
    Kept,
    Reading,
    Record,
    Scope,
    Tree,
    Unit,
    chosen,
    digest_of,
    records_at,
    steps_of,
)
from .values import OPAQUE, Unreadable, number_of

LONGEST = 250_000
"""Characters of an initialiser; a longer one is not read, because the library is slow."""
LONGEST_COMMENT = 2_000
"""Characters of a comment that tells an origin."""
_NAME = r"[A-Za-z_$][\w$]*"
_HEAD = re.compile(
    rf"(?:(?:export\s+)?(?:const|let|var)\s+({_NAME})|({_NAME}(?:\.{_NAME})*))\s*=\s*|export\s+default\s*"
)
_SKIP = re.compile(r"\s+|;")
_COMMENT = re.compile(r"//[^\n\r\u2028\u2029]*|/\*.*?\*/", re.DOTALL)
_TOKEN = re.compile(
    r"""(?P<blank>[\s\ufeff]+)|(?P<comment>//[^\n\r\u2028\u2029]*|/\*(?:[^*]|\*(?!/))*\*/)"""
    r"""|(?P<text>"(?:[^"\\\n\r]|\\(?:\r\n|[\s\S]))*"|'(?:[^'\\\n\r]|\\(?:\r\n|[\s\S]))*')"""
    r"""|(?P<sign>[{}\[\],:])|(?P<word>[+-]?\s*[\w$.][\w$.+-]*)"""
)
_ORIGIN = re.compile(r"//\s*(\S.*?)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)\s*\Z")
_DECIMAL = re.compile(r"([+-]?)\s*((?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\Z")


def read_javascript(text: str, scope: Scope) -> Reading:
    """The records of a file; a statement is a unit. Raises Unreadable."""
    reading, trees = Reading(), list[Tree]()
    file = scope.unit.get("file", "")
    for name, comment, start, literal, end in _statements(text):
        tree = _kept.tree(text[literal:end])
        trees.append(tree)
        origin = _origin(comment)
        place = origin[1] if origin else ""
        shown = " ".join(file.split())
        about = {"name": name, "file": file if shown and (" " + place).endswith(" " + shown) else place}
        reading.units.append(Unit(about, start, end, digest_of(text[start:end]), comment))
    steps = steps_of(scope.pattern)
    starts = [unit.end for unit in reading.units]
    for number in chosen(reading.units, scope):
        unit, tree = reading.units[number], trees[number]
        shift = starts[number] - tree.end
        for values, found, keys in records_at(tree, steps, scope.shape):
            record = {**values, UNIT: _facts(unit, scope), KEYS: keys}
            reading.records.append(Record(record, shift + found.start, shift + found.end, number))
    return reading


def origin_of(comment: str) -> tuple[str, str] | None:
    """Place and licence that a comment tells."""
    origin = _origin(comment)
    return (origin[1], origin[2]) if origin else None


def _origin(comment: str) -> re.Match[str] | None:
    return _ORIGIN.match(comment) if len(comment) <= LONGEST_COMMENT else None


def _facts(unit: Unit, scope: Scope) -> dict[str, str]:
    """The facts of a unit; the file is the last word of its place where no scope tells it apart from the source."""
    file = unit.about["file"]
    return {"name": unit.about["name"], "file": file if scope.unit or " " not in file else file.partition(" ")[2]}


def _statements(text: str) -> Iterator[tuple[str, str, int, int, int]]:
    """Name, comment, place, place of the literal and its end for each statement."""
    at, comment = 0, ""
    while at < len(text):
        if blank := _SKIP.match(text, at):
            at = blank.end()
        elif said := _COMMENT.match(text, at):
            comment, at = said[0], said.end()
        else:
            head = _HEAD.match(text, at)
            if head is None or text[head.end() : head.end() + 1] not in ("{", "["):
                raise Unreadable(f"no static initialiser stands at {text[at : at + 60]!r}")
            end = _scan(text, head.end()).end
            yield head[1] or head[2] or "export default", comment, at, head.end(), end
            at, comment = end, ""


def _scan(text: str, at: int) -> Tree:
    """Places of a literal and of all in it. `value` of what is no container is its source."""
    root: Tree | None = None
    stack: list[Tree] = []
    keys: list[str | None] = []
    while root is None or stack:
        token = _TOKEN.match(text, at)
        if token is None:
            raise Unreadable(f"no static value stands at {text[at : at + 40]!r}")
        kind, start, at = token.lastgroup, at, token.end()
        if kind in ("blank", "comment"):
            continue
        sign = token[0] if kind == "sign" else ""
        if sign in ("{", "["):
            if len(stack) >= MOST_DEPTH // 2:
                raise Unreadable(f"it is nested deeper than {MOST_DEPTH // 2}")
            tree = Tree(start, at, OPAQUE, {} if sign == "{" else [])
            if stack:
                _add(stack[-1], keys, tree)
            root = root or tree
            stack.append(tree)
            keys.append(None)
        elif sign in ("}", "]"):
            if isinstance(stack[-1].held, dict) != (sign == "}"):
                raise Unreadable("its brackets do not match")
            stack.pop().end = at
            keys.pop()
        elif not sign:
            _scalar(stack[-1], keys, Tree(start, at, token[0]))
    return root


def _scalar(around: Tree, keys: list[str | None], tree: Tree) -> None:
    if isinstance(around.held, dict) and keys[-1] is None:
        keys[-1] = f"{len(around.held)} {tree.value}"
    else:
        _add(around, keys, tree)


def _add(around: Tree, keys: list[str | None], tree: Tree) -> None:
    if isinstance(around.held, list):
        around.held.append(tree)
        return
    assert around.held is not None
    if keys[-1] is None:
        raise Unreadable("a value stands without a key")
    around.held[keys[-1]] = tree
    keys[-1] = None


def _read(text: str) -> Tree:
    """The tree of a literal, with the values that json5 gives. Raises Unreadable."""
    import json5

    if len(text) > LONGEST:
        raise Unreadable(f"an initialiser is longer than {LONGEST:,} characters")
    places = _scan(text, 0)
    try:
        value = json5.loads(
            text, allow_duplicate_keys=False, parse_int=_number, parse_float=_number, parse_constant=_number
        )
    except (ValueError, RecursionError, TypeError) as error:
        raise Unreadable(f"it is no JSON5: {' '.join(str(error).split())[:120]}") from None
    walk = [(places, value)]
    while walk:
        tree, means = walk.pop()
        if isinstance(means, dict) and isinstance(tree.held, dict) and len(means) == len(tree.held):
            walk += zip(tree.held.values(), means.values(), strict=True)
            tree.held = dict(zip(means, tree.held.values(), strict=True))
        elif isinstance(means, list) and isinstance(tree.held, list) and len(means) == len(tree.held):
            walk += zip(tree.held, means, strict=True)
        elif tree.held is None and not isinstance(means, dict | list):
            tree.value = _meaning(means, tree.value)
        else:
            raise Unreadable("JSON5 finds other members in it than its brackets and commas show")
    return places


def _number(*_: Any, **__: Any) -> Any:
    return OPAQUE


def _meaning(means: Any, source: str) -> Any:
    """The value of a scalar: numbers by their own spelling."""
    if means is not OPAQUE:
        return means
    decimal = _DECIMAL.match(source)
    return number_of(decimal[1] + decimal[2]) if decimal else OPAQUE


_kept = Kept(6_000_000, _read)
