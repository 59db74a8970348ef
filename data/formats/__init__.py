"""Readers of document formats, found by name or by file suffix.

A reader turns text into a `Document`. Adding a format means adding one module and one line to `FORMATS`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from ...errors import ConfigError, InputError, LimitError, ParseError
from ..tree import Document
from .html_bytes import decode_html
from .html_tree import parse_html
from .javascript_tree import parse_javascript
from .json_tree import parse_json
from .yaml_tree import parse_yaml

FORMATS: dict[str, Callable[[str], Document]] = {
    "json": parse_json,
    "html": parse_html,
    "yaml": parse_yaml,
    "javascript": parse_javascript,
}
DECODERS: dict[str, Callable[[bytes], str]] = {"html": decode_html}  # for formats that declare an encoding
MAX_CHARACTERS = 2**30  # offsets are kept as 32-bit integers
SUFFIXES: dict[str, str] = {
    **dict.fromkeys((".json", ".geojson"), "json"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    **dict.fromkeys((".yaml", ".yml"), "yaml"),
    **dict.fromkeys((".js", ".mjs", ".cjs"), "javascript"),
}


def parse(text: str, format: str) -> Document:
    """The tree of `text`. Raises ParseError for text that is not of this format, ConfigError for an unknown format,
    LimitError for more characters than the index can count."""
    if format not in FORMATS:
        raise ConfigError(f"unknown format {format!r}; known: {', '.join(FORMATS)}")
    if len(text) > MAX_CHARACTERS:
        raise LimitError(f"{len(text):,} characters are more than a document may have ({MAX_CHARACTERS:,})")
    if not text.strip("\ufeff \t\r\n"):
        raise ParseError(format, 1, 1, "the document is empty")
    return FORMATS[format](text)


def format_of(path: str) -> str:
    """The format a file's suffix stands for. Raises InputError where it stands for none."""
    format = SUFFIXES.get(Path(path).suffix.lower())
    if format is None:
        raise InputError(f"{path}: the suffix names no known format; say which with --format ({', '.join(FORMATS)})")
    return format


def read_text(path: str, format: str | None = None) -> str:
    """The characters of a file, line ends untouched, a byte order mark kept; `-` reads standard input. UTF-8 unless the
    format has its own way to say otherwise."""
    if path == "-" and sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise InputError("standard input is closed")
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    if format in DECODERS:
        return DECODERS[format](data)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8: byte {error.start}: {error.reason}") from error
