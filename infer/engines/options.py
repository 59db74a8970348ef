"""What the engines can be told, apart from the engines: light commands read recipes without importing any library that
runs or reaches a model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from annotated_types import Ge, Gt, Le

from ...config import Positive, option
from ...errors import ConfigError

__all__ = ["OMITTABLE", "OpenAIOptions", "VllmOptions"]

_OURS = frozenset(
    {
        *("model", "messages", "prompt", "max_tokens", "max_completion_tokens", "stream", "n", "echo"),
        *("temperature", "top_p", "top_k", "seed", "logprobs", "top_logprobs", "return_token_ids"),
        *("continue_final_message", "add_generation_prompt"),
    }
)
"""Fields of a request that the engine sets itself."""
Omittable = Literal["seed", "temperature", "top_p", "top_k", "chat_template_kwargs"]
OMITTABLE: tuple[Omittable, ...] = get_args(Omittable)


@dataclass(frozen=True)
class OpenAIOptions:
    """How to talk to servers that speak as OpenAI's do: vLLM, SGLang, llama.cpp, hosted models."""

    base_url: tuple[str, ...] = option(
        ("http://localhost:8000/v1",), "addresses of servers of one model; requests go to the least loaded"
    )
    api: Literal["chat", "completions"] = option(
        "chat", "chat: messages, the server applies the chat template; completions: the template is applied here"
    )
    prompt_format: Literal["text", "ids"] = option("text", "what the prompt of api completions is sent as")
    key_env: str | None = option(None, "NAME of the environment variable that holds the key; null: no key is sent")
    concurrency: Positive = option(32, "requests under way at one address")
    timeout: Annotated[float, Gt(0)] = option(600.0, "seconds that one request may take in all")
    retries: Annotated[int, Ge(0)] = option(5, "how often a request is sent again when the server is at fault")
    backoff: Annotated[float, Ge(0)] = option(
        0.5, "seconds before the first repetition at most; doubles each time up to 30, unless the server says how long"
    )
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = option(
        "max_tokens", "field with the limit of new tokens; newer hosted models want max_completion_tokens"
    )
    max_model_len: Positive | None = option(
        None, "tokens that prompt and reply may hold together; null: what the server's list of models says, if it does"
    )
    logprobs: bool = option(False, "ask for the log-probability of each generated token, for traces")
    token_ids: bool = option(False, "ask for token ids (vLLM), for traces")
    omit: tuple[Omittable, ...] = option((), "fields that are not sent because the server refuses them")
    extra: dict[str, Any] = option({}, "more fields for every request, as in {repetition_penalty: 1.0}")

    def __post_init__(self) -> None:
        """Raises ConfigError for an address that is none or holds secrets, and for fields that are not the user's."""
        if not self.base_url:
            raise ConfigError("openai.base_url: name at least one address")
        for url in self.base_url:
            _check_url(url)
        if len({url.rstrip("/") for url in self.base_url}) < len(self.base_url):
            raise ConfigError("openai.base_url: one address is named twice; raise concurrency instead")
        if self.prompt_format == "ids" and self.api == "chat":
            raise ConfigError("openai.prompt_format: does nothing with api chat")
        if taken := sorted(_OURS & self.extra.keys()):
            raise ConfigError(f"openai.extra.{taken[0]}: this field is set by the engine")
        try:
            json.dumps(self.extra, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ConfigError("openai.extra: holds what JSON cannot say, such as a date; put it in quotes") from error
        kwargs = self.extra.get("chat_template_kwargs", {})
        if not isinstance(kwargs, Mapping) or "enable_thinking" in kwargs:
            raise ConfigError(
                "openai.extra.chat_template_kwargs: must be a mapping without enable_thinking, which agents set"
            )


@dataclass(frozen=True)
class VllmOptions:
    """How vLLM runs a model in this program. Names and meanings are vLLM's own."""

    tensor_parallel_size: Positive = option(1, "GPUs that hold one copy of the model together")
    data_parallel_size: Positive = option(
        1, "copies of the model, on GPUs of their own; requests go to the least loaded"
    )
    max_model_len: Positive | None = option(
        None, "tokens that prompt and reply may hold together; null: as many as the model has positions"
    )
    gpu_memory_utilization: Annotated[float, Gt(0), Le(1)] = option(
        0.9, "share of each GPU's memory for weights and cache; on a CPU, of the main memory"
    )
    max_num_seqs: Positive | None = option(
        None, "requests that a copy generates for at the same time; null: vLLM's own"
    )
    enforce_eager: bool = option(False, "start faster and generate slower: compile nothing, capture no CUDA graphs")
    quantization: str | None = option(
        None, "how vLLM quantizes the weights while loading, as fp8; null: as the model's config.json says"
    )


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise ConfigError("openai.base_url: an address cannot be read") from error
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigError("openai.base_url: an address must hold no name, password or query; name the key in key_env")
    if parts.scheme not in ("http", "https") or not parts.hostname or any(c.isspace() or ord(c) < 32 for c in url):
        raise ConfigError(f"openai.base_url: {url!r} is no address such as http://localhost:8000/v1")
