"""Public sources of documents: one module each, found by name."""

from __future__ import annotations

from collections.abc import Mapping

from . import (
    apisguru,
    clinicaltrials,
    contractsfinder,
    crossref,
    gbif,
    geonames,
    nvd,
    reporter,
    repositories,
    usaspending,
    usgs,
    websrc,
)
from .source import Offline, RawFile, Skipped, Source, Wish

_ALL: tuple[Source, ...] = (
    Offline("geonames", ("json",), geonames.LICENSE, geonames.ATTRIBUTION, geonames.load),
    usgs.SOURCE,
    nvd.SOURCE,
    reporter.SOURCE,
    clinicaltrials.SOURCE,
    gbif.SOURCE,
    crossref.SOURCE,
    contractsfinder.SOURCE,
    usaspending.SOURCE,
    websrc.SOURCE,
    apisguru.SOURCE,
    repositories.SOURCE,
)
SOURCES: Mapping[str, Source] = {source.name: source for source in _ALL}

__all__ = ["SOURCES", "RawFile", "Skipped", "Source", "Wish"]
