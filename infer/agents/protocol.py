"""What an agent is, and what it is given to read.

An agent is a generator: it yields a `Request` for each model call, is sent the `Reply`, and returns an `Outcome`. It
owns its prompts, its parsing and its stopping; it never sees an engine, batching, sampling or a reward, and does no
input or output. Whoever drives it ends the rollout when a reply could not be had (`MemoryEnv` does): an agent is
sent only what a model said.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeAlias

from ...data.rollout import Outcome, Reply, Request

Run: TypeAlias = Generator[Request, Reply, Outcome]

NO_MEMORY = "No previous memory"
"""What the first reading call of every released agent shows in place of a memory."""


class Observer(Protocol):
    """A document in `n` sections, as one of `treeagent.infer.observe.KINDS` shows it to one rollout. `t` is 0-based,
    `pass_id` k for the k-th rereading; each pass has saved states of its own.

    An observer may have a dictionary `shared` besides, common to all observers of the same sections: agents keep there
    what they derive from the sections, so that it is worked out once.
    """

    @property
    def n(self) -> int:
        """The number of sections."""
        ...

    def text(self, t: int) -> str:
        """The source slice of section `t`, without anything around it."""
        ...

    def observe(self, t: int, question: str, pass_id: int = 0) -> str:
        """What the section slot of a prompt shows for section `t`."""
        ...

    def commit(self, t: int, memory: str, pass_id: int = 0) -> None:
        """Saves the memory state after section `t`; later sections may show spans of it."""
        ...


class Agent(Protocol):
    """A memory agent with its options. One agent object serves any number of rollouts."""

    name: ClassVar[str]
    """The name by which `build` knows it."""

    @property
    def prompts_hash(self) -> str:
        """Identifies the wording of all its prompts."""
        ...

    @property
    def answer_format(self) -> str:
        """How it states its answer: `the answer is` or `boxed`."""
        ...

    @property
    def request_limit(self) -> int:
        """The most tokens that prompt and generation of one request may hold together (paper, C.3)."""
        ...

    def rollout(self, question: str, observer: Observer) -> Run:
        """Reads the observer's document and answers."""
        ...

    def derive(self, texts: Sequence[str]) -> Mapping[Any, Any]:
        """What this agent makes of the section texts before any question, to be put among what an observer shares; it
        makes it itself where it is not there."""
        ...
