"""The tree of an HTML page laid on its source: every element is one unbroken stretch of the text.

Tags are read and elements closed as the WHATWG standard says. What the standard does beyond that to a page's tree
has no place in the source and is left out: elements that it reopens after a misnested end tag (the copy's content
belongs to the copy's parent), content that it moves out of tables (it stays where it is written), and elements that
nobody wrote (their content belongs to the nearest written element). One pass; each step costs the same in a page of
any size and depth.
"""

from __future__ import annotations

import re

from .html_open import DOCTYPE, LOOSE, REMARK, OpenElements
from .html_rules import END_RULES, START_RULES, before_body, in_table
from .html_tags import (
    BREAKOUT,
    CDATA,
    CDATA_END,
    COMMENT,
    CUT,
    END,
    FONT_BREAKOUT,
    MATH_IN_TEXT,
    SCRIPT_STEP,
    START,
    TOKEN,
    Space,
    Tag,
    foreign_tag,
    html_tag,
)


def build(text: str, start: int) -> Builder:
    """All nodes of the page that begins at `text[start]`."""
    builder = Builder(text, start)
    builder.read(start)
    builder.finish()
    return builder


class Builder(OpenElements):
    """Reads tokens. `doctype` is the span of the declaration before all other content, empty if there is none."""

    def __init__(self, text: str, start: int) -> None:
        super().__init__(text, start)
        self.doctype = (start, start)
        self._known: dict[str, Tag] = {}
        self._raw_ends: dict[str, re.Pattern[str]] = {}

    def read(self, at: int) -> None:
        text, whole = self.text, len(self.text)
        while at < whole:
            resume = at
            for match in TOKEN.finditer(text, at):
                here = match.start()
                if here > at:
                    self.characters(at, here)
                resume = at = match.end()
                kind = match.lastindex
                if kind == START:
                    resume = self._start_tag(match[1], here, at)
                elif kind == END:
                    self._end_tag(match[2], here, at)
                elif kind == CUT:
                    self.leaf(LOOSE, here, whole)
                    resume = whole
                else:
                    resume = self._remark(here, at, kind == COMMENT)
                if resume != at:
                    break
            if resume == at:  # no token is left
                if at < whole:
                    self.characters(at, whole)
                return
            at = resume

    def _tag(self, name: str) -> Tag:
        tag = self._known.get(name)
        if tag is None:
            lower = name.lower()
            tag = self._known[name] = html_tag("img" if lower == "image" else lower)
        return tag

    def _start_tag(self, name: str, at: int, end: int) -> int:
        """Reads on from where this returns."""
        tag = self._tag(name)
        if self.page_ends:
            self.go_on()
        if len(self.foreign) > 1 and self.tags[-1].space != "html" and self._foreign_start(tag, at, end):
            return end
        made = None if self.in_body else before_body(self, tag, at)
        if made is None:
            made = tag.start is None or START_RULES[tag.start](self, tag, at)
        if not made:
            self.loose(at, end)
            return end
        if tag.closes_p and self.depths["p"]:
            self.close_paragraph(at)
        self.flush()
        if tag.void or (tag.name == "form" and in_table(self)):
            self.childless(tag, at, end)
            return end
        if tag.name in ("svg", "math"):
            self._begin_foreign("svg" if tag.name == "svg" else "math", tag.name, at, end)
            return end
        self.begin(tag, at, end)
        if tag.raw:
            return self._raw_text(tag, end)
        return len(self.text) if tag.name == "plaintext" and self._plain(end) else end

    def _plain(self, at: int) -> bool:
        if at < len(self.text):
            self.characters(at, len(self.text))
        return True

    def _raw_text(self, tag: Tag, at: int) -> int:
        """The content of an element in which tags are no tags, up to its own end tag."""
        stop = self._script_end(at) if tag.name == "script" else self._raw_end(tag.name, at)
        if stop > at and tag.name not in ("script", "style"):
            self.characters(at, stop)
        self.flush()
        return stop

    def _raw_end(self, name: str, at: int) -> int:
        pattern = self._raw_ends.get(name)
        if pattern is None:
            pattern = self._raw_ends[name] = re.compile(rf"</{name}(?=[ \t\n\r\f/>])", re.IGNORECASE)
        found = pattern.search(self.text, at)
        return found.start() if found else self._no_end(at)

    def _no_end(self, at: int) -> int:
        return len(self.text)

    def _script_end(self, at: int) -> int:
        """A script may hold `</script>` inside a comment that holds `<script>`."""
        comment = nested = False
        for match in SCRIPT_STEP.finditer(self.text, at):
            opens, closes, starts, ends = (match[i] is not None for i in range(1, 5))
            if ends and not nested:
                return match.start()
            if opens:
                comment = True
            elif closes:
                comment = nested = False
            elif starts:
                nested = comment
            elif ends:
                nested = False
        return len(self.text)

    def _end_tag(self, name: str, at: int, end: int) -> None:
        tag = self._tag(name)
        if self.page_ends and (tag.end != "page" or self._foreign_depth(tag) >= max(self.foreign[-1], 0)):
            self.go_on()
        if len(self.foreign) > 1 and self.tags[-1].space != "html" and self._foreign_end(tag, at, end):
            return
        if self.tags[-1] is tag and tag.end in ("other", "in_scope", "formatting", "paragraph"):
            self.end_with(len(self.tags) - 1, at, end)  # the common case, by any rule
        else:
            END_RULES[tag.end](self, tag, at, end)

    def _remark(self, at: int, end: int, comment: bool) -> int:
        text = self.text
        if comment:
            self.leaf(REMARK, at, end)
        elif self.tags[-1].space != "html" and text.startswith(CDATA, at):
            close = text.find(CDATA_END, at + len(CDATA))
            end = len(text) if close < 0 else close + len(CDATA_END)
            self.characters(at, end)
        elif text[at : at + 9].lower() == "<!doctype":
            self._doctype(at, end)
        else:
            self.leaf(REMARK, at, end)
        return end

    def _doctype(self, at: int, end: int) -> None:
        if len(self.tags) == 1 and not self.in_body:
            self.quirks = False
        if len(self.starts) == 1 and self.starts[0] == at:
            self.doctype = (at, end)
        else:
            self.leaf(DOCTYPE, at, end)

    # Foreign content.

    def _foreign_start(self, tag: Tag, at: int, end: int) -> bool:
        """True where the tag is foreign; else foreign elements that it breaks out of are ended."""
        top, name = self.tags[-1], tag.name
        if top.html_inside and not (top.space == "math" and name in MATH_IN_TEXT):
            return False
        if name in BREAKOUT or (name == "font" and FONT_BREAKOUT.search(self.text, at, end)):
            depth = max(self.foreign[-1], self.bounds[-1] + 1)
            self.end_to(depth, at)
            return False
        self.flush()
        self._begin_foreign("svg" if name == "svg" else top.space, name, at, end)
        return True

    def _begin_foreign(self, space: Space, name: str, at: int, end: int) -> None:
        tag = foreign_tag(name, space, self.text[at:end] if name == "annotation-xml" else "")
        if self.text[end - 2] == "/":
            self.childless(tag, at, end)
        else:
            self.begin(tag, at, end)

    def _foreign_end(self, tag: Tag, at: int, end: int) -> bool:
        """True where the tag ends a foreign element."""
        depth = self._foreign_depth(tag)
        if depth >= self.foreign[-1]:
            self.end_with(depth, at, end)
            return True
        if tag.name in ("p", "br"):
            self.end_to(self.foreign[-1], at)
        return False

    def _foreign_depth(self, tag: Tag) -> int:
        return max(self.depth(f"svg:{tag.name}"), self.depth(f"math:{tag.name}"))
