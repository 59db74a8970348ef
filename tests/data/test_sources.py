"""The sources: what they ask for, page by page, and what they make of responses in their shape."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from api_server import Answer, ApiServer, Asked, Detour, Waits, serving
from treeagent.data.catalog import Collection, value_at
from treeagent.data.sources import SOURCES, RawFile, Skipped, Wish
from treeagent.data.sources.api import Api
from treeagent.data.sources.fetch import Fetcher
from treeagent.errors import ConfigError

Record = dict[str, Any]
JSON_SOURCES = ("usgs", "nvd", "reporter", "clinicaltrials", "gbif", "crossref", "contractsfinder", "usaspending")


def usgs(i: int) -> Record:
    properties = {"mag": i / 10, "place": f"{i} km N of Somewhere", "url": f"https://example.org/{i}", "magType": "ml"}
    return {"type": "Feature", "properties": properties, "geometry": {"coordinates": [1.5, 2.5, i]}, "id": f"xx{i}"}


def nvd(i: int) -> Record:
    score = {"source": "nvd@nist.gov", "cvssData": {"baseScore": 5.0 + i / 10, "baseSeverity": "HIGH"}}
    return {"cve": {"id": f"CVE-2024-{i:04}", "descriptions": [], "metrics": {"cvssMetricV31": [score]}}}


def reporter(i: int) -> Record:
    return {"appl_id": i, "project_num": f"1R01AA{i:06}-01", "project_title": f"Study {i}", "award_amount": 1000 + i}


def clinicaltrials(i: int) -> Record:
    named = {"nctId": f"NCT{i:08}", "briefTitle": f"Trial {i}"}
    return {"protocolSection": {"identificationModule": named, "designModule": {"enrollmentInfo": {"count": i}}}}


def gbif(i: int) -> Record:
    licence = "http://creativecommons.org/licenses/by/4.0/legalcode"
    return {"key": i, "scientificName": "Aus bus", "basisOfRecord": "HUMAN_OBSERVATION", "license": licence}


def crossref(i: int) -> Record:
    return {
        "DOI": f"10.1/{i}",
        "title": [f"Work {i}"],
        "type": "journal-article",
        "issued": {"date-parts": [[2023, 1]]},
    }


def contractsfinder(i: int) -> Record:
    return {"ocid": f"ocds-{i}", "id": f"r{i}", "tender": {"title": f"Tender {i}"}, "buyer": {"name": "Council"}}


def usaspending(i: int) -> Record:
    return {
        "Award ID": f"W{i}",
        "Recipient Name": "ACME",
        "Award Amount": i * 1.5,
        "generated_internal_id": f"CONT_AWD_{i}",
    }


RECORDS: Mapping[str, Callable[[int], Record]] = {name: globals()[name] for name in JSON_SOURCES}
"""A record of each source's shape, by number."""


