"""What tests of agents share: an observer of plain texts, a tokenizer of words, and a driver with given replies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from treeagent.infer.agents import Agent, Outcome, Request


@dataclass
class Watched:
    """An observer of given texts, shown as they are. It notes every observation, every commit and every text that is
    asked for."""

    sections: Sequence[str]
    observed: list[tuple[int, str, int]] = field(default_factory=list)
    committed: list[tuple[int, str, int]] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)

    @property
    def n(self) -> int:
        return len(self.sections)

    def text(self, t: int) -> str:
        self.taken.append(t)
        return self.sections[t]

    def observe(self, t: int, question: str, pass_id: int = 0) -> str:
        self.observed.append((t, question, pass_id))
        return self.sections[t]

    def commit(self, t: int, memory: str, pass_id: int = 0) -> None:
        self.committed.append((t, memory, pass_id))


class Words:
    """A tokenizer of which every word is a token; decoding puts one blank between words."""

    name_or_path = "words"
    _known: dict[str, int] = {}  # noqa: RUF012 - the vocabulary of all instances

    def encode(self, text: str, add_special_tokens: bool = False) -> list[int]:
        return [self._known.setdefault(word, len(self._known)) for word in text.split()]

    def decode(self, ids: Sequence[int]) -> str:
        words = list(self._known)
        return " ".join(words[i] for i in ids)

    def get_vocab(self) -> dict[str, int]:
        return {}


def play(
    agent: Agent, question: str, observer: Any, reply: Callable[[Request], Any] | Sequence[Any]
) -> tuple[list[Request], Outcome]:
    """The requests of a rollout that is sent these replies (in order, or one made for each request), and its
    outcome."""
    answers = reply if callable(reply) else iter(reply)
    run, asked = agent.rollout(question, observer), []
    try:
        asked.append(next(run))
        while True:
            asked.append(run.send(answers(asked[-1]) if callable(answers) else next(answers)))
    except StopIteration as stop:
        if not isinstance(stop.value, Outcome):
            raise AssertionError("the agent wants more replies than were given") from None
        return asked, stop.value


def said(request: Request) -> str:
    """What the user turn of a request says."""
    assert request.messages[-1]["role"] == "user"
    return request.messages[-1]["content"]


def blocks(request: Request, first: str) -> str:
    """The prompt from its first block on."""
    return said(request)[said(request).index(first) :]
