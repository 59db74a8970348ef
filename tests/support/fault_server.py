"""A real HTTP server on localhost, in threads, that does what a script says: answers, errors, endless responses.

It says what an OpenAI-compatible server says where the script does not object, and keeps every request it was sent.
"""

from __future__ import annotations

import json
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self


@dataclass(frozen=True)
class Seen:
    """One request as it came in; `body` is its JSON, None without any."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True)
class Step:
    """One response, and what happens to the connection then: it stays open, is closed, is reset; `hang` answers nothing
    until the server ends, `trickle` sends blanks until then."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    then: Literal["keep", "close", "reset", "hang", "trickle"] = "keep"
    promised: int | None = None  # bytes that the header promises, where it is not what comes


Script = Sequence[Step] | Callable[[Seen], Step]


def said(text: str | None = "fine", finish: str | None = "stop", *, message: Any = None, **more: Any) -> Step:
    """A reply as both APIs give it. `message` adds to the chat message, `more` to the choice."""
    chat = {"role": "assistant", "content": text, **(message or {})}
    choice = {"index": 0, "text": text, "message": chat, "finish_reason": finish, **more}
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return says({"object": "reply", "model": "m", "choices": [choice], "usage": usage})


def says(value: Any, status: int = 200, **headers: str) -> Step:
    """A JSON response. Header names are written with _ for -."""
    return Step(json.dumps(value).encode(), status, {name.replace("_", "-"): text for name, text in headers.items()})


def fails(status: int, message: str = "no", **headers: str) -> Step:
    """An error as OpenAI's servers word it."""
    return says({"error": {"message": message, "type": "some_error"}}, status, **headers)


def lists(*names: str, **more: Any) -> Step:
    """A list of models."""
    return says({"object": "list", "data": [{"id": name, **more} for name in names]})


class FaultServer(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """Answers posted requests by a script (when a list runs out, with `said()`), and asks for its models with
    `models`. `seen` holds the posted requests, `listed` how often the models were asked for."""

    daemon_threads = True
    block_on_close = True
    allow_reuse_address = True
    request_queue_size = 512

    def __init__(self, script: Script = (), models: Step | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.models = lists("m") if models is None else models
        self.seen: list[Seen] = []
        self.listed = 0
        self.lock, self.ended = threading.Lock(), threading.Event()
        self._decide = script if callable(script) else None
        self._steps: Iterator[Step] = iter(()) if callable(script) else iter(script)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def step(self, seen: Seen) -> Step:
        """What the script says to a request."""
        with self.lock:
            if seen.method == "GET":
                self.listed += 1
                return self.models
            self.seen.append(seen)
            if self._decide is None:
                return next(self._steps, said())
        return self._decide(seen)  # outside the lock: it may wait for other requests

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.shutdown()
        self.server_close()


class _Handler(socketserver.StreamRequestHandler):
    """One connection: request after request, until a step ends it."""

    server: FaultServer  # pyright: ignore[reportIncompatibleVariableOverride]

    def handle(self) -> None:
        try:
            while (seen := self._read()) and self._answer(self.server.step(seen)):
                pass
        except OSError:
            return  # the client went away

    def finish(self) -> None:
        try:
            super().finish()
        except OSError:
            return

    def _read(self) -> Seen | None:
        first = self.rfile.readline().decode("latin-1").split()
        if len(first) != 3:
            return None
        headers: dict[str, str] = {}
        while line := self.rfile.readline().strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        body = self.rfile.read(int(headers.get("content-length", 0)))
        return Seen(first[0], first[1], headers, json.loads(body) if body else None)

    def _answer(self, step: Step) -> bool:
        """True if the connection stays open."""
        if step.then == "hang":
            self.server.ended.wait()
            return False
        length = len(step.body) if step.promised is None else step.promised
        lines = [f"HTTP/1.1 {step.status} Said", f"content-length: {length}", "content-type: application/json"]
        lines += [f"{name}: {value}" for name, value in step.headers.items()]
        self.wfile.write(("\r\n".join(lines) + "\r\n\r\n").encode() + step.body)
        while step.then == "trickle" and not self.server.ended.wait(0.01):
            self.wfile.write(b" ")
        if step.then == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        return step.then == "keep" and step.promised is None
