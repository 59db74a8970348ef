"""JSON values written as nobody would write them: odd white space, escapes, number spellings, duplicate keys."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

_GAP = st.text(" \t\n\r", max_size=3)
_CHARS = st.sampled_from([*"ab zé東'’\"\\/.,:{}[]<>|-_#1", "😀", "\n", "\t", "\x01", "ſ", "\u0301", "think"])
_NUMBERS = st.sampled_from(["0", "-0", "12", "1e5", "1E+05", "-3.50", "0.10e-2", "9" * 30, "7.0"])


@st.composite
def _string(draw: st.DrawFn) -> str:
    """A string literal: each character plain where JSON allows it, or escaped one way or another."""
    pieces = []
    for char in draw(st.lists(_CHARS, max_size=6)):
        for c in char:
            utf16 = c.encode("utf-16-be")
            escaped = "".join(
                f"\\u{utf16[i]:02{draw(st.sampled_from('xX'))}}{utf16[i + 1]:02x}" for i in range(0, len(utf16), 2)
            )
            short = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "/": "\\/"}.get(c)
            options = [escaped] + ([short] if short else []) + ([c] if c not in '"\\' and c >= " " else [])
            pieces.append(draw(st.sampled_from(options)))
    return '"' + "".join(pieces) + '"'


def _joined(open: str, items: list[str], close: str, gaps: list[str]) -> str:
    gap = iter(gaps)
    inner = ",".join(next(gap) + item + next(gap) for item in items)
    return open + (inner or next(gap)) + close


@st.composite
def _array(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    items = draw(st.lists(inner, max_size=5))
    return _joined("[", items, "]", draw(st.lists(_GAP, min_size=12, max_size=12)))


@st.composite
def _object(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    key = st.one_of(_string(), st.sampled_from(['"a"', '"id"', '"other key"']))
    members = [f"{draw(key)}{draw(_GAP)}:{draw(_GAP)}{draw(inner)}" for _ in range(draw(st.integers(0, 4)))]
    return _joined("{", members, "}", draw(st.lists(_GAP, min_size=12, max_size=12)))


_SCALAR = st.one_of(_NUMBERS, st.sampled_from(["true", "false", "null", '""']), _string())
VALUES: st.SearchStrategy[str] = st.recursive(
    _SCALAR, lambda inner: st.one_of(_array(inner), _object(inner)), max_leaves=30
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A JSON text with white space around it and sometimes a byte order mark before it."""
    return draw(st.sampled_from(["", "", "", "\ufeff"])) + draw(_GAP) + draw(VALUES) + draw(_GAP)


def same(a: Any, b: Any) -> bool:
    """Equality that keeps pairs, int and float, and the order of members apart."""
    return repr(a) == repr(b)
