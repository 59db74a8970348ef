"""A local server that answers as the test tells it, and a way there for requests to any host.

`ApiServer` hands each request to the test's function and keeps it. `Detour` is a transport that carries requests for
public hosts to the server, so that what is fetched has its real address. `Waits` is a clock on which only waiting takes
time.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2


@dataclass(frozen=True)
class Asked:
    """A request: method, host, path, query (last value of each name, and all), JSON body, headers in lower case."""

    method: str
    host: str
    path: str
    query: dict[str, str]
    every: dict[str, list[str]]
    body: Any
    headers: dict[str, str]


@dataclass(frozen=True)
class Answer:
    """A response. `length` is what the head says of the body where that is a lie, None for no length at all."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    length: int | None = -1

    @classmethod
    def of(cls, value: Any, **more: Any) -> Answer:
        """A JSON response."""
        return cls(json.dumps(value).encode(), **more)


Answers = Callable[[Asked], Answer]


class ApiServer:
    """Serves on localhost; `answers` may be exchanged while it runs."""

    def __init__(self, answers: Answers) -> None:
        self.answers, self.asked = answers, list[Asked]()
        self.errors: list[BaseException] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.handle(self)

            do_POST = do_GET  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.host = f"127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        """Answers one request as the test's function says; what it raises is kept for the test."""
        asked = _asked(request)
        self.asked.append(asked)
        try:
            answer = self.answers(asked)
        except BaseException as error:
            self.errors.append(error)
            answer = Answer(status=418)
        request.send_response(answer.status)
        for name, value in answer.headers.items():
            request.send_header(name, value)
        length = len(answer.body) if answer.length == -1 else answer.length
        if length is not None:
            request.send_header("content-length", str(length))
        if length != len(answer.body):
            request.close_connection = True
            request.send_header("connection", "close")
        request.end_headers()
        request.wfile.write(answer.body)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        if self.errors:
            raise self.errors[0]


@contextmanager
def serving(answers: Answers) -> Iterator[ApiServer]:
    """A running server."""
    server = ApiServer(answers)
    server.start()
    try:
        yield server
    finally:
        server.stop()


class Detour(httpx2.BaseTransport):
    """Carries every request to the server on localhost; the host it was meant for stays in its `host` header."""

    def __init__(self, server: ApiServer) -> None:
        self._host, self._inner = server.host, httpx2.HTTPTransport()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        host, port = self._host.split(":")
        request.url = request.url.copy_with(scheme="http", host=host, port=int(port))
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()


class Waits:
    """A clock that stands still but for waiting; `waited` are the waits in seconds."""

    def __init__(self) -> None:
        self.now, self.waited = 0.0, list[float]()

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.now += seconds


def _asked(request: BaseHTTPRequestHandler) -> Asked:
    parts = urlsplit(request.path)
    every = parse_qs(parts.query, keep_blank_values=True)
    body = request.rfile.read(int(request.headers.get("content-length") or 0))
    return Asked(
        method=request.command,
        host=request.headers.get("host", ""),
        path=parts.path,
        query={name: values[-1] for name, values in every.items()},
        every=every,
        body=json.loads(body) if body else None,
        headers={name.lower(): value for name, value in request.headers.items()},
    )
