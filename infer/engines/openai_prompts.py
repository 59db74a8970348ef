"""What a server is asked, as a chat or as a prompt rendered by the model's own template, and whether it fits.

Counting the tokens of a long prompt takes milliseconds, so it is done only where the number of bytes does not show
that the request fits: a token has at least one byte.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ...data.rollout import Reply, Request
from . import chat
from .options import OpenAIOptions

_PER_MESSAGE, _PER_PROMPT = 5, 3  # tokens that templates put around messages and prompts, where we have no template
_BYTES_PER_MESSAGE = 64  # the same, at the most


@dataclass(frozen=True)
class Prompt:
    """A request, with the rendered prompt as text or as ids where the server gets that."""

    request: Request
    text: str = ""
    ids: tuple[int, ...] = ()


class Prompts:
    """Makes and counts prompts. `renderer` is a transformers tokenizer with the model's chat template, or None;
    `count` gives the tokens of a text and is used where there is no renderer."""

    def __init__(self, options: OpenAIOptions, renderer: Any, count: Callable[[str], int] | None) -> None:
        self.renderer, self._count = renderer, count
        self._kind = "chat" if options.api == "chat" else options.prompt_format
        self._around: dict[tuple[Any, ...], int] = {}

    def prompt(self, request: Request) -> Prompt:
        """The request as it will be sent."""
        match self._kind:
            case "chat":
                return Prompt(request)
            case "ids":
                return Prompt(request, ids=tuple(chat.prompt_ids(self.renderer, request)))
            case _:
                return Prompt(request, self._rendered(request).removeprefix(self._added_by_servers()))

    def refused(self, prompt: Prompt, limit: int | None) -> Reply | None:
        """The reply to a request over its own limit or the server's; None if it fits or cannot be counted."""
        request = prompt.request
        if prompt.ids:
            return chat.overflow(request, prompt.ids, limit)
        if (request.limit, limit) == (None, None) or not chat.overflow(request, self._bytes(prompt), limit):
            return None
        tokens = self.tokens(prompt)
        return None if tokens is None else chat.overflow(request, tokens, limit)

    def tokens(self, prompt: Prompt) -> int | None:
        """The tokens of a prompt, nearly so without a renderer; None if they cannot be counted."""
        if prompt.ids:
            return len(prompt.ids)
        if self.renderer is not None:
            return len(chat.prompt_ids(self.renderer, prompt.request))
        if self._count is None:
            return None
        return sum(self._count(message["content"]) + _PER_MESSAGE for message in prompt.request.messages) + _PER_PROMPT

    def text_tokens(self, text: str) -> int:
        """The tokens of a text; 0 if they cannot be counted."""
        if self.renderer is not None:
            return len(self.encode(text))
        return self._count(text) if self._count else 0

    def encode(self, text: str) -> list[int]:
        """The ids of a text by the renderer."""
        return self.renderer.encode(text, add_special_tokens=False)

    def _bytes(self, prompt: Prompt) -> int:
        """At least as many as the prompt has tokens."""
        request = prompt.request
        if prompt.text:
            return _size(prompt.text) + 1
        return self._template_bytes(request) + sum(_size(message["content"]) for message in request.messages)

    def _template_bytes(self, request: Request) -> int:
        """Bytes of all that is not the messages' contents."""
        if self.renderer is None:
            return _BYTES_PER_MESSAGE * (len(request.messages) + 1)
        shape = (request.enable_thinking, *(message["role"] for message in request.messages))
        if shape not in self._around:
            short = tuple({**message, "content": "x"} for message in request.messages)
            self._around[shape] = _size(self._rendered(replace(request, messages=short))) + 1
        return self._around[shape]

    def _rendered(self, request: Request) -> str:
        flags = {} if request.enable_thinking is None else {"enable_thinking": request.enable_thinking}
        messages = [dict(message) for message in request.messages]
        return self.renderer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False, **flags)

    def _added_by_servers(self) -> str:
        """What servers put before any text and templates write too: the token that begins one."""
        begin = getattr(self.renderer, "bos_token", None)
        return begin if begin and self.renderer.encode("")[:1] == [self.renderer.bos_token_id] else ""


def _size(text: str) -> int:
    """Bytes of UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
