"""Federal awards of the United States from USAspending: a form is posted; at most 100 a page, 50,000 a search."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..catalog import Record
from .api import ASK, CLASS, GROUP, Api, Options, Words, number, text
from .fetch import Call, is_json

_URL = "https://api.usaspending.gov/api/v2/search/spending_by_award/"
_PAGE, _MOST_PAGES = 100, 500
_FIELDS = (
    "Award ID",
    "Recipient Name",
    "Recipient UEI",
    "Award Amount",
    "Total Outlays",
    "Description",
    "Contract Award Type",
    "Start Date",
    "End Date",
    "Awarding Agency",
    "Awarding Sub Agency",
    "Funding Agency",
    "Funding Sub Agency",
    "Recipient Location",
    "Primary Place of Performance",
    "NAICS",
    "PSC",
    "Base Obligation Date",
    "Last Modified Date",
)


def _first(options: Options, wanted: int) -> Call:
    del wanted
    period = {"start_date": options["start_date"], "end_date": options["end_date"]}
    filters: dict[str, Any] = {
        "time_period": [period],
        "award_type_codes": options["award_type_codes"].split(","),
    }
    if options["agency"]:
        filters["agencies"] = [{"type": "awarding", "tier": "toptier", "name": options["agency"]}]
    form = {
        "filters": filters,
        "fields": list(_FIELDS),
        "page": 1,
        "limit": _PAGE,
        "sort": "Award Amount",
        "order": "desc",
        "subawards": False,
    }
    return Call(_URL, form, pace=1.0, check=is_json)


def _following(page: Any, call: Call) -> Call | None:
    number = call.body["page"]
    if not page["page_metadata"].get("hasNext") or number >= _MOST_PAGES:
        return None
    return replace(call, body={**call.body, "page": number + 1})


def _location(record: Record) -> str:
    name = record.get("generated_internal_id")
    return f"https://www.usaspending.gov/award/{name}" if name else ""


SOURCE = Api(
    name="usaspending",
    hosts=("api.usaspending.gov",),
    licence="public domain (U.S. Government work)",
    attribution="USAspending.gov, U.S. Department of the Treasury, https://www.usaspending.gov",
    options={"start_date": "2023-10-01", "end_date": "2023-12-31", "award_type_codes": "A,B,C,D", "agency": ""},
    list_path=("results",),
    envelope={"spending_level": "awards", "limit": _PAGE, "results": [], "page_metadata": {"page": 1}},
    required=(("Award ID",), ("Recipient Name",), ("generated_internal_id",)),
    location=_location,
    first=_first,
    following=_following,
    words=Words(
        "award",
        "awards",
        ("generated_internal_id",),
        text("Award ID", "award ID", frozenset()),
        (text("Recipient Name", "recipient", CLASS), text("generated_internal_id", "generated internal ID", ASK)),
        (
            number("Award Amount", "award amount in US dollars"),
            number("Total Outlays", "total outlays in US dollars"),
            text("Start Date", "start date", ASK),
            text("End Date", "end date", ASK),
            text("Base Obligation Date", "base obligation date", ASK),
            text("Awarding Agency", "awarding agency", CLASS),
            text("Awarding Sub Agency", "awarding sub-agency", CLASS),
            text("Funding Agency", "funding agency", CLASS),
            text("Contract Award Type", "contract award type", CLASS),
            text("Recipient UEI", "recipient's unique entity ID", ASK),
            text("Recipient Location/city_name", "recipient's city", CLASS),
            text("Recipient Location/state_name", "recipient's state", GROUP | ASK),
            text("Primary Place of Performance/city_name", "city of the primary place of performance", CLASS),
            text("Primary Place of Performance/state_name", "state of the primary place of performance", CLASS),
            text("NAICS/description", "NAICS industry", CLASS),
            text("PSC/description", "product or service", CLASS),
        ),
    ),
)
