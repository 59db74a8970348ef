"""Studies from the ClinicalTrials.gov API v2: at most 1,000 a page, the next one by the token of the last. Only fields
about the protocol are asked for: no contact persons, no result tables."""

from __future__ import annotations

from typing import Any

from ..catalog import Record, value_at
from .api import ASK, CLASS, GROUP, Api, Options, Words, listed, number, text, truth
from .fetch import Call, address, is_json

_URL = "https://clinicaltrials.gov/api/v2/studies"
_PAGE = 200
_FIELDS = """
NCTId BriefTitle OfficialTitle Acronym OrgStudyId OrgFullName OrgClass OverallStatus StatusVerifiedDate StartDate
PrimaryCompletionDate CompletionDate StudyFirstPostDate LastUpdatePostDate LeadSponsorName LeadSponsorClass
CollaboratorName OversightHasDMC BriefSummary Condition Keyword StudyType Phase DesignAllocation
DesignInterventionModel DesignPrimaryPurpose DesignMasking EnrollmentCount EnrollmentType ArmGroupLabel ArmGroupType
InterventionType InterventionName PrimaryOutcomeMeasure PrimaryOutcomeTimeFrame HealthyVolunteers Sex MinimumAge
MaximumAge StdAge LocationFacility LocationCity LocationCountry HasResults
"""
_P = "protocolSection/"
_DESIGN = f"{_P}designModule/"


def _first(options: Options, wanted: int) -> Call:
    dates = f"AREA[StudyFirstPostDate]RANGE[{options['posted_from']},{options['posted_to']}]"
    query = {
        "format": "json",
        "query.cond": options["condition"],
        "filter.advanced": dates,
        "fields": ",".join(_FIELDS.split()),
        "sort": "StudyFirstPostDate:asc",
        "countTotal": "true",
        "pageSize": min(wanted, _PAGE),
    }
    return Call(address(_URL, query), pace=1.3, check=is_json)


def _following(page: Any, call: Call) -> Call | None:
    token = page.get("nextPageToken")
    if not token:
        return None
    before = call.url.partition("&pageToken=")[0]
    return Call(f"{before}&{address('', {'pageToken': token})[1:]}", pace=call.pace, check=is_json)


def _location(record: Record) -> str:
    name = value_at(record, ("protocolSection", "identificationModule", "nctId"))
    return f"https://clinicaltrials.gov/study/{name}"


SOURCE = Api(
    name="clinicaltrials",
    hosts=("clinicaltrials.gov",),
    licence="public domain (ClinicalTrials.gov terms: attribute, state the date, mark changes)",
    attribution="ClinicalTrials.gov, U.S. National Library of Medicine, https://clinicaltrials.gov",
    options={"posted_from": "2023-01-01", "posted_to": "2023-06-30", "condition": ""},
    list_path=("studies",),
    envelope={"studies": []},
    required=(
        ("protocolSection", "identificationModule", "nctId"),
        ("protocolSection", "identificationModule", "briefTitle"),
    ),
    location=_location,
    first=_first,
    following=_following,
    words=Words(
        "clinical study",
        "clinical studies",
        ("protocolSection", "identificationModule", "nctId"),
        text(f"{_P}identificationModule/briefTitle", "brief title", frozenset()),
        (text(f"{_P}identificationModule/nctId", "NCT number", ASK),),
        (
            number(f"{_DESIGN}enrollmentInfo/count", "enrollment count"),
            text(f"{_P}statusModule/overallStatus", "overall status", CLASS),
            text(f"{_P}statusModule/startDateStruct/date", "start date", ASK),
            text(f"{_P}statusModule/completionDateStruct/date", "completion date", ASK),
            text(f"{_P}statusModule/primaryCompletionDateStruct/date", "primary completion date", ASK),
            text(f"{_P}statusModule/studyFirstPostDateStruct/date", "date of first posting", ASK),
            text(f"{_P}sponsorCollaboratorsModule/leadSponsor/name", "lead sponsor", CLASS),
            text(f"{_P}sponsorCollaboratorsModule/leadSponsor/class", "class of the lead sponsor", GROUP),
            text(f"{_P}identificationModule/orgStudyIdInfo/id", "organization's own study ID", ASK),
            text(f"{_DESIGN}studyType", "study type", CLASS),
            text(f"{_DESIGN}designInfo/allocation", "allocation", CLASS),
            text(f"{_DESIGN}designInfo/interventionModel", "intervention model", CLASS),
            text(f"{_DESIGN}designInfo/primaryPurpose", "primary purpose", CLASS),
            text(f"{_DESIGN}designInfo/maskingInfo/masking", "masking", CLASS),
            listed(f"{_DESIGN}phases", "phases"),
            listed(f"{_P}conditionsModule/conditions", "conditions"),
            text(f"{_P}armsInterventionsModule/interventions/0/name", "first intervention listed", ASK),
            text(f"{_P}armsInterventionsModule/interventions/0/type", "type of the first intervention listed", CLASS),
            text(f"{_P}outcomesModule/primaryOutcomes/0/timeFrame", "time frame of the first primary outcome", ASK),
            text(f"{_P}eligibilityModule/sex", "sex of eligible participants", CLASS),
            text(f"{_P}eligibilityModule/minimumAge", "minimum age", CLASS),
            text(f"{_P}eligibilityModule/maximumAge", "maximum age", ASK | GROUP),
            text(f"{_P}contactsLocationsModule/locations/0/city", "city of the first location listed", ASK),
            text(f"{_P}contactsLocationsModule/locations/0/country", "country of the first location listed", CLASS),
            truth(f"{_P}oversightModule/oversightHasDmc", "whether it has a data monitoring committee"),
            truth(f"{_P}eligibilityModule/healthyVolunteers", "whether healthy volunteers are accepted"),
            truth("hasResults", "whether it has results"),
        ),
    ),
)
