"""MemReread: reads as MemAgent does; then, as long as a controller finds a gap, rereads everything for a question that
this one asks, answers it, and merges the answer into the memory.

The released evaluation workflow, with one level of questions: thinking is off in every call, nothing is stripped, and a
controller that asks nothing has found no gap. A rereading starts with an empty memory and saved states of its own; its
question is what spans are found by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge

from ...data.rollout import Outcome
from ...rewards.answer import AnswerFormat
from .asking import Asker, Tokens
from .memagent import read
from .protocol import Observer, Run
from .replies import after_think_unstripped, closed, ended

NO_HISTORY = "NO HISTORY"
_OPEN, _CLOSE = "<query>", "</query>"
_SHORTEST = 6  # characters of a query


@dataclass(frozen=True)
class MemReread(Asker):
    """The agent's options. `controller_tokens` caps a reply of the controller, `max_tokens` every other one;
    `max_rereads` is R, one less than the width and the number of nodes of the release."""

    name: ClassVar[str] = "memreread"

    request_limit: Tokens = 40960
    controller_tokens: Tokens = 8192
    max_rereads: Annotated[int, Ge(0)] = 3

    @property
    def answer_format(self) -> AnswerFormat:
        return "boxed"

    @property
    def thinking(self) -> tuple[int, bool | None]:
        return 0, False

    def rollout(self, question: str, observer: Observer) -> Run:
        """Reads, rereads up to R times, answers. `stopped_at` is None: every reading reaches the last section.

        `valid_interaction`: every controller reply was silent or held one well-formed query. `memory_complete`: every
        memory, of any reading or merged, was non-empty and ended by itself, its thinking closed.
        """
        reading = yield from read(self, question, observer, after_think_unstripped)
        memory, complete, valid = reading.memory, reading.complete, True
        asked: list[tuple[str, str]] = []
        for k in range(1, self.max_rereads + 1):
            values = {"question": question, "memory": memory, "decomposed_history": history_text(asked)}
            reply = yield self.ask("controller", "decompose", values, max_tokens=self.controller_tokens)
            query = parse_query(reply.text)
            valid &= _kept_to_protocol(reply.text, query)
            if query is None:
                break
            reading = yield from read(self, query, observer, after_think_unstripped, pass_id=k)
            values = {"question": query, "memory": reading.memory}
            answer = (yield self.ask("sub_answer", "answer", values, pass_id=k)).text
            values = {"question": question, "memory": memory, "subquestion": query, "answer": answer}
            reply = yield self.ask("integrate", "integrate", values, pass_id=k)
            memory = after_think_unstripped(reply.text)
            complete &= reading.complete and ended(reply) and closed(reply)
            asked.append((query, answer))
        reply = yield self.ask("answer", "answer", {"question": question, "memory": memory})
        flags = {"valid_interaction": valid, "memory_complete": complete}
        return Outcome(after_think_unstripped(reply.text), memory, None, flags)


def history_text(asked: Sequence[tuple[str, str]]) -> str:
    """What the controller is shown of its questions and their answers, one a line."""
    return "\n".join(f"<query>{query}</query> <result>{answer}</result>" for query, answer in asked) or NO_HISTORY


def parse_query(text: str) -> str | None:
    """What stands between the first `<query>` and the last `</query>` (two queries become one), without outer braces
    and blanks; None if there is no such thing, or it has five characters or fewer."""
    _, opened, rest = text.partition(_OPEN)
    inside, ended_by, _ = rest.rpartition(_CLOSE)
    if not (opened and ended_by):
        return None
    query = inside.lstrip("{").rstrip("}").strip()
    return query if len(query) >= _SHORTEST else None


def _kept_to_protocol(text: str, query: str | None) -> bool:
    if query is None:
        return not after_think_unstripped(text).strip()
    return text.count(_OPEN) == text.count(_CLOSE) == 1
