"""Funded projects from NIH RePORTER v2: a form is posted; at most 500 a page, 15,000 a search, one request a second."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..catalog import Record
from .api import ASK, CLASS, GROUP, Api, Options, Words, number, text
from .fetch import Call, is_json

_URL = "https://api.reporter.nih.gov/v2/projects/search"
_PAGE, _MOST = 500, 15_000
_FIELDS = """
ApplId ProjectNum ProjectTitle FiscalYear Organization AwardAmount ContactPiName ProjectStartDate ProjectEndDate
ActivityCode AgencyIcAdmin DirectCostAmt IndirectCostAmt FullStudySection AwardNoticeDate BudgetStart BudgetEnd
AbstractText OpportunityNumber CoreProjectNum FundingMechanism ProjectDetailUrl
"""


def _first(options: Options, wanted: int) -> Call:
    del wanted
    years = [int(year) for year in options["fiscal_years"].split(",")]
    criteria: dict[str, Any] = {"fiscal_years": years, "exclude_subprojects": True}
    if options["activity_codes"]:
        criteria["activity_codes"] = options["activity_codes"].split(",")
    body = {
        "criteria": criteria,
        "include_fields": _FIELDS.split(),
        "offset": 0,
        "limit": _PAGE,
        "sort_field": "appl_id",
        "sort_order": "asc",
    }
    return Call(_URL, body, pace=1.1, check=is_json)


def _following(page: Any, call: Call) -> Call | None:
    offset = call.body["offset"] + _PAGE
    if offset >= min(int(page["meta"]["total"]), _MOST):
        return None
    return replace(call, body={**call.body, "offset": offset})


def _location(record: Record) -> str:
    return str(record.get("project_detail_url") or "")


SOURCE = Api(
    name="reporter",
    hosts=("api.reporter.nih.gov",),
    licence="public domain (U.S. Government work)",
    attribution="National Institutes of Health, RePORTER, https://reporter.nih.gov",
    options={"fiscal_years": "2023", "activity_codes": ""},
    list_path=("results",),
    envelope={"meta": {"offset": 0, "limit": _PAGE, "sort_field": "appl_id", "sort_order": "asc"}, "results": []},
    required=(("project_num",), ("project_title",)),
    location=_location,
    first=_first,
    following=_following,
    words=Words(
        "project",
        "projects",
        ("project_num",),
        text("project_title", "title", frozenset()),
        (text("project_num", "project number", ASK),),
        (
            number("award_amount", "award amount in US dollars"),
            number("direct_cost_amt", "direct costs in US dollars"),
            number("indirect_cost_amt", "indirect costs in US dollars"),
            number("fiscal_year", "fiscal year", GROUP | ASK),
            text("organization/org_name", "organization", CLASS),
            text("organization/org_city", "city of the organization", CLASS),
            text("organization/org_state", "state of the organization", GROUP),
            text("organization/dept_type", "department type of the organization", GROUP),
            text("organization/org_country", "country of the organization", CLASS),
            text("activity_code", "activity code", CLASS),
            text("contact_pi_name", "contact principal investigator", ASK),
            text("core_project_num", "core project number", ASK),
            text("project_start_date", "project start date", ASK),
            text("project_end_date", "project end date", ASK),
            text("award_notice_date", "award notice date", ASK),
            text("agency_ic_admin/name", "administering institute", CLASS),
            text("opportunity_number", "funding opportunity number", CLASS),
            text("funding_mechanism", "funding mechanism", GROUP),
        ),
    ),
)