class Service:
    """The eight APIs with `total` records each, paged as they page."""

    def __init__(self, total: int) -> None:
        self.total = total

    def __call__(self, asked: Asked) -> Answer:
        name, path = SERVICES[asked.host]
        assert asked.path == path
        return Answer.of(getattr(self, f"_{name}")(asked, RECORDS[name]))

    def _cut(self, make: Callable[[int], Record], start: int, size: int) -> list[Record]:
        return [make(i) for i in range(start, min(start + size, self.total))]

    def _usgs(self, asked: Asked, make: Callable[[int], Record]) -> Any:
        query = asked.query
        assert (query["format"], query["orderby"]) == ("geojson", "time-asc")
        features = self._cut(make, int(query["offset"]) - 1, int(query["limit"]))
        return {"type": "FeatureCollection", "metadata": {"count": len(features)}, "features": features}

    def _nvd(self, asked: Asked, make: Callable[[int], Record]) -> Any:
        start, size = int(asked.query["startIndex"]), int(asked.query["resultsPerPage"])
        assert asked.query["noRejected"] == ""
        found = self._cut(make, start, min(size, 2))
        return {"resultsPerPage": 2, "startIndex": start, "totalResults": self.total, "vulnerabilities": found}

    def _reporter(self, asked: Asked, make: Callable[[int], Record]) -> Any:
        assert asked.method == "POST"
        assert asked.body["criteria"] == {"fiscal_years": [2023], "exclude_subprojects": True}
        found = self._cut(make, asked.body["offset"], asked.body["limit"])
        return {"meta": {"total": self.total, "offset": asked.body["offset"]}, "results": found}

    def _clinicaltrials(self, asked: Asked, make: Callable[[int], Record]) -> Any:
        start = int(asked.query.get("pageToken", "t+/=0").removeprefix("t+/="))
        studies = self._cut(make, start, min(int(asked.query["pageSize"]), 2))
        more = start + len(studies) < self.total
        return {"studies": studies, **({"nextPageToken": f"t+/={start + len(studies)}"} if more else {})}

    def _gbif(self, asked: Asked, make: Callable[[int], Record]) -> Any:
        assert asked.every["license"] == ["CC0_1_0", "CC_BY_4_0"]
        assert "country" not in asked.query
        start, size = int(asked.query["offset"]), int(asked.query["limit"])
        found = self._cut(make, start, min(size, 2))
        return {"offset": start, "limit": size, "endOfRecords": start + len(found) >= self.total, "results": found}

    def _crossref(self, asked: Asked, make: Callable[[int], Record]) -> Any:
        cursor = asked.query["cursor"]
        start = 0 if cursor == "*" else int(cursor.removeprefix("c/+="))
        items = self._cut(make, start, min(int(asked.query["rows"]), 2))
        return {"status": "ok", "message": {"next-cursor": f"c/+={start + len(items)}", "items": items}}

    def _contractsfinder(self, asked: Asked, make: Callable[[int], Record]) -> Any:
        start = int(asked.query.get("cursor", "0"))
        found = self._cut(make, start, min(int(asked.query["limit"]), 2))
        after = f"http://www.contractsfinder.service.gov.uk{asked.path}?limit=100&cursor={start + len(found)}"
        return {"version": "1.1", "releases": found, "links": {"next": after} if len(found) == 2 else {}}

    def _usaspending(self, asked: Asked, make: Callable[[int], Record]) -> Any:
        assert asked.body["filters"]["award_type_codes"] == ["A", "B", "C", "D"]
        page = asked.body["page"]
        found = self._cut(make, (page - 1) * 2, 2)
        return {"limit": 2, "results": found, "page_metadata": {"page": page, "hasNext": page * 2 < self.total}}


SERVICES = {
    "earthquake.usgs.gov": ("usgs", "/fdsnws/event/1/query"),
    "services.nvd.nist.gov": ("nvd", "/rest/json/cves/2.0"),
    "api.reporter.nih.gov": ("reporter", "/v2/projects/search"),
    "clinicaltrials.gov": ("clinicaltrials", "/api/v2/studies"),
    "api.gbif.org": ("gbif", "/v1/occurrence/search"),
    "api.crossref.org": ("crossref", "/works"),
    "www.contractsfinder.service.gov.uk": ("contractsfinder", "/Published/Notices/OCDS/Search"),
    "api.usaspending.gov": ("usaspending", "/api/v2/search/spending_by_award/"),
}


def fetched(server: ApiServer, folder: Path, name: str, records: int) -> list[RawFile]:
    waits, source = Waits(), SOURCES[name]
    transport = Detour(server)
    fetcher = Fetcher(folder, source.hosts, transport=transport, clock=waits.clock, sleep=waits.sleep)
    with fetcher:
        return source.fetch(fetcher, Wish(records))


def collection(name: str, files: list[RawFile], skipped: Skipped | None = None) -> Collection:
    (found,) = SOURCES[name].read(files, skipped)
    return found


def raw(value: Any, path: str = "a.json") -> RawFile:
    return RawFile.of(path, json.dumps(value))


def ids(found: Collection) -> list[Any]:
    table = found.tables[0]
    assert table.identity is not None
    return [value_at(record, table.identity) for record in table.records]


