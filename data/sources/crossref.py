"""Scholarly works from the Crossref REST API, by cursor. Members give the metadata without claiming rights in it;
abstracts may be protected and are not asked for. A cursor lives five minutes: an older walk begins anew (`paging`)."""

from __future__ import annotations

from typing import Any

from ..catalog import Record, value_at
from .api import ASK, CLASS, GROUP, Api, Options, Words, number, text
from .fetch import Call, address, is_json

_URL = "https://api.crossref.org/works"
_PAGE = 200
_FIELDS = """
DOI title subtitle author editor container-title short-container-title publisher type issued published created volume
issue page ISSN is-referenced-by-count references-count subject member prefix URL license funder
"""


def _first(options: Options, wanted: int) -> Call:
    query = {**options, "select": ",".join(_FIELDS.split()), "rows": min(wanted, _PAGE)}
    return _call(address(_URL, query), "*")


def _call(url: str, cursor: str) -> Call:
    return Call(f"{url}&{address('', {'cursor': cursor})[1:]}", pace=1.1, check=is_json)


def _following(page: Any, call: Call) -> Call | None:
    cursor = page["message"].get("next-cursor")
    return _call(call.url.partition("&cursor=")[0], cursor) if cursor else None


def _location(record: Record) -> str:
    return f"https://doi.org/{value_at(record, ('DOI',))}"


SOURCE = Api(
    name="crossref",
    hosts=("api.crossref.org",),
    licence="bibliographic facts, no rights claimed (Crossref)",
    attribution="Crossref and its members, https://www.crossref.org",
    options={"filter": "type:journal-article,from-pub-date:2023-01-01,until-pub-date:2023-01-31", "mailto": ""},
    list_path=("message", "items"),
    envelope={"status": "ok", "message-type": "work-list", "message-version": "1.0.0", "message": {"items": []}},
    required=(("DOI",), ("title", "0"), ("type",)),
    location=_location,
    first=_first,
    following=_following,
    words=Words(
        "work",
        "works",
        ("DOI",),
        text("title/0", "title", frozenset()),
        (text("DOI", "DOI", ASK),),
        (
            number("is-referenced-by-count", "number of works citing it"),
            number("references-count", "number of references"),
            text("container-title/0", "journal or book title", CLASS),
            text("publisher", "publisher", CLASS),
            text("type", "type", CLASS),
            text("volume", "volume", ASK),
            text("issue", "issue", ASK),
            text("page", "page range", ASK),
            text("author/0/family", "family name of the first author", ASK),
            text("author/0/given", "given name of the first author", ASK),
            number("issued/date-parts/0/0", "year of issue", GROUP | ASK),
            number("issued/date-parts/0/1", "month of issue", GROUP),
            text("ISSN/0", "first ISSN listed", ASK),
            text("member", "Crossref member ID", GROUP | ASK),
            text("prefix", "DOI prefix", CLASS),
            text("language", "language code", GROUP),
            text("created/date-time", "time of registration", ASK),
        ),
    ),
)
