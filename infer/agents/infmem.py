"""InfMem: before each section a planner searches the whole document or says STOP; then the memory is rewritten from
what was found and the section.

The released evaluation workflow: the planner sees question, history and memory, not the section; a STOP that does not
end the reading yet still has its section read; a run of `early_stop` STOPs (the first may be a reply that is neither
STOP nor a call) ends it before the section is read. Every call is two-stage: 1,024 tokens to think, 1,024 to reply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from annotated_types import Ge

from ...data.rollout import Outcome
from ...rewards.answer import AnswerFormat
from .asking import TokenAsker
from .infmem_protocol import TOOL, Search, history_text, parse_plan, parse_search
from .infmem_retrieval import Implementation, Index, build_index
from .protocol import NO_MEMORY, Observer, Run
from .replies import Said, after_think, closed, ended


@dataclass(frozen=True)
class InfMem(TokenAsker):
    """The agent's options.

    `think_tokens`: for thinking, before each reply; 0 turns thinking off, in the chat template too, and each call is
    one request (so the release does). `bm25`: which of the two released retrievers. `early_stop`: STOPs in a row that
    end the reading. `keep_memory_if_unclosed`: a memory reply whose thinking the model did not close leaves the old
    memory (released training; in released evaluation, what it wrote becomes the memory). The tokenizer cuts the windows
    that are searched.
    """

    name: ClassVar[str] = "infmem"

    think_tokens: Annotated[int, Ge(0)] = 1024
    bm25: Implementation = "enhanced"
    early_stop: Annotated[int, Ge(1)] = 3
    keep_memory_if_unclosed: bool = False

    @property
    def answer_format(self) -> AnswerFormat:
        return "the answer is"

    @property
    def thinking(self) -> tuple[int, bool | None]:
        return self.think_tokens, self.think_tokens > 0

    @property
    def index_key(self) -> tuple[str, ...]:
        """Under which the index of these sections is shared."""
        return "infmem", self.bm25, self.loaded_tokenizer.fingerprint

    def derive(self, texts: Sequence[str]) -> Mapping[Any, Any]:
        """The index that the planner searches: about four seconds for a million tokens."""
        return {self.index_key: build_index(texts, self.loaded_tokenizer, self.bm25)}

    def rollout(self, question: str, observer: Observer) -> Run:
        """Plans and reads section by section, then answers. `stopped_at` is the section (0-based) before which the
        planner ended the reading; it is not read, and no state is saved for it.

        `valid_interaction`: every planner reply was STOP, or well-formed calls of the one tool. `memory_complete`:
        every memory reply was non-empty and ended by itself, its thinking closed by the model.
        """
        question, memory, stopped_at = question.strip(), NO_MEMORY, None
        searches, retriever = list[Search](), _Retriever(self, question, observer)
        stops, valid, complete = 0, True, True
        for t in range(observer.n):
            history = history_text(t, observer.n, searches)
            values = {"prompt": question, "retrieval_history": history, "memory": memory}
            system = self.templates["system"].source
            reply = yield self.ask("controller", "plan", values, system=system, section=t)
            calls, stop = parse_plan(reply.text)
            stops = (stops if stop else 0) + (stop or not calls)
            asked = [parse_search(call, question) if call.name == TOOL else None for call in calls]
            valid &= stop or (bool(asked) and all(search is not None and search.well_formed for search in asked))
            if stops >= self.early_stop:
                stopped_at = t
                break
            new = [search for search in asked if search is not None]
            searches += new
            # The release overwrites the block with each call, so that only the last one shows.
            block = retriever.block(new[-1], t) if new else ""
            values = {"prompt": question, "retrieve": block, "chunk": observer.observe(t, question), "memory": memory}
            reply = yield self.ask("memory", "write", values, section=t)
            complete &= ended(reply) and self._closed(reply)
            memory = memory if self.keep_memory_if_unclosed and not self._closed(reply) else after_think(reply.text)
            observer.commit(t, memory)
        reply = yield self.ask("answer", "answer", {"prompt": question, "memory": memory})
        flags = {"valid_interaction": valid, "memory_complete": complete}
        return Outcome(after_think(reply.text), memory, stopped_at, flags)

    def _closed(self, reply: Said) -> bool:
        """True if the model itself closed its thinking; with thinking on, a reply without `</think>` never did."""
        return closed(reply) and (not self.think_tokens or "</think>" in reply.text)


class _Retriever:
    """Searches for one rollout. The index is kept with the sections where the observer shares what belongs to them,
    and made at the first search where it is not there yet."""

    def __init__(self, agent: InfMem, question: str, observer: Observer) -> None:
        self._agent, self._key, self._question, self._observer = agent, agent.index_key, question, observer
        self._own: dict[Any, Any] = {}

    def block(self, search: Search, t: int) -> str:
        """What the retrieved block shows for section `t`."""
        found = self._index.search(search.query, search.top_k, self._question, t)
        return "\n\n".join(f"[Retrieved #{rank}] {text}" for rank, text in enumerate(found, 1))

    @property
    def _index(self) -> Index:
        shared = getattr(self._observer, "shared", None)
        kept = self._own if shared is None else shared
        if self._key not in kept:
            kept |= self._agent.derive([self._observer.text(t) for t in range(self._observer.n)])
        return kept[self._key]
