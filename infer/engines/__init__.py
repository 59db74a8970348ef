"""Engines turn requests into replies. The seam where tests put a script and a cluster puts its servers.

An engine answers all requests of a call, in order, and never raises for one of them: what could not be had comes back
as a `Reply` with `finish="error"`, and a request beyond the limit, which it does not send, as `finish="overflow"`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol

from annotated_types import Ge, Gt, Le

from ...config import option
from ...data.rollout import Reply, Request

__all__ = ["Engine", "Sampling"]


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen. The defaults are greedy decoding (paper, C.3)."""

    temperature: Annotated[float, Ge(0)] = option(0.0, "0 decodes greedily")
    top_p: Annotated[float, Gt(0), Le(1)] = option(
        1.0, "sample among the likeliest tokens that hold this much probability"
    )
    top_k: Annotated[int, Ge(0)] = option(0, "sample among this many likeliest tokens; 0: among all")
    seed: int = option(42, "makes sampled replies repeatable")


class Engine(Protocol):
    """Something that can run a model."""

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Reply]:
        """One reply for each request, in the same order. How many are answered at once is the engine's own matter."""
        ...
