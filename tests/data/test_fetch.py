"""Fetching: from whom, how much, how patiently, and never twice."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from api_server import Answer, Answers, ApiServer, Asked, Detour, Waits, serving
from treeagent.data.sources.fetch import Bounds, Call, Fetcher, RefusedError, is_json
from treeagent.data.sources.paging import pages
from treeagent.errors import ConfigError, InputError, LimitError

HOST = "api.example.org"
URL = f"https://{HOST}/list"


class Scripted:
    """Answers in turn; the last one again and again."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)

    def __call__(self, asked: Asked) -> Answer:
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with serving(Scripted(Answer.of({"ok": True}))) as server:
        yield server


@pytest.fixture
def waits() -> Waits:
    return Waits()


class Fetchers:
    """Makes fetchers over one cache folder, as one process after the other would."""

    def __init__(self, server: ApiServer, waits: Waits, folder: Path) -> None:
        self.folder, self._server, self._waits = folder, server, waits
        self._made: list[Fetcher] = []

    def __call__(self, *hosts: str, **bounds: Any) -> Fetcher:
        made = Fetcher(
            self.folder,
            hosts or (HOST,),
            bounds=Bounds(**bounds),
            transport=Detour(self._server),
            clock=self._waits.clock,
            sleep=self._waits.sleep,
        )
        self._made.append(made)
        return made

    def close(self) -> None:
        for fetcher in self._made:
            fetcher.__exit__()


@pytest.fixture
def fetchers(server: ApiServer, waits: Waits, tmp_path: Path) -> Iterator[Fetchers]:
    made = Fetchers(server, waits, tmp_path / "cache")
    yield made
    made.close()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def test_a_response_is_asked_for_once_and_kept_with_its_hash_and_date(server: ApiServer, fetchers: Fetchers) -> None:
    first = fetchers().get(Call(URL), [HOST])
    again = fetchers().get(Call(URL), [HOST])
    assert len(server.asked) == 1
    assert first.text() == again.text() == '{"ok": true}'
    assert (first.cached, again.cached) == (False, True)
    assert first.sha256 == again.sha256 == hashlib.sha256(b'{"ok": true}').hexdigest()
    assert datetime.fromisoformat(first.date).tzinfo is not None
    note = json.loads((fetchers.folder / f"{first.path.stem}.meta").read_text())
    assert note["request"] == {"method": "GET", "url": URL, "body": None}


def test_who_fetches_says_so_and_sends_no_cookie_back(server: ApiServer, fetchers: Fetchers) -> None:
    server.answers = Scripted(Answer.of({}, headers={"set-cookie": "session=1"}))
    fetcher = fetchers()
    for number in range(2):
        fetcher.get(Call(f"{URL}?{number}"), [HOST])
    assert "treeagent" in server.asked[0].headers["user-agent"]
    assert "cookie" not in server.asked[1].headers
    assert "authorization" not in server.asked[1].headers


def test_two_posted_forms_are_two_requests(server: ApiServer, fetchers: Fetchers) -> None:
    fetcher = fetchers()
    for page in (1, 2, 1):
        fetcher.get(Call(URL, {"page": page}), [HOST])
    assert [asked.body for asked in server.asked] == [{"page": 1}, {"page": 2}]


def test_a_damaged_body_is_noticed_by_its_hash_and_fetched_again(server: ApiServer, fetchers: Fetchers) -> None:
    first = fetchers().get(Call(URL), [HOST])
    first.path.write_bytes(b'{"ok": false}')
    fetcher = fetchers()
    assert fetcher.get(Call(URL), [HOST]).text() == '{"ok": true}'
    assert fetcher.counts["damaged"] == 1
    assert len(server.asked) == 2


@pytest.mark.parametrize("note", [b"", b"{", b"[]", b'{"url": 1}', b"\xff"])
def test_a_torn_note_is_as_good_as_none(server: ApiServer, fetchers: Fetchers, note: bytes) -> None:
    first = fetchers().get(Call(URL), [HOST])
    (fetchers.folder / f"{first.path.stem}.meta").write_bytes(note)
    assert not fetchers().get(Call(URL), [HOST]).cached
    assert len(server.asked) == 2


def test_a_body_without_its_note_is_fetched_again(server: ApiServer, fetchers: Fetchers) -> None:
    first = fetchers().get(Call(URL), [HOST])
    (fetchers.folder / f"{first.path.stem}.meta").unlink()
    assert not fetchers().get(Call(URL), [HOST]).cached


def test_too_many_requests_wait_as_long_as_the_server_says(server: ApiServer, fetchers: Fetchers, waits: Waits) -> None:
    server.answers = Scripted(Answer(status=429, headers={"retry-after": "17"}), Answer.of({}))
    fetcher = fetchers()
    fetcher.get(Call(URL, pace=0), [HOST])
    assert waits.waited == [17.0]
    assert fetcher.counts["again"] == 1


def test_a_date_to_wait_for_is_understood(server: ApiServer, fetchers: Fetchers, waits: Waits) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    server.answers = Scripted(Answer(status=503, headers={"retry-after": date}), Answer.of({}))
    fetchers().get(Call(URL, pace=0), [HOST])
    assert len(waits.waited) == 1
    assert 60 < waits.waited[0] <= 91


