"""A local server that answers as an OpenAI-compatible one after a fixed time, so that what a client costs can be told.

    python benchmarks/fake_server.py --latency 0.05 --concurrency 32

It prints its base URL as one line and ends when its standard input does. `concurrency` requests are served at a time,
each for `latency` seconds; further ones wait in the order in which they came. A slot goes to the next request at the
moment it is due, however late this process wakes up, so the ideal time for n requests is n * latency / concurrency
rounded up to whole rounds. What is asked for is not looked at: parsing long prompts would take a processor's time away
from the client. `GET /stats` tells how many requests were served, and the most that were inside at once.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import json
import sys
import time
from dataclasses import dataclass, field

MODEL = "fake"


@dataclass
class Slots:
    """When each of the fixed number of slots is free again, in seconds of the event loop's clock."""

    concurrency: int
    latency: float
    free: list[float] = field(default_factory=list)
    served: int = 0
    inside: int = 0
    most_inside: int = 0

    def __post_init__(self) -> None:
        self.free = [0.0] * self.concurrency

    def take(self, now: float) -> float:
        """When a request that came in `now` will be answered."""
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        due = max(now, self.free[0]) + self.latency
        heapq.heapreplace(self.free, due)
        return due

    def give(self) -> None:
        self.inside -= 1
        self.served += 1


class Connection(asyncio.Protocol):
    """HTTP/1.1 with Content-Length, one request after the other on a connection that stays open."""

    def __init__(self, slots: Slots, answers: dict[bytes, bytes]) -> None:
        self.slots, self.answers = slots, answers
        self.loop = asyncio.get_running_loop()
        self.parts: list[bytes] = []
        self.held = 0
        self.wanted = 0  # bytes of the request that is coming in; 0: its head is not complete yet
        self.path = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.parts.append(data)
        self.held += len(data)
        while self.held and self._complete():
            whole = b"".join(self.parts)
            rest = whole[self.wanted :]
            self.parts, self.held, self.wanted = ([rest] if rest else []), len(rest), 0
            self._handle(self.path)

    def _complete(self) -> bool:
        if not self.wanted:
            whole = b"".join(self.parts)
            self.parts = [whole]
            end = whole.find(b"\r\n\r\n")
            if end < 0:
                return False
            head = whole[:end]
            self.path = head.split(b" ", 2)[1]
            lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            self.wanted = end + 4 + (int(lengths[0].partition(b":")[2]) if lengths else 0)
        return self.held >= self.wanted

    def _handle(self, path: bytes) -> None:
        if path.endswith(b"/completions"):
            due = self.slots.take(self.loop.time())
            self.loop.call_at(due, self._answer, path)
        elif path == b"/stats":
            stats = {"served": self.slots.served, "most_inside": self.slots.most_inside}
            self._write(http(json.dumps(stats)))
        else:
            self._write(self.answers.get(path, http("{}", "404 Not Found")))

    def _answer(self, path: bytes) -> None:
        self.slots.give()
        self._write(self.answers.get(path, http("{}", "404 Not Found")))

    def _write(self, answer: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(answer)


def http(body: str, status: str = "200 OK") -> bytes:
    """A whole response with a JSON body."""
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body.encode())}\r\n\r\n"
    return (head + body).encode()


def answers(text: str) -> dict[bytes, bytes]:
    """What each path says, made once."""
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    about = {"id": "fake", "created": int(time.time()), "model": MODEL, "usage": usage}
    chosen = {"index": 0, "finish_reason": "stop", "logprobs": None}
    chat = about | {"object": "chat.completion"}
    chat["choices"] = [chosen | {"message": {"role": "assistant", "content": text}}]
    raw = about | {"object": "text_completion", "choices": [chosen | {"text": text}]}
    models = {"object": "list", "data": [{"id": MODEL, "object": "model"}]}
    said = {b"/v1/chat/completions": chat, b"/v1/completions": raw, b"/v1/models": models}
    return {path: http(json.dumps(body)) for path, body in said.items()}


async def serve(port: int, slots: Slots, text: str) -> None:
    """Serves on localhost until standard input ends."""
    loop, said = asyncio.get_running_loop(), answers(text)
    server = await loop.create_server(lambda: Connection(slots, said), "127.0.0.1", port, backlog=4096)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--latency", type=float, default=0.05, help="seconds a request takes in its slot")
    parser.add_argument("--concurrency", type=int, default=32, help="requests served at a time")
    parser.add_argument("--text", default="The answer is 7.", help="what every reply says")
    given = parser.parse_args()
    asyncio.run(serve(given.port, Slots(given.concurrency, given.latency), given.text))


if __name__ == "__main__":
    main()
