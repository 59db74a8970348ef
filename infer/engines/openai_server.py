"""Models behind servers that speak as OpenAI's do, by chat messages or by raw prompts.

1. A request takes a slot of the least loaded server for each attempt, none while it waits to try again. What a server
   did wrong is tried again, elsewhere if there is another; what the request did wrong is not.
2. Before the first request each server is asked for its models: a name that it does not serve, a key that it refuses
   and an address where nothing answers are ModelErrors, not thousands of empty replies.
3. Raw prompts are rendered here, by the model's own chat template. What servers tell of token ids and logprobs is
   kept; nothing is encoded to make up for what they do not tell.
4. Two-stage thinking goes on from a raw prompt, or from an assistant message that the server is asked to continue.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ...data.rollout import Reply, Request
from ...errors import ConfigError, ModelError
from . import Background, Sampling, openai_wire, thinking
from .openai_http import MOST_BYTES, Lanes, Server
from .openai_prompts import Prompt, Prompts
from .openai_wire import CallError, Model, Said
from .options import OMITTABLE, OpenAIOptions

T = TypeVar("T")

_LONGEST_BACKOFF = 30.0  # seconds
_LIST_TIMEOUT = 30.0  # seconds for a list of models


@dataclass
class _Spent:
    """What one reply has cost so far: requests sent, tokens in and out."""

    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


@dataclass(frozen=True)
class _Opening:
    """What a second request goes on from after the prompt: text, or ids where the prompt is ids. `known` if the ids of
    the first reply are known and so what was inserted among them."""

    text: str
    ids: tuple[int, ...] = ()
    forced_close: bool = False
    known: thinking.Opening | None = None


class OpenAI(Background):
    """A model on one server or several.

    `model`: its name there; None: the only one served. `renderer`: a transformers tokenizer with the model's chat
    template, needed for api completions, otherwise for exact counts. `count`: tokens of a text, used where there is no
    renderer. `sleep` waits between attempts, `most_bytes` is the longest response that is read.

    Raises ConfigError for a missing key or renderer.
    """

    def __init__(
        self,
        options: OpenAIOptions,
        *,
        model: str | None = None,
        renderer: Any = None,
        count: Callable[[str], int] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        if options.api == "completions" and renderer is None:
            raise ConfigError("openai.api completions needs the model's tokenizer with its chat template")
        key = _key(options.key_env)
        self._options, self._sleep = options, sleep
        self._model, self._limit = model, options.max_model_len
        self._prompts = Prompts(options, renderer, count)
        self._servers = [
            Server(url, key=key, timeout=options.timeout, most_bytes=most_bytes) for url in options.base_url
        ]
        self._jitter = random.Random()
        self._heard = 0.0  # when a server last answered, by the loop's clock
        self._preparation: asyncio.Future[None] | None = None
        super().__init__()
        self._lanes = Lanes(self._servers, options.concurrency, self._loop.time)

    async def answer(self, request: Request, sampling: Sampling) -> Reply:
        """The reply to one request. Raises ModelError for what concerns all requests."""
        await self._prepared()
        prompt = self._prompts.prompt(request)
        if refused := self._prompts.refused(prompt, self._limit):
            return refused
        spent, begun = _Spent(), self._loop.time()
        try:
            reply = await (self._in_two_stages if request.think_tokens else self._at_once)(prompt, sampling, spent)
        except CallError as failure:
            if failure.unreachable and self._heard < begun:  # to go on would fill the results with empty answers
                raise ModelError(f"{failure.reason}; start the server again, the same command goes on") from None
            reply = Reply("", "overflow" if failure.overflow else "error", error=failure.reason)
        return replace(
            reply, n_requests=spent.requests, prompt_tokens=spent.tokens_in, completion_tokens=spent.tokens_out
        )

    async def shut(self) -> None:
        """Closes the connections."""
        for server in self._servers:
            await server.close()

    # Which model.

    async def _prepared(self) -> None:
        if self._preparation is None:
            self._preparation = asyncio.ensure_future(self._prepare())
        await asyncio.shield(self._preparation)

    async def _prepare(self) -> None:
        """Finds the model on every server, and the least of the lengths that they tell."""
        listed = await asyncio.gather(*(self._listed(server) for server in self._servers))
        for server, models in zip(self._servers, listed, strict=True):
            found = _choose(server, models, self._model)
            self._model = self._model or found.names[0]
            lengths = [length for length in (self._limit, found.length) if length is not None]
            self._limit = min(lengths, default=None)

    async def _listed(self, server: Server) -> list[Model] | None:
        """The models of a server; None if it has no list of them."""
        try:
            return await self._persistently(lambda: server.get("/models", openai_wire.served, timeout=_LIST_TIMEOUT))
        except CallError as failure:
            self._raise_if_refused(failure)
            if not failure.status or 300 <= failure.status < 400:
                raise ModelError(f"no model to be had from {failure.reason}") from None
            return None

    def _raise_if_refused(self, failure: CallError) -> None:
        """Raises ModelError for a key that a server does not take."""
        if failure.status in (401, 403):
            variable = self._options.key_env
            sent = f"the key in ${variable} was sent" if variable else "no key was sent; name one in openai.key_env"
            raise ModelError(f"{failure.reason} ({sent})") from None

    async def _unknown(self, server: Server, failure: CallError) -> ModelError:
        """The error for a model or a path that a server does not have."""
        try:
            models = await server.get("/models", openai_wire.served, timeout=_LIST_TIMEOUT)
        except CallError:
            return ModelError(f"{failure.reason}; openai.base_url mostly ends with /v1")
        return ModelError(f"{failure.reason}; asked for the model {self._model!r}, served: {_names(server, models)}")

    # Asking.

    async def _at_once(self, prompt: Prompt, sampling: Sampling, spent: _Spent) -> Reply:
        said = await self._ask(prompt, sampling, prompt.request.max_tokens, None, spent)
        return Reply(
            said.text, said.finish, prompt_ids=said.prompt_ids, completion_ids=said.ids, logprobs=said.logprobs
        )

    async def _in_two_stages(self, prompt: Prompt, sampling: Sampling, spent: _Spent) -> Reply:
        request = prompt.request
        first = await self._ask(prompt, sampling, request.think_tokens, None, spent)
        opening = self._opening(prompt, first)
        second = await self._ask(prompt, sampling, request.max_tokens, opening, spent)
        reply = Reply(thinking.joined(opening.text, second.text), second.finish, opening.forced_close)
        known = opening.known or _between(first, second)
        if known is None or not second.ids:
            return reply
        both = known.logprobs is not None and second.logprobs is not None
        return replace(
            reply,
            prompt_ids=first.prompt_ids,
            completion_ids=(*known.ids, *second.ids),
            inserted=known.inserted,
            logprobs=(*(known.logprobs or ()), *(second.logprobs or ())) if both else None,
        )

    def _opening(self, prompt: Prompt, first: Said) -> _Opening:
        text, forced_close = thinking.continue_text(first.text)
        if not prompt.ids:
            return _Opening(text, (), forced_close)
        if first.ids:
            tokenizer, limit = self._prompts.renderer, prompt.request.think_tokens
            ends = {first.ids[-1]} & set(tokenizer.all_special_ids)
            known = thinking.continue_ids(tokenizer, first.ids, first.logprobs, think_tokens=limit, ends=ends)
            if known.forced_close == forced_close:
                return _Opening(text, known.ids, forced_close, known)
        return _Opening(text, tuple(self._prompts.encode(text)), forced_close)

    async def _ask(
        self, prompt: Prompt, sampling: Sampling, max_tokens: int, opening: _Opening | None, spent: _Spent
    ) -> Said:
        """One response, tried for as often as the options say. Raises CallError."""
        assert self._model is not None
        body = openai_wire.fields(self._options, self._model, sampling, max_tokens)
        begun = opening.text if opening else ""
        is_chat = self._options.api == "chat"
        if is_chat:
            body |= openai_wire.messages(self._options, prompt.request, begun if opening else None)
        elif prompt.ids:
            body["prompt"] = [*prompt.ids, *(opening.ids if opening else ())]
        else:
            body["prompt"] = prompt.text + begun
        path, payload = ("/chat/completions" if is_chat else "/completions"), openai_wire.encoded(body)
        failed: set[Server] = set()

        def read(answer: Any) -> Said:
            return openai_wire.said(answer, begun if is_chat else "")

        try:
            said = await self._persistently(lambda: self._attempt(path, payload, read, failed, spent))
        except CallError as failure:
            raise _explained(failure, body) from None
        self._count(prompt, begun, said, spent)
        return replace(said, prompt_ids=tuple(body["prompt"])) if prompt.ids else said

    async def _attempt(
        self, path: str, payload: bytes, read: Callable[[Any], Said], failed: set[Server], spent: _Spent
    ) -> Said:
        """One exchange, with a server that has not failed at this request yet if there is one."""
        if len(failed) == len(self._servers):
            failed.clear()
        server = await self._lanes.take(frozenset(failed))
        answered: bool | None = None
        spent.requests += 1
        try:
            said = await server.post(path, payload, read)
            answered, self._heard = True, self._loop.time()
        except CallError as failure:
            answered = failure.status != 0
            self._heard = self._loop.time() if answered else self._heard
            failed.add(server)
            self._raise_if_refused(failure)
            if failure.status == 404:
                raise await self._unknown(server, failure) from None
            raise
        finally:
            self._lanes.give(server, answered=answered)
        return said

    async def _persistently(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """What an attempt gives in the end. Raises the last CallError."""
        for n in itertools.count():
            try:
                return await attempt()
            except CallError as failure:
                if not failure.again or n >= self._options.retries:
                    raise
                most = min(_LONGEST_BACKOFF, self._options.backoff * 2.0 ** min(n, 30))
                wait = failure.wait + self._jitter.uniform(0, most)
            await self._sleep(wait)
        raise AssertionError

    def _count(self, prompt: Prompt, begun: str, said: Said, spent: _Spent) -> None:
        """Adds the usage that the server tells, or else what can be counted here."""
        prompts, taken, given = self._prompts, said.prompt_tokens, said.completion_tokens
        if taken < 0:
            taken = len(said.prompt_ids) or (prompts.tokens(prompt) or 0) + (prompts.text_tokens(begun) if begun else 0)
        spent.tokens_in += taken
        spent.tokens_out += given if given >= 0 else len(said.ids) or prompts.text_tokens(said.text)


def _choose(server: Server, models: list[Model] | None, wanted: str | None) -> Model:
    """The wanted model among those of a server, or its only one. Raises ModelError."""
    if models is None and wanted is not None:
        return Model((wanted,), None)
    found = [model for model in models or () if wanted is None or wanted in model.names]
    if len(found) == 1 or (found and wanted is not None):
        return found[0]
    if wanted is not None:
        raise ModelError(f"{server.url}: the model {wanted!r} is not served there; served: {_names(server, models)}")
    if not models:
        raise ModelError(f"{server.url} lists no models: name the model; an openai.base_url mostly ends with /v1")
    raise ModelError(f"{server.url}: name the model; served: {_names(server, models)}")


def _names(server: Server, models: list[Model] | None) -> str:
    return server.shown(", ".join(model.names[0] for model in models or ())) or "nothing that it would tell"


def _between(first: Said, second: Said) -> thinking.Opening | None:
    """What stood between the prompt and the second reply, by what the server tells of both its prompts; None if it
    does not. What differs from the first reply, the model did not generate."""
    start = len(first.prompt_ids)
    if not start or second.prompt_ids[:start] != first.prompt_ids:
        return None
    ids = second.prompt_ids[start:]
    pairs = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first.ids, ids, strict=False))
    kept = sum(1 for _ in pairs)
    inserted = (kept, len(ids)) if kept < len(ids) else (0, 0)
    logprobs = None if first.logprobs is None else (*first.logprobs[:kept], *[0.0] * (len(ids) - kept))
    return thinking.Opening(ids, inserted, logprobs=logprobs)


def _explained(failure: CallError, body: dict[str, Any]) -> CallError:
    """The same error; one that names a field says how to leave it out."""
    named = [name for name in OMITTABLE if name in body and re.search(rf"\b{name}\b", failure.reason)]
    if failure.status in (400, 422) and named and not failure.overflow:
        failure.reason += f" (openai.omit [{named[0]}] leaves it out)"
    return failure


def _key(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ConfigError(f"openai.key_env: the environment variable {variable} is not set")
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise ConfigError(f"openai.key_env: the environment variable {variable} holds something that is no key")
    return key
