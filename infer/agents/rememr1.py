"""ReMemR1: MemAgent that may recall one of its earlier memories with each section.

The released evaluation workflow: a reply without its `<recall>` is the new memory, tags and thinking included; the
recall searches all memories so far, the new one among them, by TF-IDF over the model's own tokens; what it finds is
shown in the next call. Stored memories are unique and keep their order; of equal similarities the last wins.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...data.rollout import Outcome
from ...data.tokens import Tokenizer
from ...rewards.answer import AnswerFormat
from .asking import TokenAsker, Tokens
from .protocol import NO_MEMORY, Observer, Run
from .replies import after_think, closed, encodable, ended

NO_RECALL = "No memory was recalled."
_OPEN, _CLOSE = "<recall>", "</recall>"
_RECALLS = re.compile(f"{_OPEN}.*?{_CLOSE}", re.DOTALL)
_UPDATE = re.compile(r"<update>(.*?)</update>", re.DOTALL)


@dataclass(frozen=True)
class ReMemR1(TokenAsker):
    """The agent's options. The tokenizer splits memories into the tokens by which they are recalled."""

    name: ClassVar[str] = "rememr1"

    max_tokens: Tokens = 2048
    request_limit: Tokens = 40960

    @property
    def answer_format(self) -> AnswerFormat:
        return "boxed"

    def rollout(self, question: str, observer: Observer) -> Run:
        """Reads all sections in order, then answers. `stopped_at` is None: this agent never stops early.

        `valid_interaction`: every memory reply held exactly one update and at most one recall, each well-formed.
        `memory_complete`: every memory was non-empty, and its reply ended by itself, its thinking closed.
        """
        memories = Memories(self.loaded_tokenizer)
        question, memory, recalled = question.strip(), NO_MEMORY, NO_RECALL
        valid = complete = True
        for t in range(observer.n):
            chunk = observer.observe(t, question)
            values = {"prompt": question, "recalled_memory": recalled, "memory": memory, "chunk": chunk}
            reply = yield self.ask("memory", "memory", values, section=t)
            memory, query = drop_recall(reply.text), parse_recall(reply.text)
            memories.add(memory)
            recalled = NO_RECALL if query is None else memories.recall(query)
            valid &= _kept_to_protocol(reply.text, query)
            complete &= ended(reply) and closed(reply) and bool(memory)
            observer.commit(t, memory)
        values = {"prompt": question, "recalled_memory": recalled, "memory": memory}
        reply = yield self.ask("answer", "answer", values)
        return Outcome(after_think(reply.text), memory, None, {"valid_interaction": valid, "memory_complete": complete})


def parse_recall(text: str) -> str | None:
    """The query of a recall: all between the first `<recall>` and the last `</recall>` of a line, as it stands."""
    for line in text.split("\n"):
        query = line.partition(_OPEN)[2].rpartition(_CLOSE)[0]
        if query:
            return query
    return None


def drop_recall(text: str) -> str:
    """The memory in a reply: all of it but its recalls, stripped."""
    before, closed_by, after = text.rpartition(_CLOSE)  # no recall ends after this: looking for its end takes long
    return (_RECALLS.sub("", before + closed_by) + after).strip()


class Memories:
    """The memories of one rollout, each once, in the order in which they first came. A memory is split into tokens when
    a recall first needs it, and no more than once."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._tokens: dict[str, list[str]] = {}

    def add(self, memory: str) -> None:
        """Stores a memory, unless it is there."""
        self._tokens.setdefault(memory, [])

    def recall(self, query: str) -> str:
        """The memory most similar to `query`, the last of equals, even if nothing is similar. Where no memory has any
        token there is nothing to compare, and the word `None` is recalled, as in the released evaluation."""
        for memory, tokens in self._tokens.items():
            if not tokens:
                tokens += spelled(memory, self._tokenizer)
        sims = similarities(spelled(query, self._tokenizer), list(self._tokens.values()))
        return list(self._tokens)[max(range(len(sims)), key=lambda i: (sims[i], i))] if sims else "None"


def similarities(query: Sequence[str], memories: Sequence[Sequence[str]]) -> list[float]:
    """Cosine of the TF-IDF vectors of `query` and of each memory, all given as tokens, fitted on the memories; empty if
    these have no tokens."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.metrics.pairwise import cosine_similarity

    options: dict[str, Any] = {"analyzer": list}  # everything is split already; its stubs know only names
    vectorizer = TfidfVectorizer(**options)
    try:
        matrix = vectorizer.fit_transform(memories)
    except ValueError:  # an empty vocabulary
        return []
    return cosine_similarity(vectorizer.transform([query]), matrix)[0].tolist()


def spelled(text: str, tokenizer: Tokenizer) -> list[str]:
    """The tokens by which memories are compared: those of the text in lower case, as the vocabulary spells them but
    without the mark of a blank before a word, so that a word is the same token at the start of a line."""
    return [token.replace("Ġ", "").replace(" ", "") for token in tokenizer.spelled(encodable(text.lower()))]


def _kept_to_protocol(text: str, query: str | None) -> bool:
    updates = text.count("<update>"), text.count("</update>")
    recalls = text.count(_OPEN), text.count(_CLOSE)
    update = _UPDATE.search(text) if updates == (1, 1) else None
    one_update = update is not None and bool(update[1].strip())
    return one_update and (recalls == (0, 0) or (recalls == (1, 1) and query is not None))
