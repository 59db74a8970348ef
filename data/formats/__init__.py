"""Readers of document formats, found by name or by file suffix.

A reader turns text into a `Document`. Adding a format means adding one module and one line to `FORMATS`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from ...errors import ConfigError, InputError, LimitError, ParseError
from ..tree import Document
from .javascript_tree import parse_javascript
from .json_tree import parse_json

FORMATS: dict[str, Callable[[str], Document]] = {"json": parse_json, "javascript": parse_javascript}
MAX_CHARACTERS = 2**30  # offsets are kept as 32-bit integers
SUFFIXES: dict[str, str] = {".json": "json", ".geojson": "json"} | dict.fromkeys((".js", ".mjs", ".cjs"), "javascript")


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


def read_text(path: str) -> str:
    """The characters of a UTF-8 file, line ends untouched, a byte order mark kept; `-` reads standard input."""
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8: byte {error.start}: {error.reason}") from error
