"""HTML trees: spans and paths against lxml and turbohtml, tag soup by small pages of our own, hostile pages."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import turbohtml
from hypothesis import example, given, settings
from noisy_html import documents, pages
from treeagent.data.formats import format_of, parse, read_text
from treeagent.data.tree import Document, Node
from treeagent.errors import ParseError

BLANK = " \t\n\r\f"
BLANKS = re.compile("[ \\t\\n\\r\\f]+")
etree: Any = import_module("lxml.etree")  # untyped


def walk(document: Document) -> Iterator[Node]:
    stack = [document.root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(document.children(node)))


def slice_of(document: Document, node: Node) -> str:
    return document.text[node.start : node.end]


def rows(text: str) -> list[tuple[str, str]]:
    """Path and source of every node, in order."""
    document = parse(text, "html")
    return [(document.path(node), slice_of(document, node)) for node in walk(document)]


def leaves(text: str) -> list[tuple[str, str]]:
    document = parse(text, "html")
    return [(document.path(n), slice_of(document, n)) for n in walk(document) if not n.n_children]


@given(documents())
@settings(max_examples=150)
def test_children_lie_in_order_inside_their_parent_and_only_markup_lies_between(text: str) -> None:
    document = parse(text, "html")
    seen: set[str] = set()
    for node in walk(document):
        path = document.path(node)
        assert path not in seen
        seen.add(path)
        assert node.start < node.end
        children = document.children(node)
        starts, ends = document.spans(node)
        assert [(c.start, c.end) for c in children] == list(zip(starts.tolist(), ends.tolist(), strict=True))
        edges = [node.content, *(edge for c in children for edge in (c.start, c.end)), node.end]
        assert edges == sorted(edges)
        assert slice_of(document, node).strip(BLANK) == slice_of(document, node)


@given(documents())
@settings(max_examples=150)
def test_no_character_data_is_outside_the_leaves(text: str) -> None:
    """What is left when all leaves are taken out is markup, by the reading of turbohtml."""
    document = parse(text, "html")
    gaps, at = [], 0
    for node in walk(document):
        if not node.n_children:
            gaps.append(text[at : node.start])
            at = node.end
    rest = " ".join([*gaps, text[at:]]).removeprefix("\ufeff")
    assert turbohtml.parse(rest).text.strip(BLANK) == ""


@given(pages())
@settings(max_examples=150)
@example("<html><head><title>t</title></head><body>a<p>b<!--c-->d</p> e<table><tr><td>1</table>f</body></html>")
@example("<html><head></head>\n<body>\n<pre>\n<b>x</b>y</pre></body></html>")
def test_the_path_of_every_node_finds_it_with_lxml(text: str) -> None:
    document = parse(text, "html")
    tree = etree.fromstring(text.encode(), etree.HTMLParser(encoding="utf-8", huge_tree=True)).getroottree()
    found = 0
    for node in walk(document):
        if node is document.root:
            continue
        (there,) = tree.xpath(document.path(node))
        source = slice_of(document, node)
        if node.kind == "text":
            assert BLANKS.split(str(there).strip(BLANK)) == BLANKS.split(html.unescape(source))
        elif node.kind == "comment":
            assert source == f"<!--{there.text}-->"
        else:
            assert source.lower().startswith(f"<{there.tag}")
            attributes = etree.fromstring(text[node.start : node.content].encode(), etree.HTMLParser(encoding="utf-8"))
            tags = list(attributes.iter(there.tag))
            assert not tags or dict(tags[0].attrib) == dict(there.attrib)
        found += 1
    assert found == sum(1 for e in tree.getroot().iter()) + sum(
        1 for t in tree.xpath("//text()[normalize-space(translate(., '\u00a0', 'x'))]") if _opened(t)
    ) + len(tree.xpath("/comment()"))


def _opened(text: Any) -> bool:
    return text.getparent() is not None and not (text.is_text and text.getparent().tag in ("script", "style"))


@given(pages())
@settings(max_examples=60)
def test_elements_begin_and_end_where_turbohtml_says(text: str) -> None:
    """The standard's own tree of a page in order, element by element."""
    document = parse(text.replace("\r\n", " \n"), "html")
    read = turbohtml.parse(document.text, source_locations=True)
    expected = []
    for element in read.iter_elements():
        place = element.source_location
        if place is not None:
            end = place.end_tag.end_offset if place.end_tag else None
            expected.append((element.tag, place.start_tag.start_offset, place.start_tag.end_offset, end))
    got = []
    for node in walk(document):
        if node.kind == "element":
            closed = document.frame(node)[1] and slice_of(document, node).endswith(document.frame(node)[1])
            name = document.path(node).rsplit("/", 1)[1].split("[")[0]
            got.append((name, node.start, node.content, node.end if closed else None))
    assert got == expected


