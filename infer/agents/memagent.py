"""MemAgent: one call a section rewrites the memory, one more call answers from it.

The released evaluation workflow with the decisions of this project: nothing is truncated and no example is dropped.
Its prompts keep the released protocol (tags, cues, the placeholder of the first memory, the answer format); the
sentences around it are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge

from ...data.rollout import Outcome, Request
from ...rewards.answer import AnswerFormat
from .protocol import NO_MEMORY, Observer, Run
from .replies import after_think, closed, ended
from .templates import Template, fingerprint, load


@dataclass(frozen=True)
class MemAgent:
    """The agent's options. `max_tokens` caps every reply, `request_limit` prompt and reply together, in tokens
    (paper, Table 2)."""

    name: ClassVar[str] = "memagent"

    answer_format: AnswerFormat = "the answer is"
    max_tokens: Annotated[int, Ge(1)] = 1024
    request_limit: Annotated[int, Ge(1)] = 32768

    @property
    def prompts_hash(self) -> str:
        """Identifies the wording of the prompts that this agent sends."""
        return fingerprint([self._reading, self._answering])

    def rollout(self, question: str, observer: Observer) -> Run:
        """Reads all sections in order, then answers. `stopped_at` is None: this agent never stops early.

        `valid_interaction`: every reply was non-empty and ended by itself. `memory_complete`: so did every memory,
        its thinking closed.
        """
        question, memory = question.strip(), NO_MEMORY
        valid = complete = True
        for t in range(observer.n):
            prompt = self._reading.fill(prompt=question, memory=memory, chunk=observer.observe(t, question))
            reply = yield Request("memory", _user(prompt), self.max_tokens, section=t)
            valid &= ended(reply)
            complete &= ended(reply) and closed(reply)
            memory = after_think(reply.text)
            observer.commit(t, memory)
        prompt = self._answering.fill(prompt=question, memory=memory)
        reply = yield Request("answer", _user(prompt), self.max_tokens)
        flags = {"valid_interaction": valid and ended(reply), "memory_complete": complete}
        return Outcome(after_think(reply.text), memory, None, flags)

    @property
    def _reading(self) -> Template:
        return load(self.name, "memory")

    @property
    def _answering(self) -> Template:
        return load(self.name, "answer_boxed" if self.answer_format == "boxed" else "answer")


def _user(prompt: str) -> tuple[dict[str, str], ...]:
    """One user turn; the chat template adds its own system turn where it has one."""
    return ({"role": "user", "content": prompt},)
