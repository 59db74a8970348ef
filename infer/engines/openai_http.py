"""Calls to servers over HTTP, and the choice among several servers.

1. A call takes at most so many seconds in all, however slowly the answer trickles in, and reads at most so many bytes.
2. Redirects are not followed: the key goes to the named address and to no other. It appears in no error.
3. What went wrong is a `CallError` that says whether another attempt may help, and how long to wait before it.
4. `Lanes` gives each request the server with the fewest under way; a server that cannot be reached rests for a while,
   and then gets one request at a time until it answers.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any, TypeVar

import httpx2

from .openai_wire import CallError, decoded, is_overflow, message_of, printable

T = TypeVar("T")
Turn = tuple[asyncio.Future["Server"], Collection["Server"]]

MOST_BYTES = 64 << 20
"""Of a response. A reply of 8,192 tokens with logprobs has about 2 MB."""
_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_MAY_OVERFLOW = frozenset({400, 413, 422, 500})
_LONGEST_WAIT = 120.0  # seconds, whatever a server asks for
_CONNECT = 10.0  # seconds
_KEPT_OPEN = 4.0  # seconds that an unused connection stays; servers close theirs after 5 or more
_REST = 5.0  # seconds
_SECRET = 16  # characters from which a key is a secret, and not a word like EMPTY
_READ = 100_000  # characters of an error that are looked at


class Server:
    """One address. `under_way` counts the calls that `Lanes` gave it; it rests until `rests_until` on the event loop's
    clock, and has not answered since it was last lost while that is not 0."""

    def __init__(self, url: str, *, key: str | None, timeout: float, most_bytes: int = MOST_BYTES) -> None:
        self.url, self.under_way, self.rests_until = url.rstrip("/"), 0, 0.0
        self._key, self._timeout, self._most_bytes = key or "", timeout, most_bytes
        self._clients: list[httpx2.AsyncClient] = []
        self._idle: list[httpx2.AsyncClient] = []

    async def post(self, path: str, body: bytes, read: Callable[[Any], T]) -> T:
        """What `read` makes of the response. Raises CallError, with the address in its reason."""
        return await self._call(path, body, read, self._timeout)

    async def get(self, path: str, read: Callable[[Any], T], *, timeout: float) -> T:
        """The same without anything to send; `timeout` in seconds."""
        return await self._call(path, None, read, timeout)

    async def close(self) -> None:
        """Closes all connections."""
        for client in self._clients:
            await client.aclose()

    def shown(self, message: str) -> str:
        """What a server said, fit to be shown: without the key, in one printable line."""
        return printable(message[:_READ].replace(self._key, "***") if self._key else message)

    async def _call(self, path: str, body: bytes | None, read: Callable[[Any], T], seconds: float) -> T:
        try:
            async with asyncio.timeout(seconds):
                status, headers, answer = await self._exchange(path, body)
            if not 200 <= status < 300:
                raise _failure(status, headers, answer)
            if len(self._key) >= _SECRET:
                answer = answer.replace(self._key.encode(), b"***")
            return read(decoded(answer))
        except TimeoutError:
            raise CallError(f"{self.url}: no answer within {seconds:g} s", status=0, again=True) from None
        except (httpx2.TransportError, httpx2.DecodingError, httpx2.InvalidURL) as error:
            reason = self.shown(f"{type(error).__name__}: {error}".removesuffix(": "))
            again, unreachable = not isinstance(error, httpx2.InvalidURL), isinstance(error, httpx2.ConnectError)
            raise CallError(f"{self.url}: {reason}", status=0, again=again, unreachable=unreachable) from None
        except CallError as error:
            error.reason = f"{self.url}: {self.shown(error.reason)}"
            raise

    async def _exchange(self, path: str, body: bytes | None) -> tuple[int, Mapping[str, str], bytes]:
        parts: list[bytes] = []
        size, method = 0, "GET" if body is None else "POST"
        client = self._idle.pop() if self._idle else self._client()
        try:
            async with client.stream(method, self.url + path, content=body) as response:
                async for part in response.aiter_bytes():
                    size += len(part)
                    if size > self._most_bytes:
                        raise CallError(f"the response is longer than {self._most_bytes} bytes")
                    parts.append(part)
        finally:
            client.cookies.clear()  # or a server could make requests grow
            self._idle.append(client)
        return response.status_code, response.headers, b"".join(parts)

    def _client(self) -> httpx2.AsyncClient:
        """A client for one call at a time: one for all would look through all its connections at each call."""
        headers = {"content-type": "application/json", "accept": "application/json", "accept-encoding": "identity"}
        client = httpx2.AsyncClient(
            headers=headers | ({"authorization": f"Bearer {self._key}"} if self._key else {}),
            timeout=httpx2.Timeout(None, connect=min(self._timeout, _CONNECT)),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=1, keepalive_expiry=_KEPT_OPEN),
            verify=_certificates(),
        )
        self._clients.append(client)
        return client


class Lanes:
    """Servers side by side, `concurrency` calls at each at most; who finds none free waits in line."""

    def __init__(self, servers: Sequence[Server], concurrency: int, clock: Callable[[], float]) -> None:
        self._servers, self._concurrency, self._clock = servers, concurrency, clock
        self._line: deque[Turn] = deque()

    async def take(self, avoided: Collection[Server] = ()) -> Server:
        """A server with a free slot, none of `avoided` unless that is all of them."""
        if not self._line and (server := self._best(avoided)):
            server.under_way += 1
            return server
        turn: asyncio.Future[Server] = asyncio.get_running_loop().create_future()
        self._line.append((turn, avoided))
        try:
            return await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it got its turn in the same moment
                self.give(turn.result())
            raise

    def give(self, server: Server, *, answered: bool | None = None) -> None:
        """Gives back the slot. `answered`: whether the server responded at all; None if that is not known."""
        server.under_way -= 1
        if answered is not None:
            server.rests_until = 0.0 if answered else self._clock() + _REST
        self._call_in()

    def _call_in(self) -> None:
        """Gives free slots to those who wait, in order; who avoids what is free stays."""
        staying: list[Turn] = []
        while self._line and self._best(()):
            turn, avoided = self._line.popleft()
            if turn.done():
                continue
            if server := self._best(avoided):
                server.under_way += 1
                turn.set_result(server)
            else:
                staying.append((turn, avoided))
        self._line.extendleft(reversed(staying))

    def _best(self, avoided: Collection[Server]) -> Server | None:
        able = [server for server in self._servers if self._is_free(server)]
        if len(avoided) < len(self._servers):
            able = [server for server in able if server not in avoided]
        return min(able, key=lambda server: (server.rests_until > 0, server.under_way), default=None)

    def _is_free(self, server: Server) -> bool:
        if not server.rests_until or all(other.rests_until for other in self._servers):
            return server.under_way < self._concurrency
        return server.under_way < 1 and self._clock() >= server.rests_until


@cache
def _certificates() -> ssl.SSLContext:
    """Whom to trust. Reading them takes a twentieth of a second."""
    return httpx2.create_ssl_context()


def retry_after(headers: Mapping[str, str], now: datetime) -> float:
    """Seconds that a response asks to wait, by its header Retry-After (RFC 9110, 10.2.3): a number of seconds, or a
    date, compared with the response's own date where it has one. At most 120; 0 where it asks for nothing."""
    asked = headers.get("retry-after", "")
    try:
        seconds = float(asked)
    except ValueError:
        until = _date(asked)
        seconds = (until - (_date(headers.get("date", "")) or now)).total_seconds() if until else 0.0
    return min(max(seconds, 0.0), _LONGEST_WAIT) if seconds == seconds else 0.0


def _date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _failure(status: int, headers: Mapping[str, str], answer: bytes) -> CallError:
    """The error that a response other than 2xx stands for."""
    message = _message(answer)
    overflow = status in _MAY_OVERFLOW and is_overflow(message)
    if 300 <= status < 400:
        message = f"redirects to {headers.get('location', '?')}, which is not followed"
    return CallError(
        f"{status} {message}".rstrip(),
        status=status,
        again=status in _AGAIN and not overflow,
        wait=retry_after(headers, datetime.now(UTC)),
        overflow=overflow,
    )


def _message(answer: bytes) -> str:
    """What the body of an error says: in JSON the message, with the type or code that tells an overflow; else all."""
    try:
        parsed = json.loads(answer)
    except (ValueError, RecursionError):
        return answer[:_READ].decode("utf-8", "replace")
    error = parsed.get("error") if isinstance(parsed, dict) else None
    marks = [error.get(key) for key in ("code", "type")] if isinstance(error, dict) else []
    telling = [mark for mark in marks if isinstance(mark, str) and is_overflow(mark)]
    return " ".join([message_of(parsed), *telling])
