"""The nodes of an HTML page found so far, and the elements that are still open.

Nodes are entries of parallel arrays, in source order. For the elements on the stack, the depths of each name and of
the elements that end a search are kept apart, so that every question of scope is answered in constant time, however
deep the page is.
"""

from __future__ import annotations

from array import array
from collections import defaultdict

from .html_tags import BLANK, Tag

DOCUMENT, TEXT, REMARK, LOOSE, DOCTYPE = -1, -2, -3, -4, -5
"""Kinds of nodes that are no elements: the page, character data, a comment, a tag without effect, a doctype."""
NOWHERE, IN_HTML, IN_HEAD, IN_BODY = 0, 1, 2, 3
"""In which unwritten element a child of the page, or of `html`, stands: none, `html`, its `head`, its `body`."""
_PAGE = Tag("", ":document")
_DEAD = Tag("", ":dead")


class OpenElements:
    """`starts`, `contents` (where the start tag ends), `inner_ends` (where the end tag starts, or the content ends),
    `ends`, `parents`, `kinds` (an index into `names`, or a negative kind) and `places` hold the nodes."""

    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.starts, self.contents, self.inner_ends, self.ends = array("i"), array("i"), array("i"), array("i")
        self.parents, self.kinds, self.places = array("i"), array("i"), array("b")
        self.names: list[str] = []
        self.depths: defaultdict[str, list[int]] = defaultdict(list)
        self.specials, self.stops, self.bounds, self.foreign = [-1], [-1], [-1], [-1]
        self.tags: list[Tag] = []
        self.quirks, self.form_open = True, False
        self.in_body = self.head_seen = self.head_implied = False
        self.page_ends: dict[str, tuple[int, int]] = {}
        self._nodes: list[int] = []
        self._name_ids: dict[str, int] = {}
        self._dead_from: dict[int, int] = {}
        self._after_page: list[int] = []
        self._run, self._run_end, self._run_loose, self._run_solid = -1, -1, False, False
        self._begin(_PAGE, DOCUMENT, start, start)

    # Text between elements.

    def characters(self, start: int, end: int) -> None:
        """Character data; what lies between two elements or comments is one run."""
        if (not self.in_body or self.page_ends) and self._is_solid(start, end):
            self.solid(start)
        if self._run < 0:
            self._run = start
        elif self._run_loose:
            self._run_solid = self._run_solid or self._is_solid(start, end)
        elif self._run_end < start:  # an end tag without effect lies between
            if not self._is_solid(start, end):
                return
            self._run_solid = self._run_solid or self._is_solid(self._run, self._run_end)
            if not self._run_solid:
                self._run = start
        self._run_end = end

    def _is_solid(self, start: int, end: int) -> bool:
        return bool(self.text[start:end].strip(BLANK))

    def loose(self, start: int, end: int) -> None:
        """A start tag without effect belongs to the run it stands in."""
        self.solid(start)
        if not self._run_loose:
            self._run_solid = self._run_solid or (self._run >= 0 and self._is_solid(self._run, self._run_end))
            self._run_loose = True
        if self._run < 0:
            self._run = start
        self._run_end = end

    def solid(self, at: int) -> None:
        """Something that stands in the body: the body begins here, or goes on in spite of its end tag."""
        if not self.in_body and self.tags[-1].key in (":document", "html", "head"):
            self.close_head(at)
            self.in_body = True
        if self.page_ends:
            self.go_on()

    def go_on(self) -> None:
        """The end tags of body and html were not the end: what was taken to stand after them belongs to the innermost
        open element."""
        self.page_ends.clear()
        for leaf in self._after_page:
            self.parents[leaf], self.places[leaf] = self._nodes[-1], self.place()
        self._after_page.clear()

    def flush(self) -> None:
        """Ends the run of character data."""
        if self._run >= 0:
            start, end = self._run, self._run_end
            kind = LOOSE if self._run_loose and not self._run_solid else TEXT
            self._run, self._run_loose, self._run_solid = -1, False, False
            self._leaf(kind, start, end, self._nodes[-1], self.place(kind == TEXT))

    def leaf(self, kind: int, start: int, end: int) -> None:
        """A comment, doctype or cut-off tag as a child of the innermost open element; of `html` or the page after
        their end tags."""
        self.flush()
        if self.page_ends and self.tags[-1].space != "html":
            self.go_on()
        if not self.page_ends:
            self._leaf(kind, start, end, self._nodes[-1], self.place(False))
            return
        self._after_page.append(len(self.starts))
        outside = 0 if "html" in self.page_ends or not self.depths["html"] else self._nodes[1]
        self._leaf(kind, start, end, outside, IN_HTML if not outside and "html" not in self.page_ends else NOWHERE)

    def _leaf(self, kind: int, start: int, end: int, parent: int, place: int) -> None:
        self.starts.append(start)
        self.contents.append(start)
        self.inner_ends.append(end)
        self.ends.append(end)
        self.parents.append(parent)
        self.kinds.append(kind)
        self.places.append(place)

    def place(self, text: bool = False) -> int:
        """Where a child of the innermost open element stands, by what has been seen so far."""
        key = self.tags[-1].key
        if key not in (":document", "html"):
            return NOWHERE
        if self.in_body:
            return IN_BODY if not self.depths["body"] and not self.depths["frameset"] else NOWHERE
        if self.head_implied and not self.head_seen:
            return IN_HEAD
        return IN_HTML if key == ":document" and (self.head_seen or text) else NOWHERE

    # Elements.

    def begin(self, tag: Tag, start: int, content: int) -> None:
        """Opens an element; a void one is closed at once."""
        name = self._name_ids.get(tag.name)
        if name is None:
            name = self._name_ids[tag.name] = len(self.names)
            self.names.append(tag.name)
        self._begin(tag, name, start, content)

    def childless(self, tag: Tag, start: int, content: int) -> None:
        """An element that ends with its start tag."""
        self.begin(tag, start, content)
        self.end_to(len(self.tags) - 1, content)

    def _begin(self, tag: Tag, kind: int, start: int, content: int) -> None:
        node, depth = len(self.starts), len(self.tags)
        place = NOWHERE
        if tag.key in ("head", "body", "frameset"):
            place = IN_HTML if depth == 1 else NOWHERE
        elif 1 <= depth <= 2 and tag.key != "html":
            place = self.place()
        self._leaf(kind, start, -1, self._nodes[-1] if depth else -1, place)
        self.contents[node] = content
        self.inner_ends[node] = -1
        self._nodes.append(node)
        if tag.space != "html" and self.tags[-1].space == "html":
            self.foreign.append(depth)
        self.tags.append(tag)
        self.depths[tag.key].append(depth)
        if tag.special:
            self.specials.append(depth)
            if tag.stop:
                self.stops.append(depth)
            if tag.bound:
                self.bounds.append(depth)

    def end_to(self, depth: int, at: int) -> None:
        """Ends, without an end tag, all elements at this depth and deeper where the character `at` stands."""
        if self._run >= 0:
            self.flush()
        while len(self.tags) > depth:
            self._pop(at, -1)
        while self.tags[-1] is _DEAD:
            self.tags.pop()
            self._nodes.pop()

    def end_with(self, depth: int, at: int, end: int) -> None:
        """Ends the element at this depth by the end tag `at:end`, and what is open inside it where that starts."""
        if len(self.tags) > depth + 1:
            self.end_to(depth + 1, at)
        elif self._run >= 0:
            self.flush()
        if len(self.tags) > depth:
            self._pop(at, end)
        while self.tags[-1] is _DEAD:
            self.tags.pop()
            self._nodes.pop()

    def _pop(self, at: int, end: int) -> None:
        tag, node = self.tags.pop(), self._nodes.pop()
        if tag is _DEAD:
            return
        self.inner_ends[node], self.ends[node] = at, end
        self._forget(tag, len(self.tags))

    def _forget(self, tag: Tag, depth: int) -> None:
        self.depths[tag.key].pop()
        if tag.special:
            self.specials.pop()
            self._dead_from.pop(depth, None)
            if tag.stop:
                self.stops.pop()
            if tag.bound:
                self.bounds.pop()
        if self.foreign[-1] == depth:
            self.foreign.pop()

    def take_out(self, depth: int, block: int) -> None:
        """A misnested end tag: the formatting element at `depth`, and others up to the block at depth `block`, end
        where that block starts, and the block moves up to their parent."""
        child = self._nodes[block]
        parent = self.parents[self._nodes[depth]]
        for at in range(depth, self._dead_from.get(block, block)):
            tag, node = self.tags[at], self._nodes[at]
            if tag is _DEAD:
                continue
            self.inner_ends[node] = self.starts[child]
            self.depths[tag.key].remove(at) if self.depths[tag.key][-1] != at else self.depths[tag.key].pop()
            self.tags[at] = _DEAD
        self._dead_from[block] = depth
        self.parents[child] = parent
        self.places[child] = self.places[self._nodes[depth]]

    # Questions.

    def depth(self, key: str) -> int:
        """Depth of the innermost open element of that kind, -1 for none."""
        found = self.depths[key]
        return found[-1] if found else -1

    def in_scope(self, key: str) -> int:
        """Its depth if it is in scope, else -1."""
        depth = self.depth(key)
        return depth if depth >= self.bounds[-1] else -1

    def close_paragraph(self, at: int) -> None:
        """Ends the paragraph that is open in button scope."""
        depth = self.depth("p")
        if depth > self.bounds[-1] and depth > self.depth("button"):
            self.end_to(depth, at)

    def close_head(self, at: int) -> None:
        """Ends the head and all that is open in it."""
        depth = self.depth("head")
        if depth >= 0:
            self.end_to(depth, at)

    def finish(self) -> None:
        """Ends everything at the end of the text, or at the end tags of body and html."""
        self.flush()
        whole = len(self.text)
        body, html = self.page_ends.get("body"), self.page_ends.get("html")
        at = (body or html or (whole, whole))[0]
        if body and self.depths["body"]:
            self.end_with(self.depths["body"][-1], *body)
        if html and self.depths["html"]:
            self.end_with(self.depths["html"][-1], *html)
        self.end_to(max(1, self.depth("html") + 1), at)
        self.end_to(1, whole)  # what follows the end of the body without an end of html belongs to html
        self._pop(whole, -1)
