"""Members of zip and tar archives, read in memory and in order; nothing is ever extracted to disk.

A member with an absolute path, a drive, a `..`, or that is no plain file (links, devices) is left out and counted.
Sizes, numbers and ratios are bounded before and while reading, whatever an archive says of itself.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from ...errors import InputError, LimitError
from .source import Skipped

SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_FAULTS = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, NotImplementedError)
_DRIVE = re.compile(r"[A-Za-z]:")
_MOST_READ = 64 << 20  # bytes at a time; a header that asks for more is none


@dataclass(frozen=True)
class ArchiveBounds:
    """The most members, bytes of one member that is read, bytes unpacked in all, and unpacked bytes for each packed one
    of a member."""

    members: int = 200_000
    member_bytes: int = 32 << 20
    total_bytes: int = 8 << 30
    ratio: int = 400


def is_archive(name: str) -> bool:
    """Whether the name is that of an archive that `members` reads."""
    return name.lower().endswith(SUFFIXES)


def members(
    path: Path, wanted: Callable[[str], bool], skipped: Skipped, bounds: ArchiveBounds | None = None
) -> Iterator[tuple[str, bytes]]:
    """Path and content of each wanted member, in the archive's order. Raises InputError for what is no whole archive,
    LimitError for one beyond a bound."""
    bounds = bounds or ArchiveBounds()
    try:
        yield from (_zip if _starts(path).startswith(b"PK") else _tar)(path, wanted, skipped, bounds)
    except _FAULTS as error:
        raise InputError(f"{path.name}: cannot be read as an archive: {error or type(error).__name__}") from error


def is_whole(path: Path) -> None:
    """Raises ValueError where an archive cannot be read to its end."""
    try:
        for _ in members(path, lambda name: False, Skipped()):
            pass
    except LimitError:
        raise
    except InputError as error:
        raise ValueError(str(error)) from error


def is_safe(name: str) -> bool:
    """Whether a member's path stays inside: relative, without `..`, drive, backslash or control character."""
    parts = name.split("/")
    odd = "\\" in name or _DRIVE.match(name) is not None or any(ord(sign) < 32 for sign in name)
    return bool(name) and not name.startswith("/") and ".." not in parts and not odd


def _zip(
    path: Path, wanted: Callable[[str], bool], skipped: Skipped, bounds: ArchiveBounds
) -> Iterator[tuple[str, bytes]]:
    total = 0
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        _count(len(entries), path, bounds)
        for entry in entries:
            if entry.is_dir():
                continue
            mode = entry.external_attr >> 16
            plain = not stat.S_IFMT(mode) or stat.S_ISREG(mode)
            reason = _refusal(entry.orig_filename, plain, entry.file_size, bounds, wanted)
            if reason is None and entry.flag_bits & 1:
                reason = "archive members that are encrypted"
            if reason is None and entry.file_size > bounds.ratio * max(entry.compress_size, 1 << 10):
                reason = "archive members that unpack to too much"
            if reason is not None:
                _skip(skipped, reason)
                continue
            with archive.open(entry) as file:
                content = _bounded(file, bounds.member_bytes)
            total = _add(total, len(content), path, bounds)
            yield entry.filename, content


def _tar(
    path: Path, wanted: Callable[[str], bool], skipped: Skipped, bounds: ArchiveBounds
) -> Iterator[tuple[str, bytes]]:
    with _unpacked(path) as unpacked:
        counted = _Counted(unpacked, bounds.total_bytes, path.name)
        with tarfile.open(fileobj=cast(IO[bytes], counted), mode="r:") as archive:
            number = 0
            while (entry := archive.next()) is not None:
                number += 1
                _count(number, path, bounds)
                if entry.isdir():
                    continue
                reason = _refusal(entry.name, entry.isreg(), entry.size, bounds, wanted)
                if reason is not None:
                    _skip(skipped, reason)
                    continue
                file = archive.extractfile(entry)
                assert file is not None
                yield entry.name, _bounded(file, bounds.member_bytes)
        while counted.read(1 << 20):  # to the end, so that a packed file that was cut is noticed
            pass


def _refusal(name: str, plain: bool, size: int, bounds: ArchiveBounds, wanted: Callable[[str], bool]) -> str | None:
    """Why a member is left out: "" for one that nobody wants."""
    if not is_safe(name):
        return "archive members with an unsafe path"
    if not plain:
        return "archive members that are links or devices"
    if not wanted(name):
        return ""
    return "archive members that are too large" if size > bounds.member_bytes else None


def _skip(skipped: Skipped, reason: str) -> None:
    if reason:
        skipped[reason] += 1


def _count(number: int, path: Path, bounds: ArchiveBounds) -> None:
    if number > bounds.members:
        raise LimitError(f"{path.name}: more than {bounds.members:,} members")


def _add(total: int, size: int, path: Path, bounds: ArchiveBounds) -> int:
    if total + size > bounds.total_bytes:
        raise LimitError(f"{path.name}: unpacks to more than {bounds.total_bytes:,} bytes")
    return total + size


def _bounded(file: IO[bytes], most: int) -> bytes:
    content = file.read(most + 1)
    if len(content) > most:
        raise LimitError(f"an archive member is larger than it says (more than {most:,} bytes)")
    return content


def _starts(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(6)


def _unpacked(path: Path) -> IO[bytes]:
    """The tar inside, by the packed file's first bytes."""
    head = _starts(path)
    if head.startswith(b"\x1f\x8b"):
        return cast(IO[bytes], gzip.open(path, "rb"))
    if head.startswith(b"BZh"):
        return cast(IO[bytes], bz2.open(path, "rb"))
    if head.startswith(b"\xfd7zXZ"):
        return cast(IO[bytes], lzma.open(path, "rb"))
    return path.open("rb")


class _Counted(io.RawIOBase):
    """Reads on, but never too much at once or in all. It goes forward only, but to where it just was."""

    def __init__(self, file: IO[bytes], most: int, name: str) -> None:
        super().__init__()
        self._file, self._most, self._name = file, most, name

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _MOST_READ:
            raise LimitError(f"{self._name}: a header of {size:,} bytes")
        self._within(self._file.tell() + size - _MOST_READ)
        return self._file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        self._within(offset if whence == 0 else 0)
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, buffer: Any) -> int:
        content = self.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def _within(self, place: int) -> None:
        if place > self._most:
            raise LimitError(f"{self._name}: unpacks to more than {self._most:,} bytes")
