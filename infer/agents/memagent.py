"""MemAgent: one call a section rewrites the memory, one more call answers from it.

The released evaluation workflow with the decisions of this project: nothing is truncated and no example is dropped.
Its prompts keep the released protocol (tags, cues, the placeholder of the first memory, the answer format); the
sentences around it are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import ClassVar

from ...data.rollout import Outcome, Reply, Request
from ...rewards.answer import AnswerFormat
from .asking import Asker
from .protocol import NO_MEMORY, Observer, Run
from .replies import after_think, closed, ended


@dataclass(frozen=True)
class MemAgent(Asker):
    """The agent's options; `answer_format` is how it is asked to state its answer (both are released)."""

    name: ClassVar[str] = "memagent"

    answer_format: AnswerFormat = "the answer is"

    @property
    def names_of_prompts(self) -> tuple[str, ...]:
        return "memory", self._answer

    @property
    def _answer(self) -> str:
        return "answer_boxed" if self.answer_format == "boxed" else "answer"

    def rollout(self, question: str, observer: Observer) -> Run:
        """Reads all sections in order, then answers. `stopped_at` is None: this agent never stops early.

        `valid_interaction`: every reply was non-empty and ended by itself. `memory_complete`: so did every memory,
        its thinking closed.
        """
        question = question.strip()
        reading = yield from read(self, question, observer, after_think)
        reply = yield self.ask("answer", self._answer, {"prompt": question, "memory": reading.memory})
        flags = {"valid_interaction": reading.ended and ended(reply), "memory_complete": reading.complete}
        return Outcome(after_think(reply.text), reading.memory, None, flags)


@dataclass(frozen=True)
class Pass:
    """What one pass over all sections ends with: the memory, whether every reply ended by itself with something in it,
    and whether their thinking was closed besides."""

    memory: str
    ended: bool
    complete: bool


def read(
    agent: Asker, question: str, observer: Observer, keep: Callable[[str], str], pass_id: int = 0
) -> Generator[Request, Reply, Pass]:
    """One pass with a memory of its own, by the agent's template `memory`. `keep` is what of a reply becomes the
    memory."""
    memory, all_ended, complete = NO_MEMORY, True, True
    for t in range(observer.n):
        values = {"prompt": question, "memory": memory, "chunk": observer.observe(t, question, pass_id)}
        reply = yield agent.ask("memory", "memory", values, section=t, pass_id=pass_id)
        all_ended &= ended(reply)
        complete &= ended(reply) and closed(reply)
        memory = keep(reply.text)
        observer.commit(t, memory, pass_id)
    return Pass(memory, all_ended, complete)
