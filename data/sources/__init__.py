"""Public sources of documents: one module each, found by name."""

from __future__ import annotations

from collections.abc import Mapping

from . import geonames
from .source import Offline, RawFile, Skipped, Source, Wish

SOURCES: Mapping[str, Source] = {
    source.name: source
    for source in (Offline("geonames", ("json",), geonames.LICENSE, geonames.ATTRIBUTION, geonames.load),)
}

__all__ = ["SOURCES", "RawFile", "Skipped", "Source", "Wish"]
