"""What is said to a server and what it says, without any IO: the fields of a request, and a response read as one that
any server, or anyone in between, may have got wrong.

The servers differ: token ids come from vLLM as `token_ids`, from llama.cpp beside its logprobs; a server with a
reasoning parser splits the thinking off; llama.cpp repeats an assistant message that it continues. All of that ends
here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ...data.rollout import Request
from . import Sampling
from .options import OpenAIOptions
from .thinking import END, START

_LENGTH = frozenset({"length", "max_tokens"})
_BROKEN = frozenset({"abort", "error", "cancelled"})
_OVERFLOW = (
    "context length",
    "context_length",
    "maximum context",
    "maximum model length",
    "context size",
    "exceed_context_size_error",
    "context window",
)
_SHOWN = 200
"""Characters of a server's message that are passed on."""


class CallError(Exception):
    """Why a call has no reply. `status` is 0 where no response came; `again`: another attempt may help, in `wait`
    seconds at the earliest; `overflow`: the request is longer than the model's context; `unreachable`: there was no
    server to send it to."""

    def __init__(
        self,
        reason: str,
        *,
        status: int = 200,
        again: bool = False,
        wait: float = 0.0,
        overflow: bool = False,
        unreachable: bool = False,
    ) -> None:
        super().__init__(reason)
        self.reason, self.status, self.again, self.wait, self.overflow = reason, status, again, wait, overflow
        self.unreachable = unreachable


@dataclass(frozen=True)
class Said:
    """One response. Ids and logprobs are empty and None where it does not tell them, numbers of tokens are -1."""

    text: str
    finish: Literal["stop", "length"]
    prompt_ids: tuple[int, ...] = ()
    ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] | None = None
    prompt_tokens: int = -1
    completion_tokens: int = -1


@dataclass(frozen=True)
class Model:
    """One model of a server: the names it goes by, and the most tokens of prompt and reply, if that is told."""

    names: tuple[str, ...]
    length: int | None


def fields(options: OpenAIOptions, model: str, sampling: Sampling, max_tokens: int) -> dict[str, Any]:
    """The fields that do not depend on what is asked."""
    sent: dict[str, Any] = {**options.extra, "model": model, options.max_tokens_field: max_tokens}
    sent |= {"temperature": sampling.temperature, "seed": sampling.seed}
    if sampling.top_p != 1:
        sent["top_p"] = sampling.top_p
    if sampling.top_k:
        sent["top_k"] = sampling.top_k
    if options.logprobs and options.api == "chat":
        sent |= {"logprobs": True, "top_logprobs": 1}  # llama.cpp takes 0 for none at all
    elif options.logprobs:
        sent["logprobs"] = 1
    if options.token_ids:
        sent["return_token_ids"] = True
    for name in options.omit:
        sent.pop(name, None)
    return sent


def messages(options: OpenAIOptions, request: Request, opening: str | None = None) -> dict[str, Any]:
    """The fields of a chat request; with an `opening` the last message is an assistant's, which the reply
    continues."""
    said = [dict(message) for message in request.messages]
    sent: dict[str, Any] = {"messages": said}
    if opening is not None:
        said.append({"role": "assistant", "content": opening})
        sent |= {"continue_final_message": True, "add_generation_prompt": False}
    if request.enable_thinking is not None and "chat_template_kwargs" not in options.omit:
        given = options.extra.get("chat_template_kwargs", {})
        sent["chat_template_kwargs"] = {**given, "enable_thinking": request.enable_thinking}
    return sent


def encoded(body: Mapping[str, Any]) -> bytes:
    """A request's body; a lone surrogate, which no encoding can say, becomes `?`."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def decoded(body: bytes) -> Any:
    """A response's body. Raises CallError."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise CallError(f"the response is not valid JSON ({len(body)} bytes)", again=True) from None


def said(answer: Any, opening: str = "") -> Said:
    """The reply in a response, of either API. `opening`: what the assistant message began with that it continues.

    Raises CallError, `again` where the response says nothing usable.
    """
    choices = _member(answer, "choices", list)
    if not choices:
        problem = message_of(answer)
        overflow = is_overflow(problem)
        raise CallError(
            f"the response holds no reply{problem and ': '}{problem}", again=not overflow, overflow=overflow
        )
    choice = choices[0]
    reason = (_member(choice, "finish_reason", str) or "").lower()
    if reason == "content_filter":
        raise CallError("the server withheld the reply: content_filter")
    text, finish = _text(choice, reason, opening)
    usage = _member(answer, "usage", dict)
    ids, logprobs = _tokens(choice)
    told = _ids(_member(choice, "prompt_token_ids", list) or _member(answer, "prompt_token_ids", list))
    return Said(text, finish, told, ids, logprobs, _count(usage, "prompt_tokens"), _count(usage, "completion_tokens"))


