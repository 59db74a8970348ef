"""An engine that says what a script says: for tests, for showing a protocol, for replaying recorded replies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ...data.rollout import Reply, Request
from ...errors import ModelError
from . import Batched, Sampling

Script = Callable[[Request], str | Reply] | Sequence[str | Reply]


class Scripted(Batched):
    """Replies by a list, used up in order, or by a function of the request. `seen` holds every request it was given."""

    def __init__(self, script: Script) -> None:
        super().__init__()
        self.seen: list[Request] = []
        self._reply = script if callable(script) else _reader(iter(script))

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Reply]:
        """Raises ModelError when a list of replies has run out."""
        self.seen.extend(requests)
        said = [self._reply(request) for request in requests]
        return [Reply(reply) if isinstance(reply, str) else reply for reply in said]


def _reader(replies: Iterator[str | Reply]) -> Callable[[Request], str | Reply]:
    def reply(request: Request) -> str | Reply:
        for said in replies:
            return said
        raise ModelError(f"the script has no reply left for the next {request.kind} call")

    return reply
