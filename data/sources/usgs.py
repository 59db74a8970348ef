"""Earthquakes from the USGS event service (FDSN): GeoJSON features, at most 20,000 a request, counted from 1."""

from __future__ import annotations

from typing import Any

from ..catalog import Record, value_at
from .api import CLASS, MEASURE, Api, Options, Words, number, text
from .fetch import Call, address, is_json

_URL = "https://earthquake.usgs.gov/fdsnws/event/1/query"
_PAGE = 2000
_PLACE = text("properties/place", "place", frozenset())
_ID = text("id", "event ID", frozenset({"ask"}))


def _call(query: dict[str, str | int]) -> Call:
    return Call(address(_URL, query), pace=1.0, check=is_json)


def _first(options: Options, wanted: int) -> Call:
    query = {"format": "geojson", **options, "orderby": "time-asc", "limit": min(wanted, _PAGE), "offset": 1}
    return _call(query)


def _following(page: Any, call: Call) -> Call | None:
    url, limit, offset = call.url, _query(call, "limit"), _query(call, "offset")
    if len(page["features"]) < limit:
        return None
    return Call(url.replace(f"&offset={offset}", f"&offset={offset + limit}"), pace=call.pace, check=is_json)


def _query(call: Call, name: str) -> int:
    return int(call.url.partition(f"&{name}=")[2].partition("&")[0])


def _location(record: Record) -> str:
    return str(value_at(record, ("properties", "url")) or "")


SOURCE = Api(
    name="usgs",
    hosts=("earthquake.usgs.gov",),
    licence="public domain (U.S. Government work)",
    attribution="U.S. Geological Survey, Earthquake Hazards Program, https://earthquake.usgs.gov",
    options={"starttime": "2024-01-01", "endtime": "2024-07-01", "minmagnitude": "2.5"},
    list_path=("features",),
    envelope={"type": "FeatureCollection", "metadata": {"api": "1.14.1", "status": 200}, "features": []},
    required=(("properties", "mag"), ("properties", "place"), ("geometry", "coordinates"), ("id",)),
    location=_location,
    first=_first,
    following=_following,
    words=Words(
        "earthquake",
        "earthquakes",
        ("id",),
        _PLACE,
        (_ID,),
        (
            number("properties/mag", "magnitude"),
            number("geometry/coordinates/2", "depth in kilometres"),
            number("geometry/coordinates/1", "latitude", MEASURE),
            number("geometry/coordinates/0", "longitude", MEASURE),
            number("properties/sig", "significance"),
            number("properties/nst", "number of seismic stations used"),
            number("properties/gap", "azimuthal gap in degrees"),
            number("properties/rms", "root-mean-square travel time residual in seconds"),
            number("properties/dmin", "distance to the nearest station in degrees"),
            number("properties/felt", "number of felt reports"),
            text("properties/magType", "magnitude type", CLASS),
            text("properties/net", "contributing network code", CLASS),
            text("properties/status", "review status", CLASS),
            text("properties/code", "event code", frozenset({"ask"})),
            text("properties/alert", "alert level", frozenset({"condition"})),
        ),
    ),
)
