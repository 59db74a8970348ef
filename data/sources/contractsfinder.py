"""Public contracts from the UK's Contracts Finder: OCDS release packages of at most 100, the next one at `links.next`;
after too many requests it answers 403 for five minutes."""

from __future__ import annotations

from typing import Any

from ..catalog import Record
from .api import ASK, CLASS, GROUP, Api, Options, Words, number, text, truth
from .fetch import Call, address, is_json

_HOST = "www.contractsfinder.service.gov.uk"
_URL = f"https://{_HOST}/Published/Notices/OCDS/Search"
_PAGE = 100
_ID_LENGTH = 36  # of a notice; a release adds its number


def _first(options: Options, wanted: int) -> Call:
    return _call(address(_URL, {**options, "limit": min(wanted, _PAGE)}))


def _call(url: str) -> Call:
    return Call(url, pace=2.0, busy=((403, 310.0),), check=is_json)


def _following(page: Any, call: Call) -> Call | None:
    del call
    link = (page.get("links") or {}).get("next")
    return _call(link.replace("http://", "https://", 1)) if isinstance(link, str) and link else None


def _location(record: Record) -> str:
    return f"https://{_HOST}/Notice/{str(record['id'])[:_ID_LENGTH]}"


SOURCE = Api(
    name="contractsfinder",
    hosts=(_HOST,),
    licence="OGL-UK-3.0",
    attribution="Contains public sector information licensed under the Open Government Licence v3.0. Contracts Finder, "
    "https://www.contractsfinder.service.gov.uk",
    options={"publishedFrom": "2024-01-01T00:00:00", "publishedTo": "2024-04-01T00:00:00", "stages": "tender,award"},
    list_path=("releases",),
    envelope={
        "version": "1.1",
        "license": "http://www.nationalarchives.gov.uk/doc/open-government-licence/version/3/",
        "releases": [],
    },
    required=(("ocid",), ("id",), ("tender", "title"), ("buyer",)),
    location=_location,
    first=_first,
    following=_following,
    words=Words(
        "contract notice",
        "contract notices",
        ("id",),
        text("tender/title", "title", frozenset()),
        (text("buyer/name", "buyer", CLASS), text("date", "release date", ASK), text("id", "release ID", ASK)),
        (
            number("tender/value/amount", "tender value in pounds"),
            number("awards/0/value/amount", "value of the first award in pounds"),
            text("tender/status", "tender status", CLASS),
            text("tender/procurementMethod", "procurement method", CLASS),
            text("tender/procurementMethodDetails", "details of the procurement method", CLASS),
            text("tender/mainProcurementCategory", "main procurement category", CLASS),
            text("tender/classification/description", "classification", CLASS),
            text("tender/classification/id", "classification code", ASK),
            text("tender/tenderPeriod/endDate", "end of the tender period", ASK),
            text("tender/contractPeriod/startDate", "start of the contract period", ASK),
            text("tender/contractPeriod/endDate", "end of the contract period", ASK),
            text("tender/items/0/deliveryAddresses/0/region", "first delivery region listed", GROUP),
            text("awards/0/suppliers/0/name", "first supplier of the first award", ASK),
            text("awards/0/date", "date of the first award", ASK),
            text("parties/0/address/locality", "town of the first party listed", CLASS),
            text("parties/0/address/postalCode", "postal code of the first party listed", ASK),
            text("ocid", "contracting process ID", ASK),
            truth("tender/suitability/sme", "whether it is suitable for small and medium-sized enterprises"),
            truth("tender/suitability/vcse", "whether it is suitable for voluntary and community organisations"),
        ),
    ),
)
