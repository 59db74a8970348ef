"""A second reading of pages, by lxml: a list is offered only if both readings find the same text at its path."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from ...errors import InputError
from ..formats.html_tags import START, TOKEN
from .html_text import text_of

_STEP = re.compile(r"/([A-Za-z][\w.-]*)(?:\[([0-9]+)\])?")
_LEFT_OUT = ("script", "style")
_COUNTED = ("tr", "td", "th", "dt", "dd", "li")


class SecondReading:
    """A page with one article as lxml reads it."""

    def __init__(self, page: str) -> None:
        try:
            from lxml import html  # needed only where HTML is built
        except ImportError:
            raise InputError("building from HTML needs lxml: pip install lxml") from None
        self._root = html.document_fromstring(page.encode(), parser=html.HTMLParser(encoding="utf-8", huge_tree=True))
        self._article = next(self._root.iter("article"), None)

    def reads(self, path: str, source: str, start: int, end: int) -> bool:
        """Whether the element at `path` in the article has the text and the rows, cells and items that
        `source[start:end]` spells."""
        element = self._at(path)
        if element is None or _counts(element) != _spelled(source, start, end):
            return False
        return " ".join("".join(_texts(element)).split()) == text_of(source, start, end).value

    def _at(self, path: str) -> Any:
        here, at = self._article, 0
        while here is not None and at < len(path):
            step = _STEP.match(path, at)
            if step is None:
                return None
            named = [child for child in here if child.tag == step[1]]
            place = int(step[2] or 1) - 1
            if place >= len(named) or (step[2] is None and len(named) > 1):
                return None
            here, at = named[place], step.end()
        return here


def _texts(element: Any) -> list[str]:
    """Text nodes in order, those of scripts and styles left out."""
    found: list[str] = []
    walk: list[tuple[Any, bool]] = [(element, False)]
    while walk:
        node, tail = walk.pop()
        if tail:
            found.append(node.tail or "")
            continue
        if isinstance(node.tag, str) and node.tag not in _LEFT_OUT:
            found.append(node.text or "")
            for child in reversed(node):
                walk.extend(((child, True), (child, False)))
    return found


def _counts(element: Any) -> Counter[str]:
    return Counter(inside.tag for inside in element.iter(*_COUNTED) if inside is not element)


def _spelled(source: str, start: int, end: int) -> Counter[str]:
    """Start tags of rows, cells and items inside the element."""
    tags = TOKEN.finditer(source, start, end)
    next(tags, None)
    names = (tag[START].lower() for tag in tags if tag.lastindex == START)
    return Counter(name for name in names if name in _COUNTED)
