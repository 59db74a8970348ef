"""From the bytes of an HTML file to its characters (WHATWG, "determining the character encoding")."""

from __future__ import annotations

import codecs
import re

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_HEAD = 4096  # bytes in which a declaration is looked for; the standard asks for the first 1,024 at least
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_XML = re.compile(rb"""\s*<\?xml[^>]{0,200}?\sencoding\s*=\s*["']([A-Za-z0-9._:\-]+)""")
_META = re.compile(rb"""<meta[\s/][^>]*?charset\s*=\s*["']?\s*([A-Za-z0-9._:\-]+)""", re.IGNORECASE)
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
    head = _COMMENT.sub(b"", data[:_HEAD])
    for pattern in (_XML.match, _META.search):
        found = pattern(head)
        label = found[1].decode("ascii").lower() if found else ""
        name = _READ_AS.get(label) or _codec(label)
        if name:
            return _READ_AS.get(name, name)
    return None


def _codec(label: str) -> str | None:
    try:
        info = codecs.lookup(label)
    except LookupError:
        return None
    return info.name if info._is_text_encoding else None


def _western(data: bytes) -> str:
    """Windows-1252, its five empty places read as the control characters of the same number."""
    return "".join(map(_WESTERN.__getitem__, data)) if any(b in _EMPTY for b in data) else data.decode("cp1252")


_EMPTY = frozenset(b"\x81\x8d\x8f\x90\x9d")
_WESTERN = [chr(b) if b in _EMPTY else bytes([b]).decode("cp1252") for b in range(256)]
