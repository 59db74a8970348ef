"""Public sources of records: one module each, found by name."""

from __future__ import annotations

from collections.abc import Callable

from ..catalog import Collection
from . import geonames

SOURCES: dict[str, Callable[[], list[Collection]]] = {"geonames": geonames.load}
