"""`treeagent evaluate`: every agent with every observer over every example, scored as the paper scores, stored as it
goes.

Examples are read in fixed groups of `batch_size`, in order; a group runs under one agent and observer at a time. A
group whose results all exist is skipped; otherwise it runs again as a whole and the missing results are appended. So
batches are made of the same requests whether a run was interrupted or not, and with them, even in 16-bit arithmetic,
the replies.
"""

from __future__ import annotations

import importlib.metadata
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from ..config import to_dict, to_yaml
from ..data.benchmark import load_examples
from ..data.rollout import Call, Example, Reply, Request, Rollout
from ..data.tokens import Tokenizer, load_tokenizer
from ..errors import InputError, ParseError
from ..rewards.score import score_answer
from . import agents, models, report
from .agents import Agent
from .config import EvaluateConfig
from .engines import Engine
from .environment import Documents, Environment
from .progress import Meter, Shown, expected_calls
from .run import drive
from .store import Store, digest

_VERSIONS = ("treeagent", "torch", "transformers", "peft", "tokenizers")


@dataclass(frozen=True)
class Backend:
    """The model side of an evaluation: the tokenizer that sections are counted with (anything `load_tokenizer`
    takes), what identifies the model, and the engine for an agent, asked for only when there is something left to
    do."""

    tokenizer: Any
    identity: Mapping[str, Any]
    engine: Callable[[Agent], Engine]


@dataclass(frozen=True)
class _Job:
    """One example under one agent and observer. `copy` tells equal examples apart; `expected` is a rough number of
    calls."""

    agent: str
    observer: str
    example: Example
    key: str
    copy: int
    expected: int

    @property
    def names(self) -> dict[str, Any]:
        """What a result line begins with."""
        return {"agent": self.agent, "observer": self.observer, "key": self.key, "copy": self.copy}

    @property
    def identity(self) -> tuple[Any, ...]:
        """What no two jobs of a run share."""
        return tuple(self.names.values())


def evaluate(config: EvaluateConfig, console: Console, backend: Backend | None = None) -> None:
    """Runs what the run folder still owes, then prints the table. `backend`: by default the model that the config
    names.

    Raises a TreeAgentError for anything that the user can mend; what was finished until then is stored.
    """
    examples = _examples(config)
    backend = backend or local_backend(config)
    tokenizer = load_tokenizer(backend.tokenizer)
    chosen = {name: agents.build(name, tokenizer=tokenizer, **options) for name, options in config.agents.items()}
    identity = _identity(config, examples, chosen, tokenizer, backend)
    about = {"examples": len(examples), "conditions": [[a, o] for a in chosen for o in config.observers]}
    about |= {"model": config.model, "adapter": config.adapter, "versions": _versions()}
    with Store(Path(config.out), identity, to_yaml(config), about) as store:
        groups = list(_groups(config, examples))
        expected = [job.expected for group in groups for job in group]
        with Meter(console, len(expected), sum(expected)) as meter:
            _run(config, groups, chosen, tokenizer, backend, store, meter)
    console.print(f"run folder: {escape(config.out)} ({digest(identity)})", highlight=False, soft_wrap=True)
    report.report([config.out], console)


def local_backend(config: EvaluateConfig) -> Backend:
    """The config's model on this machine, through transformers. The weights are loaded when the first engine is asked
    for."""
    name = config.model or models.default_model()
    tokenizer = models.load_chat_tokenizer(name)
    identity = {
        "model": models.fingerprint(name),
        "adapter": models.adapter_fingerprint(config.adapter) if config.adapter else None,
    }

    @cache
    def model() -> Any:
        return models.load_weights(name, dtype=config.dtype, device=config.device, adapter=config.adapter)

    def engine(agent: Agent) -> Engine:
        from .engines.transformers import Transformers

        return Transformers(model(), tokenizer, batch_size=config.batch_size, request_limit=agent.request_limit)

    return Backend(tokenizer, identity, engine)


def _examples(config: EvaluateConfig) -> list[Example]:
    chosen = config.benchmark
    examples = load_examples(
        Path(chosen.folder), chosen.split, tasks=chosen.tasks, lengths=chosen.lengths, limit=chosen.limit
    )
    if not examples:
        raise InputError(f"{chosen.folder}: no example of split {chosen.split!r} has the tasks and lengths asked for")
    return examples


def _identity(
    config: EvaluateConfig,
    examples: Sequence[Example],
    chosen: Mapping[str, Agent],
    tokenizer: Tokenizer,
    backend: Backend,
) -> dict[str, Any]:
    """What makes a run the same run. Contents stand for places: the folders of model, adapter and benchmark may
    move."""
    settings = to_dict(config)
    for key in ("out", "traces"):
        del settings[key]
    keys = "\n".join(example.key for example in examples)
    settings["benchmark"] = settings["benchmark"] | {"folder": None, "examples": digest({"keys": keys})}
    prompts = {name: agent.prompts_hash for name, agent in chosen.items()}
    return {"kind": "evaluate", **settings, **backend.identity, "tokenizer": tokenizer.fingerprint, "prompts": prompts}