def test_implied_elements_are_named_in_paths_only_where_they_hold_the_page() -> None:
    assert rows("<!DOCTYPE html><title>t</title><p>a<table><tr><td>1<td>2</table>b") == [
        ("/", "<!DOCTYPE html><title>t</title><p>a<table><tr><td>1<td>2</table>b"),
        ("/html/head/title", "<title>t</title>"),
        ("/html/head/title/text()[1]", "t"),
        ("/html/body/p", "<p>a"),
        ("/html/body/p/text()[1]", "a"),
        ("/html/body/table", "<table><tr><td>1<td>2</table>"),
        ("/html/body/table/tr", "<tr><td>1<td>2"),
        ("/html/body/table/tr/td[1]", "<td>1"),
        ("/html/body/table/tr/td[1]/text()[1]", "1"),
        ("/html/body/table/tr/td[2]", "<td>2"),
        ("/html/body/table/tr/td[2]/text()[1]", "2"),
        ("/html/body/text()[1]", "b"),
    ]


def test_the_doctype_before_all_else_is_the_pages_own_and_any_other_is_a_leaf() -> None:
    document = parse("<!DOCTYPE html>\n<p>a", "html")
    assert document.frame(document.root) == ("<!DOCTYPE html>", "")
    assert ("/doctype()", "<!DOCTYPE html>") in rows("<!--c--><!DOCTYPE html><p>a")


SOUPS = {
    "unclosed": ("<ul><li>a<li>b</ul>c", ["<li>a", "<li>b"], "li"),
    "optional": ("<dl><dt>a<dd>b<dt>c</dl>", ["<dd>b"], "dd"),
    "void": ("<p>a<br>b<img src=x>c</p>", ["<br>"], "br"),
    "upper": ("<P>a</P>", ["<P>a</P>"], "p"),
    "unquoted": ("<p a=b>c>d</p>", ["<p a=b>c>d</p>"], "p"),
    "sign in value": ("<p a='>'>b</p>", ["<p a='>'>b</p>"], "p"),
    "misnested": ("<b>1<p>2</b>3</p>", ["<b>1"], "b"),
    "again": ("<a href=1>x<a href=2>y</a>", ["<a href=1>x", "<a href=2>y</a>"], "a"),
    "heading": ("<h1>a</h2>b", ["<h1>a</h2>"], "h1"),
    "paragraph": ("<p>a<div>b</div>c", ["<p>a"], "p"),
    "moved": ("<table><div>x</div><tr><td>1</table>", ["<div>x</div>"], "div"),
    "form": ("<form><div></form>x</div>y", ["<div></form>x</div>"], "div"),
    "script": ("<script>a<!--<script></script>--></script>b", ["<script>a<!--<script></script>--></script>"], "script"),
    "svg": ("<svg><linearGradient/><g>x</g></svg>", ["<linearGradient/>"], "lineargradient"),
    "breakout": ("<svg><g><p>x</svg>", ["<g>"], "g"),
    "foreign": ("<svg><foreignObject><p>x</p></foreignObject></svg>", ["<p>x</p>"], "p"),
    "math": ("<math><mi>x</mi></math>", ["<mi>x</mi>"], "mi"),
    "template": ("<template><tr><td>1</template>", ["<tr><td>1"], "tr"),
    "after the end": ("<html><body>x</body></html>y<p>z", ["<body>x</body></html>y<p>z"], "body"),
    "on after the end": ("<body><div>x</body><!--c--></div>y", ["<div>x</body><!--c--></div>"], "div"),
    "svg after the end": ("<svg></body><!--c--><g>x</g></svg>y", ["<svg></body><!--c--><g>x</g></svg>"], "svg"),
    "colon": ("<o:p>x</o:p>", ["<o:p>x</o:p>"], "*[name()='o:p']"),
    "nested tables": (
        "<table><tr><td><table><tr><td>1</table>2</table>",
        ["<table><tr><td>1</table>"],
        "table/tr/td/table",
    ),
    "ruby": ("<ruby>a<rt>b<rp>c</ruby>", ["<rt>b"], "rt"),
    "select": ("<select><option>a<option>b</select>", ["<option>a", "<option>b"], "option"),
    "head kept": ("<head><noscript><img></noscript></head><body a=1>", ["<body a=1>"], "body"),
}


@pytest.mark.parametrize("soup", SOUPS)
def test_tag_soup_is_read_as_browsers_read_it(soup: str) -> None:
    text, expected, name = SOUPS[soup]
    document = parse(text, "html")
    paths = {n: document.path(n) for n in walk(document) if n.kind == "element"}
    last = name.count("/") + 1
    found = [slice_of(document, n) for n, p in paths.items() if _tail(p, last) == name]
    assert found == expected


