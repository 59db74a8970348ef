"""What a step's rollouts tell besides their gradient: values to log, and some rollouts turn by turn.

The trainer hands every step's rollouts with their rewards to a `Recorder`. `RolloutRecorder` reduces each to a few
numbers (`Facts`), gathers those of all processes, and gives values by name; the first rollouts of the first process are
kept as `Turn`s, with texts cut to a size that a tracker's table can bear. It knows neither model, file nor tracker.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any

from ..data.rollout import Call, Example, Rollout

MOST_CHARACTERS = 2000
"""Of a prompt or a reply in a table: its first and last thousand."""
MOST_TURNS = 256
"""Of all the rollouts that are kept of one step."""


@dataclass(frozen=True)
class CallFacts:
    """Numbers of one call: tokens of the prompt, tokens that the model generated, whether its reply was cut at the
    limit, whether its thinking was closed by force."""

    kind: str
    prompt: int
    generated: int
    cut: bool
    forced: bool


@dataclass(frozen=True)
class Facts:
    """Numbers of one rollout: answer score, weighted reward, tokens of its last memory, whether it stopped reading
    early."""

    task: str
    score: float
    reward: float
    memory: int
    early: bool
    calls: tuple[CallFacts, ...]


@dataclass(frozen=True)
class Turn:
    """One row of the table of rollouts. `section` is 0-based; texts are cut to `MOST_CHARACTERS`."""

    rollout: int
    key: str
    task: str
    reward: float
    score: float
    answer: str
    turn: int
    kind: str
    section: int | None
    finish: str
    forced_close: bool
    prompt_tokens: int
    generated_tokens: int
    prompt: str
    reply: str

    def as_dict(self) -> dict[str, Any]:
        """The row by column."""
        return asdict(self)


class Recorder:
    """Records nothing."""

    def step(
        self, step: int, rollouts: Sequence[Rollout], examples: Sequence[Example], rewards: Sequence[Sequence[float]]
    ) -> Mapping[str, float]:
        """Values to log for a step (from 1), given this process's rollouts and the reward's terms of each; called on
        every process at the same time."""
        return {}


class RolloutRecorder(Recorder):
    """Records what `Facts` hold, over all processes.

    `weights` are those of the reward's terms, the answer score first; `group` rollouts in a row answer the same
    question; `count` gives the tokens of a text; `gather` joins the lists of all processes in their order; `keep` is
    given the turns of the first `shown` rollouts of each step.
    """

    def __init__(
        self,
        weights: Sequence[float],
        group: int,
        count: Callable[[str], int],
        *,
        shown: int = 0,
        keep: Callable[[int, Sequence[Turn]], None] = lambda step, turns: None,
        gather: Callable[[list[Facts]], list[Facts]] = list,
    ) -> None:
        self.weights, self.group, self.count = list(weights), group, count
        self.shown, self.keep, self.gather = shown, keep, gather

    def step(
        self, step: int, rollouts: Sequence[Rollout], examples: Sequence[Example], rewards: Sequence[Sequence[float]]
    ) -> Mapping[str, float]:
        """See `Recorder`."""
        local = [self._facts(*one) for one in zip(rollouts, examples, rewards, strict=True)]
        if self.shown:
            turns = [
                turn
                for index, (rollout, facts) in enumerate(zip(rollouts[: self.shown], local, strict=False))
                for turn in turns_of(index, rollout, facts)
            ]
            self.keep(step, turns[:MOST_TURNS])
        return metrics(self.gather(local), self.group)

    def _facts(self, rollout: Rollout, example: Example, terms: Sequence[float]) -> Facts:
        return Facts(
            task=example.task,
            score=terms[0],
            reward=sum(weight * term for weight, term in zip(self.weights, terms, strict=True)),
            memory=self.count(rollout.outcome.memory),
            early=rollout.outcome.stopped_at is not None,
            calls=tuple(map(_call_facts, rollout.calls)),
        )


def metrics(rollouts: Sequence[Facts], group: int) -> dict[str, float]:
    """Values to log, by name, of all rollouts of a step in the order of their groups."""
    calls = [call for rollout in rollouts for call in rollout.calls]
    memories = [rollout.memory for rollout in rollouts]
    rewards = [rollout.reward for rollout in rollouts]
    groups = [rewards[start : start + group] for start in range(0, len(rewards), group)]
    return {
        "group_std": _mean(stdev(values) for values in groups if len(values) > 1),
        "rollouts/early_stop_share": _mean(rollout.early for rollout in rollouts),
        "memory_tokens/mean": _mean(memories),
        "memory_tokens/max": float(max(memories, default=0)),
        "calls/forced_close_share": _mean(call.forced for call in calls),
        **_by_task(rollouts),
        **_by_kind(calls),
    }


def _by_task(rollouts: Sequence[Facts]) -> dict[str, float]:
    scores = defaultdict[str, list[float]](list)
    for rollout in rollouts:
        scores[rollout.task].append(rollout.score)
    return {f"score/{task}": fmean(values) for task, values in sorted(scores.items())}


def _by_kind(calls: Sequence[CallFacts]) -> dict[str, float]:
    kinds = defaultdict[str, list[CallFacts]](list)
    for call in calls:
        kinds[call.kind].append(call)
    values = dict[str, float]()
    for kind, made in sorted(kinds.items()):
        values[f"calls/{kind}"] = float(len(made))
        values[f"calls/{kind}/cut_share"] = _mean(call.cut for call in made)
        values[f"tokens/{kind}/prompt"] = float(sum(call.prompt for call in made))
        values[f"tokens/{kind}/generated"] = float(sum(call.generated for call in made))
    return values


def _mean(values: Iterable[float]) -> float:
    held = list(values)
    return fmean(held) if held else 0.0


def _call_facts(call: Call) -> CallFacts:
    reply = call.reply
    start, end = reply.inserted
    generated = len(reply.completion_ids) - (end - start)
    return CallFacts(call.request.kind, len(reply.prompt_ids), generated, reply.finish == "length", reply.forced_close)


def turns_of(index: int, rollout: Rollout, facts: Facts) -> list[Turn]:
    """A rollout as rows of a table."""
    return [
        Turn(
            rollout=index,
            key=rollout.key,
            task=facts.task,
            reward=facts.reward,
            score=facts.score,
            answer=cut(rollout.outcome.answer_text),
            turn=turn,
            kind=call.request.kind,
            section=call.request.section,
            finish=call.reply.finish,
            forced_close=call.reply.forced_close,
            prompt_tokens=numbers.prompt,
            generated_tokens=numbers.generated,
            prompt=cut("\n\n".join(message["content"] for message in call.request.messages)),
            reply=cut(call.reply.text),
        )
        for turn, (call, numbers) in enumerate(zip(rollout.calls, facts.calls, strict=True), 1)
    ]


def cut(text: str, most: int = MOST_CHARACTERS) -> str:
    """The text, or its beginning and its end where it is longer than `most` characters."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}\n[{len(text) - most // 2 * 2} characters left out]\n{text[-(most // 2) :]}"
