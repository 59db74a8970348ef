"""HTML written as people write it: pages that are well formed but untidy, and tag soup."""

from __future__ import annotations

from hypothesis import strategies as st

_GAP = st.text(" \t\n\r", max_size=2)
_WORDS = st.sampled_from(
    ["a", "b c", "é", "東京", "&amp;", "&#233;", "&lt;p&gt;", "x < y", "don't", "1 & 2", "\u00a0", "]]>", "-->"]
)
_NAMES = st.sampled_from(["div", "section", "span", "em", "a", "article", "x-card", "DIV", "Span"])
_VALUES = st.sampled_from(['"v"', "'it \"is\"'", "v", '"a>b"', "'<p>'", '""'])
_VOID = st.sampled_from(["<br>", "<br/>", "<img src='a>b.png' alt=x>", "<HR>", "<input disabled>"])
_REMARK = st.sampled_from(["<!-- note -->", "<!--a-->", "<!-- <p> -- x -->"])
_RAW = st.sampled_from(["<script>if (a<b) '</p>'</script>", "<style>p > a {}</style>", "<textarea><p>&amp;</textarea>"])
_SOUP = [
    *["<p>", "<div>", "<b>", "<i>", "<a href=x>", "<ul>", "<li>", "<table>", "<tr>", "<td>", "<th>", "<select>"],
    *["<option>", "<form>", "<h1>", "<h2>", "<button>", "<svg>", "<math>", "<g/>", "<foreignObject>", "<dl>", "<dd>"],
    *["</p>", "</div>", "</b>", "</i>", "</a>", "</ul>", "</li>", "</table>", "</tr>", "</td>", "</svg>", "</form>"],
    *["</h1>", "</option>", "</select>", "</button>", "</body>", "</html>", "<html lang=x>", "<head>", "<body a=1>"],
    *["</head>", "<title>", "</title>", "<template>", "</template>", "<br>", "</br>", "<col>", "<tbody>", "<caption>"],
    *[
        "<!--x-->",
        "<!--",
        "-->",
        "<!DOCTYPE html>",
        "<?pi x>",
        "<![CDATA[y]]>",
        "</>",
        "</ x>",
        "<script>",
        "</script>",
    ],
    *["<style>", "</style>", "<p a='", '"', "'>", "<", ">", "&amp;", "&", "text ", "x", " ", "\n", "\0", "é", "<ruby>"],
    *["<rt>", "<dt>", "<frameset>", "<frame>", "<noscript>", "<meta charset=x>", "<plaintext>", "<o:p>", "<image>"],
]


@st.composite
def _attributes(draw: st.DrawFn) -> str:
    pairs = draw(st.lists(st.tuples(st.sampled_from(["id", "CLASS", "data-x", "hidden"]), _VALUES), max_size=2))
    return "".join(f" {draw(_GAP)}{name}={value}" for name, value in pairs) + (" " if pairs else "")


@st.composite
def _element(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    name = draw(_NAMES)
    if name == "a":  # a link in a link is soup
        return f"<a{draw(_attributes())}>{draw(_WORDS)}</a{draw(_GAP)}>"
    content = "".join(draw(_GAP) + part for part in draw(st.lists(inner, max_size=4)))
    return f"<{name}{draw(_attributes())}>{content}{draw(_GAP)}</{name.swapcase()}>"


@st.composite
def _list(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    """A list or table, end tags left out here and there."""
    close = draw(st.booleans())
    items = draw(st.lists(inner, min_size=1, max_size=4))
    if draw(st.booleans()):
        return "<ul>" + "".join(f"<li>{item}" + "</li>" * close for item in items) + "</ul>"
    rows = "".join("<tr>" + f"<td>{item}" + "</td></tr>" * close for item in items)
    body = draw(st.booleans())
    return "<table>" + "\n<tbody>" * body + rows + "</tbody>" * (body and close) + "</table>"


FLOW: st.SearchStrategy[str] = st.recursive(
    st.one_of(_WORDS, _VOID, _REMARK, _RAW), lambda inner: st.one_of(_element(inner), _list(inner)), max_leaves=15
)


@st.composite
def pages(draw: st.DrawFn) -> str:
    """A page that every parser reads alike: html, head and body written, everything closed that must be."""
    body = "".join(draw(_GAP) + part for part in draw(st.lists(FLOW, min_size=1, max_size=5)))
    head = draw(st.sampled_from(["<title>t &amp; u</title>", "<meta charset=utf-8>\n<title>x</title>"]))
    start = draw(st.sampled_from(["<!DOCTYPE html>", "<!doctype HTML>\n", "<!DOCTYPE html><!-- c -->\r\n"]))
    return f"{start}<html{draw(_attributes())}><head>{head}</head>\n<body>{body}</body>{draw(_GAP)}</html>{draw(_GAP)}"


@st.composite
def soups(draw: st.DrawFn) -> str:
    """Any sequence of tags, rarely one that makes sense."""
    text = "".join(draw(st.lists(st.sampled_from(_SOUP), min_size=1, max_size=25)))
    return draw(st.sampled_from(["", "", "\ufeff"])) + text + draw(st.sampled_from(["x", "<p>"]))


def documents() -> st.SearchStrategy[str]:
    """Pages and soups."""
    return st.one_of(pages(), soups())