def _groups(config: EvaluateConfig, examples: Sequence[Example]) -> Iterator[list[_Job]]:
    """Groups of at most `batch_size` jobs. All conditions of the same examples follow each other: they share the
    documents."""
    seen: Counter[str] = Counter()
    named = []
    for example in examples:
        key = example.key
        named.append((example, key, seen[key], expected_calls(example, config.budget)))
        seen[key] += 1
    for start in range(0, len(named), config.batch_size):
        for agent in config.agents:
            for observer in config.observers:
                yield [_Job(agent, observer, *job) for job in named[start : start + config.batch_size]]


def _run(
    config: EvaluateConfig,
    groups: Sequence[Sequence[_Job]],
    chosen: Mapping[str, Agent],
    tokenizer: Tokenizer,
    backend: Backend,
    store: Store,
    meter: Meter,
) -> None:
    have = {tuple(row[name] for name in ("agent", "observer", "key", "copy")) for row in store.results}
    documents = Documents(config.batch_size)
    engine = cache(lambda name: Shown(backend.engine(chosen[name]), meter))
    for group in groups:
        done = {job.identity for job in group} & have
        meter.skip(len(done), sum(job.expected for job in group if job.identity in done))
        if len(done) == len(group):
            continue
        agent = chosen[group[0].agent]
        environment = Environment(agent, group[0].observer, tokenizer, config.budget, documents)
        episodes = [_watched(environment.rollout(job.example), job, meter, job.identity in done) for job in group]
        for i, rollout in drive(episodes, engine(agent.name), config.sampling):
            job = group[i]
            if job.identity not in done:
                _store(store, job, rollout, agent, config.traces)
                meter.finished(job.identity, job.expected)


def _watched(
    episode: Generator[Request, Reply, Rollout], job: _Job, meter: Meter, silent: bool
) -> Generator[Request, Reply, Rollout]:
    """The same episode, reporting its calls unless its result is there already. An error names the example."""
    try:
        request = next(episode)
        while True:
            reply = yield request
            if not silent:
                meter.called(job.identity, job.expected, request)
            request = episode.send(reply)
    except StopIteration as stop:
        return stop.value
    except ParseError as error:
        raise InputError(f"example {job.key} of the benchmark: {error}") from error
    finally:
        episode.close()


def _store(store: Store, job: _Job, rollout: Rollout, agent: Agent, traces: bool) -> None:
    """Trace first, reasons of failure next, the result last: its presence means that all is there."""
    name = f"{job.agent}.{job.observer}.{job.key}.{job.copy}"
    if traces:
        store.trace(name, [_trace(call) for call in rollout.calls])
    for call in rollout.calls:
        if call.reply.error:
            place = {"section": call.request.section, "pass_id": call.request.pass_id}
            failure = {"finish": call.reply.finish, "error": call.reply.error}
            store.fail(job.names | {"call": call.request.kind} | place | failure)
    store.append(_row(job, rollout, agent))


def _row(job: _Job, rollout: Rollout, agent: Agent) -> dict[str, Any]:
    """A result line. It holds no time and no place, so that the same run gives the same bytes."""
    example, answer = job.example, rollout.outcome.answer_text
    scored = score_answer(answer, agent.answer_format, example.reference)
    sent = [call.reply for call in rollout.calls if call.reply.finish != "overflow"]
    return job.names | {
        "task": example.task,
        "format": example.format,
        "length": example.length,
        "base_id": example.base_id,
        "score": scored.score,
        "values": list(scored.values),
        "answer": answer,
        "failure": rollout.failure,
        "calls": sum(reply.n_requests for reply in sent),
        "input_tokens": sum(len(reply.prompt_ids) for reply in sent),
        "output_tokens": sum(len(reply.completion_ids) for reply in sent),
        "cut_replies": sum(reply.finish == "length" for reply in sent),
        "sections": rollout.n_sections,
        "stopped_at": rollout.outcome.stopped_at,
        "flags": dict(rollout.outcome.flags),
        "notes": dict(rollout.notes),
    }


def _trace(call: Call) -> dict[str, Any]:
    request, reply = call.request, call.reply
    return {
        "kind": request.kind,
        "section": request.section,
        "pass_id": request.pass_id,
        "messages": [dict(message) for message in request.messages],
        "text": reply.text,
        "finish": reply.finish,
        "prompt_ids": list(reply.prompt_ids),
        "completion_ids": list(reply.completion_ids),
    }


def _versions() -> dict[str, str]:
    found = {}
    for name in _VERSIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
