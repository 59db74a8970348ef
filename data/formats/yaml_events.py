"""The events of a YAML stream as arrays: what libyaml read, and where.

PyYAML hands over one object an event; they are taken in small batches, so that only a kind and two offsets of each
stay. No node is composed, no alias followed, no constructor run.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NoReturn

import numpy as np
import yaml
from numpy.typing import NDArray
from yaml import events as ev
from yaml.cyaml import CParser  # pyright: ignore[reportAttributeAccessIssue]  # the stubs lack it

from ...errors import LimitError, ParseError
from ..tree import Offsets

SCALAR, ALIAS, MAPPING, SEQUENCE, CLOSE, DOCUMENT, DOCUMENT_END, STREAM = range(1, 9)
NESTING = 1_000  # levels that libyaml reads; not ours to change
_KINDS: dict[type, int] = {
    ev.ScalarEvent: SCALAR,
    ev.AliasEvent: ALIAS,
    ev.MappingStartEvent: MAPPING,
    ev.SequenceStartEvent: SEQUENCE,
    ev.MappingEndEvent: CLOSE,
    ev.SequenceEndEvent: CLOSE,
    ev.DocumentStartEvent: DOCUMENT,
    ev.DocumentEndEvent: DOCUMENT_END,
    ev.StreamStartEvent: STREAM,
    ev.StreamEndEvent: STREAM,
}
_BATCH = 128  # larger batches outlive the youngest generation and cost twice the time
_SURROGATES = re.compile(r"(?<!\\)((?:\\\\)*)\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_UNREADABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Events:
    """One entry an event, in order: its kind and where it starts and ends, in characters of the text."""

    kinds: NDArray[np.uint8]
    starts: Offsets
    ends: Offsets


def read_events(text: str, start: int) -> Events:
    """The events of `text[start:]`. Raises ParseError with line and column, LimitError for nesting beyond libyaml's
    limit."""
    kinds, starts, ends = array("B"), array("q"), array("q")
    try:
        source = iter(_parser(text[start:] if start else text).get_event, None)
        while batch := list(islice(source, _BATCH)):
            kinds.extend([_KINDS[type(event)] for event in batch])
            starts.extend([event.start_mark.index for event in batch])
            ends.extend([event.end_mark.index for event in batch])
    except UnicodeEncodeError as error:
        raise ParseError.at("yaml", text, start + error.start, "a lone surrogate is not a character") from None
    except yaml.YAMLError as error:
        _refuse(text, start, error)
    known = np.frombuffer(kinds, np.uint8)
    keep = known != STREAM
    offsets = (np.frombuffer(a, np.int64)[keep] + start for a in (starts, ends))
    return Events(known[keep], *offsets)


def _parser(text: str) -> Any:
    """libyaml refuses the surrogate pairs that JSON writes for one character; it is given other escapes of the same
    length, since only places matter here."""
    if "\\ud" in text or "\\uD" in text:
        text = _SURROGATES.sub(r"\1\\u0041\\u0041", text)
    return CParser(text)


def _refuse(text: str, start: int, error: yaml.YAMLError) -> NoReturn:
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be read")
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        unreadable = _UNREADABLE.search(text, start)
        raise ParseError.at("yaml", text, unreadable.start() if unreadable else start, problem) from None
    offset = min(start + mark.index, len(text))
    if "nesting" in problem:
        place = ParseError.at("yaml", text, offset, problem)
        raise LimitError(
            f"yaml: line {place.line}, column {place.column}: nested deeper than the {NESTING:,} levels that libyaml "
            "reads"
        ) from None
    context = getattr(error, "context", None)
    raise ParseError.at("yaml", text, offset, f"{context}: {problem}" if context else problem) from None


def events_of(text: str, start: int) -> Iterator[Any]:
    """PyYAML's events of `text[start:]`, whose places count from there. Two escapes that together write one character
    are replaced by others. For a text that was read before."""
    return iter(_parser(text[start:] if start else text).get_event, None)


def scalar_value(source: str) -> str:
    """The value of a scalar that stands alone, without anchor or tag, as libyaml reads it."""
    parser = _parser(source if source.endswith("\n") or source[:1] not in "|>" else source + "\n")
    for event in iter(parser.get_event, None):
        if isinstance(event, ev.ScalarEvent):
            return event.value
    return ""
