"""Raw files on disk, for `--from DIR`: any layout, in the order of their paths, archives read in place.

Links are not followed. What cannot be used is counted under a reason.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...errors import InputError
from ..formats import DECODERS, SUFFIXES
from . import archives
from .source import RawFile, Skipped

MOST_BYTES = 256 << 20
_LEFT_OUT = frozenset({".git", ".hg", ".svn", "node_modules", "__MACOSX"})


def raw_files(place: Path, suffixes: Sequence[str], skipped: Skipped) -> list[RawFile]:
    """The files with these suffixes at or below `place`, and those in archives there. Raises InputError where there is
    no such place."""
    if not place.exists():
        raise InputError(f"{place}: no such file or folder")
    wanted = tuple(suffix.lower() for suffix in suffixes)
    found: list[RawFile] = []
    for path, name in _walk(place):
        if archives.is_archive(name):
            found.extend(archived(path, suffixes, skipped, name=name))
        elif name.lower().endswith(wanted):
            if path.stat().st_size > MOST_BYTES:
                skipped["files that are too large"] += 1
            else:
                found.extend(_decoded(name, path.read_bytes(), skipped))
    return found


def archived(
    path: Path, suffixes: Sequence[str], skipped: Skipped, *, name: str = "", url: str = "", date: str = ""
) -> list[RawFile]:
    """The members of an archive with these suffixes, in the order of their paths."""
    wanted = tuple(suffix.lower() for suffix in suffixes)

    def is_wanted(member: str) -> bool:
        return member.lower().endswith(wanted) and not _LEFT_OUT & set(member.split("/"))

    found: list[RawFile] = []
    for member, content in archives.members(path, is_wanted, skipped):
        found.extend(_decoded(f"{name or path.name}!/{member}", content, skipped, url, date))
    return sorted(found, key=lambda file: file.path)


def _walk(place: Path) -> Iterator[tuple[Path, str]]:
    """Plain files with their paths below `place`, sorted."""
    if place.is_file():
        yield place, place.name
        return
    files: list[str] = []
    for folder, folders, names in os.walk(place, followlinks=False):
        folders[:] = [name for name in folders if name not in _LEFT_OUT]
        files.extend((Path(folder) / name).relative_to(place).as_posix() for name in names)
    for name in sorted(files):
        path = place / name
        if path.is_file() and not path.is_symlink():
            yield path, name


def _decoded(name: str, content: bytes, skipped: Skipped, url: str = "", date: str = "") -> Iterator[RawFile]:
    format = SUFFIXES.get(Path(name).suffix.lower(), "")
    try:
        text = DECODERS[format](content) if format in DECODERS else content.decode("utf-8-sig")
    except UnicodeDecodeError:
        skipped["files that are not UTF-8"] += 1
        return
    yield RawFile(name, text.removeprefix("\ufeff"), hashlib.sha256(content).hexdigest(), url, date)
