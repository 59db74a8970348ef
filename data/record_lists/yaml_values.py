"""YAML as typed values, one reading a document of the stream, from one pass over libyaml's events.

Quoted and block scalars are text; of the plain ones, JSON numbers are numbers, `true` and `false` booleans, `null`, `~`
and nothing are null, anything else is text. Keys are their text. Aliases, merge keys, tags and keys that are no scalars
are faults: whoever resolves them reads something else.
"""

from __future__ import annotations

import re
from typing import Any

from yaml import events as ev

from ..formats.yaml_events import events_of
from ..formats.yaml_index import PROPERTIES
from ..formats.yaml_tree import YamlDocument, scalar_text
from .items import MAX_DEPTH, MAX_VALUES, OPAQUE, Fault, Item, Reading, close, number

_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
MERGE = "<<"


def read_yaml(document: YamlDocument) -> list[Reading]:
    """The documents of a stream."""
    text = document.text
    start = 1 if text.startswith("\ufeff") else 0
    reader: _Reader | None = None
    found: list[Reading] = []
    for event in events_of(text, start):
        if isinstance(event, ev.DocumentStartEvent):
            reader = _Reader(text, start)
        elif isinstance(event, ev.DocumentEndEvent) and reader is not None:
            found.append(reader.finished())
            reader = None
        elif reader is not None:
            reader.take(event)
    return found


class _Reader:
    """Builds the items of one document. `_open` holds the collections that are open, each with the key that waits for
    its value; a collection that is not read further is None."""

    def __init__(self, text: str, shift: int) -> None:
        self._text, self._shift = text, shift
        self._root = Item(shift, shift, None)
        self._open: list[Item | None] = []
        self._keys: list[str | None] = []
        self._left = MAX_VALUES
        self._faults: list[Fault] = []

    def take(self, event: Any) -> None:
        """The next event between the start and the end of the document."""
        if isinstance(event, ev.CollectionEndEvent):
            self._end(event)
            return
        start, end = event.start_mark.index + self._shift, event.end_mark.index + self._shift
        item = Item(start, end, None)
        if getattr(event, "tag", None) is not None:
            self._faults.append(Fault(start, "a tag says how a value is to be read"))
        if isinstance(event, ev.CollectionStartEvent):
            held = self._place(item, None)
            if held and (len(self._open) >= MAX_DEPTH or self._left < 0):
                reason = f"nested deeper than {MAX_DEPTH}" if self._left >= 0 else "too large"
                self._faults.append(Fault(start, reason, True))
                item.value, held = OPAQUE, False
            if held:
                item.inside = {} if isinstance(event, ev.MappingStartEvent) else []
            self._open.append(item if held else None)
            self._keys.append(None)
            return
        if isinstance(event, ev.AliasEvent):
            item.value = OPAQUE
            self._faults.append(Fault(start, "an alias stands for a value", True))
            self._place(item, None)
            return
        item.value = self._scalar(event, item)
        self._place(item, event.value)

    def finished(self) -> Reading:
        """The document."""
        root = self._root
        close(root)
        self._faults.sort(key=lambda fault: fault.at)
        return Reading(root.value, lambda: root, self._faults)

    def _end(self, event: Any) -> None:
        item = self._open.pop()
        self._keys.pop()
        if item is None:
            return
        inside = list(item.inside.values()) if isinstance(item.inside, dict) else item.inside or []
        closed = event.end_mark.index + self._shift
        bracket = (
            closed > item.start and self._text[closed - 1] in "]}" and event.start_mark.index < event.end_mark.index
        )
        item.end = closed if bracket else inside[-1].end if inside else item.end

    def _place(self, item: Item, key: str | None) -> bool:
        """Puts a value where it belongs; `key` is its text, if it can be a key. False where it is none that is read."""
        self._left -= 1
        if not self._open:
            self._root = item
            return True
        around = self._open[-1]
        if around is None:
            return False
        if isinstance(around.inside, list):
            around.inside.append(item)
            return True
        assert around.inside is not None
        waiting = self._keys[-1]
        if waiting is not None:
            self._keys[-1] = None
            around.inside[waiting] = item
            return True
        merged = key == MERGE
        if key is None or merged:
            self._faults.append(Fault(item.start, "another map is merged" if merged else "a key is no scalar", merged))
            key = f"{MERGE}{len(around.inside)}"
        elif key in around.inside:
            self._faults.append(Fault(item.start, "a key stands twice in one map"))
        self._keys[-1] = key
        return False

    def _scalar(self, event: Any, item: Item) -> Any:
        if event.anchor is not None or event.tag is not None:
            properties = PROPERTIES.match(self._text, item.start, item.end)
            item.start = properties.end() if properties else item.start
        if event.style in ("|", ">"):
            item.end = item.start + len(self._text[item.start : item.end].rstrip())
            return event.value
        if event.style in ("'", '"'):
            source = self._text[item.start : item.end]
            return scalar_text(source) if _SURROGATE.search(source) else event.value
        if event.value in _WORDS:
            return _WORDS[event.value]
        value = number(event.value)
        return event.value if value is None else value
