"""JSON read by the standard library: the members along a pattern are walked, every value on the way is decoded.

The text must be one whole JSON value; a key that stands twice, NaN and Infinity are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Sequence
from importlib import import_module
from json.decoder import JSONDecodeError
from typing import Any

from .reading import KEYS, UNIT, Reading, Record, Scope, Step, Unit, digest_of, steps_of
from .values import Unreadable, number_of

_scan: Any = import_module("json.decoder").scanstring  # the library's own, not among its declared types
_BLANK = re.compile(r"[ \t\n\r]*")


def read_json(text: str, scope: Scope) -> Reading:
    """The records of a response; each is a unit of its own. Raises Unreadable."""
    if scope.unit or scope.shape != "objects":
        raise Unreadable("a response has no units with facts, and its records are objects")
    found: list[tuple[Any, int, int, list[str]]] = []
    start = _blank(text, text.startswith("\ufeff"))
    try:
        end = _Walk(text, found).value(start, steps_of(scope.pattern), [])
    except (JSONDecodeError, ValueError, StopIteration, IndexError, RecursionError) as error:
        raise Unreadable(f"it is no JSON: {_short(error)}") from None
    if _blank(text, end) != len(text):
        raise Unreadable(f"it is no JSON: something follows at character {end}")
    reading = Reading()
    for value, begin, stop, keys in found:
        canonical = json.dumps(value, sort_keys=True, default=str)
        reading.units.append(Unit({}, begin, stop, digest_of(canonical)))
        if isinstance(value, dict):
            record = {**value, UNIT: {}, KEYS: keys}
            reading.records.append(Record(record, begin, stop, len(reading.units) - 1))
    return reading


class _Walk:
    """Walks the members along the steps; what they lead to is kept with its place. The depth of recursion is that of
    the pattern."""

    def __init__(self, text: str, found: list[tuple[Any, int, int, list[str]]]) -> None:
        self._text, self._found = text, found
        self._decoder = json.JSONDecoder(
            parse_int=number_of, parse_float=number_of, parse_constant=_refuse, object_pairs_hook=_once
        )

    def value(self, at: int, steps: Sequence[Step], keys: list[str]) -> int:
        """Reads the value at a place; where it ends."""
        first = self._text[at : at + 1]
        if steps and first == "[" and not isinstance(steps[0], str):
            return self._members(at, steps, keys, self._elements(at))
        if steps and first == "{" and not isinstance(steps[0], int):
            return self._members(at, steps, keys, self._pairs(at))
        value, end = self._decoder.raw_decode(self._text, at)
        if not steps:
            self._found.append((value, at, end, keys))
        return end

    def _members(self, at: int, steps: Sequence[Step], keys: list[str], members: Generator[Any, int, int]) -> int:
        end = at
        try:
            name, place = next(members)
            while True:
                step = steps[0]
                more = [*keys, name] if step is None and isinstance(name, str) else keys
                if step is None or step == name:
                    end = self.value(place, steps[1:], more)
                else:
                    end = self._decoder.raw_decode(self._text, place)[1]
                name, place = members.send(end)
        except StopIteration as stop:
            return stop.value

    def _elements(self, at: int) -> Generator[Any, int, int]:
        """Number and place of each element; is sent where it ends."""
        at = _blank(self._text, at + 1)
        if self._text[at] == "]":
            return at + 1
        number = 0
        while True:
            at = _blank(self._text, (yield number, at))
            if self._text[at] == "]":
                return at + 1
            at = _blank(self._text, self._expected(at, ","))
            number += 1

    def _pairs(self, at: int) -> Generator[Any, int, int]:
        """Key and place of each member; is sent where it ends."""
        at, seen = _blank(self._text, at + 1), set[str]()
        if self._text[at] == "}":
            return at + 1
        while True:
            key, at = _scan(self._text, self._expected(at, '"'), True)
            if key in seen:
                raise ValueError(f"the key {key[:40]!r} stands twice")
            seen.add(key)
            at = self._expected(_blank(self._text, at), ":")
            at = _blank(self._text, (yield key, _blank(self._text, at)))
            if self._text[at] == "}":
                return at + 1
            at = _blank(self._text, self._expected(at, ","))

    def _expected(self, at: int, sign: str) -> int:
        if self._text[at] != sign:
            raise ValueError(f"{sign} is missing at character {at}")
        return at + 1


def _blank(text: str, at: int) -> int:
    space = _BLANK.match(text, at)
    assert space is not None
    return space.end()


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key stands twice in an object")
    return made


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:120] or "it ends too early"
