"""An example, an observer and an agent make a rollout: what evaluation and training share.

`Environment.rollout` is a generator like an agent's: it yields `Request`s, is sent `Reply`s, and returns the recorded
`Rollout`. It knows no engine and no reward. A reply that could not be had (`error`, `overflow`) ends the rollout with
the answer "", whatever the agent: it is never dropped and scores 0. People with their own loop use `reset` and `step`
instead.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Generator, Mapping
from typing import TypeAlias

from ..data.formats import parse
from ..data.rollout import Call, Example, Outcome, Reply, Request, Rollout
from ..data.tokens import Tokenizer
from ..data.tree import Document
from . import observe
from .agents import Agent

Episode: TypeAlias = Generator[Request, Reply, Rollout]

_NO_FLAGS: Mapping[str, bool] = {"valid_interaction": False, "memory_complete": False}


class Documents:
    """The documents read last, parsed once each. A document remembers its sections, so these too are worked out once
    for all agents and observers that share this object."""

    def __init__(self, capacity: int = 16) -> None:
        self.capacity = max(capacity, 1)
        self._kept: OrderedDict[tuple[str, bytes], Document] = OrderedDict()

    def get(self, text: str, format: str) -> Document:
        """The parsed document. Raises ParseError if the text is not of this format."""
        key = (format, hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
        if key not in self._kept:
            self._kept[key] = parse(text, format)
        self._kept.move_to_end(key)
        while len(self._kept) > self.capacity:
            self._kept.popitem(last=False)
        return self._kept[key]


class Environment:
    """One agent reading through one kind of observer. `rollout` keeps no state here, so that one environment serves any
    number of rollouts at once; `reset` and `step` drive a single one."""

    def __init__(
        self, agent: Agent, kind: str, tokenizer: Tokenizer, budget: int = 5000, documents: Documents | None = None
    ) -> None:
        """`kind` is one of `observe.KINDS`; `budget` is C in tokens; `documents` may be shared between environments."""
        self.agent, self.kind, self.tokenizer, self.budget = agent, kind, tokenizer, budget
        self.documents = documents if documents is not None else Documents()
        self._episode: Episode | None = None
        self._result: Rollout | None = None

    def rollout(self, example: Example) -> Episode:
        """Yields the agent's requests, is sent the replies, returns the rollout with every call recorded."""
        document = self.documents.get(example.context, example.format)
        observer = observe.build(self.kind, document, tokenizer=self.tokenizer, budget=self.budget)
        run, calls, failure = self.agent.rollout(example.question, observer), [], ""
        outcome = Outcome("", "", None, _NO_FLAGS)
        try:
            request = next(run)
            while not failure:
                reply = yield request
                calls.append(Call(request, reply))
                if reply.finish in ("error", "overflow"):
                    failure, outcome = reply.finish, Outcome("", "", request.section, _NO_FLAGS)
                else:
                    request = run.send(reply)
        except StopIteration as stop:
            outcome = stop.value
        finally:
            run.close()
        return Rollout(example.key, tuple(calls), outcome, observer.n, failure, _notes(observer))

    def reset(self, example: Example) -> Request:
        """Starts over with an example: the first request. Every agent makes at least one."""
        if self._episode is not None:
            self._episode.close()
        self._episode, self._result = self.rollout(example), None
        return next(self._episode)

    def step(self, reply: Reply | str) -> Request | None:
        """Answers the last request (a plain string is a reply that ended by itself): the next request, or None at the
        end."""
        if self._episode is None:
            raise RuntimeError("no rollout is under way: call reset first")
        try:
            return self._episode.send(Reply(reply) if isinstance(reply, str) else reply)
        except StopIteration as stop:
            self._episode, self._result = None, stop.value
            return None

    @property
    def result(self) -> Rollout:
        """The rollout that `step` ended."""
        if self._result is None:
            raise RuntimeError("the rollout has not ended")
        return self._result


def _notes(observer: observe.Observer) -> dict[str, int]:
    """What the sections hold beyond the budget: wrapper tokens, and how many leaves are larger than it."""
    sections = [observer.section(t) for t in range(observer.n)]
    return {
        "wrapper_tokens": sum(section.wrapper_tokens for section in sections),
        "oversize": sum(section.oversize for section in sections),
    }
