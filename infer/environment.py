"""An example, an observer and an agent make a rollout: what evaluation and training share.

`MemoryEnv.rollout` is a generator like an agent's: it yields `Request`s, is sent `Reply`s, and returns the recorded
`Rollout`; any number may be under way at once. It knows no engine. A reply that could not be had (`error`,
`overflow`) ends the rollout with the answer "", whatever the agent: it is never dropped and scores 0. People with a
trainer of their own walk through one rollout with `reset` and `step`, over the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from ..data.rollout import Call, Example, Outcome, Reply, Request, Rollout
from ..data.tokens import Tokenizer
from ..errors import ConfigError
from ..rewards.score import score_answer
from . import observe
from .agents import Agent
from .documents import Documents

Episode: TypeAlias = Generator[Request, Reply, Rollout]
Observation: TypeAlias = Request
"""What a policy sees at one step: `messages`, and the most tokens it may write (`max_tokens`)."""
Reward: TypeAlias = Callable[[Rollout, Example], float]

_NO_FLAGS: Mapping[str, bool] = {"valid_interaction": False, "memory_complete": False}


class MemoryEnv:
    """One agent reading through one kind of observer.

    `kind` is one of `observe.KINDS`; `budget` is C in tokens, 5,000 if not given; `documents` may be shared between
    environments of one tokenizer and budget. `reward` rates an ended rollout, by default with the paper's score, 0 to
    1. With `prompts=False` calls are recorded without prompts and token ids, for those who need the outcome alone.

    Raises ConfigError if the documents are for another budget.
    """

    def __init__(
        self,
        agent: Agent,
        kind: str,
        tokenizer: Tokenizer,
        budget: int | None = None,
        documents: Documents | None = None,
        *,
        reward: Reward | None = None,
        prompts: bool = True,
    ) -> None:
        self.agent, self.kind, self.tokenizer = agent, observe.check(kind), tokenizer
        self.documents = documents or Documents(tokenizer, budget or 5000)
        if budget not in (None, self.documents.budget):
            raise ConfigError(f"these documents are cut with a budget of {self.documents.budget}, not {budget}")
        self.reward: Reward = reward or self.score
        self._prompts = prompts
        self._example: Example | None = None
        self._episode: Episode | None = None

    def rollout(self, example: Example) -> Episode:
        """Yields the agent's requests, is sent the replies, returns the rollout with every call recorded."""
        cut = self.documents.readings(example.context, example.format).result()
        observer = observe.over(self.kind, cut, self.tokenizer)
        run, calls, failure = self.agent.rollout(example.question, observer), [], ""
        outcome = Outcome("", "", None, _NO_FLAGS)
        try:
            request = next(run)
            while not failure:
                reply = yield request
                calls.append(self._record(request, reply))
                if reply.finish in ("error", "overflow"):
                    failure, outcome = reply.finish, Outcome("", "", request.section, _NO_FLAGS)
                else:
                    request = run.send(reply)
        except StopIteration as stop:
            outcome = stop.value
        finally:
            run.close()
        return Rollout(example.key, tuple(calls), outcome, observer.n, failure, _notes(observer))

    def reset(self, example: Example) -> Observation:
        """Starts over with an example: the first observation. Every agent makes at least one call."""
        if self._episode is not None:
            self._episode.close()
            self._episode = None
        episode = self.rollout(example)
        observation = next(episode)
        self._example, self._episode = example, episode
        return observation

    def step(self, text: str | Reply) -> tuple[Observation | None, float, bool, dict[str, Any]]:
        """Answers the last observation: `(next observation, reward, done, info)`.

        A string is a reply that ended by itself. At the end the observation is None, the reward that of the rollout
        (0 before), and `info` holds the `rollout`.
        """
        if self._episode is None or self._example is None:
            raise RuntimeError("no rollout is under way: call reset first")
        try:
            observation = self._episode.send(Reply(text) if isinstance(text, str) else text)
        except StopIteration as stop:
            self._episode = None
            return None, self.reward(stop.value, self._example), True, {"rollout": stop.value}
        return observation, 0.0, False, {}

    def score(self, rollout: Rollout, example: Example) -> float:
        """The paper's score of a rollout's answer, 0 to 1."""
        return score_answer(rollout.outcome.answer_text, self.agent.answer_format, example.reference).score

    def _record(self, request: Request, reply: Reply) -> Call:
        if self._prompts:
            return Call(request, reply)
        return Call(replace(request, messages=()), replace(reply, prompt_ids=(), completion_ids=(), logprobs=None))


def _notes(observer: observe.Observer) -> dict[str, int]:
    """What the sections hold beyond the budget: wrapper tokens, and how many leaves are larger than it."""
    sections = [observer.section(t) for t in range(observer.n)]
    return {
        "wrapper_tokens": sum(section.wrapper_tokens for section in sections),
        "oversize": sum(section.oversize for section in sections),
    }
