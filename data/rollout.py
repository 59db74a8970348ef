"""The values that pass between layers.

An `Example` is a document with a question and its reference answer. An agent yields a `Request` for each model call
and is sent a `Reply`; it returns an `Outcome`. The environment records each exchange as a `Call` and the whole as a
`Rollout`, which evaluation stores and training turns into rows. Nothing here knows a model, a file or a reward.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

Message = Mapping[str, str]
Kind = Literal["memory", "answer", "controller", "integrate", "sub_answer"]
Finish = Literal["stop", "length", "error", "overflow"]


@dataclass(frozen=True)
class Reference:
    """What a right answer is (paper, Section 4.2). `kind` says how one value is compared; `count` is how many values
    the question asks for (None where it does not say); `ordered` whether the question asks for an order."""

    values: tuple[str, ...]
    kind: Literal["text", "number"] = "text"
    ordered: bool = False
    count: int | None = 1


@dataclass(frozen=True)
class Example:
    """One document, one question. `length` is the benchmark's bucket in tokens; `spec` the reference specification as
    JSON."""

    context: str
    format: str
    question: str
    reference: Reference
    task: str = "own"
    length: int = 0
    base_id: str = ""
    spec: str = ""

    @property
    def key(self) -> str:
        """Identity of the task: SHA-256 of the canonical row, never a position in a list."""
        row = json.dumps(asdict(self), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(row.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Request:
    """One model call an agent asks for. `section` is the 0-based section read, `pass_id` k for the k-th rereading.
    `think_tokens > 0` asks for two-stage generation with a forced `</think>`; `enable_thinking=None` passes no
    flag. `limit` is the most tokens that prompt, thinking and reply may hold together (paper, C.3); None leaves it to
    the engine."""

    kind: Kind
    messages: tuple[Message, ...]
    max_tokens: int
    think_tokens: int = 0
    enable_thinking: bool | None = None
    section: int | None = None
    pass_id: int = 0
    limit: int | None = None


@dataclass(frozen=True)
class Reply:
    """What the model said. Agents need only `text` and `finish`; token ids and logprobs are those the engine saw, empty
    and None where it does not tell.

    `forced_close`: the engine had to insert `</think>`; `inserted`: where in `completion_ids` it did, start and end
    (the model did not generate these). `n_requests`: how often the model was asked for this reply; `prompt_tokens` and
    `completion_tokens`: what these requests took in and gave out, summed."""

    text: str
    finish: Finish = "stop"
    forced_close: bool = False
    n_requests: int = 1
    prompt_ids: tuple[int, ...] = ()
    completion_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] | None = None
    error: str = ""
    inserted: tuple[int, int] = (0, 0)
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True)
class Outcome:
    """What an agent ends with. `flags` always holds `valid_interaction` and `memory_complete`, both for training."""

    answer_text: str
    memory: str
    stopped_at: int | None
    flags: Mapping[str, bool]


@dataclass(frozen=True)
class Call:
    """One recorded exchange: the request and its reply."""

    request: Request
    reply: Reply


@dataclass(frozen=True)
class Rollout:
    """One agent run over one example. `failure` is "" or why it ended early ("error", "overflow"): such a rollout has
    an empty answer and scores 0. `n_sections` counts the sections of the reading, read or not."""

    key: str
    calls: tuple[Call, ...]
    outcome: Outcome
    n_sections: int
    failure: str = ""
    notes: Mapping[str, int] = field(default_factory=dict)
