"""What HTML says about each tag: where it stands, what it closes, what its end tag may close (WHATWG, tree
construction), and how tags, comments and raw text are spelled (WHATWG, tokenization).

A tag's rules are looked up once for each spelling; foreign elements (svg, math) have entries of their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

BLANK = " \t\n\r\f"
_WS = r"[ \t\n\r\f]"
_VALUE = r"""(?:"[^"]*+"|'[^']*+'|[^ \t\n\r\f>"'][^ \t\n\r\f>]*+|(?=>))"""
_ATTRIBUTE = rf"(?:=|[^ \t\n\r\f/>=])[^ \t\n\r\f/>=]*+(?:{_WS}*+={_WS}*+{_VALUE}|(?!{_WS}*+=))"
ATTRIBUTE = re.compile(_ATTRIBUTE)
_REST = rf"(?:[ \t\n\r\f/]++|{_ATTRIBUTE})*+>"
_NAME = r"[A-Za-z][^ \t\n\r\f/>]*+"
_COMMENT = r"!--(?:-?>|[^-]*+(?:-(?!-!?>)[^-]*+)*+(?:--!?>)?)"

START, END, COMMENT, DECLARATION, CUT = 1, 2, 3, 4, 5
TOKEN = re.compile(
    rf"<(?:({_NAME}){_REST}|/({_NAME}){_REST}|({_COMMENT})|([!?]|/(?!>|[A-Za-z]|\Z))[^>]*+>?|()(?=/?[A-Za-z]))"
)
"""Everything that is not character data. The group that matched says what: the name of a start tag, the name of an
end tag, a comment, a declaration or what is read as a comment, or a tag that the text ends inside of."""

CDATA, CDATA_END = "<![CDATA[", "]]>"
ENTITY = r"&(?:#[0-9]{1,16}|#[xX][0-9a-fA-F]{1,16}|[A-Za-z][A-Za-z0-9]{1,31});?"
UNIT = re.compile(rf"{ENTITY}|<!\[CDATA\[|\]\]>|(?:{TOKEN.pattern})")
"""What must not be cut inside character data: references, and tags without effect that stand in it."""
RAW_UNIT = re.compile(ENTITY)

SCRIPT_STEP = re.compile(r"<!---*+>|(<!--)|(-->)|(<script(?=[ \t\n\r\f/>]))|(</script(?=[ \t\n\r\f/>]))", re.IGNORECASE)

Space = Literal["html", "svg", "math"]


@dataclass(frozen=True, slots=True)
class Tag:
    """The rules of one element name. `key` is unique over name and name space; `start` and `end` name the builder's
    rules for its tags."""

    name: str
    key: str
    space: Space = "html"
    void: bool = False
    special: bool = False
    stop: bool = False  # ends the search for an open `li`, `dd` or `dt`
    bound: bool = False  # what is outside is not in scope
    closes_p: bool = False
    raw: bool = False
    html_inside: bool = False  # a foreign element whose content is HTML
    start: str | None = None
    end: str = "other"


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


VOID = _names(
    "area base basefont bgsound br col embed frame hr image img input keygen link meta param source track wbr"
)
RAW = _names("script style textarea title xmp iframe noembed noframes")
ATOMIC = _names("script style")
HEAD_CONTENT = _names("base basefont bgsound link meta title noscript noframes style script template")
HEADINGS = _names("h1 h2 h3 h4 h5 h6")
SECTIONS = _names("tbody thead tfoot")
_CLOSE_P = _names(
    "address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer header hgroup "
    "main menu nav ol p search section summary ul pre listing form li dd dt plaintext hr xmp"
)
_SPECIAL = _names(
    "address applet area article aside base basefont bgsound blockquote body br button caption center col colgroup dd "
    "details dir div dl dt embed fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header "
    "hgroup hr html iframe img input keygen li link listing main marquee menu meta nav noembed noframes noscript "
    "object ol p param plaintext pre script search section select source style summary table tbody td template "
    "textarea tfoot th thead title tr track ul wbr xmp"
)
_BOUND = _names("applet caption html table td th marquee object template")
_FORMATTING = _names("a b big code em font i nobr s small strike strong tt u")
_IN_SCOPE = _names(
    "address applet article aside blockquote button center details dialog dir div dl dd dt fieldset figcaption figure "
    "footer header hgroup listing main marquee menu nav object ol pre search section select summary ul"
)
_TABLE_PARTS = _names("caption colgroup tbody tfoot thead tr td th")
_NO_END = _names("br hr img input col frame")
_RUBY = _names("rb rt rtc rp")
IMPLIED_END = _names("dd dt li optgroup option p rb rp rt rtc")
BREAKOUT = _names(
    "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta "
    "nobr ol p pre ruby s small span strong strike sub sup table tt u ul var"
)
FONT_BREAKOUT = re.compile(r"[ \t\n\r\f/](?:color|face|size)(?=[ \t\n\r\f/>=])", re.IGNORECASE)
HTML_ANNOTATION = re.compile(r"encoding\s*=\s*[\"']?(?:text/html|application/xhtml\+xml)\b", re.IGNORECASE)
_SVG_HTML = _names("foreignobject desc title")
_MATH_TEXT = _names("mi mo mn ms mtext")
MATH_IN_TEXT = _names("mglyph malignmark")

_START_RULES = {
    **dict.fromkeys(("html", "head", "body", "frameset", "frame"), "misplaced"),
    **dict.fromkeys(HEADINGS, "heading"),
    "li": "item",
    **dict.fromkeys(("dd", "dt"), "definition"),
    **dict.fromkeys(("a", "nobr"), "again"),
    "button": "button",
    "form": "form",
    "table": "table",
    **dict.fromkeys(_TABLE_PARTS | {"col"}, "table_part"),
    **dict.fromkeys(("option", "optgroup"), "option"),
    "select": "select",
    **dict.fromkeys(_RUBY, "ruby"),
}
_END_RULES = {
    **dict.fromkeys(("html", "body"), "page"),
    "head": "head",
    "p": "paragraph",
    "li": "item",
    "form": "form",
    "template": "template",
    **dict.fromkeys(_NO_END, "none"),
    **dict.fromkeys(HEADINGS, "heading"),
    **dict.fromkeys(_FORMATTING, "formatting"),
    **dict.fromkeys(_IN_SCOPE, "in_scope"),
    **dict.fromkeys(_TABLE_PARTS | {"table"}, "table_part"),
}


def html_tag(name: str) -> Tag:
    """The rules of an HTML element with this lower-case name."""
    return Tag(
        name=name,
        key=name,
        void=name in VOID,
        special=name in _SPECIAL,
        stop=name in _SPECIAL and name not in ("address", "div", "p"),
        bound=name in _BOUND,
        closes_p=name in _CLOSE_P,
        raw=name in RAW,
        start=_START_RULES.get(name),
        end=_END_RULES.get(name, "other"),
    )


def foreign_tag(name: str, space: Space, opening: str) -> Tag:
    """The rules of an svg or math element; `opening` is its start tag."""
    inside = name in _SVG_HTML if space == "svg" else name in _MATH_TEXT
    if name == "annotation-xml" and space == "math":
        inside = HTML_ANNOTATION.search(opening) is not None
    bound = inside or name == "annotation-xml"
    return Tag(name, f"{space}:{name}", space, special=bound, stop=bound, bound=bound, html_inside=inside)