@pytest.mark.parametrize("name", JSON_SOURCES)
def test_a_source_pages_through_its_api_to_the_end(name: str, tmp_path: Path) -> None:
    with serving(Service(5)) as server:
        found = collection(name, fetched(server, tmp_path, name, 1000))
        wanted = collection(name, [raw([RECORDS[name](i) for i in range(5)])])
        assert ids(found) == ids(wanted)
        assert [unit.identity for unit in found.units] == [unit.identity for unit in wanted.units]
        asked = len(server.asked)
        fetched(server, tmp_path, name, 1000)
        assert len(server.asked) == asked


@pytest.mark.parametrize("name", JSON_SOURCES)
def test_a_source_asks_for_no_more_than_is_wished(name: str, tmp_path: Path) -> None:
    with serving(Service(5)) as server:
        files = fetched(server, tmp_path, name, 1)
        assert len(server.asked) == len(files) == 1


@pytest.mark.parametrize("name", JSON_SOURCES)
def test_records_stand_in_the_envelope_that_they_came_in(name: str, tmp_path: Path) -> None:
    with serving(Service(3)) as server:
        files = fetched(server, tmp_path, name, 1000)
    found, source = collection(name, files), SOURCES[name]
    assert isinstance(source, Api)
    before, _, after = found.frame.shell("compact")
    texts = [found.frame.unit(unit, "compact")[1] for unit in found.units]
    value = json.loads(before + ",".join(texts) + after)
    assert value_at(value, source.list_path) == [RECORDS[name](i) for i in range(3)]
    assert found.tables[0].scope.pattern == "$." + ".".join(source.list_path) + ".*"
    first = json.loads(files[0].text)
    assert list(value) == list(first)


@pytest.mark.parametrize("name", JSON_SOURCES)
def test_every_record_says_where_it_is_from_and_under_which_licence(name: str) -> None:
    found = collection(name, [raw([RECORDS[name](i) for i in range(2)])])
    for unit in found.units:
        assert unit.provenance.license
        assert unit.provenance.attribution
        assert unit.provenance.location
        assert "" not in unit.provenance.line.split(" | ")


@pytest.mark.parametrize("name", JSON_SOURCES)
def test_records_are_found_alone_in_bare_lists_and_inside_recordings(name: str) -> None:
    make = RECORDS[name]
    files = [
        raw(make(0), "alone.json"),
        raw([make(1), make(2)], "bare.json"),
        raw({"recorded": [{"raw": {"any": [make(3)]}}]}, "recorded.json"),
        raw({"other": "thing"}, "other.json"),
        RawFile.of("broken.json", '{"a": NaN}'),
        RawFile.of("twice.json", '{"a": 1, "a": 2}'),
        RawFile.of("deep.json", "[" * 100_000),
    ]
    skipped = Skipped()
    found = collection(name, files, skipped)
    assert ids(found) == ids(collection(name, [raw([make(i) for i in range(4)])]))
    assert skipped["files that are not clean JSON"] == 3
    assert skipped[f"files without {SOURCES[name].words.plural}"] == 4  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", JSON_SOURCES)
def test_a_record_that_moved_to_another_page_between_two_requests_is_taken_once(name: str) -> None:
    make, skipped = RECORDS[name], Skipped()
    changed = {**make(1), "note": "changed"}
    found = collection(name, [raw([make(0), make(1)]), raw([changed, make(2)], "b.json")], skipped)
    assert ids(found) == ids(collection(name, [raw([make(i) for i in range(3)])]))
    assert sum(times for reason, times in skipped.items() if "seen before" in reason) == 1


@pytest.mark.parametrize("name", JSON_SOURCES)
def test_no_two_fields_of_a_source_go_by_one_name(name: str) -> None:
    words = SOURCES[name].words  # type: ignore[attr-defined]
    names = [field.name for field in (words.naming, *words.qualifiers, *words.fields) if field is not words.naming]
    assert len({field.path for field in words.fields}) == len(words.fields)
    assert len(set(names)) == len({field.path for field in (*words.qualifiers, *words.fields)})


