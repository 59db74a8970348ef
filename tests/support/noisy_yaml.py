"""YAML written as people and programs write it, and as nobody would: both styles, any indentation, comments in odd
places, all kinds of scalars, anchors, aliases, tags, complex keys, several documents, three line ends."""

from __future__ import annotations

from hypothesis import strategies as st

_WORDS = ["ab", "id", "東京", "naïve", "it's", "a#b", "x:y", "12", "true", "null", "-1.5e3", "think", "😀", "~", "no"]
_PLAIN = st.lists(st.sampled_from(_WORDS), min_size=1, max_size=4).map(" ".join)
_SINGLE = _PLAIN.map(lambda text: "'" + text.replace("'", "''") + " ''q'''")
_ESCAPES = st.sampled_from(['\\"', "\\\\", "\\n", "\\x41", "\\u00e9", "\\U0001F600", "#", ": ", "'", "- ", "{", "\\/"])
_DOUBLE = st.lists(st.one_of(_ESCAPES, _PLAIN), max_size=5).map(lambda parts: '"' + "".join(parts) + '"')
_PROPERTY = st.sampled_from(["", "", "", "", "", "&a ", "&b1 ", "!t ", "!!str ", "&a !t "])
_COMMENT = st.sampled_from(["", "", "", " # note", "  # - a: [b", " #"])
_SCALAR = st.one_of(_PLAIN, _PLAIN, _SINGLE, _DOUBLE)
_LINES = st.lists(st.sampled_from(["text", "  more", "# no comment", "--- x", "", "a: b", "trail  "]), max_size=4)


def _indented(text: str, by: int) -> str:
    return "".join(" " * by + line if line.strip() else line for line in text.splitlines(keepends=True))


@st.composite
def _flow(draw: st.DrawFn, depth: int = 2) -> str:
    """A flow node on one line or several."""
    kind = draw(st.integers(0, 5 if depth else 1))
    if kind < 2:
        return draw(_PROPERTY) + draw(_SCALAR)
    if kind == 2:
        return "*a "
    gap = draw(st.sampled_from(["", " ", "\n ", "  # c ]\n  "]))
    inner = _flow(depth - 1)
    count = draw(st.integers(0, 3))
    if kind == 3:
        pair = st.tuples(_PLAIN, inner).map(lambda both: f"{both[0]}: {both[1]}")
        items = [draw(st.one_of(inner, pair)) for _ in range(count)]
    else:
        keys = st.one_of(_PLAIN, _SINGLE, st.just("? k1"), st.just("? [c, d]"), st.just("*a "))
        items = [draw(keys) + ": " + draw(inner) for _ in range(count)]
    comma = draw(st.sampled_from([", ", ",", " ,\n ", ", # after\n "]))
    open_, close = "[]" if kind == 3 else "{}"
    body = comma.join(items) + (comma if items and draw(st.booleans()) else "")
    return draw(st.sampled_from(["", "", "&f ", "!t "])) + open_ + gap + body + (gap if gap.strip() else " ") + close


@st.composite
def _block_scalar(draw: st.DrawFn) -> str:
    header = draw(st.sampled_from("|>")) + draw(st.sampled_from(["", "-", "+"])) + draw(_COMMENT)
    lines = ["first", *draw(_LINES), *draw(st.sampled_from([[], [""], ["", ""]]))]
    return header + "\n" + _indented("\n".join(lines) + "\n", 2)


@st.composite
def _above(draw: st.DrawFn) -> str:
    """Comments and blank lines that may stand before an entry."""
    return draw(st.sampled_from(["", "", "", "\n", "# above\n", "# one\n\n  # two: {\n"]))


@st.composite
def _value(draw: st.DrawFn, depth: int, item: bool) -> str:
    """What follows `key:` or `-`, from the blank on, to the end of its last line; nested blocks are indented."""
    kind = draw(st.integers(0, 7 if depth else 4))
    if kind == 0:
        return draw(_COMMENT) + "\n"
    if kind < 3:
        return " " + _indented(draw(_flow()), 3).lstrip() + draw(_COMMENT) + "\n"
    if kind == 3:
        return " " + draw(_PROPERTY) + draw(_block_scalar())
    if kind == 4:
        return " " + draw(_PROPERTY) + draw(_SCALAR) + draw(_COMMENT) + "\n"
    block = draw(_block(depth - 1))
    by = draw(st.integers(1, 4))
    if item and kind == 5 and block[0] not in "#\n":
        return " " * by + _indented(block, by + 1).lstrip()
    return draw(st.sampled_from(["", "", " &m", " !t"])) + draw(_COMMENT) + "\n" + _indented(block, by)


@st.composite
def _block(draw: st.DrawFn, depth: int = 2) -> str:
    """A block collection at the left margin, whole lines."""
    out = ""
    if draw(st.booleans()):
        for _ in range(draw(st.integers(1, 3))):
            out += draw(_above()) + "-" + draw(_value(depth, True))
        return out
    for _ in range(draw(st.integers(1, 4))):
        out += draw(_above())
        key = draw(
            st.one_of(_PLAIN, _PLAIN, _SINGLE, _DOUBLE, st.sampled_from(["&k key", "*a ", "[x, y]", "id", "id"]))
        )
        if draw(st.integers(0, 7)):
            out += key + ":" + draw(_value(depth, False))
        else:
            out += "?" + draw(_value(max(depth - 1, 0), True)) + draw(st.sampled_from(["", "# mid\n"]))
            out += draw(st.one_of(st.just(""), _value(max(depth - 1, 0), True).map(lambda value: ":" + value)))
    return out


_BODY = st.one_of(_block(), _block(), _block(), _flow().map(lambda flow: flow + "\n"), _block_scalar())


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A stream of one to three documents, sometimes with directives, a byte order mark, other line ends."""
    out = draw(_above())
    for i in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        body = draw(_BODY)
        directive = draw(st.sampled_from(["", "", "", "%TAG !e! tag:example.org,2000:\n", "%YAML 1.1\n"]))
        marker = "---" + draw(st.sampled_from(["\n", "\n", " # start\n"]))
        if directive and i:
            out += "...\n"
        out += directive + (marker if i or directive or draw(st.booleans()) else "") + body
    out += draw(st.sampled_from(["", "", "# end\n", "...\n", "...\n# end"]))
    out = out.replace("\n", draw(st.sampled_from(["\n", "\n", "\r\n", "\r"])))
    return draw(st.sampled_from(["", "", "", "\ufeff"])) + out
