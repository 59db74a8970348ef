"""Literals and files of JavaScript written as nobody would write them: all spellings of strings and numbers, comments
between any two tokens, holes, trailing commas, what is not static, and code around."""

from __future__ import annotations

from hypothesis import strategies as st

_GAP = st.sampled_from(["", "", "", " ", "\n", "\r\n\t", "/* , ] } */", ' // it\'s "a" [ {\n', "/**/", "\u00a0"])
_CHARS = st.sampled_from([*"ab zé東\"'`\\/.,:{}[]<>|-_#1$", "😀", "\n", "\t", "\x01", "\u0301", "think"])
_NUMBERS = st.sampled_from(
    ["0", "-0", "12", "1e5", "1E+05", "-3.50", "0.10e-2", "9" * 30, ".5", "5.", "0xFfA", "+1", "-.5", "7.0"]
)
_ATOMS = st.sampled_from(
    [
        "0b101",
        "0o17",
        "1_000n",
        "x",
        "f(1, [2, {a: 3}])",
        "/[/\\]},{]+/g",
        "`t${ {a: [1, `}`]} }`",
        "`plain , ] text`",
        "function (a, b) { return {a: [b]}; }",
        "(a) => ({a, b: 1})",
        "class { static x = {y: 1} }",
        "void 0",
        "a ? [1] : {b: 2}",
        "new Date(2024, 1)",
        "({a: 1})",
        "tag`x`",
        "a?.b[0]",
        "undefined",
        "!0",
        "1 + 2",
        "- 1",
    ]
)
_ODD_MEMBERS = st.sampled_from(
    [
        "...rest",
        "...{a: 1}",
        "short",
        "[computed]: {a: 1}",
        "[`k${1}`]: 2",
        "method(a, b) { return [a, b]; }",
        "get value() { return 1 }",
        "set value(v) {}",
        "async *items() {}",
        "'quoted method'() {}",
        "1: {a: 1}",
        "0x10: 2",
        "k\\u0061: 1",
    ]
)
_NAMES = ["a", "id", "$x", "_y1", "ünï"]


@st.composite
def strings(draw: st.DrawFn) -> str:
    """A string literal: each character plain where that is allowed, or escaped one way or another."""
    quote = draw(st.sampled_from("'\""))
    pieces = []
    for char in draw(st.lists(_CHARS, max_size=6)):
        for c in char:
            utf16 = c.encode("utf-16-be")
            escaped = "".join(f"\\u{utf16[i]:02x}{utf16[i + 1]:02X}" for i in range(0, len(utf16), 2))
            short = {quote: "\\" + quote, "\\": "\\\\", "\n": "\\n", "\t": "\\t", "z": "\\\nz", "a": "\\x61"}.get(c)
            options = [escaped] + ([short] if short else []) + ([c] if c not in quote + "\\" and c >= " " else [])
            pieces.append(draw(st.sampled_from(options)))
    return quote + "".join(pieces) + quote


def _joined(draw: st.DrawFn, open: str, items: list[str], close: str) -> str:
    parts = [draw(_GAP) + item + draw(_GAP) for item in items]
    trailing = draw(st.sampled_from(["", ","])) if items and items[-1] else ""
    return open + ",".join(parts) + (trailing or "") + draw(_GAP) + close


@st.composite
def _array(draw: st.DrawFn, inner: st.SearchStrategy[str], odd: bool) -> str:
    item = st.one_of(inner, st.just("")) if odd else inner
    items = draw(st.lists(item, max_size=5))
    if items and not items[-1]:
        items.append("")  # the comma after a hole
    return _joined(draw, "[", items, "]")


@st.composite
def _object(draw: st.DrawFn, inner: st.SearchStrategy[str], odd: bool) -> str:
    key = st.one_of(strings(), st.sampled_from([*_NAMES, '"other key"', "'1'"]))
    pair = st.builds(lambda k, a, b, v: f"{k}{a}:{b}{v}", key, _GAP, _GAP, inner)
    member = st.one_of(pair, pair, _ODD_MEMBERS) if odd else pair
    return _joined(draw, "{", draw(st.lists(member, max_size=4)), "}")


def _literals(odd: bool) -> st.SearchStrategy[str]:
    scalar = st.one_of(_NUMBERS, st.sampled_from(["true", "false", "null", "''"]), strings())
    leaf = st.one_of(scalar, _ATOMS) if odd else scalar
    values = st.recursive(leaf, lambda i: st.one_of(_array(i, odd), _object(i, odd)), max_leaves=20)
    return st.one_of(_array(values, odd), _object(values, odd))


STATIC = _literals(odd=False)
"""Literals that JSON5 can read too."""
LITERALS = _literals(odd=True)

_AROUND = st.sampled_from(
    [
        "const {n} = @;",
        "let {n} = /* why */ @, other = 2;",
        "module.exports = @;",
        "{n}.deep.name = (@)",
        "use('x', @, 3);",
        "new Thing(@, @);",
        "export default @;",
        "var {n} = @, {n}2 = @;",
        "if (x) {{ {n} = @; }} else f();",
        "(function () {{\n  var a = 1; {n}.b = @; return g(@);\n}})();",
        "class K {{ m() {{ return this.x = @; }} }}",
    ]
)
_CODE = st.sampled_from(
    [
        "f();",
        "'use strict';",
        "import x from 'y';",
        "function g(a = {x: 1}) { return {a: [1]}; }",
        "label: { a: 1 }",
        "for (const [k, v] of m) { go(k) }",
        "a = b, c = d;",
        "`x${1}`;",
        "export const z = () => [1, 2];",
        ";",
    ]
)


@st.composite
def _statement(draw: st.DrawFn) -> str:
    if draw(st.booleans()):
        return draw(_CODE)
    parts = draw(_AROUND).format(n=draw(st.sampled_from(["a", "b", "$c"]))).split("@")
    return "".join(part + (draw(LITERALS) if i + 1 < len(parts) else "") for i, part in enumerate(parts))


@st.composite
def files(draw: st.DrawFn) -> str:
    """Statements with comments before, between and after them."""
    shebang = draw(st.sampled_from(["", "", "\ufeff", "#!/usr/bin/env node\n"]))
    aside = st.sampled_from(["\n", "\n\n", "\r\n", "\n// note [\n", "\n/* {a: 1} */ "])
    return shebang + "".join(draw(_statement()) + draw(aside) for _ in range(draw(st.integers(1, 4))))


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A bare literal with white space and comments around it, or a file."""
    if draw(st.booleans()):
        return draw(files())
    return draw(st.sampled_from(["", "", "\ufeff"])) + draw(_GAP) + draw(LITERALS) + draw(_GAP)