def test_a_wait_beyond_patience_ends_the_build_with_the_time(server: ApiServer, fetchers: Fetchers) -> None:
    server.answers = Scripted(Answer(status=429, headers={"retry-after": "7200"}))
    with pytest.raises(InputError, match="7200 s"):
        fetchers().get(Call(URL), [HOST])


def test_a_host_may_have_a_status_of_its_own_for_too_many_requests(
    server: ApiServer, fetchers: Fetchers, waits: Waits
) -> None:
    server.answers = Scripted(Answer(status=403), Answer.of({}))
    fetchers().get(Call(URL, pace=0, busy=((403, 35.0),)), [HOST])
    assert waits.waited == [35.0]


def test_waits_grow_where_the_server_names_none(server: ApiServer, fetchers: Fetchers, waits: Waits) -> None:
    server.answers = Scripted(*[Answer(status=502)] * 4, Answer.of({}))
    fetchers().get(Call(URL, pace=0), [HOST])
    for wait, low in zip(waits.waited, (2, 4, 8, 16), strict=True):
        assert low <= wait <= 2 * low


def test_a_server_that_stays_ill_is_given_up(server: ApiServer, fetchers: Fetchers) -> None:
    server.answers = Scripted(Answer(status=500))
    with pytest.raises(InputError, match=r"api.example.org/list: status 500 \(3 attempts\).*repeat the command"):
        fetchers(attempts=3).get(Call(URL), [HOST])
    assert len(server.asked) == 3
    assert names(fetchers.folder) == []


def test_a_refusal_is_not_tried_again(server: ApiServer, fetchers: Fetchers) -> None:
    server.answers = Scripted(Answer(status=404))
    with pytest.raises(RefusedError) as caught:
        fetchers().get(Call(URL), [HOST])
    assert caught.value.status == 404
    assert len(server.asked) == 1


@pytest.mark.parametrize("length", [100, None])
def test_a_body_cut_short_is_fetched_again(server: ApiServer, fetchers: Fetchers, length: int | None) -> None:
    server.answers = Scripted(Answer(b'{"ok": tr', length=length), Answer.of({"ok": True}))
    fetched = fetchers().get(Call(URL, check=is_json), [HOST])
    assert fetched.text() == '{"ok": true}'
    assert len(server.asked) == 2


def test_a_body_too_large_is_not_kept(server: ApiServer, fetchers: Fetchers) -> None:
    server.answers = Scripted(Answer(b"x" * 5000))
    with pytest.raises(LimitError, match="4,000 bytes"):
        fetchers(response_bytes=4000).get(Call(URL), [HOST])
    assert names(fetchers.folder) == []


def test_a_small_body_that_unpacks_to_much_is_too_large(server: ApiServer, fetchers: Fetchers) -> None:
    packed = gzip.compress(b"0" * 5_000_000)
    server.answers = Scripted(Answer(packed, headers={"content-encoding": "gzip"}))
    with pytest.raises(LimitError):
        fetchers(response_bytes=1_000_000).get(Call(URL), [HOST])


def test_all_responses_together_have_a_limit(server: ApiServer, fetchers: Fetchers) -> None:
    server.answers = Scripted(Answer(b"x" * 600))
    fetcher = fetchers(total_bytes=1000)
    fetcher.get(Call(URL), [HOST])
    with pytest.raises(LimitError, match="in all"):
        fetcher.get(Call(f"{URL}2"), [HOST])


def test_a_host_is_asked_at_its_pace(server: ApiServer, fetchers: Fetchers, waits: Waits) -> None:
    fetcher = fetchers()
    for number in range(3):
        fetcher.get(Call(f"{URL}?{number}", pace=6.0), [HOST])
    assert waits.waited == [6.0, 6.0]


def test_only_hosts_that_source_and_recipe_both_name_are_asked(server: ApiServer, fetchers: Fetchers) -> None:
    with pytest.raises(ConfigError, match=r"evil\.example is not among the hosts"):
        fetchers("evil.example").get(Call("https://evil.example/"), [HOST])
    with pytest.raises(ConfigError, match=r"api\.example\.org is not among the hosts"):
        fetchers("other.example").get(Call(URL), [HOST])
    assert not server.asked


@pytest.mark.parametrize(
    "url",
    [
        f"http://{HOST}/list",
        f"ftp://{HOST}/list",
        f"https://user:pass@{HOST}/list",
        f"https://{HOST}:8443/list",
        f"https://{HOST}.evil.example/",
        f"https://evil.example/https://{HOST}/",
        "file:///etc/passwd",
    ],
)
def test_other_schemes_ports_and_passwords_are_refused(server: ApiServer, fetchers: Fetchers, url: str) -> None:
    with pytest.raises((ConfigError, InputError)):
        fetchers().get(Call(url), [HOST])
    assert not server.asked