def served(answer: Any) -> list[Model]:
    """The models in a list of models. Raises CallError where it is no such list."""
    rows = _member(answer, "data", list)
    if rows is None:
        raise CallError("the response is no list of models", again=True)
    found = []
    for row in rows:
        told = [_count(row, "max_model_len"), _count(_member(row, "meta", dict), "n_ctx")]  # vLLM, llama.cpp
        names = [_member(row, "id", str), *(_member(row, "aliases", list) or ())]
        length = next((length for length in told if length > 0), None)
        found.append(Model(tuple(dict.fromkeys(name for name in names if name and isinstance(name, str))), length))
    return [model for model in found if model.names]


def message_of(answer: Any) -> str:
    """What a server says about an error; empty if it says nothing."""
    error = answer.get("error", answer) if isinstance(answer, dict) else answer
    if isinstance(error, dict):
        error = next((error[key] for key in ("message", "detail", "type", "code") if error.get(key)), "")
    return error if isinstance(error, str) else json.dumps(error) if error else ""


def is_overflow(message: str) -> bool:
    """True for an error that says that the request is longer than the model's context."""
    text = message[:20_000].lower()
    return any(mark in text for mark in _OVERFLOW)


def printable(text: str) -> str:
    """One line of at most 200 characters without control characters."""
    words = " ".join("".join(c if c.isprintable() else " " for c in text[: 10 * _SHOWN]).split())
    return words if len(words) <= _SHOWN else words[: _SHOWN - 3] + "..."


def _text(choice: Any, reason: str, opening: str) -> tuple[str, Literal["stop", "length"]]:
    """The text of a choice, and how it ended."""
    message = _member(choice, "message", dict)
    if message is None and _member(choice, "text", str) is None:
        raise CallError("the response holds no message", again=True)
    content = choice["text"] if message is None else message.get("content")
    if not isinstance(content, str | None):
        raise CallError("the text of the response is no text", again=True)
    thought = _member(message, "reasoning_content", str) or _member(message, "reasoning", str) or ""
    text = _clean(content or "")
    if opening:
        text, thought = _continuation(text, opening), "" if thought.strip() in opening else thought
        if not text:  # parsers that wait for an end of thinking, which the opening has, take all for thinking
            text, thought = _clean(thought), ""
    if not (text or thought):
        if refusal := _member(message, "refusal", str):
            raise CallError(f"the server withheld the reply: {refusal}")
        if _member(message, "tool_calls", list):
            raise CallError("the server made a tool call of the reply; switch its tool parser off")
    finish = _finish(reason, bool(text or thought))
    if not thought:
        return text, finish
    closed = bool(text) or finish == "stop"
    return f"{START}\n{_clean(thought)}" + (f"\n{END}\n\n{text}" if closed else ""), finish


def _continuation(text: str, opening: str) -> str:
    """What follows the opening: some servers repeat it, without its trailing blanks or with them."""
    for start in (opening, opening.rstrip()):
        if start and text.startswith(start):
            return text[len(start) :]
    return text


def _finish(reason: str, some: bool) -> Literal["stop", "length"]:
    if reason in _LENGTH:
        return "length"
    if reason not in _BROKEN and (some or reason):
        return "stop"
    raise CallError(f"the reply ended with finish_reason {reason or 'null'}", again=True)


def _clean(text: str) -> str:
    """JSON can spell half a character, which no file could hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _tokens(choice: Any) -> tuple[tuple[int, ...], tuple[float, ...] | None]:
    """Token ids and logprobs, as far as they are told and agree with each other."""
    told = _member(choice, "logprobs", dict)
    rows = _member(told, "content", list)
    listed = [row.get("logprob") if isinstance(row, dict) else None for row in rows] if rows else None
    logprobs = _numbers(listed or _member(told, "token_logprobs", list))
    ids = _ids(_member(choice, "token_ids", list))
    if not ids and rows:
        ids = _ids([row.get("id") if isinstance(row, dict) else None for row in rows])
    return ids, logprobs if not ids or logprobs is None or len(logprobs) == len(ids) else None


def _ids(values: Sequence[Any] | None) -> tuple[int, ...]:
    """The values if all of them are token ids."""
    if values and all(type(value) is int and value >= 0 for value in values):
        return tuple(values)
    return ()


def _numbers(values: Sequence[Any] | None) -> tuple[float, ...] | None:
    """The values if all of them are numbers, of which NaN and infinity are none."""
    if values and all(type(value) in (int, float) and abs(value) < 1e9 for value in values):
        return tuple(float(value) for value in values)
    return None


def _count(holder: Any, name: str) -> int:
    value = holder.get(name) if isinstance(holder, dict) else None
    return value if type(value) is int and value >= 0 else -1


def _member(holder: Any, name: str, kind: type) -> Any:
    """What a mapping holds under a name if it is of this kind, else None."""
    value = holder.get(name) if isinstance(holder, dict) else None
    return value if isinstance(value, kind) else None
