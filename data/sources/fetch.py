"""Fetching for `build`, and for nothing else.

1. Only from the hosts that source and recipe both name, over https (this machine itself: also http); a redirect is
   followed if it stays among them. No key, no cookie, no password goes out.
2. A response has a limit of bytes, and so have all together; each has a limit of time.
3. A host is asked at its pace. What may pass (429, 5xx, a lost connection, a body cut short) is tried again after the
   time that the server names, or after a growing one.
4. Every response is kept (`cache`), and asked for once.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, BinaryIO

import httpx2

from ...errors import ConfigError, InputError, LimitError
from .cache import Cache, Fetched, key_of

USER_AGENT = "treeagent-build/0.1 (builds a research benchmark; asks slowly, keeps answers, follows Retry-After)"
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})
_MOST_REDIRECTS = 5


@dataclass(frozen=True)
class Bounds:
    """What fetching may take: bytes a response and in all, seconds a response and until it goes on, attempts, and the
    longest wait (seconds) that a server may ask for."""

    response_bytes: int = 64 << 20
    total_bytes: int = 4 << 30
    response_seconds: float = 900.0
    silence_seconds: float = 60.0
    attempts: int = 6
    longest_wait: float = 600.0


@dataclass(frozen=True)
class Call:
    """One request. `body`: JSON to post. `suffix` is the kind of file that comes. `pace`: seconds between two requests
    to this host. `busy`: further statuses by which this host says that it was asked too often, each with the seconds
    to wait where it does not say how long. `check` is given the body's path and raises ValueError where the body is
    not whole."""

    url: str
    body: Any = None
    suffix: str = ".json"
    pace: float = 1.0
    busy: tuple[tuple[int, float], ...] = ()
    most_bytes: int | None = None
    check: Callable[[Path], object] | None = None

    @property
    def request(self) -> dict[str, Any]:
        """What tells this request from others."""
        return {"method": "GET" if self.body is None else "POST", "url": self.url, "body": self.body}


class RefusedError(InputError):
    """A server answered with a status that no other attempt would change."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class _PassingError(Exception):
    """A fault that may be gone at another attempt, `wait` seconds later if the server said so."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class Fetcher:
    """Fetches into `folder`. `hosts` are those of the recipe; `told` is given a line where there is something to wait
    for; `transport` carries requests elsewhere, in tests. `counts` says how many responses were fetched, cached, tried
    again, damaged, and how many bytes came in.

    Raises ConfigError for a host that is not allowed, InputError where a server refuses or stays unreachable,
    LimitError where a response or all together are too large."""

    def __init__(
        self,
        folder: Path,
        hosts: Iterable[str],
        *,
        bounds: Bounds | None = None,
        told: Callable[[str], None] = lambda line: None,
        transport: httpx2.BaseTransport | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.bounds, self.counts = bounds or Bounds(), Counter[str]()
        self._cache, self._hosts = Cache(folder), frozenset(hosts)
        self._told, self._clock, self._sleep, self._transport = told, clock, sleep, transport
        self._asked: dict[str, float] = {}
        self._client: httpx2.Client | None = None

    def __enter__(self) -> Fetcher:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._client is not None:
            self._client.close()

    def get(self, call: Call, hosts: Collection[str]) -> Fetched:
        """The response to a call, out of the cache if it is there. `hosts` are those that the source names."""
        allowed = self._hosts & frozenset(hosts)
        self._allow(call.url, allowed)
        key = key_of(call.request)
        found = self._cache.find(key, call.suffix)
        self.counts["damaged"] = self._cache.damaged
        if found is not None:
            self.counts["cached"] += 1
            return found
        for attempt in range(1, self.bounds.attempts + 1):
            try:
                return self._fetch(call, key, allowed)
            except _PassingError as fault:
                self._wait(call, attempt, fault)
        raise AssertionError("the last attempt raises")

    def forget(self, call: Call) -> None:
        """Throws the response to a call out of the cache."""
        self._cache.forget(key_of(call.request), call.suffix)

    def _allow(self, url: str, allowed: frozenset[str]) -> httpx2.URL:
        try:
            address = httpx2.URL(url)
        except httpx2.InvalidURL as error:
            raise InputError(f"no address: {error}") from error
        place = address.host if address.port is None else f"{address.host}:{address.port}"
        if place not in allowed:
            known = ", ".join(sorted(allowed)) or "none"
            raise ConfigError(f"{place} is not among the hosts that may be fetched from ({known})")
        if address.scheme != "https" and not (address.scheme == "http" and address.host in _HERE):
            raise ConfigError(f"{_shown(url)}: only https is fetched")
        if address.userinfo:
            raise ConfigError(f"{place}: an address with a password is not fetched")
        return address

    def _fetch(self, call: Call, key: str, allowed: frozenset[str]) -> Fetched:
        with self._cache.incoming(key, call.suffix) as file:
            url = self._receive(call, allowed, file)
            file.flush()
            if call.check is not None:
                try:
                    call.check(Path(file.name))
                except ValueError as error:
                    raise _PassingError(f"the response is not whole: {error}") from error
            date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            fetched = self._cache.keep(key, call.suffix, call.request, url, date)
        self.counts["fetched"] += 1
        return fetched

    def _receive(self, call: Call, allowed: frozenset[str], file: BinaryIO) -> str:
        """Writes the body to `file`; the address it came from in the end."""
        url, until = call.url, self._clock() + self.bounds.response_seconds
        for _ in range(_MOST_REDIRECTS + 1):
            self._keep_pace(url, call.pace)
            try:
                with self._open().stream(**_arguments(call, url)) as response:
                    if response.status_code not in _REDIRECTS:
                        self._take(call, response, file, until)
                        return url
                    url = str(response.url.join(response.headers.get("location", "")))
            except httpx2.InvalidURL as error:
                raise InputError(f"{_shown(call.url)}: redirected to no address: {error}") from error
            except (httpx2.TransportError, httpx2.DecodingError) as error:
                raise _PassingError(f"{type(error).__name__}: {error}".removesuffix(": ")) from error
            if call.body is not None:
                raise InputError(f"{_shown(call.url)}: a form is not sent on to {_shown(url)}")
            self._allow(url, allowed)
        raise InputError(f"{_shown(call.url)}: redirected more than {_MOST_REDIRECTS} times")

    def _take(self, call: Call, response: httpx2.Response, file: BinaryIO, until: float) -> None:
        status, size = response.status_code, 0
        busy = dict(call.busy)
        if status in _PASSING or status in busy:
            said = _retry_after(response.headers.get("retry-after"))
            raise _PassingError(f"status {status}", busy.get(status) if said is None else said)
        if status != 200:
            raise RefusedError(f"{_shown(call.url)}: the server answers with status {status}", status)
        most = call.most_bytes or self.bounds.response_bytes
        for piece in response.iter_bytes():
            size += len(piece)
            self.counts["bytes"] += len(piece)
            if size > most:
                raise LimitError(f"{_shown(call.url)}: the response is longer than {most:,} bytes")
            if self.counts["bytes"] > self.bounds.total_bytes:
                raise LimitError(f"more than {self.bounds.total_bytes:,} bytes fetched in all")
            if self._clock() > until:
                raise _PassingError(f"no end within {self.bounds.response_seconds:g} s")
            file.write(piece)

    def _keep_pace(self, url: str, pace: float) -> None:
        host = httpx2.URL(url).host
        wait = self._asked.get(host, float("-inf")) + pace - self._clock()
        if wait > 0:
            self._sleep(wait)
        self._asked[host] = self._clock()

    def _wait(self, call: Call, attempt: int, fault: _PassingError) -> None:
        if attempt == self.bounds.attempts:
            raise InputError(
                f"{_shown(call.url)}: {fault} ({attempt} attempts); what was fetched is kept, "
                "repeat the command to go on"
            ) from fault
        wait = fault.wait if fault.wait is not None else 2.0**attempt * (1 + random.random())
        if wait > self.bounds.longest_wait:
            raise InputError(
                f"{_shown(call.url)}: {fault}; the server asks to wait {wait:.0f} s; repeat the command then"
            ) from fault
        self.counts["again"] += 1
        self._told(f"{_shown(call.url)}: {fault}; again in {wait:.0f} s")
        self._sleep(wait)

    def _open(self) -> httpx2.Client:
        """The client, made when the first response is missing: who finds all in the cache opens no connection."""
        if self._client is None:
            quiet = self.bounds.silence_seconds
            self._client = httpx2.Client(
                headers={"user-agent": USER_AGENT, "accept": "*/*", "accept-encoding": "gzip"},
                timeout=httpx2.Timeout(quiet, connect=min(quiet, 20.0)),
                follow_redirects=False,
                transport=self._transport,
            )
        self._client.cookies.clear()
        return self._client


def is_json(path: Path) -> None:
    """Raises ValueError where a file is not one JSON value."""
    try:
        json.loads(path.read_bytes())
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def address(url: str, query: Mapping[str, str | int | Sequence[str]]) -> str:
    """The address with a query in the given order; a list repeats its name, "" leaves it out."""
    pairs: list[tuple[str, str | int | float | bool | None]] = []
    for name, value in query.items():
        values = [str(value)] if isinstance(value, str | int) else value
        pairs.extend((name, one) for one in values if one)
    return f"{url}?{httpx2.QueryParams(pairs)}"


def _arguments(call: Call, url: str) -> dict[str, Any]:
    if call.body is None:
        return {"method": "GET", "url": url}
    headers = {"content-type": "application/json"}
    return {"method": "POST", "url": url, "content": json.dumps(call.body).encode(), "headers": headers}


def _retry_after(said: str | None) -> float | None:
    """Seconds that a server asks to wait, given as a number or as a date."""
    if said is None:
        return None
    try:
        return max(0.0, float(said)) if said.strip().replace(".", "", 1).isdigit() else _until(said)
    except (TypeError, ValueError):
        return None


def _until(date: str) -> float:
    moment = parsedate_to_datetime(date)
    return max(0.0, (moment.astimezone(UTC) - datetime.now(UTC)).total_seconds())


def _shown(url: str) -> str:
    """An address without query, fit for a message."""
    return url.split("?", 1)[0]
