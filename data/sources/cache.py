"""Raw responses on disk, so that a repeated build fetches nothing and an interrupted one goes on.

A response is two files named by the SHA-256 of its request: the body as it came, and a note (`.meta`) with the body's
hash, address and date. The body is written first, the note last, each whole or not at all; a body that no longer has
the hash in its note is thrown away, and so fetched again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

_NOTE = ".meta"
_PIECE = 1 << 20  # bytes read at a time


@dataclass(frozen=True)
class Fetched:
    """A response on disk: where it was found in the end, the SHA-256 of its body, when it came (UTC), where it lies,
    and whether it lay there before."""

    url: str
    sha256: str
    date: str
    path: Path
    cached: bool

    def text(self) -> str:
        """The body as characters; a byte order mark is left out. Raises UnicodeDecodeError for anything but UTF-8."""
        return self.path.read_bytes().decode("utf-8-sig")


class Cache:
    """A folder of responses. `damaged` counts the bodies that were thrown away."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.damaged = folder, 0

    def find(self, key: str, suffix: str) -> Fetched | None:
        """The response to the request with this key, if it is there and whole."""
        note, body = self._places(key, suffix)
        try:
            kept = json.loads(note.read_text("utf-8"))
            found = Fetched(kept["url"], kept["sha256"], kept["date"], body, cached=True)
            if sha256_of(body) == found.sha256:
                return found
        except FileNotFoundError:
            if not note.exists():
                return None
        except (OSError, ValueError, KeyError, TypeError):
            pass
        self.damaged += 1
        self.forget(key, suffix)
        return None

    @contextmanager
    def incoming(self, key: str, suffix: str) -> Iterator[BinaryIO]:
        """A file to write a body to; it is gone afterwards unless `keep` took it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        place = self._incoming(key, suffix)
        try:
            with place.open("wb") as file:
                yield file
        finally:
            place.unlink(missing_ok=True)

    def keep(self, key: str, suffix: str, request: Mapping[str, Any], url: str, date: str) -> Fetched:
        """Takes over the body that is open in `incoming` and has been flushed."""
        note, body = self._places(key, suffix)
        incoming = self._incoming(key, suffix)
        digest, size = sha256_of(incoming), incoming.stat().st_size
        _sync(incoming)
        incoming.replace(body)
        entry = {"request": dict(request), "url": url, "sha256": digest, "bytes": size, "date": date}
        temporary = note.with_name(f"{note.name}.{os.getpid()}")
        temporary.write_text(json.dumps(entry, sort_keys=True, indent=1) + "\n", "utf-8")
        _sync(temporary)
        temporary.replace(note)
        return Fetched(url, digest, date, body, cached=False)

    def forget(self, key: str, suffix: str) -> None:
        """Throws a response away."""
        for place in self._places(key, suffix):
            place.unlink(missing_ok=True)

    def _places(self, key: str, suffix: str) -> tuple[Path, Path]:
        return self.folder / f"{key}{_NOTE}", self.folder / f"{key}{suffix}"

    def _incoming(self, key: str, suffix: str) -> Path:
        return self.folder / f".{key}{suffix}.{os.getpid()}"


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


def key_of(request: Mapping[str, Any]) -> str:
    """What a request is filed under: the SHA-256 of its canonical form."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
