"""How a document is cut into what can stand in a context with others: the inside of a page, documents of a stream."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .formats.html_tree import HtmlDocument
from .formats.yaml_tree import YamlDocument
from .record_lists.html_text import name_at, text_of
from .record_lists.items import Reading
from .record_lists.yaml_values import read_yaml
from .tree import Node

_DOCUMENT_START = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\r?\n)*---(?:[ \t]+#[^\n]*)?[ \t]*(?:\r?\n|(?=[ \t]))")
_DOCUMENT_END = re.compile(r"\n\.\.\.[ \t]*\r?\n?\Z")
_TITLES = ("title", "name")


def page_parts(document: HtmlDocument) -> tuple[str, str]:
    """The inside of a page's body, and its title or first heading ("" where it has neither)."""
    text, title, heading = document.text, "", ""
    body: Node | None = None
    parts: list[Node] = []
    walk = [document.root]
    while walk:
        node = walk.pop()
        name = name_at(text, node.start) if node.kind == "element" else ""
        if name == "title" and not title:
            title = text_of(text, node.content, node.end).value
        elif name == "h1" and not heading:
            heading = text_of(text, node.content, node.end).value
        elif name == "body" and body is None:
            body = node
        elif name not in ("head", "html", "", "meta", "link", "script", "style", "base") and _outside(node, body):
            parts.append(node)
        walk.extend(reversed(document.children(node)) if node.kind in ("document", "element") else ())
    if body is not None:
        return text[body.content : _inner_end(document, body)].strip(), title or heading
    inside = text[parts[0].start : parts[-1].end] if parts else ""
    return inside.strip(), title or heading


def _outside(node: Node, body: Node | None) -> bool:
    """Whether a node stands at the top of a page without a body tag."""
    up = node.parent
    return body is None and up is not None and (up.parent is None or up.parent.parent is None)


def _inner_end(document: HtmlDocument, node: Node) -> int:
    closing = document.frame(node)[1]
    return node.end - len(closing) if closing and document.text.endswith(closing, node.start, node.end) else node.end


def yaml_documents(document: YamlDocument) -> Iterator[tuple[str, Reading]]:
    """The documents of a stream as texts that can stand in another stream, with their readings."""
    root = document.root
    nodes = document.children(root) if root.kind == "stream" else [root]
    for node, reading in zip(nodes, read_yaml(document), strict=True):
        text = document.text[node.start : node.end]
        start = _DOCUMENT_START.match(text)
        yield _DOCUMENT_END.sub("", text[start.end() :] if start else text).rstrip() + "\n", reading


def yaml_title(value: Any) -> str:
    """What a document calls itself: `info.title`, or its own `title` or `name`; "" where it does not."""
    if not isinstance(value, dict):
        return ""
    info = value.get("info")
    said = [info.get("title") if isinstance(info, dict) else None, *(value.get(key) for key in _TITLES)]
    return next((" ".join(title.split()) for title in said if isinstance(title, str) and title.strip()), "")
