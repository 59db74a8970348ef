"""From the bytes of an HTML file to its characters (WHATWG, "determining the character encoding")."""

from __future__ import annotations

import codecs
import re

from .html_tags import ATTRIBUTE, BLANK, START, TOKEN

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_HEAD = 4096  # bytes in which a declaration is looked for; the standard asks for the first 1,024 at least
_XML = re.compile(r"""[ \t\n\r\f]*<\?xml[^>]{0,200}?[ \t\n\r\f]encoding\s*=\s*["']([A-Za-z0-9._:\-]+)""")
_CONTENT = re.compile(r"""charset[ \t\n\r\f]*=[ \t\n\r\f]*(?:"([^"]*)"|'([^']*)'|([^ \t\n\r\f;"']+))""", re.IGNORECASE)
_READ_AS = {  # labels that browsers read as a larger character set
    **dict.fromkeys(("iso8859-1", "ascii", "latin-1", "x-user-defined"), "cp1252"),
    **dict.fromkeys(("iso8859-9",), "cp1254"),
    **dict.fromkeys(("iso8859-11", "tis-620"), "cp874"),
    **dict.fromkeys(("gb2312", "gbk", "x-gbk"), "gb18030"),
    **dict.fromkeys(("shift_jis", "x-sjis"), "cp932"),
    **dict.fromkeys(("euc_kr", "ks_c_5601-1987", "johab"), "cp949"),
    "big5": "big5hkscs",
    **dict.fromkeys(("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-7", "unicode"), "utf-8"),
}


def decode_html(data: bytes) -> str:
    """The characters of an HTML file, a byte order mark kept: by the mark, else by what the file declares, else UTF-8,
    else Windows-1252. Bytes that are wrong in the declared encoding become U+FFFD."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    declared = declared_encoding(data)
    for encoding in filter(None, (declared, "utf-8")):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return data.decode(declared, "replace") if declared and declared != "utf-8" else _western(data)


def declared_encoding(data: bytes) -> str | None:
    """The Python name of the encoding that the first bytes declare, if any is known by that label."""
    head = data[:_HEAD].decode("latin-1")
    xml = _XML.match(head)
    labels = [xml[1]] if xml else []
    labels += [_declared_by(m[0]) for m in TOKEN.finditer(head) if m.lastindex == START and m[1].lower() == "meta"]
    for label in map(str.lower, map(str.strip, labels)):
        name = _READ_AS.get(label) or _codec(label)
        if name:
            return _READ_AS.get(name, name)
    return None


def _declared_by(meta: str) -> str:
    """The label that one `meta` tag gives, empty for none."""
    found: dict[str, str] = {}
    for match in ATTRIBUTE.finditer(meta, len("<meta"), len(meta) - 1):
        name, _, value = match[0].partition("=")
        value = value.strip(BLANK)
        found.setdefault(name.strip(BLANK).lower(), value[1:-1] if value[:1] in ('"', "'") else value)
    if "charset" in found:
        return found["charset"]
    if found.get("http-equiv", "").lower() == "content-type":
        label = _CONTENT.search(found.get("content", ""))
        return next(filter(None, label.groups()), "") if label else ""
    return ""


def _codec(label: str) -> str | None:
    try:
        label.encode("ascii")
        info = codecs.lookup(label)
    except (LookupError, ValueError):
        return None
    return info.name if info._is_text_encoding else None


def _western(data: bytes) -> str:
    """Windows-1252, its five empty places read as the control characters of the same number."""
    return "".join(map(_WESTERN.__getitem__, data)) if any(b in _EMPTY for b in data) else data.decode("cp1252")


_EMPTY = frozenset(b"\x81\x8d\x8f\x90\x9d")
_WESTERN = [chr(b) if b in _EMPTY else bytes([b]).decode("cp1252") for b in range(256)]
