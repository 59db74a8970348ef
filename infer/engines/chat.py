"""Requests as token ids and token ids as replies, for whoever runs a local model: the engine, and the trainer.

Text exists only on the agent's side. Ids are recorded as the model saw them; nothing is decoded and encoded again. The
limit on new tokens is each request's own: in a batch that runs up to the largest, what a shorter request did not ask
for is cut, which leaves its distribution unchanged.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ...data.rollout import Reply, Request
from ...errors import ModelError


def prompt_ids(tokenizer: Any, request: Request) -> list[int]:
    """The prompt by the model's chat template. Raises ModelError for a request with `think_tokens`, which needs two
    stages of generation."""
    if request.think_tokens:
        raise ModelError(
            f"a {request.kind} call asks for {request.think_tokens} thinking tokens, which local models cannot give yet"
        )
    flags = {} if request.enable_thinking is None else {"enable_thinking": request.enable_thinking}
    messages = [dict(message) for message in request.messages]
    return tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, tokenize=True, return_dict=False, **flags
    )


def overflow(request: Request, prompt: Sequence[int], limit: int | None) -> Reply | None:
    """The reply to a request that is not sent, because prompt, thinking and reply together exceed `limit` tokens; None
    if they fit."""
    asked = request.think_tokens + request.max_tokens
    if limit is None or len(prompt) + asked <= limit:
        return None
    error = f"{len(prompt)} prompt + {asked} new tokens, over the limit of {limit}"
    return Reply("", "overflow", n_requests=0, error=error)


def reply(
    tokenizer: Any,
    prompt: Sequence[int],
    generated: Sequence[int],
    logprobs: Sequence[float] | None,
    *,
    max_tokens: int,
    ends: Collection[int],
) -> Reply:
    """What the model said: the generated ids cut at the request's own limit and at the first end token, which belongs
    to the completion but not to the text."""
    row = generated[:max_tokens]
    end = next((i for i, token in enumerate(row) if token in ends), None)
    completion = tuple(row if end is None else row[: end + 1])
    return Reply(
        tokenizer.decode(list(completion), skip_special_tokens=True),
        "length" if end is None else "stop",
        prompt_ids=tuple(prompt),
        completion_ids=completion,
        logprobs=None if logprobs is None else tuple(logprobs[: len(completion)]),
    )
