"""What every source of documents is: how to fetch it, how to read its files, under which licence.

Fetching and reading are apart. `fetch` turns a wish into raw files with the help of a `Fetcher`, which alone touches
the network; `read` turns raw files into collections, wherever they came from: fetched now, cached, or lying in a folder
(`--from DIR`). What a source cannot use is skipped and counted under a reason, never an error.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from ...config import suggestion
from ...errors import ConfigError
from ..catalog import Collection, Frame, Provenance, Unit, identity_of
from ..frames import NATIVE
from ..records import examined

if TYPE_CHECKING:
    from .fetch import Fetcher

Skipped = Counter[str]
"""How many files or records were left out, by reason."""


@dataclass(frozen=True)
class RawFile:
    """One file or response as it came: where it lay (an archive's member as `ARCHIVE!/MEMBER`), its characters, the
    SHA-256 of its bytes, and the address and date (UTC) it came from ("" for files on disk)."""

    path: str
    text: str
    sha256: str
    url: str = ""
    date: str = ""

    @classmethod
    def of(cls, path: str, text: str, url: str = "") -> RawFile:
        """A raw file of these characters, hashed as UTF-8."""
        return cls(path, text, hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), url)


@dataclass(frozen=True)
class Wish:
    """What a recipe wants of a source: about how many units, and the source's own options (its `options` names them
    with their defaults)."""

    records: int = 1000
    options: Mapping[str, str] = field(default_factory=dict)

    def resolved(self, source: Source) -> dict[str, str]:
        """The source's options with what the wish says instead. Raises ConfigError for a name it does not know."""
        for name in self.options:
            if name not in source.options:
                near = suggestion(name, sorted(source.options))
                raise ConfigError(f"the source {source.name} has no option {name!r}; {near}")
        return {**source.options, **self.options}


class Source(Protocol):
    """A source, found in `SOURCES` by its name. `suffixes` are the files of a folder that it looks at; `options` are
    its settings with their defaults; `hosts` what it fetches from, and nothing else."""

    @property
    def name(self) -> str: ...
    @property
    def formats(self) -> tuple[str, ...]: ...
    @property
    def suffixes(self) -> tuple[str, ...]: ...
    @property
    def hosts(self) -> tuple[str, ...]: ...
    @property
    def licence(self) -> str: ...
    @property
    def attribution(self) -> str: ...
    @property
    def options(self) -> Mapping[str, str]: ...

    def fetch(self, fetcher: Fetcher, wish: Wish) -> list[RawFile]:
        """The raw files that hold about as many units as wished."""
        ...

    def read(self, files: Sequence[RawFile], skipped: Skipped | None = None) -> list[Collection]:
        """What the files offer, in their order; the same files give the same collections. What is left out is counted
        in `skipped`."""
        ...


@dataclass(frozen=True)
class Offline:
    """A source that an installed package holds: nothing is fetched, and files say nothing to it."""

    name: str
    formats: tuple[str, ...]
    licence: str
    attribution: str
    load: Callable[[], list[Collection]]
    suffixes: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)

    def fetch(self, fetcher: Fetcher, wish: Wish) -> list[RawFile]:
        """Nothing: the package is installed or it is not."""
        del fetcher
        wish.resolved(self)
        return []

    def read(self, files: Sequence[RawFile], skipped: Skipped | None = None) -> list[Collection]:
        """What the package holds."""
        del files, skipped
        return self.load()


def collected(
    name: str, format: str, units: Sequence[Unit], frame: Frame, origin: Provenance, skipped: Skipped
) -> list[Collection]:
    """The collection of units in a format of documents, with the tables found in them; none without units. Units that
    must not stand in a context are left out and counted."""
    found = examined(units, format, name=name)
    skipped.update(f"units left out: {reason}" for reason in found.unfit.values())
    kept, tables = found.settled(units)
    if not kept:
        return []
    origin = replace(origin, identity={"content": identity_of(unit.identity for unit in kept)})
    return [Collection(name, format, kept, tables, frame, NATIVE, origin)]
