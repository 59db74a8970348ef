"""Writing to a terminal: no colour where none is wanted, and no control sequence that a document or a model made up."""

from __future__ import annotations

import re
import sys
from typing import IO

from rich.console import Console

PLAIN_WIDTH = 120
"""Columns of output that goes to a file or a pipe."""

_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def console(stream: IO[str] | None = None, *, markup: bool = False) -> Console:
    """A console on `stream` (standard output). Without `markup` it takes text as it stands: brackets mean nothing."""
    file = stream or sys.stdout
    plain = {} if file.isatty() else {"force_terminal": False, "width": PLAIN_WIDTH}
    return _Console(file=file, markup=markup, highlight=False, emoji=False, **plain)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leaves it to the command line to end quietly."""
        raise BrokenPipeError


def visible(text: str) -> str:
    """Foreign text made safe to print: characters that steer a terminal are shown as pictures or code points."""
    return _UNSAFE.sub(lambda match: _picture(ord(match[0])), text)


def _picture(code: int) -> str:
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"<U+{code:04X}>"
