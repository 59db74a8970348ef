"""OpenAPI documents that the APIs.guru directory lists: a unit is one document, its text untouched.

`list.json` names every API with its versions; of each the preferred version is fetched, in an order drawn from the
names by hash, a few of one provider. A document's licence is the one it states itself; the directory's own is CC0-1.0.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...errors import InputError
from .. import records
from ..catalog import Collection, Provenance, Unit, identity_of, value_at
from ..formats import parse
from ..formats.yaml_tree import YamlDocument
from ..frames import NATIVE, frame_for
from ..record_lists.openapi import is_openapi
from ..record_lists.yaml_values import read_yaml
from .fetch import Call, Fetcher, RefusedError, is_json
from .source import RawFile, Skipped, Wish

_LIST = "https://api.apis.guru/v2/list.json"
_DOCUMENT_BYTES = 32 << 20
_UNSTATED = "not stated by the document (APIs.guru directory: CC0-1.0)"
_LONGEST_TITLE = 200  # characters
_MARKERS = re.compile(r"^(?:---|\.\.\.)(?=[ \t\r\n]|\Z)|^%", re.M)


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
            unit, reason = self._unit(file)
            if unit is None:
                skipped[reason] += 1
            elif unit.identity in units:
                skipped["documents seen before"] += 1
            elif unit.about["title"].casefold() in titles:
                skipped["documents whose title another one has"] += 1
            else:
                units[unit.identity] = unit
                titles.add(unit.about["title"].casefold())
        if not units:
            return []
        content = {"content": identity_of(units)}
        origin = Provenance(self.name, self.licence, self.attribution, "https://apis.guru", content)
        held = list(units.values())
        tables = records.tables(held, "yaml", whole=False)
        return [Collection(self.name, "yaml", held, tables, frame_for("yaml"), NATIVE, origin)]

    def _unit(self, file: RawFile) -> tuple[Unit | None, str]:
        """The document as a unit, or why it is none."""
        text = _plain(file.text)
        if _MARKERS.search(text):
            return None, "files with several documents or directives"
        try:
            document = parse(text, "yaml")
        except InputError:
            return None, "files that cannot be read as YAML"
        assert isinstance(document, YamlDocument)
        readings = read_yaml(document)
        value = readings[0].value if len(readings) == 1 else None
        if not is_openapi(value):
            return None, "files that are no OpenAPI document"
        if any(not fault.local for fault in readings[0].faults):
            return None, "documents that can be read in two ways"
        title = " ".join(str(value_at(value, ("info", "title")) or "").split())
        if not 0 < len(title) <= _LONGEST_TITLE:
            return None, "documents without a title"
        identity = identity_of([json.dumps(value, sort_keys=True, default=str)])
        origin = Provenance(self.name, licence_of(value), self.attribution, _origin(value, file), _hash(file))
        return Unit(text, identity, {"title": title}, origin), ""


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


def _hash(file: RawFile) -> dict[str, str]:
    return {"sha256": file.sha256}


def _plain(text: str) -> str:
    """The document without the marker that may begin it: in a stream the glue has it."""
    return re.sub(r"\A---[ \t]*\r?\n", "", text)


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
