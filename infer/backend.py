"""The model side of a run: which tokenizer counts, what identifies the model, and the engine, made when first needed.

Nothing heavy is loaded before: names, adapters and options are checked first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..data.tokens import load_tokenizer
from ..errors import ModelError
from . import models
from .config import Inference
from .engines import Engine


@dataclass(frozen=True)
class Backend:
    """`tokenizer` is anything `load_tokenizer` takes; `identity` tells this model from others by content, which takes a
    second a gigabyte; `engine` is asked for only when there is something to do."""

    tokenizer: Any
    identity: Callable[[], Mapping[str, Any]]
    engine: Callable[[], Engine]


def backend_of(config: Inference, *, batch_size: int = 1) -> Backend:
    """The backend that a configuration describes. `batch_size` is that of padded batches. Raises ModelError,
    ConfigError."""
    if config.engine == "openai":
        return _openai(config)
    name = config.model or models.default_model()
    tokenizer = models.load_chat_tokenizer(name)
    if config.adapter:
        models.check_adapter(config.adapter)

    def identity() -> Mapping[str, Any]:
        adapter = models.adapter_fingerprint(config.adapter) if config.adapter else None
        return {"model": models.fingerprint(name), "adapter": adapter}

    if config.engine == "vllm":
        return Backend(tokenizer, identity, lambda: _vllm(config, name, tokenizer))
    return Backend(tokenizer, identity, lambda: _transformers(config, name, tokenizer, batch_size))


def _transformers(config: Inference, name: str, tokenizer: Any, batch_size: int) -> Engine:
    model = models.load_weights(name, dtype=config.dtype, device=config.device, adapter=config.adapter)
    if config.batching == "continuous":
        from .engines.continuous import Continuous

        return Continuous(model, tokenizer)
    from .engines.transformers import Transformers

    return Transformers(model, tokenizer, batch_size=batch_size)


def _vllm(config: Inference, name: str, tokenizer: Any) -> Engine:
    from .engines.vllm import Vllm

    return Vllm(name, tokenizer, config.vllm, dtype=config.dtype, adapter=config.adapter)


def _openai(config: Inference) -> Backend:
    """The server's model goes by its name: what stands behind it only the server knows."""
    from .engines.openai_server import OpenAI

    name = config.tokenizer or config.model
    assert name is not None  # or the configuration would have been refused
    try:
        counter = load_tokenizer(name)
    except ModelError as error:
        if config.tokenizer:
            raise
        raise ModelError(f"set tokenizer: the server's name of the model does not lead to one ({error})") from error
    try:
        chat = models.load_chat_tokenizer(name)
    except ModelError:
        if config.openai.api == "completions":
            raise
        chat = None  # the server has the template; prompts are then counted by their contents
    return Backend(
        counter,
        lambda: {"model": config.model},
        lambda: OpenAI(config.openai, model=config.model, renderer=chat, count=counter.count),
    )