def test_a_redirect_among_the_hosts_is_followed(server: ApiServer, fetchers: Fetchers) -> None:
    def answers(asked: Asked) -> Answer:
        if asked.host == HOST:
            return Answer(status=302, headers={"location": "https://files.example.org/body"})
        return Answer.of({"at": asked.path})

    server.answers = answers
    fetched = fetchers(HOST, "files.example.org").get(Call(URL), [HOST, "files.example.org"])
    assert (fetched.url, fetched.text()) == ("https://files.example.org/body", '{"at": "/body"}')


@pytest.mark.parametrize(
    "location", ["https://evil.example/", "//evil.example/x", "http://api.example.org/", "https://[", ""]
)
def test_a_redirect_to_anywhere_else_is_not(server: ApiServer, fetchers: Fetchers, location: str) -> None:
    server.answers = Scripted(Answer(status=301, headers={"location": location}))
    with pytest.raises((ConfigError, InputError)):
        fetchers().get(Call(URL), [HOST])
    assert {asked.host for asked in server.asked} == {HOST}


def test_a_posted_form_is_not_sent_on(server: ApiServer, fetchers: Fetchers) -> None:
    server.answers = Scripted(Answer(status=307, headers={"location": f"https://{HOST}/other"}))
    with pytest.raises(InputError, match="not sent on"):
        fetchers().get(Call(URL, {"a": 1}), [HOST])
    assert len(server.asked) == 1


def test_nothing_listens_is_a_fault_that_passes(fetchers: Fetchers, waits: Waits, tmp_path: Path) -> None:
    with serving(lambda asked: Answer()) as gone:
        pass
    fetcher = Fetcher(tmp_path, [gone.host], bounds=Bounds(attempts=2), clock=waits.clock, sleep=waits.sleep)
    with fetcher, pytest.raises(InputError, match="2 attempts"):
        fetcher.get(Call(f"http://{gone.host}/"), [gone.host])


# Pages.


def numbered(size: int, total: int) -> Answers:
    """A list of numbers, `size` a page, the next page by number."""

    def answers(asked: Asked) -> Answer:
        page = int(asked.query["page"])
        items = list(range(total))[page * size : (page + 1) * size]
        return Answer.of({"items": items, "next": page + 1 if (page + 1) * size < total else None})

    return answers


def following(page: Any, call: Call) -> Call | None:
    return None if page["next"] is None else Call(f"{URL}?page={page['next']}", check=is_json)


def walk(fetcher: Fetcher, wanted: int) -> list[int]:
    first = Call(f"{URL}?page=0", check=is_json)
    files = pages(fetcher, [HOST], first, following, lambda page: len(page["items"]), wanted)
    return [item for file in files for item in json.loads(file.text)["items"]]


def test_pages_are_fetched_until_there_is_enough(server: ApiServer, fetchers: Fetchers) -> None:
    server.answers = numbered(3, 100)
    assert walk(fetchers(), 7) == list(range(9))
    assert len(server.asked) == 3


def test_pages_end_where_there_are_no_more(server: ApiServer, fetchers: Fetchers) -> None:
    server.answers = numbered(3, 8)
    assert walk(fetchers(), 1000) == list(range(8))


def test_a_page_that_names_itself_as_the_next_is_the_last(server: ApiServer, fetchers: Fetchers) -> None:
    server.answers = lambda asked: Answer.of({"items": [1], "next": 0})
    assert walk(fetchers(), 1000) == [1]


def test_an_interrupted_walk_goes_on_where_it_stopped(server: ApiServer, fetchers: Fetchers) -> None:
    whole = numbered(2, 10)
    server.answers = lambda asked: whole(asked) if int(asked.query["page"]) < 3 else Answer(status=500)
    with pytest.raises(InputError):
        walk(fetchers(attempts=1), 10)
    server.answers = whole
    server.asked.clear()
    assert walk(fetchers(), 10) == list(range(10))
    assert [asked.query["page"] for asked in server.asked] == ["3", "4"]
    server.asked.clear()
    assert walk(fetchers(), 10) == list(range(10))
    assert server.asked == []


def test_a_cursor_that_the_server_forgot_begins_the_walk_anew(server: ApiServer, fetchers: Fetchers) -> None:
    whole, broken = numbered(2, 8), True

    def answers(asked: Asked) -> Answer:
        page = int(asked.query["page"])
        if broken and page == 2:
            return Answer(status=500)
        if page == 2 and "0" not in {one.query["page"] for one in server.asked}:
            return Answer(status=400)
        return whole(asked)

    server.answers = answers
    with pytest.raises(InputError):
        walk(fetchers(attempts=1), 8)
    broken = False
    server.asked.clear()
    assert walk(fetchers(), 8) == list(range(8))
    assert [asked.query["page"] for asked in server.asked] == ["2", "0", "1", "2", "3"]


def test_a_walk_that_is_refused_twice_says_so(server: ApiServer, fetchers: Fetchers) -> None:
    whole = numbered(2, 8)
    server.answers = lambda asked: Answer(status=400) if asked.query["page"] == "1" else whole(asked)
    with pytest.raises(RefusedError, match="status 400"):
        walk(fetchers(), 8)
