"""Reading files: every character as it stands, or one line that says why not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from treeagent.data.formats import format_of, read_text
from treeagent.errors import InputError


def test_line_ends_and_byte_order_mark_are_kept(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'\xef\xbb\xbf{\r\n"a": 1}\r')
    assert read_text(str(tmp_path / "a.json")) == '\ufeff{\r\n"a": 1}\r'


def test_what_cannot_be_read_is_said_with_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "b.json").write_bytes(b"ab\xff")
    with pytest.raises(InputError, match=r"b\.json: not UTF-8: byte 2: "):
        read_text(str(tmp_path / "b.json"))
    with pytest.raises(InputError, match=r"none: cannot be read: No such file"):
        read_text(str(tmp_path / "none"))
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="standard input is closed"):
        read_text("-")


def test_the_suffix_names_the_format_in_any_case() -> None:
    assert format_of("A.JSON") == format_of("b.geojson") == "json"
    with pytest.raises(InputError, match=r"a\.txt: the suffix names no known format"):
        format_of("a.txt")
