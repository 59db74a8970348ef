"""Requests as token ids and token ids as replies, for whoever runs a model on ids: local engines, and the trainer.

Text exists only on the agent's side. Ids are recorded as the model saw them; nothing is decoded and encoded again. The
limit on new tokens is each request's own: in a batch that runs up to the largest, what a shorter request did not ask
for is cut, which leaves its distribution unchanged.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Collection, Generator, Sequence
from typing import Any, TypeAlias

from ...data.rollout import Reply, Request
from ...errors import ModelError
from . import thinking
from .thinking import Opening

Asked: TypeAlias = tuple[list[int], int]
"""One request to a model: the ids to go on from, and the most new tokens."""
Heard: TypeAlias = tuple[Sequence[int], Sequence[float] | None]
"""What it gave out: the generated ids, and their log-probabilities where they are recorded."""
Exchange: TypeAlias = Generator[Asked, Heard, Reply]


class RefusedError(Exception):
    """A model did not answer one request; the message says why."""


def check(tokenizer: Any) -> None:
    """Raises ModelError if the tokenizer has no chat template."""
    if not getattr(tokenizer, "chat_template", None):
        raise ModelError("the tokenizer has no chat template: use an instruction-tuned model")


def prompt_ids(tokenizer: Any, request: Request) -> list[int]:
    """The prompt by the model's chat template."""
    flags = {} if request.enable_thinking is None else {"enable_thinking": request.enable_thinking}
    messages = [dict(message) for message in request.messages]
    return tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, tokenize=True, return_dict=False, **flags
    )


def overflow(request: Request, prompt: Sequence[int] | int, limit: int | None = None) -> Reply | None:
    """The reply to a request that is not sent, because prompt (its ids or their number), thinking and reply together
    exceed the request's own limit or the engine's `limit` tokens (None: there is none); None if they fit.

    The engine's limit must also hold the closing of the thinking, which counts as a token a character, at the most.
    """
    length = prompt if isinstance(prompt, int) else len(prompt)
    asked = request.think_tokens + request.max_tokens
    closing = len(thinking.INSERTED) if request.think_tokens else 0
    for most, new in ((request.limit, asked), (limit, asked + closing)):
        if most is not None and length + new > most:
            error = f"{length} prompt + {new} new tokens, over the limit of {most}"
            return Reply("", "overflow", n_requests=0, error=error)
    return None


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
        thinking.decode(tokenizer, completion),
        "length" if end is None else "stop",
        prompt_ids=tuple(prompt),
        completion_ids=completion,
        logprobs=None if logprobs is None else tuple(logprobs[: len(completion)]),
        prompt_tokens=len(prompt),
        completion_tokens=len(completion),
    )


def two_stage_reply(
    tokenizer: Any,
    prompt: Sequence[int],
    opening: Opening,
    generated: Sequence[int],
    logprobs: Sequence[float] | None,
    *,
    max_tokens: int,
    ends: Collection[int],
) -> Reply:
    """What the model said in two requests: `generated` and `logprobs` are the second's, which went on from prompt and
    opening. Both requests count in the usage; logprobs are None unless both have them."""
    second = reply(tokenizer, (*prompt, *opening.ids), generated, logprobs, max_tokens=max_tokens, ends=ends)
    both = opening.logprobs is not None and second.logprobs is not None
    return Reply(
        thinking.joined_ids(tokenizer, opening.ids, second.completion_ids),
        second.finish,
        opening.forced_close,
        n_requests=2,
        prompt_ids=tuple(prompt),
        completion_ids=(*opening.ids, *second.completion_ids),
        logprobs=(*(opening.logprobs or ()), *(second.logprobs or ())) if both else None,
        inserted=opening.inserted,
        prompt_tokens=len(prompt) + second.prompt_tokens,
        completion_tokens=opening.generated + second.completion_tokens,
    )


def exchange(tokenizer: Any, request: Request, prompt: list[int], ends: Collection[int]) -> Exchange:
    """One reply in as many requests as it takes, two for one that thinks: yields each, is sent what came of it, returns
    the reply. A `RefusedError` thrown into it makes that an error."""
    opening = None
    try:
        if most := request.think_tokens:
            ids, logprobs = yield prompt, most
            opening = thinking.continue_ids(tokenizer, ids, logprobs, think_tokens=most, ends=ends)
        ids, logprobs = yield [*prompt, *(opening.ids if opening else ())], request.max_tokens
    except RefusedError as error:
        return failed(prompt, opening, str(error))
    limits: dict[str, Any] = {"max_tokens": request.max_tokens, "ends": ends}
    if opening is None:
        return reply(tokenizer, prompt, ids, logprobs, **limits)
    return two_stage_reply(tokenizer, prompt, opening, ids, logprobs, **limits)


async def carry_out(exchange: Exchange, ask: Callable[[list[int], int, int], Awaitable[Heard]]) -> Reply:
    """The reply that an exchange comes to. `ask` is given ids, the most new tokens, and how many requests came
    before; a `RefusedError` of it goes into the exchange."""
    try:
        ids, most = next(exchange)
        for number in itertools.count():
            try:
                heard = await ask(ids, most, number)
            except RefusedError as error:
                ids, most = exchange.throw(error)
            else:
                ids, most = exchange.send(heard)
    except StopIteration as stop:
        return stop.value
    raise AssertionError


def failed(prompt: Sequence[int], opening: Opening | None, error: str) -> Reply:
    """The reply to a request that could not be answered: its only stage, its first (`opening` is None), or its second
    after this opening."""
    return Reply(
        "",
        "error",
        opening is not None and opening.forced_close,
        n_requests=1 if opening is None else 2,
        prompt_ids=tuple(prompt),
        error=error,
        prompt_tokens=0 if opening is None else len(prompt),
        completion_tokens=0 if opening is None else opening.generated,
    )
