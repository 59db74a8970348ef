"""Page after page of an API, until there are enough records or no more pages.

Every page is cached by its own request, so an interrupted walk goes on where it stopped. A cursor that the server has
forgotten meanwhile makes it refuse a later page: then the walk begins anew, once, from pages fetched now.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from .fetch import Call, Fetcher, RefusedError
from .source import RawFile

Next = Callable[[Any, Call], Call | None]
"""The call for the page after this one, whose value and call are given; None after the last."""


def pages(
    fetcher: Fetcher, hosts: Sequence[str], first: Call, following: Next, count: Callable[[Any], int], wanted: int
) -> list[RawFile]:
    """Pages that hold `wanted` records together, or all there are; `count` says how many a page holds."""
    walked: list[Call] = []
    try:
        return _walk(fetcher, hosts, first, following, count, wanted, walked)
    except RefusedError:
        if len(walked) < 2:
            raise
    for call in walked:
        fetcher.forget(call)
    return _walk(fetcher, hosts, first, following, count, wanted, [])


def _walk(
    fetcher: Fetcher,
    hosts: Sequence[str],
    first: Call,
    following: Next,
    count: Callable[[Any], int],
    wanted: int,
    walked: list[Call],
) -> list[RawFile]:
    files: list[RawFile] = []
    call: Call | None = first
    seen: set[str] = set()
    held = 0
    while call is not None and held < wanted:
        walked.append(call)
        page = json.dumps(call.request, sort_keys=True)
        if page in seen:  # a server whose last page names itself as the next
            break
        seen.add(page)
        fetched = fetcher.get(call, hosts)
        text = fetched.text()
        value = json.loads(text)
        here = count(value)
        if not here:
            break
        held += here
        files.append(RawFile(f"{len(files):05}{call.suffix}", text, fetched.sha256, fetched.url, fetched.date))
        call = following(value, call)
    return files
