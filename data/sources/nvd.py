"""Vulnerabilities from the NVD CVE API 2.0: at most 2,000 a page and 120 days between the two dates; without a key five
requests in 30 seconds, and status 403 for more."""

from __future__ import annotations

from typing import Any

from ..catalog import Record, value_at
from .api import ASK, CLASS, GROUP, Api, Options, Words, number, text
from .fetch import Call, address, is_json

_URL = "https://services.nvd.nist.gov/rest/json/cves/2.0"
_PAGE = 500
_PACE = 6.5  # seconds
_SCORE = "cve/metrics/cvssMetricV31/0/"
_ID = text("cve/id", "CVE ID", frozenset())


def _first(options: Options, wanted: int) -> Call:
    del wanted
    return _call({**options, "resultsPerPage": _PAGE, "startIndex": 0})


def _call(query: dict[str, str | int]) -> Call:
    return Call(f"{address(_URL, query)}&noRejected", pace=_PACE, busy=((403, 35.0),), check=is_json)


def _following(page: Any, call: Call) -> Call | None:
    start = int(page["startIndex"]) + len(page["vulnerabilities"])
    if start >= int(page["totalResults"]):
        return None
    before = call.url.partition("&startIndex=")[0]
    return Call(f"{before}&startIndex={start}&noRejected", pace=_PACE, busy=call.busy, check=is_json)


def _location(record: Record) -> str:
    return f"https://nvd.nist.gov/vuln/detail/{value_at(record, ('cve', 'id'))}"


SOURCE = Api(
    name="nvd",
    hosts=("services.nvd.nist.gov",),
    licence="public domain (U.S. Government work)",
    attribution="National Vulnerability Database, https://nvd.nist.gov. This product uses data from the NVD API but is "
    "not endorsed or certified by the NVD.",
    options={"pubStartDate": "2024-01-01T00:00:00.000", "pubEndDate": "2024-04-01T00:00:00.000"},
    list_path=("vulnerabilities",),
    envelope={"startIndex": 0, "format": "NVD_CVE", "version": "2.0", "vulnerabilities": []},
    required=(("cve", "id"), ("cve", "descriptions")),
    location=_location,
    first=_first,
    following=_following,
    words=Words(
        "vulnerability",
        "vulnerabilities",
        ("cve", "id"),
        _ID,
        (),
        (
            number(f"{_SCORE}cvssData/baseScore", "base score in the first CVSS 3.1 assessment"),
            number(f"{_SCORE}exploitabilityScore", "exploitability score in the first CVSS 3.1 assessment"),
            number(f"{_SCORE}impactScore", "impact score in the first CVSS 3.1 assessment"),
            text(f"{_SCORE}cvssData/baseSeverity", "base severity in the first CVSS 3.1 assessment", CLASS),
            text(f"{_SCORE}cvssData/attackVector", "attack vector in the first CVSS 3.1 assessment", CLASS),
            text(f"{_SCORE}cvssData/vectorString", "vector string of the first CVSS 3.1 assessment", ASK),
            text(f"{_SCORE}cvssData/privilegesRequired", "privileges required by the first CVSS 3.1 assessment", GROUP),
            number("cve/metrics/cvssMetricV2/0/cvssData/baseScore", "base score in the first CVSS 2.0 assessment"),
            text("cve/vulnStatus", "status", CLASS),
            text("cve/sourceIdentifier", "source", CLASS),
            text("cve/published", "publication time", ASK),
            text("cve/lastModified", "time of last modification", ASK),
            text("cve/weaknesses/0/description/0/value", "first weakness listed", CLASS),
        ),
    ),
)
