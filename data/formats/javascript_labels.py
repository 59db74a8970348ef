"""Names of JavaScript members as path steps: what a key stands for, its escapes read."""

from __future__ import annotations

import json
import re

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
ESCAPE = r"\\(?:u\{[0-9a-fA-F]*\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[0-3][0-7]{0,2}|[4-7][0-7]?|\r\n|[\s\S])"
_ESCAPED = re.compile(ESCAPE)
_ONE_LETTER = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}
_LINE_ENDS = ("\n", "\r", "\r\n", "\u2028", "\u2029")


def step_of(key: str) -> str:
    """The path step of a member whose key is written like this: `.key` or `["other key"]`."""
    label = label_of(key)
    return f".{label}" if _IDENTIFIER.match(label) else f"[{_quoted(label)}]"


def label_of(key: str) -> str:
    """The name that a key as written stands for; what is no static key (a spread, a computed key) is its own label."""
    if key[:1] in ("'", '"'):
        return _ESCAPED.sub(_unescaped, key[1:-1])
    if key[:1].isdigit() or (key[:1] == "." and key[1:2].isdigit()):
        return _number_label(key)
    return _ESCAPED.sub(_unescaped, key) if "\\" in key and not key.startswith(("[", "...")) else key


def _unescaped(match: re.Match[str]) -> str:
    escape = match[0][1:]
    if escape in _LINE_ENDS:
        return ""
    if escape[0] in "01234567":
        return chr(int(escape, 8))
    if escape[0] in "ux" and len(escape) > 1:
        code = int(escape[1:].strip("{}") or "0", 16)
        return chr(code) if code <= 0x10FFFF else escape
    return _ONE_LETTER.get(escape, escape)


def _number_label(key: str) -> str:
    """A number as JavaScript writes it as a property name, where that is simple; as it stands otherwise."""
    digits = key.replace("_", "").removesuffix("n")
    try:
        return str(int(digits, 0 if digits[1:2].isalpha() else 10))
    except ValueError:
        pass
    try:
        number = float(digits)
    except ValueError:
        return key
    plain = repr(number).removesuffix(".0")
    return key if "e" in plain or "inf" in plain else plain


def _quoted(label: str) -> str:
    try:
        label = label.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return json.dumps(label)
    return json.dumps(label, ensure_ascii=False)