def test_values_inside_lists_are_fields() -> None:
    table = collection("usgs", [raw([usgs(7)])]).tables[0]
    depth = next(field for field in table.fields if field.name == "depth in kilometres")
    assert value_at(table.records[0], depth.path) == 7
    table = collection("nvd", [raw([nvd(3)])]).tables[0]
    score = next(field for field in table.fields if field.name == "base score in the first CVSS 3.1 assessment")
    assert value_at(table.records[0], score.path) == 5.3


def test_a_record_of_another_api_is_none() -> None:
    old = {"CVE_Items": [{"cve": {"CVE_data_meta": {"ID": "CVE-2020-1"}}}]}
    taxon = {"results": [{"key": 1, "scientificName": "Aus bus", "rank": "SPECIES"}]}
    member = {"message": {"items": [{"id": 7, "primary-name": "Publisher"}]}}
    assert SOURCES["nvd"].read([raw(old)]) == []
    assert SOURCES["gbif"].read([raw(taxon)]) == []
    assert SOURCES["crossref"].read([raw(member)]) == []


def test_an_occurrence_has_its_own_licence_or_is_left_out() -> None:
    zero = {**gbif(1), "license": "http://creativecommons.org/publicdomain/zero/1.0/legalcode"}
    none, unknown = {**gbif(2), "license": None}, {**gbif(3), "license": "UNSPECIFIED"}
    skipped = Skipped()
    found = collection("gbif", [raw([gbif(0), zero, none, unknown])], skipped)
    assert [unit.provenance.license for unit in found.units] == ["CC-BY-4.0", "CC0-1.0"]
    assert skipped["occurrences without a licence"] == 2


def test_a_record_with_half_a_character_is_left_out() -> None:
    skipped = Skipped()
    broken = RawFile.of("a.json", json.dumps([{**reporter(0), "abstract_text": "\ud800"}, reporter(1)]))
    assert ids(collection("reporter", [broken], skipped)) == ["1R01AA000001-01"]
    assert skipped["projects with broken characters"] == 1


def test_the_same_files_give_the_same_collection() -> None:
    files = [raw([usgs(i) for i in range(3)])]
    one, other = collection("usgs", files), collection("usgs", files)
    assert one.provenance == other.provenance
    assert [unit.text for unit in one.units] == [unit.text for unit in other.units]
    changed = collection("usgs", [raw([usgs(i) for i in range(4)])])
    assert changed.provenance.identity != one.provenance.identity


def test_options_of_a_recipe_reach_the_request(tmp_path: Path) -> None:
    with serving(lambda asked: Answer.of({"features": []})) as server:
        waits = Waits()
        with Fetcher(
            tmp_path, SOURCES["usgs"].hosts, transport=Detour(server), clock=waits.clock, sleep=waits.sleep
        ) as fetcher:
            SOURCES["usgs"].fetch(fetcher, Wish(10, {"minmagnitude": "6"}))
            with pytest.raises(ConfigError, match="did you mean minmagnitude"):
                SOURCES["usgs"].fetch(fetcher, Wish(10, {"min_magnitude": "6"}))
        assert server.asked[0].query["minmagnitude"] == "6"
        assert server.asked[0].query["starttime"] == "2024-01-01"


def test_a_host_that_the_recipe_does_not_name_is_not_asked(tmp_path: Path) -> None:
    with Fetcher(tmp_path, ["clinicaltrials.gov"]) as fetcher, pytest.raises(ConfigError, match="among the hosts"):
        SOURCES["usgs"].fetch(fetcher, Wish(10))


def test_every_source_goes_by_its_name_and_says_its_licence() -> None:
    for name, source in SOURCES.items():
        assert source.name == name
        assert source.licence
        assert source.attribution
        assert set(source.formats) <= {"json", "html", "yaml", "javascript"}


def test_sources_are_values() -> None:
    source = SOURCES["usgs"]
    assert isinstance(source, Api)
    assert replace(source) == source
