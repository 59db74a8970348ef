"""Requests and replies as token ids.

The trainer samples from token ids and trains on token ids; text exists only at the agent's side. The limit on new
tokens is each request's own: a batch is sampled up to the largest, and what a shorter request did not ask for is cut,
which leaves its distribution unchanged.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ..data.rollout import Reply, Request
from ..errors import ConfigError


def encode(tokenizer: Any, request: Request) -> list[int]:
    """The prompt's ids by the model's chat template; raises ConfigError for what training cannot do yet."""
    if request.think_tokens:
        raise ConfigError(f"a {request.kind} call asks for two-stage thinking, which cannot be trained yet")
    options = {} if request.enable_thinking is None else {"enable_thinking": request.enable_thinking}
    messages = [dict(message) for message in request.messages]
    return tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, tokenize=True, return_dict=False, **options
    )


def fits(request: Request, prompt_ids: Sequence[int], limit: int) -> bool:
    """Whether prompt, thinking and reply together stay within `limit` tokens; what does not fit is never sent."""
    return len(prompt_ids) + request.think_tokens + request.max_tokens <= limit


def reply(
    tokenizer: Any,
    request: Request,
    prompt_ids: Sequence[int],
    completion_ids: Sequence[int],
    logprobs: Sequence[float] | None,
    ends: Collection[int],
) -> Reply:
    """What the agent gets: the text without special tokens, and the ids as sampled, cut to the request's own limit."""
    kept = tuple(completion_ids[: request.max_tokens])
    ended = bool(kept) and kept[-1] in ends
    return Reply(
        text=tokenizer.decode(list(kept), skip_special_tokens=True),
        finish="stop" if ended else "length",
        prompt_ids=tuple(prompt_ids),
        completion_ids=kept,
        logprobs=None if logprobs is None else tuple(logprobs[: request.max_tokens]),
    )


def overflow(request: Request, prompt_ids: Sequence[int], limit: int) -> Reply:
    """The answer to a request that is not sent."""
    asked = f"{len(prompt_ids)} prompt tokens + {request.think_tokens + request.max_tokens} to generate"
    return Reply("", finish="overflow", n_requests=0, error=f"{asked} > {limit}, the request limit")