def _tail(path: str, steps: int) -> str:
    parts = re.sub(r"\[\d+\]", "", path).split("/")
    return "/".join(parts[-steps:])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<p>pay $<div style=display:inline><span>5.22</span></div> per share", ["pay $", "5.22", "per share"]),
        ("lead<h1>Plan</h1><p>x</p>", ["lead", "Plan", "x"]),
        ("<p>a <b>b</b> c</p>", ["a", "b", "c"]),
        ("<svg><![CDATA[a<b>]]></svg>", ["<![CDATA[a<b>]]>"]),
        ("<p>a<![CDATA[b]]>c", ["a", "<![CDATA[b]]>", "c"]),
        ("<textarea><p>&amp;</textarea>", ["<p>&amp;"]),
        ("<title>a<b></title>", ["a<b>"]),
        ("<p>a</b>c<tr id=x>d", ["a</b>c<tr id=x>d"]),
        ("<p><tr id=x></p>", ["<tr id=x>"]),
        ("<p>x<a href='y>z", ["x", "<a href='y>z"]),
        ("<p>a<!--b", ["a", "<!--b"]),
        ("<?xml version='1.0'?><p>a", ["<?xml version='1.0'?>", "a"]),
        ("<plaintext>a</plaintext><p>", ["a</plaintext><p>"]),
        ("<style>a<b</style>", ["<style>a<b</style>"]),
        ("a\0b", ["a\0b"]),
        ("<p>\u00a0</p>", ["\u00a0"]),
        ("<p> \n</p><i></i>", ["<p> \n</p>", "<i></i>"]),
        ("x</body></html> <!--c-->", ["x", "<!--c-->"]),
    ],
)
def test_every_readable_character_is_in_a_leaf(text: str, expected: list[str]) -> None:
    assert [source for _, source in leaves(text)] == expected


@pytest.mark.parametrize(
    "text",
    [
        "<body><div></body><!--a--></div>",
        "<body><div></body><!--a--></div>x",
        "<div><svg></body><!--a--></svg>x",
        "<svg></body><!--a--><g>x",
        "<svg></body></svg><!--a-->",
        "<body><svg></body></svg><!--a-->",
        "<body><svg></body><html>x</html><!--a--></svg>y",
        "<html><body><div></body></html><!--a--></div><!--b--></html>",
        "<p></body></html><!--a--></p></body><!--b-->",
        "<b></body><!--a--></b></p>x<!--b-->",
        "<html><body>x</html></body>",
        "<body>x</html><!--a--></body>",
        "<p>x</html><!--a--></body><!--b-->",
        "<html><body><div>x</html><!--a--></body>y</div>",
    ],
)
def test_what_goes_on_after_the_end_tag_of_the_body_lies_in_order(text: str) -> None:
    document = parse(text, "html")
    nodes = list(walk(document))
    assert len({document.path(node) for node in nodes}) == len(nodes)
    for node in nodes:
        edges = [node.content, *(edge for c in document.children(node) for edge in (c.start, c.end)), node.end]
        assert edges == sorted(edges)
    found = [slice_of(document, node) for node in nodes]
    assert all(comment in found for comment in re.findall("<!--.*?-->", text))


def test_blank_text_nodes_count_in_positions() -> None:
    assert leaves("<body> <b>x</b> <i>y</i> z</body>")[-1] == ("/html/body/text()[3]", "z")


def test_references_and_tags_without_effect_are_not_cut() -> None:
    document = parse("<p>a&amp;b&#233;c&#xE9;d&copy e</b> f", "html")
    node = list(walk(document))[-1]
    leaf = document.leaf_text(node)
    units = [document.text[s:e] for s, e in zip(leaf.unit_starts, leaf.unit_ends, strict=True)]
    assert units == ["&amp;", "&#233;", "&#xE9;", "&copy", "</b>"]
    assert (leaf.start, leaf.end) == (node.start, node.end)


def test_only_references_are_units_where_tags_are_text() -> None:
    document = parse("<textarea>a <b> &amp; c</textarea>", "html")
    leaf = document.leaf_text(list(walk(document))[-1])
    assert [document.text[s:e] for s, e in zip(leaf.unit_starts, leaf.unit_ends, strict=True)] == ["&amp;"]


def test_a_block_that_outlives_its_formatting_element_moves_up() -> None:
    assert leaves("<div><b>1<i>2<p>3</b>4</p>5</div>") == [
        ("/html/body/div/b/text()[1]", "1"),
        ("/html/body/div/b/i/text()[1]", "2"),
        ("/html/body/div/p/text()[1]", "3</b>4"),
        ("/html/body/div/text()[1]", "5"),
    ]


def test_an_unclosed_element_is_framed_by_an_end_tag() -> None:
    document = parse("<UL class=x><li>a<li>b", "html")
    (list_,) = document.children(document.root)
    assert document.frame(list_) == document.introduction(list_) == ("<UL class=x>", "</UL>")


