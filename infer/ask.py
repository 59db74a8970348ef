"""One question over one document, watched by a person: what `treeagent ask` does.

The agent's own generator is driven, not an environment: a model that cannot be asked is an error, not a score of 0.
The answer, and with `trace` what the agent was shown, said and remembered, go to standard output; progress goes to
standard error.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path

from rich.console import Console

from ..data.rollout import Outcome, Reply, Request
from ..data.tokens import load_tokenizer
from ..errors import InputError, ModelError
from ..rewards.answer import extract
from ..terminal import console, visible
from . import observe
from .agents import Agent, build
from .agents.replies import encodable
from .backend import backend_of
from .config import Ask
from .engines import Engine, Sampling
from .paths import path_line, shorten
from .show import document, naming

PATH_CHARACTERS = 60
"""Characters of a path that a line of progress shows."""
TITLES = {
    "memory": "memory call",
    "answer": "answer call",
    "controller": "controller call",
    "integrate": "integration call",
    "sub_answer": "answer call on the sub-question",
}
"""What a trace calls the kinds of requests."""
_FOUND = ("retrieved_chunk", "recalled_memory")
"""Blocks of a reading prompt that an agent fills from what it has searched."""


def ask(path: str, question: str, config: Ask) -> None:
    """Answers with the model that the configuration names. What is wrong with the file or the options is found before
    the model is loaded.

    Raises InputError, ConfigError or ModelError.
    """
    if not question.strip():
        raise InputError("the question is empty")
    if encodable(question) != question:
        raise InputError("the question is not UTF-8 text: check the terminal's encoding")
    out, aside = console(), console(sys.stderr)
    text, format = document(path, config.format)
    with aside.status("loading the tokenizer ..."):
        backend = backend_of(config)
        tokenizer = load_tokenizer(backend.tokenizer)
    agent = build(config.agent, tokenizer=tokenizer, **config.options)
    with naming(path):
        observer = observe.build(config.observe, text, tokenizer=tokenizer, budget=config.budget, format=format)
    name = config.model or ("the server's model" if config.engine == "openai" else Path(tokenizer.name).name)
    aside.print(f"{visible(name)} reads {observer.n} section{'' if observer.n == 1 else 's'}", soft_wrap=True)
    with aside.status("loading the model ..."):
        engine = backend.engine()
    with engine:
        outcome = answer(agent, Watched(observer, out if config.trace else None), question, engine, aside)
    _conclude(outcome, agent.answer_format, out)


def answer(agent: Agent, observer: Watched, question: str, engine: Engine, aside: Console) -> Outcome:
    """Drives the agent over the document, one line on `aside` a call. Raises ModelError for a call that fails."""
    run = agent.rollout(question, observer)
    try:
        request = next(run)
        while True:
            observer.asked(request)
            with _progress(request, observer, aside):
                (reply,) = engine.generate([request], Sampling())
            if reply.finish in ("error", "overflow"):
                raise ModelError(f"the model cannot be asked: {reply.error or reply.finish}; try a smaller --budget")
            observer.heard(request, reply)
            request = run.send(reply)
    except StopIteration as stop:
        return stop.value


class Watched:
    """An observer that prints what it shows, what the model says to it, and what it is given to keep; without `out` it
    prints nothing."""

    def __init__(self, observer: observe.Observer, out: Console | None) -> None:
        self.observer, self.out = observer, out
        self.n, self.shared = observer.n, observer.shared
        self._notes = self._said = ""
        self._prompts: dict[str, list[str]] = {}

    def text(self, t: int) -> str:
        """As the observer."""
        return self.observer.text(t)

    def observe(self, t: int, question: str, pass_id: int = 0) -> str:
        """As the observer, and prints it."""
        shown = self.observer.observe(t, question, pass_id)
        again = f", rereading {pass_id} for: {' '.join(question.split())}" if pass_id else ""
        self._print(f"section {t + 1} of {self.n}, as the agent sees it{again}", shown)
        return shown

    def commit(self, t: int, memory: str, pass_id: int = 0) -> None:
        """As the observer, and prints it."""
        self.observer.commit(t, memory, pass_id)
        if memory != self._said:
            self._print(f"{TITLES['memory']}: the reply{self._notes}", self._said)
        self._print(f"memory after section {t + 1} of {self.n}{'' if memory != self._said else self._notes}", memory)

    def asked(self, request: Request) -> None:
        """Prints what a call shows besides the section: the whole prompt of one that reads none, from the first line
        that is not as in the last such prompt; of one that reads, what its agent found for it."""
        prompt = request.messages[-1]["content"]
        if request.kind == "memory":
            for name in _FOUND:
                _, opened, rest = prompt.partition(f"<{name}>\n")
                if opened:
                    self._print(name.replace("_", " "), rest.partition(f"\n</{name}>")[0])
            return
        lines, before = prompt.split("\n"), self._prompts.get(request.kind, [])
        self._prompts[request.kind] = lines
        same = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(lines, before, strict=False))))
        self._print(f"{TITLES[request.kind]}: the prompt", "\n".join(["[as before]"] * (same > 0) + lines[same:]))

    def heard(self, request: Request, reply: Reply) -> None:
        """Prints a reply as the model gave it; one that becomes the memory as it stands is printed as that."""
        notes = ["cut"] * (reply.finish == "length") + ["thinking closed for it"] * reply.forced_close
        self._notes, self._said = f" ({', '.join(notes)})" if notes else "", reply.text
        if request.kind != "memory":
            self._print(f"{TITLES[request.kind]}: the reply{self._notes}", reply.text)

    def place(self, t: int) -> str:
        """Where section `t` (0-based) stands, and its size."""
        section = self.observer.section(t)
        path = path_line(visible(shorten(section.path, PATH_CHARACTERS)), section.range)
        return f"section {t + 1}/{self.n}  {path}  {section.tokens:,} tokens"

    def _print(self, title: str, text: str) -> None:
        if self.out is not None:
            self.out.print(f"--- {visible(title)} ---", style="bold")
            self.out.print(visible(text), soft_wrap=True)


@contextmanager
def _progress(request: Request, observer: Watched, aside: Console) -> Iterator[None]:
    """A moving line while the model works (on a terminal), then a line that stays, with the seconds it took."""
    place = "" if request.section is None else f"  {observer.place(request.section)}"
    what = f"{request.kind.replace('_', '-')}{place}"
    start = time.perf_counter()
    with aside.status(f"{what} ..."):
        yield
    aside.print(f"{what}  {time.perf_counter() - start:.1f} s", soft_wrap=True)


def _conclude(outcome: Outcome, answer_format: str, out: Console) -> None:
    """Prints the answer as it would be scored, or all that was said where the model gave none in the format."""
    extracted = extract(outcome.answer_text, answer_format)
    if extracted:
        out.print(f"answer: {visible(extracted)}", soft_wrap=True)
    else:
        out.print(f"no answer in the expected form; the model said: {visible(outcome.answer_text)}", soft_wrap=True)
