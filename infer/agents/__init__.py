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
from .infmem import InfMem
from .memagent import MemAgent
from .memreread import MemReread
from .protocol import NO_MEMORY, Agent, Observer, Run
from .rememr1 import ReMemR1
from .replies import after_think
from .templates import NAMES_OF_PROMPTS

__all__ = [
    "AGENTS",
    "NAMES_OF_PROMPTS",
    "NO_MEMORY",
    "Agent",
    "Observer",
    "Outcome",
    "Reply",
    "Request",
    "Run",
    "after_think",
    "build",
]

AGENTS: Mapping[str, type[MemAgent] | type[InfMem] | type[MemReread] | type[ReMemR1]] = {
    agent.name: agent for agent in (MemAgent, InfMem, MemReread, ReMemR1)
}
"""Every agent by name."""


def build(name: str, /, *, tokenizer: Any, **options: Any) -> Agent:
    """The agent of this name. `options` are the fields of its class; `tokenizer` is the model's, anything that
    `load_tokenizer` takes (None will do for agents that count no tokens, and where nothing is rolled out).

    Raises ConfigError for an unknown agent or option (naming the nearest), for a value that the option cannot have, and
    for a folder of `prompts` that is not complete.
    """
    if name not in AGENTS:
        raise ConfigError(f"unknown agent {name!r}; {suggestion(name, list(AGENTS))}")
    fields = {field.name: field.default for field in dataclasses.fields(AGENTS[name])}
    known = [field for field in fields if field != "tokenizer"]
    for option, value in options.items():
        if option not in known:
            raise ConfigError(f"agent {name}: unknown option {option!r}; {suggestion(option, known)}")
        if isinstance(value, bool) and not isinstance(fields[option], bool):  # pydantic would take `true` for 1
            raise ConfigError(f"agent {name}: {option} = {value}: input should be no switch")
    if "tokenizer" in fields:
        options["tokenizer"] = tokenizer
    try:
        agent = TypeAdapter(AGENTS[name]).validate_python(options)
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"agent {name}: {first['loc'][0]} = {first['input']!r}: {first['msg'].lower()}") from error
    _ = agent.templates  # a wrong folder of wording is refused now, not in the middle of a run
    return agent
