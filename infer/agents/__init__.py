"""Memory agents as generators: they ask for model calls and are sent the replies.

`build("memagent", tokenizer=T).rollout(question, observer)` yields `Request`s and returns an `Outcome`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ...config import suggestion
from ...data.rollout import Outcome, Reply, Request
from ...errors import ConfigError
from .memagent import MemAgent
from .protocol import NO_MEMORY, Agent, Observer, Run
from .replies import after_think

__all__ = ["AGENTS", "NO_MEMORY", "Agent", "Observer", "Outcome", "Reply", "Request", "Run", "after_think", "build"]

AGENTS: Mapping[str, type[MemAgent]] = {MemAgent.name: MemAgent}
"""Every agent by name."""


def build(name: str, *, tokenizer: Any, **options: Any) -> Agent:
    """The agent of this name. `options` are the fields of its class; `tokenizer` is the model's, for agents that
    count tokens (MemAgent counts none).

    Raises ConfigError for an unknown agent or option (naming the nearest) and for a value that the option cannot have.
    """
    if name not in AGENTS:
        raise ConfigError(f"unknown agent {name!r}; {suggestion(name, list(AGENTS))}")
    known = [field.name for field in dataclasses.fields(AGENTS[name])]
    for option in options:
        if option not in known:
            raise ConfigError(f"agent {name}: unknown option {option!r}; {suggestion(option, known)}")
    try:
        return TypeAdapter(AGENTS[name]).validate_python(options)
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"agent {name}: {first['loc'][0]} = {first['input']!r}: {first['msg'].lower()}") from error
