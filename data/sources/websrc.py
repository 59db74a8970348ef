"""Web pages of the WebSRC v1.0 archive (CC BY 4.0): a unit is the inside of one page's body, its markup untouched.

The archive is the user's: `archive` is its path or its address (then its host must be among the recipe's). Pages lie at
`DOMAIN/NUMBER/processed_data/PAGE.html`; in a folder any HTML file counts as a page. A page whose markup would not end
with it, so that it would swallow what follows in a context, is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import ConfigError, InputError
from ..catalog import Collection, Provenance, Unit, identity_of
from ..formats import parse
from ..formats.html_tags import CUT, END, RAW, START, TOKEN
from ..formats.html_tree import HtmlDocument
from ..frames import frame_for
from ..own import page_parts
from ..tree import Node
from .archives import SUFFIXES, is_archive, is_whole
from .fetch import Call, Fetcher
from .files import archived
from .source import RawFile, Skipped, Wish, collected

LICENCE = "CC-BY-4.0"
ATTRIBUTION = "WebSRC v1.0, X-LANCE Lab, https://x-lance.github.io/WebSRC/, CC BY 4.0"
_ARCHIVE_BYTES = 4 << 30
_LONGEST_TITLE = 120  # characters
_HOME = "https://x-lance.github.io/WebSRC/"
_PROBE = "probe"
_LASTING = frozenset(
    {"a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u", "select"}
)
_PLACE = re.compile(r"(?:^|/)([a-z]+)/(\d+)/processed_data/(\w+)\.html?\Z", re.I)


@dataclass(frozen=True)
class WebSrc:
    """The source of HTML pages."""

    name: str = "websrc"
    formats: tuple[str, ...] = ("html",)
    suffixes: tuple[str, ...] = (".html", ".htm")
    hosts: tuple[str, ...] = ("x-lance.github.io",)
    licence: str = LICENCE
    attribution: str = ATTRIBUTION
    options: Mapping[str, str] = field(default_factory=lambda: {"archive": ""})

    def fetch(self, fetcher: Fetcher, wish: Wish) -> list[RawFile]:
        """The pages of the user's archive. Raises ConfigError where the recipe names none."""
        archive = wish.resolved(self)["archive"]
        if not archive:
            raise ConfigError(
                "the source websrc needs its archive: options: {archive: PATH or URL}, or --from DIR with its pages"
            )
        if "://" not in archive:
            path = Path(archive)
            if not path.is_file():
                raise InputError(f"{archive}: no such archive; a folder is read with --from")
            return archived(path, self.suffixes, Skipped())
        call = Call(archive, suffix=_suffix(archive), most_bytes=_ARCHIVE_BYTES, check=is_whole)
        fetched = fetcher.get(call, [_host(archive)])
        return archived(fetched.path, self.suffixes, Skipped(), name="websrc", url=fetched.url, date=fetched.date)

    def read(self, files: Sequence[RawFile], skipped: Skipped | None = None) -> list[Collection]:
        """One collection of all pages, equal ones once."""
        skipped = Skipped() if skipped is None else skipped
        pages: dict[str, tuple[RawFile, str, str]] = {}
        for file in files:
            document = _parsed(file, skipped)
            if document is None:
                continue
            inside, title = page_parts(document)
            identity = identity_of([inside])
            if not inside:
                skipped["pages without content"] += 1
            elif identity in pages:
                skipped["pages seen before"] += 1
            elif not stands_alone(inside):
                skipped["pages that do not end where they end"] += 1
            else:
                pages[identity] = file, inside, title
        titles = _titles([(file, title) for file, _, title in pages.values()])
        units = [
            Unit(inside, identity, {"title": title}, self._origin(file))
            for title, (identity, (file, inside, _)) in zip(titles, pages.items(), strict=True)
        ]
        origin = Provenance(self.name, LICENCE, ATTRIBUTION, _HOME)
        return collected(self.name, "html", units, frame_for("html", title="Pages"), origin, skipped)

    def _origin(self, file: RawFile) -> Provenance:
        place = f"{file.url}#{file.path.partition('!/')[2]}" if file.url else file.path
        return Provenance(self.name, LICENCE, ATTRIBUTION, place, {"sha256": file.sha256})


SOURCE = WebSrc()


def stands_alone(inside: str) -> bool:
    """Whether the inside of a page, put into an article, leaves an article after it as it is."""
    if not _closes_all(inside):
        return False
    text = f"<!DOCTYPE html><html><body><article>\n{inside}\n</article>\n<article>{_PROBE}</article></body></html>"
    document = HtmlDocument(text)
    html = next(iter(_named(document, document.root, "html")), None)
    body = next(iter(_named(document, html, "body")), None) if html is not None else None
    held = document.children(body) if body is not None else []
    if [document.step(node) for node in held] != ["/article[1]", "/article[2]"]:
        return False
    last = document.children(held[1])
    return len(last) == 1 and last[0].kind == "text" and document.text[last[0].start : last[0].end] == _PROBE


def _closes_all(inside: str) -> bool:
    """Whether elements that a parser would carry on into the next page are all ended: bold and the like, selections."""
    opened, at = Counter[str](), 0
    while token := TOKEN.search(inside, at):
        at = token.end()
        name = (token[START] or token[END] or "").lower() if token.lastindex in (START, END) else ""
        if token.lastindex == START and name in RAW:
            closing = re.compile(rf"</{name}", re.IGNORECASE).search(inside, at)
            at = closing.start() if closing else len(inside)
        elif name in _LASTING:
            opened[name] = max(0, opened[name] + (1 if token.lastindex == START else -1))
        elif token.lastindex == CUT:
            return False
    return not +opened


def _named(document: HtmlDocument, node: Node, name: str) -> list[Node]:
    return [child for child in document.children(node) if document.step(child) == f"/{name}"]


def _parsed(file: RawFile, skipped: Skipped) -> HtmlDocument | None:
    try:
        document = parse(file.text, "html")
    except InputError:
        skipped["files that cannot be read as HTML"] += 1
        return None
    assert isinstance(document, HtmlDocument)
    return document


def _titles(pages: Sequence[tuple[RawFile, str]]) -> list[str]:
    """A visible name for each page that no other page has: its title or first heading, and its place in the archive
    where that is not enough."""
    said = [title if len(title) <= _LONGEST_TITLE else "" for _, title in pages]
    times = Counter(name.casefold() for name in said)
    titles, taken = [], set[str]()
    for (file, _), name in zip(pages, said, strict=True):
        title = name if name and times[name.casefold()] == 1 else f"{name} ({_place(file)})" if name else _place(file)
        number, chosen = 2, title
        while chosen.casefold() in taken:
            chosen, number = f"{title} {number}", number + 1
        taken.add(chosen.casefold())
        titles.append(chosen)
    return titles


def _place(file: RawFile) -> str:
    """Words for where a page lies."""
    found = _PLACE.search(file.path)
    if found:
        return f"{found[1]} page {found[3]}"
    return Path(file.path.rpartition("/")[2]).stem


def _suffix(archive: str) -> str:
    path = archive.split("?", 1)[0].lower()
    return next((suffix for suffix in SUFFIXES if is_archive(path) and path.endswith(suffix)), ".zip")


def _host(url: str) -> str:
    return url.split("://", 1)[1].split("/", 1)[0]
