"""OpenAPI documents that the APIs.guru directory lists: a unit is one document, its text untouched.

`list.json` names every API with its versions; of each the preferred version is fetched, in an order drawn from the
names by hash, a few of one provider. A document's licence is the one it states itself; the directory's own is CC0-1.0.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...errors import InputError
from ..catalog import Collection, Provenance, Unit, identity_of, value_at
from ..formats import parse
from ..formats.yaml_tree import YamlDocument
from ..frames import frame_for
from ..own import yaml_documents, yaml_title
from ..record_lists.openapi import is_openapi
from .fetch import Call, Fetcher, RefusedError, is_json
from .source import RawFile, Skipped, Wish, collected

_LIST = "https://api.apis.guru/v2/list.json"
_DOCUMENT_BYTES = 32 << 20
_UNSTATED = "not stated by the document (APIs.guru directory: CC0-1.0)"
_LONGEST_TITLE = 200  # characters


@dataclass(frozen=True)
class ApisGuru:
    """The source of YAML documents."""

    name: str = "apisguru"
    formats: tuple[str, ...] = ("yaml",)
    suffixes: tuple[str, ...] = (".yaml", ".yml")
    hosts: tuple[str, ...] = ("api.apis.guru",)
    licence: str = "as each document states"
    attribution: str = "APIs.guru OpenAPI directory, https://apis.guru, and the documents' authors"
    options: Mapping[str, str] = field(default_factory=lambda: {"per_provider": "3"})

    def fetch(self, fetcher: Fetcher, wish: Wish) -> list[RawFile]:
        """The directory's documents, as many as wished."""
        most = int(wish.resolved(self)["per_provider"])
        listed = fetcher.get(Call(_LIST, pace=0.5, check=is_json), self.hosts)
        files: list[RawFile] = []
        for name, url in _chosen(json.loads(listed.text()), most):
            if len(files) >= wish.records:
                break
            call = Call(url, suffix=".yaml", pace=0.5, most_bytes=_DOCUMENT_BYTES)
            try:
                fetched = fetcher.get(call, self.hosts)
                files.append(RawFile(f"{name}.yaml", fetched.text(), fetched.sha256, fetched.url, fetched.date))
            except (RefusedError, UnicodeDecodeError):  # listed, but not there or no text
                continue
        return files

    def read(self, files: Sequence[RawFile], skipped: Skipped | None = None) -> list[Collection]:
        """One collection of all OpenAPI documents, one of equal content and one of equal title."""
        skipped = Skipped() if skipped is None else skipped
        units: dict[str, Unit] = {}
        titles: set[str] = set()
        for file in files:
            for unit in self._units(file, skipped):
                title = unit.about["title"].casefold()
                if unit.identity in units:
                    skipped["documents seen before"] += 1
                elif title in titles:
                    skipped["documents whose title another one has"] += 1
                else:
                    units[unit.identity] = unit
                    titles.add(title)
        origin = Provenance(self.name, self.licence, self.attribution, "https://apis.guru")
        return collected(self.name, "yaml", list(units.values()), frame_for("yaml"), origin, skipped)

    def _units(self, file: RawFile, skipped: Skipped) -> Iterator[Unit]:
        """The OpenAPI documents of a file."""
        try:
            document = parse(file.text, "yaml")
        except InputError:
            skipped["files that cannot be read as YAML"] += 1
            return
        assert isinstance(document, YamlDocument)
        for text, reading in yaml_documents(document):
            value, title = reading.value, yaml_title(reading.value)
            if not is_openapi(value):
                skipped["documents that are no OpenAPI"] += 1
            elif not 0 < len(title) <= _LONGEST_TITLE:
                skipped["documents without a title"] += 1
            elif any(not fault.local for fault in reading.faults):
                skipped["documents that can be read in two ways"] += 1
            else:
                identity = identity_of([json.dumps(value, sort_keys=True, default=str)])
                place, licence = _origin(value, file), licence_of(value)
                origin = Provenance(self.name, licence, self.attribution, place, {"sha256": file.sha256})
                yield Unit(text, identity, {"title": title}, origin)


SOURCE = ApisGuru()


def licence_of(value: Any) -> str:
    """The licence that a document states of itself: its name and address."""
    stated = value_at(value, ("info", "license"))
    parts = [stated.get(key) for key in ("name", "url")] if isinstance(stated, Mapping) else []
    return " ".join(" ".join(part.split()) for part in parts if isinstance(part, str) and part.strip()) or _UNSTATED


def _origin(value: Any, file: RawFile) -> str:
    """Where the document was published first, or else where it was found."""
    first = value_at(value, ("info", "x-origin", "0", "url"))
    return first if isinstance(first, str) and first else file.url or file.path


def _chosen(listed: Mapping[str, Any], per_provider: int) -> Iterator[tuple[str, str]]:
    """Names and addresses of documents: of each API the preferred version, at most so many of one provider."""
    taken = Counter[str]()
    for name in sorted(listed, key=lambda name: hashlib.sha256(name.encode()).digest()):
        entry = listed[name]
        url = value_at(entry, ("versions", str(entry.get("preferred")), "swaggerYamlUrl"))
        provider = name.partition(":")[0]
        if isinstance(url, str) and taken[provider] < per_provider:
            taken[provider] += 1
            yield name.replace("/", "_"), url
