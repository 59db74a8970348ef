"""HTML as a tree of exact spans.

Elements, stretches of text that are not blank, and comments are nodes; a start tag with its attributes belongs to its
element, a doctype before all else to the page. `script` and `style` are never opened. Elements that only a parser
makes are no nodes; `html`, `head` and `body` are named in paths all the same, `tbody` and others are not.

Paths are XPath: names in lower case, positions among siblings of one name where there are several, `text()[k]` with
blank text nodes counted. A start tag without effect is read with the text around it or, alone, as a leaf `loose()`;
an end tag that ends nothing is markup between nodes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from ...errors import ParseError
from ..tree import Document, LeafText, Node, Offsets
from .html_index import HtmlIndex, Ints
from .html_open import DOCTYPE, DOCUMENT, IN_BODY, IN_HEAD, IN_HTML, LOOSE, REMARK, TEXT
from .html_tags import RAW, RAW_UNIT, UNIT

_BOM = "\ufeff"
_KINDS = {DOCUMENT: "document", TEXT: "text", REMARK: "comment", LOOSE: "loose", DOCTYPE: "doctype"}
_LABELS = {REMARK: "comment()", LOOSE: "loose()", DOCTYPE: "doctype()"}
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*\Z")
_OPENING_NAME = re.compile(r"<([^ \t\n\r\f/>]*)")


def parse_html(text: str) -> HtmlDocument:
    """The tree of an HTML text in whatever state. Raises ParseError for a lone surrogate, and for nothing else."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        reason = "a lone surrogate is not a character; write a reference"
        raise ParseError.at("html", text, error.start, reason) from None
    return HtmlDocument(text)


@dataclass(frozen=True, slots=True, eq=False)
class HtmlNode(Node):
    """A node that knows its place in the document's arrays."""

    index: int = 0


class HtmlDocument(Document):
    """An HTML text with its tree. The root is the page, with path `/`; its children are `html` and the comments
    around it, or what stands there without it."""

    format = "html"

    def __init__(self, text: str) -> None:
        start = len(_BOM) if text.startswith(_BOM) else 0
        self.text = text
        self.notes = ("byte order mark",) if start else ()
        self._index = HtmlIndex(text, start)
        self._ranks: dict[int, tuple[Ints, Ints]] = {}
        self.root = self._node(0, None, 0)

    def spans(self, node: Node) -> tuple[Offsets, Offsets]:
        members = self._index.children(_place(node))
        return self._index.starts[members].astype(np.int64), self._index.ends[members].astype(np.int64)

    def child(self, node: Node, ordinal: int) -> Node:
        return self._node(int(self._index.children(_place(node))[ordinal]), node, ordinal)

    def step(self, node: Node) -> str:
        parent = node.parent
        if parent is None:
            return ""
        index = _place(node)
        around = self._around(parent, int(self._index.places[index]))
        kind = int(self._index.kinds[index])
        if kind == TEXT:
            return f"{around}/text()[{self._index.text_ranks[index]}]"
        rank, total = self._rank(node, parent)
        name = _LABELS.get(kind) or _name_test(self._index.names[kind])
        return f"{around}/{name}" if total == 1 else f"{around}/{name}[{rank}]"

    def path(self, node: Node) -> str:
        return super().path(node) or "/"

    def leaf_text(self, node: Node) -> LeafText:
        unit = RAW_UNIT if self._element(node.parent) in RAW else UNIT
        units = [m.span() for m in unit.finditer(self.text, node.start, node.end)]
        return LeafText(node.start, node.end, [s for s, _ in units], [e for _, e in units])

    def frame(self, parent: Node) -> tuple[str, str]:
        index, text = _place(parent), self.text
        if not index:
            return text[slice(*self._index.doctype)], ""
        opening = text[parent.start : parent.content]
        if self._index.closed[index]:
            return opening, text[int(self._index.inner_ends[index]) : parent.end]
        name = _OPENING_NAME.match(opening)
        return opening, f"</{name[1]}>" if name else ""

    def introduction(self, opened: Node) -> tuple[str, str]:
        return self.frame(opened)

    def quotes(self, leaf: Node) -> tuple[str, str]:
        return "", ""

    def _node(self, index: int, parent: Node | None, ordinal: int) -> Node:
        arrays = self._index
        kind = _KINDS.get(int(arrays.kinds[index]), "element")
        start, end = int(arrays.starts[index]), int(arrays.ends[index])
        content = int(arrays.contents[index]) if kind == "element" else start
        divisible = kind == "text" and end - start > 1
        return HtmlNode(kind, start, end, parent, ordinal, content, arrays.count(index), divisible, index)

    def _element(self, node: Node | None) -> str:
        kind = -1 if node is None else int(self._index.kinds[_place(node)])
        return self._index.names[kind] if kind >= 0 else ""

    def _around(self, parent: Node, place: int) -> str:
        """The unwritten elements between a node and its parent."""
        whole = {IN_HTML: "/html", IN_HEAD: "/html/head", IN_BODY: "/html/body"}.get(place, "")
        return whole if parent.parent is None else whole.removeprefix("/html")

    def _rank(self, node: Node, parent: Node) -> tuple[int, int]:
        if parent.n_children == 1:
            return 1, 1
        index = _place(parent)
        if index not in self._ranks:
            self._ranks[index] = self._index.ranks(index)
        ranks, totals = self._ranks[index]
        return int(ranks[node.ordinal]), int(totals[node.ordinal])


def _place(node: Node) -> int:
    assert isinstance(node, HtmlNode)
    return node.index


def _name_test(name: str) -> str:
    """An XPath step for any tag name."""
    if _PLAIN_NAME.match(name):
        return name
    quote = "'" if "'" not in name else '"'
    return f"*[name()={quote}{name}{quote}]"
