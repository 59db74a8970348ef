"""What people read in a stretch of HTML: its text nodes, white space collapsed, scripts and styles left out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape

from ..formats.html_tags import BLANK, COMMENT, END, START, TOKEN


def names(text: str) -> frozenset[str]:
    """Names of elements, told in one text."""
    return frozenset(text.split())


_RAW_END = {name: re.compile(rf"</{name}(?=[ \t\n\r\f/>])", re.IGNORECASE) for name in ("script", "style")}
_NAME = re.compile(r"<([A-Za-z][^ \t\n\r\f/>]*)")
_HIDDEN = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|[ \t\n\r\f\"']hidden(?=[ \t\n\r\f/>=])", re.IGNORECASE
)
_BREAKS = names(
    "address article aside blockquote br center dd details dialog dir div dl dt fieldset figcaption figure footer form "
    "h1 h2 h3 h4 h5 h6 header hgroup hr legend li main menu nav ol option p pre section summary table tbody td tfoot "
    "th thead tr ul"
)
_UNSEEN = names("noscript template textarea select option button iframe object video audio")
_VALUE = r"""[ \t\n\r\f]*=[ \t\n\r\f]*(?:"([^"]*)"|'([^']*)'|([^ \t\n\r\f>"']+))"""
_PATTERNS = {
    name: re.compile(rf"""[ \t\n\r\f"'/]{name}{_VALUE}""", re.IGNORECASE) for name in ("class", "colspan", "rowspan")
}


@dataclass(frozen=True, slots=True)
class Text:
    """Text as read, where its characters stand, and whether all readers take it so: not if a line break alone parts two
    words, or if some of it is not shown."""

    value: str
    start: int
    end: int
    clear: bool


def text_of(source: str, start: int, end: int) -> Text:
    """The text in `source[start:end]`."""
    parts: list[str] = []
    first, last, clear, apart = start, start, True, False
    at = start
    while at < end:
        token = TOKEN.search(source, at, end)
        stop = token.start() if token else end
        if stop > at:
            chunk = source[at:stop]
            if (solid := chunk.strip(BLANK)) != "":
                clear &= not (apart and parts and not parts[-1][-1:].isspace() and not chunk[:1].isspace())
                lead = at + len(chunk) - len(chunk.lstrip(BLANK))
                first, last = (first if parts and last > first else lead), lead + len(solid)
                apart = False
            parts.append(unescape(chunk))
        if token is None:
            break
        at = token.end()
        if token.lastindex in (START, END):
            name = (token[START] or token[END]).lower()
            apart |= name in _BREAKS
            if token.lastindex == START:
                clear &= name not in _UNSEEN and not _HIDDEN.search(source, token.start(), at)
                if name in _RAW_END:
                    closing = _RAW_END[name].search(source, at, end)
                    at = closing.start() if closing else end
        elif token.lastindex != COMMENT:
            clear = False
    return Text(" ".join("".join(parts).split()), first, last, clear)


def name_at(source: str, start: int) -> str:
    """The name of the element that starts here, in lower case; "" where none does."""
    match = _NAME.match(source, start)
    return match[1].lower() if match else ""


def attribute(source: str, start: int, end: int, name: str) -> str:
    """The value of an attribute in the start tag `source[start:end]`; "" where there is none."""
    match = _PATTERNS[name].search(source, start, end)
    return unescape(next(filter(None, match.groups()), "")) if match else ""
