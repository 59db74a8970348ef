"""HTML read by two parsers: turbohtml finds the articles as browsers do, libxml2 reads what is inside each.

For libxml2 every start tag is given its place in the text as an attribute. Elements without a place were written by
nobody; what they hold belongs to the element around them. No network, no entities of others, no huge trees.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any

from .reading import KEYS, UNIT, Reading, Record, Scope, Unit, chosen, digest_of
from .values import Unreadable

_AT = "treeagent-at"
_MARKUP = re.compile(
    r"<!--.*?(?:--!?>|\Z)|<![^>]*>|<\?[^>]*>"
    r"""|<(/?)([A-Za-z][^\s/>]*)((?>[^>="']+|=\s*"[^"]*"|=\s*'[^']*'|[="'])*+)>""",
    re.DOTALL,
)
_RAW = ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
_STEP = re.compile(r"/(?:([^/\[\]*]+)|\*\[name\(\)=(?:'([^']*)'|\"([^\"]*)\")\])(?:\[([0-9]{1,9})\])?")
_NEXT = '\n</article>\n<article title="'
_SILENT = ("script", "style")


def read_html(text: str, scope: Scope) -> Reading:
    """The records of a page of articles. Raises Unreadable."""
    reading, insides = Reading(), list[tuple[int, int]]()
    for title, start, inner, stop, end in _articles(text):
        reading.units.append(Unit({"title": title}, start, end, digest_of(text[inner:stop].strip())))
        insides.append((inner, stop))
    read = _READERS.get(scope.shape)
    if read is None:
        raise Unreadable("the records of HTML are no objects")
    for number in chosen(reading.units, scope):
        start, stop = insides[number]
        element = _element(_body(_page(text[start:stop])), scope.pattern)
        about = {UNIT: reading.units[number].about, KEYS: []}
        for fields, at, unclear in read(element) if element is not None else ():
            end = _end(at, stop - start)
            reading.records.append(
                Record({**fields, **about}, start + _place(at), start + end, number, frozenset(unclear))
            )
    return reading


def _articles(text: str) -> Iterator[tuple[str, int, int, int, int]]:
    """Title, place, content, end of the content, and end of each article. Raises Unreadable where the body holds
    anything else, or an article does not end where its own end tag stands."""
    import turbohtml

    page = turbohtml.parse(text.replace("\r\n", " \n"), source_locations=True)
    body = page.find("body")
    for child in body.children if body is not None else ():
        place = child.source_location
        if not isinstance(child, turbohtml.Element):
            if not isinstance(child, turbohtml.Text) or child.text.strip():
                raise Unreadable("something other than articles stands in the body")
        elif child.tag != "article" or place is None or place.end_tag is None:
            raise Unreadable(f"the markup of a unit does not end with it: {child.tag}")
        else:
            title = child.attrs.get("title")
            opening, closing = place.start_tag, place.end_tag
            if _NEXT in text[opening.end_offset : closing.start_offset]:
                raise Unreadable("a unit swallows the next one")
            yield (
                title if isinstance(title, str) else "",
                opening.start_offset,
                opening.end_offset,
                closing.start_offset,
                closing.end_offset,
            )


def text_between(text: str) -> str:
    """What people read of the inside of a unit, its headings and captions among it. Raises Unreadable."""
    return _text(_body(_page(text)))


def _page(text: str) -> Any:
    """The root element. Raises Unreadable where libxml2 gives up."""
    etree: Any = import_module("lxml.etree")  # untyped

    if "\x00" in text:
        raise Unreadable("it holds a NUL")
    if not text.strip():
        text = "<p></p>"
    parser = etree.HTMLParser(no_network=True, huge_tree=False, remove_comments=True, remove_pis=True, encoding="utf-8")
    try:
        marked = f"<html><body>{_marked(text)}</body></html>".encode()
        root = etree.fromstring(marked, parser)
    except (etree.LxmlError, ValueError, UnicodeEncodeError) as error:
        raise Unreadable(f"it is no HTML: {' '.join(str(error).split())[:120]}") from None
    fatal = [entry for entry in parser.error_log if entry.level_name == "FATAL"]
    if root is None or fatal:
        raise Unreadable(f"it is no HTML: {fatal[0].message.strip() if fatal else 'it is empty'}"[:160])
    return root


def _marked(text: str) -> str:
    """The text with its place in every start tag."""
    parts: list[str] = []
    at = copied = 0
    while (tag := _MARKUP.search(text, at)) is not None:
        at = tag.end()
        name = (tag[2] or "").lower()
        if not name or tag[1]:
            continue
        stop = tag.end(2)
        parts += text[copied:stop], f' {_AT}="{tag.start()}" '
        copied = stop
        if name in _RAW and not (closing := re.compile(rf"</{re.escape(name)}(?=[\s/>])", re.I)).match(text, at):
            found = closing.search(text, at)
            at = found.start() if found else len(text)
    return "".join((*parts, text[copied:]))


def _body(root: Any) -> Any:
    body = root if root.tag == "body" else root.find("body")
    if body is None:
        raise Unreadable("it has no body")
    return body


def _place(element: Any) -> int:
    return int(element.get(_AT, "0"))


def _end(element: Any, most: int) -> int:
    """Where the next element begins that is not inside it: the element ends before."""
    last = element
    while last is not None and last.getnext() is None:
        last = last.getparent()
    following = last.getnext() if last is not None else None
    while following is not None and following.get(_AT) is None:
        following = following[0] if len(following) else following.getnext()
    return min(_place(following), most) if following is not None else most


def _children(element: Any) -> list[Any]:
    """The elements inside it that somebody wrote."""
    found, walk = [], list(reversed(element))
    while walk:
        child = walk.pop()
        if not isinstance(child.tag, str):
            continue
        if child.get(_AT) is None:
            walk += reversed(child)
        else:
            found.append(child)
    return found


def _element(article: Any, path: str) -> Any:
    """The element at a path inside an article; None where there is none."""
    at, here = 0, article
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise Unreadable(f"{path} is no path")
        name, at = next(filter(None, step.groups()[:3])), step.end()
        named = [child for child in _children(here) if child.tag == name]
        if (step[4] is None and len(named) != 1) or (step[4] is not None and len(named) < 2):
            return None
        place = int(step[4] or 1)
        if not 0 < place <= len(named):
            return None
        here = named[place - 1]
    return here


def _text(element: Any) -> str:
    """The text of an element: white space collapsed, scripts and styles left out."""
    parts: list[str] = []
    walk: list[Any] = [element]
    while walk:
        here = walk.pop()
        if isinstance(here, str):
            parts.append(here)
        elif isinstance(here.tag, str) and here.tag not in _SILENT:
            inner: list[Any] = [here.text or ""]
            for child in here:
                inner += child, child.tail or ""
            walk += reversed(inner)
    return " ".join("".join(parts).split())


Fields = tuple[dict[str, str], Any, list[str]]


def _rows(table: Any) -> Iterator[tuple[Any, list[Any]]]:
    for child in _children(table):
        for row in _children(child) if child.tag in ("thead", "tbody", "tfoot") else [child]:
            if row.tag == "tr":
                cells = [cell for cell in _children(row) if cell.tag in ("td", "th")]
                if cells:
                    yield row, cells


def _table(table: Any) -> Iterator[Fields]:
    """A record a row below the headings that has as many cells."""
    rows = list(_rows(table)) if table.tag == "table" else []
    head = next((i for i, (_, cells) in enumerate(rows) if any(cell.tag == "th" for cell in cells)), 0)
    if len(rows) < 2:
        return
    names = [_text(cell) for cell in rows[head][1]]
    twice = [name for name, times in Counter(names).items() if times > 1]
    for row, cells in rows[head + 1 :]:
        if len(cells) == len(names):
            yield dict(zip(names, map(_text, cells), strict=True)), row, twice


def _definitions(element: Any) -> Iterator[Fields]:
    """One record whose fields are labels."""
    if element.tag == "table":
        pairs = [(_text(cells[0]), _text(cells[1])) for _, cells in _rows(element) if len(cells) == 2]
    else:
        parts = [part for part in _children(element) if part.tag in ("dt", "dd")]
        pairs = [(_text(a), _text(b)) for a, b in pairwise(parts) if (a.tag, b.tag) == ("dt", "dd")]
    fields: dict[str, str] = {}
    for label, value in pairs:
        fields.setdefault(label, value)
    twice = [label for label, times in Counter(label for label, _ in pairs).items() if times > 1]
    if fields:
        yield fields, element, twice


def _items(element: Any) -> Iterator[Fields]:
    """A record a child of the most frequent tag; a field is named by the first word of a class."""
    children: Sequence[Any] = _children(element)
    tags = Counter(child.tag for child in children).most_common(1)
    for child in children:
        if child.tag != tags[0][0]:
            continue
        fields: dict[str, str] = {}
        seen = Counter[str]()
        for inner in child.iterdescendants():
            words = (inner.get("class") or "").split() if isinstance(inner.tag, str) else []
            if words and (said := _text(inner)):
                seen[words[0]] += 1
                fields.setdefault(words[0], said)
        yield fields, child, [name for name, times in seen.items() if times > 1]


_READERS = {"table": _table, "definitions": _definitions, "items": _items}
