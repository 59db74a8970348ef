"""What a recipe's questions are made from: collections of public sources, or of the user's own documents.

Only here does building touch a network, and only where a source must fetch; a folder given by `from` is read instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from ..errors import ConfigError, InputError, ModelError
from ..terminal import visible
from .catalog import Collection, identity_of
from .sources import SOURCES, Source, Wish
from .tokens import Tokenizer, cache_folder, default_tokenizer, load_tokenizer

OWN = "own"
_UNITS = 1000  # that a source is asked for
_MOST_TOLD = 20  # documents that are named with the reason why nothing is asked about them


@dataclass(frozen=True)
class Gathering:
    """What is gathered. `format` is that of the collections wanted, or `own` for documents at `folder` in any format;
    `records` about how many units single sources are asked for; `options` settings of single sources; `hosts` what may
    be fetched from; `cache` where responses are kept."""

    sources: Sequence[str]
    format: str
    folder: Path | None = None
    records: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    hosts: Sequence[str] = ()
    cache: Path | None = None


def gather(wanted: Gathering, console: Console) -> list[Collection]:
    """The collections, those without units or tables left out. Raises InputError or ConfigError where there are none,
    with the reasons."""
    skipped = Counter[str]()
    if wanted.format == OWN:
        found = _own(wanted, console)
    else:
        found = [c for name in wanted.sources for c in _of_source(SOURCES[name], wanted, console, skipped)]
        found = [collection for collection in found if collection.format == wanted.format]
    for reason, times in sorted(skipped.items()):
        console.print(f"left out: {times:,} {reason}")
    found = [collection for collection in found if collection.units and collection.tables]
    if not found:
        what = f"in {wanted.folder}" if wanted.folder else f"from {', '.join(wanted.sources)}"
        raise InputError(f"nothing to ask about was found {what}")
    return found


def fingerprint(collection: Collection) -> str:
    """The identity of all that a collection holds."""
    tables = (f"{table.name} {len(table.records)} {table.scope.stored()}" for table in collection.tables)
    origin = sorted(f"{key} {value}" for key, value in collection.provenance.identity.items())
    return identity_of([collection.name, *origin, *(unit.identity for unit in collection.units), *tables])


def load_tokenizers(names: Sequence[str]) -> list[Tokenizer]:
    """The tokenizers that lengths are measured with; none named: the demo model's, which is installed."""
    try:
        return [load_tokenizer(name) for name in names or (default_tokenizer(),)]
    except ModelError as error:
        if not names:
            raise
        raise ModelError(f"{error}; without network, --tokenizers '[]' takes the one that is installed") from error


def _own(wanted: Gathering, console: Console) -> list[Collection]:
    if wanted.folder is None:
        raise ConfigError("from: name a folder with your documents: --from DIR")
    from .own import own

    found = own(wanted.folder)
    for refused in found.refused[:_MOST_TOLD]:
        console.print(visible(f"left out: {refused.path}: {refused.reason}"))
    if len(found.refused) > _MOST_TOLD:
        console.print(f"left out: {len(found.refused) - _MOST_TOLD:,} more")
    return found.collections


def _of_source(source: Source, wanted: Gathering, console: Console, skipped: Counter[str]) -> list[Collection]:
    wish = Wish(wanted.records.get(source.name, _UNITS), dict(wanted.options.get(source.name, {})))
    if wanted.folder is not None and source.suffixes:
        from .sources.files import raw_files

        inside = wanted.folder / source.name
        return source.read(raw_files(inside if inside.is_dir() else wanted.folder, source.suffixes, skipped), skipped)
    if not source.hosts:
        wish.resolved(source)
        return source.read([], skipped)
    from .sources.fetch import Fetcher

    folder = (wanted.cache or cache_folder() / "sources") / source.name
    hosts = wanted.hosts or source.hosts
    with Fetcher(folder, hosts, told=console.print) as fetcher:
        return source.read(source.fetch(fetcher, wish), skipped)
