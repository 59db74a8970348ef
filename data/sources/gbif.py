"""Species occurrences from the GBIF API: at most 300 a page and 100,000 a search. Every record has a licence of its
own; by default only CC0 and CC BY ones are asked for. Who recorded one stays in the records but is not asked about."""

from __future__ import annotations

from typing import Any

from ..catalog import Record
from .api import ASK, CLASS, GROUP, MEASURE, Api, Options, Words, number, text
from .fetch import Call, address, is_json

_URL = "https://api.gbif.org/v1/occurrence/search"
_PAGE, _MOST = 300, 100_000
_LICENCES = {"publicdomain/zero/1.0": "CC0-1.0", "by/4.0": "CC-BY-4.0", "by-nc/4.0": "CC-BY-NC-4.0"}


def _first(options: Options, wanted: int) -> Call:
    query: dict[str, Any] = {name: value.split(",") for name, value in options.items()}
    return _call(address(_URL, {**query, "hasCoordinate": "true", "limit": min(wanted, _PAGE)}), 0)


def _call(url: str, offset: int) -> Call:
    return Call(f"{url}&offset={offset}", pace=1.0, check=is_json)


def _following(page: Any, call: Call) -> Call | None:
    offset = int(page["offset"]) + len(page["results"])
    if page.get("endOfRecords") or offset >= _MOST:
        return None
    return _call(call.url.partition("&offset=")[0], offset)


def _location(record: Record) -> str:
    return f"https://www.gbif.org/occurrence/{record['key']}"


def _licence_of(record: Record) -> str | None:
    """The short name of a record's licence, its address if it is another; None if the record states none."""
    stated = record.get("license")
    if not isinstance(stated, str) or "unspecified" in stated.lower():
        return None
    return next((short for part, short in _LICENCES.items() if f"/{part}" in stated), stated)


SOURCE = Api(
    name="gbif",
    hosts=("api.gbif.org",),
    licence="CC0-1.0 or CC-BY-4.0, as each record says",
    attribution="GBIF.org and the publishers of the occurrence records, https://www.gbif.org",
    options={"taxonKey": "5", "year": "2022", "country": "", "license": "CC0_1_0,CC_BY_4_0"},
    list_path=("results",),
    envelope={"offset": 0, "limit": _PAGE, "endOfRecords": False, "results": [], "facets": []},
    required=(("key",), ("scientificName",), ("basisOfRecord",)),
    location=_location,
    licence_of=_licence_of,
    first=_first,
    following=_following,
    words=Words(
        "occurrence",
        "occurrences",
        ("key",),
        text("scientificName", "scientific name", CLASS),
        (
            text("eventDate", "event date", ASK),
            text("catalogNumber", "catalogue number", ASK),
            text("gbifID", "GBIF ID", ASK),
        ),
        (
            number("decimalLatitude", "latitude", MEASURE),
            number("decimalLongitude", "longitude", MEASURE),
            number("coordinateUncertaintyInMeters", "coordinate uncertainty in metres"),
            number("elevation", "elevation in metres"),
            number("depth", "depth in metres"),
            number("individualCount", "individual count"),
            text("basisOfRecord", "basis of record", CLASS),
            text("country", "country", CLASS),
            text("stateProvince", "state or province", CLASS),
            text("locality", "locality", ASK),
            text("gadm/level1/name", "first-level administrative area", CLASS),
            text("gadm/level2/name", "second-level administrative area", CLASS),
            text("genus", "genus", CLASS),
            text("family", "family", CLASS),
            text("order", "order", CLASS),
            text("class", "class", GROUP),
            text("taxonomicStatus", "taxonomic status", CLASS),
            text("institutionCode", "institution code", CLASS),
            text("habitat", "habitat", ASK),
            text("eventTime", "event time", ASK),
            number("month", "month", GROUP),
            number("year", "year", GROUP),
        ),
    ),
)