def test_line_ends_and_a_byte_order_mark_move_no_offset() -> None:
    assert [s for _, s in leaves("\ufeff<p>a\r\n<b>\r\nc</b>\r</p>")] == ["a", "c"]
    document = parse("\ufeff<p>a", "html")
    assert (document.root.start, document.notes) == (1, ("byte order mark",))


def test_a_lone_surrogate_is_refused_with_its_place() -> None:
    with pytest.raises(ParseError) as refusal:
        parse("<p>\na\ud800", "html")
    assert (refusal.value.line, refusal.value.column) == (2, 2)


@pytest.mark.parametrize("depth", [255, 600, 200_000])
def test_depth_loses_nothing(depth: int) -> None:
    """Common parsers drop what is deeper than 255 or flatten what is deeper than 512."""
    document = parse("<div>" * depth + "PAYLOAD" + "</div>" * depth + "<p>after</p>", "html")
    first, after = document.children(document.root)
    assert document.path(after) == "/html/body/p"
    node, levels = first, 1
    while (inner := document.child(node, 0)).kind == "element":
        node, levels = inner, levels + 1
    assert levels == depth
    assert slice_of(document, node) == "<div>PAYLOAD</div>"


HOSTILE: dict[str, Callable[[int], str]] = {
    "siblings": lambda n: "<p>x</p>" * n,
    "misnested": lambda n: "<b><div>" * n + "</b>" * n,
    "one block": lambda n: "<b><i>" * n + "<div>" + "</i></b>" * n,
    "no match": lambda n: "<span>" * n + "</p>" * n,
    "copies": lambda n: "<p>" + "".join(f"<b a={i}>" for i in range(n)) + "</p><p>x" * n,
    "tables": lambda n: "<table><b>" * n,
    "attributes": lambda n: "<p " + "".join(f"a{i}='x' " for i in range(4 * n)) + ">",
    "comment": lambda n: "<!--" * 4 * n,
    "cut tag": lambda n: "<a b='" * 4 * n,
    "signs": lambda n: "<" * 8 * n,
    "scripts": lambda n: "<script><!--<script>" * n,
    "ends": lambda n: "</body>x" * n,
    "blank ends": lambda n: " </b>" * 4 * n,
    "headings": lambda n: "<h1><div>" * n + "</h1>" * n,
}


@pytest.mark.parametrize("page", HOSTILE)
def test_four_times_the_page_costs_about_four_times_the_work(page: str) -> None:
    def cost(n: int) -> float:
        text, best = HOSTILE[page](n), float("inf")
        for _ in range(3):
            start = time.process_time()
            parse(text, "html")
            best = min(best, time.process_time() - start)
        return best

    assert cost(16_000) < 10 * cost(4_000) + 0.02


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("é".encode(), "é"),
        (b"\xef\xbb\xbf<p>\xc3\xa9", "\ufeff<p>é"),
        ("\ufeff<p>é".encode("utf-16-le"), "\ufeff<p>é"),
        ('<meta charset="iso-8859-1">“'.encode("cp1252"), '<meta charset="iso-8859-1">“'),
        ("<META content='text/html; charset=EUC-JP' http-equiv=Content-Type>東".encode("euc-jp"), None),
        ("<!-- <meta charset=utf-8> --><meta charset=koi8-r>я".encode("koi8-r"), None),
        ("<?xml version='1.0' encoding='shift_jis'?>東".encode("cp932"), None),
        ("<meta charset=gb2312>镕".encode("gb18030"), None),
        (b"caf\xe9 \x81", "café \x81"),
        (b"<meta charset=utf-8>caf\xe9", "<meta charset=utf-8>café"),
        (b"<meta charset=no-such>\xc3\xa9", "<meta charset=no-such>é"),
        (b"<meta charset=hex>a\r\nb", "<meta charset=hex>a\r\nb"),
    ],
)
def test_a_file_is_read_in_the_encoding_it_declares(tmp_path: Path, data: bytes, text: str | None) -> None:
    file = tmp_path / "page.htm"
    file.write_bytes(data)
    expected = text or max(_readings(data), key=lambda t: ("東" in t) + ("я" in t) + ("镕" in t))
    assert read_text(str(file), format_of(str(file))) == expected


def _readings(data: bytes) -> list[str]:
    return [data.decode(name, "replace") for name in ("euc-jp", "koi8-r", "cp932", "gb18030")]


def test_what_follows_the_body_stays_inside_an_html_element_without_an_end_tag() -> None:
    document = parse("<html><body><p>a</body><!-- after --></html&&", "html")
    (html,) = document.children(document.root)
    assert (html.start, html.end) == (0, len(document.text))
    assert [(c.kind, c.end) for c in document.children(html)] == [("element", 23), ("comment", 37), ("loose", 45)]
