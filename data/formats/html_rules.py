"""What start and end tags do to the elements that are open (WHATWG, tree construction, "in body" to "in cell").

A start rule ends what the tag ends and says whether the tag makes an element. An end rule ends an element, or
nothing where the tag matches none.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from .html_open import OpenElements
from .html_tags import HEAD_CONTENT, HEADINGS, IMPLIED_END, SECTIONS, Tag

StartRule = Callable[[OpenElements, Tag, int], bool]
EndRule = Callable[[OpenElements, Tag, int, int], None]


def before_body(page: OpenElements, tag: Tag, at: int) -> bool | None:
    """Start tags until the body begins: whether the tag makes an element, or None where the usual rules hold."""
    name = tag.name
    if tag.space == "html" and name in ("body", "frameset"):
        page.end_to(1 + page.depth("html") + (page.depth("html") < 0), at)
        page.in_body = True
        return True
    if page.tags[-1].key not in (":document", "html", "head"):
        return None
    if name == "html":
        return len(page.tags) == 1 and not page.head_seen and not page.head_implied
    if name == "head":
        made = not page.head_seen and not page.head_implied
        page.head_seen |= made
        return made
    if name in HEAD_CONTENT:
        page.head_implied |= not page.head_seen
        return True
    page.solid(at)
    return None


def _start_misplaced(page: OpenElements, tag: Tag, at: int) -> bool:
    return (tag.name == "frame" and page.tags[-1].key == "frameset") or tag.name == page.tags[-1].key == "frameset"


def _start_heading(page: OpenElements, tag: Tag, at: int) -> bool:
    page.close_paragraph(at)
    if page.tags[-1].key in HEADINGS:
        page.end_to(len(page.tags) - 1, at)
    return True


def _start_item(page: OpenElements, tag: Tag, at: int) -> bool:
    return _close_stop(page, ("li",), at)


def _start_definition(page: OpenElements, tag: Tag, at: int) -> bool:
    return _close_stop(page, ("dd", "dt"), at)


def _close_stop(page: OpenElements, keys: tuple[str, ...], at: int) -> bool:
    stop = page.stops[-1]
    if stop >= 0 and page.tags[stop].key in keys:
        page.end_to(stop, at)
    return True


def _start_again(page: OpenElements, tag: Tag, at: int) -> bool:
    _end_formatting(page, tag, at, -1)
    return True


def _start_button(page: OpenElements, tag: Tag, at: int) -> bool:
    depth = page.in_scope("button")
    if depth >= 0:
        page.end_to(depth, at)
    return True


def _start_form(page: OpenElements, tag: Tag, at: int) -> bool:
    in_template = page.depth("template") >= 0
    if page.form_open and not in_template:
        return False
    page.form_open = not in_template
    page.close_paragraph(at)
    return True


def _start_table(page: OpenElements, tag: Tag, at: int) -> bool:
    if not page.quirks:
        page.close_paragraph(at)
    table = page.depth("table")
    if in_table(page):
        page.end_to(table, at)
    return True


def in_table(page: OpenElements) -> bool:
    """Whether the innermost open element is a table, or a part of one that holds no content of its own."""
    key = page.tags[-1].key
    return key == "table" or ((key in SECTIONS or key == "tr") and page.depth("table") > page.depth("template"))


def _start_table_part(page: OpenElements, tag: Tag, at: int) -> bool:
    base = max(page.depth("table"), page.depth("template"))
    if base < 0:
        return False
    depth = base + 1
    if page.tags[base].key == "template" and len(page.tags) > depth and page.tags[depth].key not in _PARTS:
        return False
    if tag.name in ("tr", "td", "th") and _is(page, depth, SECTIONS):
        depth += 1
    if (tag.name in ("td", "th") and _is(page, depth, ("tr",))) or (
        tag.name == "col" and _is(page, depth, ("colgroup",))
    ):
        depth += 1
    if len(page.tags) > depth:
        page.end_to(depth, at)
    return True


_PARTS = frozenset({"caption", "colgroup", "tbody", "tfoot", "thead", "tr", "td", "th"})


def _is(page: OpenElements, depth: int, keys: frozenset[str] | tuple[str, ...]) -> bool:
    return len(page.tags) > depth and page.tags[depth].key in keys


def _start_option(page: OpenElements, tag: Tag, at: int) -> bool:
    if page.tags[-1].key == "option":
        page.end_to(len(page.tags) - 1, at)
    if tag.name == "optgroup" and page.tags[-1].key == "optgroup":
        page.end_to(len(page.tags) - 1, at)
    return True


def _start_select(page: OpenElements, tag: Tag, at: int) -> bool:
    depth = page.in_scope("select")
    if depth >= 0:
        page.end_to(depth, at)
    return depth < 0


def _start_ruby(page: OpenElements, tag: Tag, at: int) -> bool:
    if page.in_scope("ruby") >= 0:
        keep = "rtc" if tag.name in ("rt", "rp") else ""
        while page.tags[-1].key in IMPLIED_END and page.tags[-1].key != keep:
            page.end_to(len(page.tags) - 1, at)
    return True


def _end_page(page: OpenElements, tag: Tag, at: int, end: int) -> None:
    if page.in_body and "html" not in page.page_ends:
        page.page_ends.setdefault(tag.name, (at, end))


def _end_head(page: OpenElements, tag: Tag, at: int, end: int) -> None:
    depth = page.depth("head")
    if depth >= 0:
        page.end_with(depth, at, end)


def _end_paragraph(page: OpenElements, tag: Tag, at: int, end: int) -> None:
    depth = page.depth("p")
    if depth > page.bounds[-1] and depth > page.depth("button"):
        page.end_with(depth, at, end)


def _end_item(page: OpenElements, tag: Tag, at: int, end: int) -> None:
    depth = page.in_scope("li")
    if depth >= 0 and depth > max(page.depth("ol"), page.depth("ul")):
        page.end_with(depth, at, end)


def _end_form(page: OpenElements, tag: Tag, at: int, end: int) -> None:
    page.form_open = False
    depth = page.in_scope("form")
    inner = page.specials[-1]
    if depth >= 0 and (inner == depth or (page.tags[inner].key in IMPLIED_END and page.specials[-2] == depth)):
        page.end_with(depth, at, end)


def _end_template(page: OpenElements, tag: Tag, at: int, end: int) -> None:
    depth = page.depth("template")
    if depth >= 0:
        page.end_with(depth, at, end)


def _end_nothing(page: OpenElements, tag: Tag, at: int, end: int) -> None:
    """The end tag of an element that has none."""


def _end_heading(page: OpenElements, tag: Tag, at: int, end: int) -> None:
    depth = max(page.in_scope(name) for name in HEADINGS)
    if depth >= 0:
        page.end_with(depth, at, end)


def _end_formatting(page: OpenElements, tag: Tag, at: int, end: int) -> None:
    """The end tag, or with `end` -1 the next start tag, of a formatting element. Where a block has begun inside it,
    the element ends before that block."""
    depth = page.in_scope(tag.key)
    if depth < 0:
        return
    blocks = page.specials
    if blocks[-1] > depth:
        page.take_out(depth, blocks[bisect_right(blocks, depth)])
    elif end < 0:
        page.end_to(depth, at)
    else:
        page.end_with(depth, at, end)


def _end_in_scope(page: OpenElements, tag: Tag, at: int, end: int) -> None:
    depth = page.in_scope(tag.key)
    if depth >= 0:
        page.end_with(depth, at, end)


def _end_table_part(page: OpenElements, tag: Tag, at: int, end: int) -> None:
    depth = page.depth(tag.key)
    base = page.depth("template") if tag.name == "table" else max(page.depth("table"), page.depth("template"))
    if depth > base:
        page.end_with(depth, at, end)


def _end_other(page: OpenElements, tag: Tag, at: int, end: int) -> None:
    depth = page.depth(tag.key)
    if depth >= 0 and page.specials[-1] <= depth:
        page.end_with(depth, at, end)


START_RULES: dict[str, StartRule] = {
    "misplaced": _start_misplaced,
    "heading": _start_heading,
    "item": _start_item,
    "definition": _start_definition,
    "again": _start_again,
    "button": _start_button,
    "form": _start_form,
    "table": _start_table,
    "table_part": _start_table_part,
    "option": _start_option,
    "select": _start_select,
    "ruby": _start_ruby,
}
END_RULES: dict[str, EndRule] = {
    "page": _end_page,
    "head": _end_head,
    "paragraph": _end_paragraph,
    "item": _end_item,
    "form": _end_form,
    "template": _end_template,
    "none": _end_nothing,
    "heading": _end_heading,
    "formatting": _end_formatting,
    "in_scope": _end_in_scope,
    "table_part": _end_table_part,
    "other": _end_other,
}
