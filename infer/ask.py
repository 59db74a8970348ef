"""One question over one document, watched by a person: what `treeagent ask` does.

The agent's own generator is driven, not an environment: a model that cannot be asked is an error, not a score of 0.
The answer, and with `trace` what the agent saw and remembered, go to standard output; progress goes to standard error.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from ..data.rollout import Outcome, Request
from ..data.tokens import load_tokenizer
from ..errors import InputError, ModelError
from ..rewards.answer import extract
from ..terminal import console, visible
from . import observe
from .agents import Agent, build
from .engines import Engine, Sampling
from .models import default_model, load_model
from .paths import path_line, shorten
from .show import document, naming

PATH_CHARACTERS = 60
"""Characters of a path that a line of progress shows."""


@dataclass(frozen=True)
class Ask:
    """The question and how to answer it, as the command line gives them. `budget` and `max_tokens` count tokens."""

    path: str
    question: str
    format: str | None = None
    agent: str = "memagent"
    observe: str = "treeagent"
    model: str | None = None
    adapter: str | None = None
    budget: int = 5000
    max_tokens: int | None = None
    dtype: str = "bf16"
    device: str = "auto"
    trace: bool = False


def ask(wish: Ask) -> None:
    """Answers with a local model. What is wrong with the file or the options is found before the model is loaded.

    Raises InputError, ConfigError or ModelError.
    """
    if not wish.question.strip():
        raise InputError("the question is empty")
    out, aside = console(), console(sys.stderr)
    text, format = document(wish.path, wish.format)
    name = wish.model or default_model()
    tokenizer = load_tokenizer(name)
    options = {} if wish.max_tokens is None else {"max_tokens": wish.max_tokens}
    agent = build(wish.agent, tokenizer=tokenizer, **options)
    with naming(wish.path):
        observer = observe.build(wish.observe, text, tokenizer=tokenizer, budget=wish.budget, format=format)
    model = name if wish.model else Path(name).name
    aside.print(f"{visible(model)} reads {observer.n} section{'' if observer.n == 1 else 's'}", soft_wrap=True)
    engine = _engine(wish, name, agent.request_limit)
    outcome = answer(agent, Watched(observer, out if wish.trace else None), wish.question, engine, aside)
    _conclude(outcome, agent.answer_format, out, trace=wish.trace)


def answer(agent: Agent, observer: Watched, question: str, engine: Engine, aside: Console) -> Outcome:
    """Drives the agent over the document, one line on `aside` a call. Raises ModelError for a call that fails."""
    run = agent.rollout(question, observer)
    try:
        request = next(run)
        while True:
            with _progress(request, observer, aside):
                (reply,) = engine.generate([request], Sampling())
            if reply.finish in ("error", "overflow"):
                raise ModelError(f"the model cannot be asked: {reply.error or reply.finish}; try a smaller --budget")
            request = run.send(reply)
    except StopIteration as stop:
        return stop.value


class Watched:
    """An observer that prints what it shows and what it is given to keep; without `out` it prints nothing."""

    def __init__(self, observer: observe.Observer, out: Console | None) -> None:
        self.observer, self.out = observer, out
        self.n = observer.n

    def text(self, t: int) -> str:
        """As the observer."""
        return self.observer.text(t)

    def observe(self, t: int, question: str, pass_id: int = 0) -> str:
        """As the observer, and prints it."""
        shown = self.observer.observe(t, question, pass_id)
        self._print(f"section {t + 1} of {self.n}, as the agent sees it", shown)
        return shown

    def commit(self, t: int, memory: str, pass_id: int = 0) -> None:
        """As the observer, and prints it."""
        self.observer.commit(t, memory, pass_id)
        self._print(f"memory after section {t + 1} of {self.n}", memory)

    def place(self, t: int) -> str:
        """Where section `t` (0-based) stands, and its size."""
        section = self.observer.section(t)
        path = path_line(visible(shorten(section.path, PATH_CHARACTERS)), section.range)
        return f"section {t + 1}/{self.n}  {path}  {section.tokens:,} tokens"

    def _print(self, title: str, text: str) -> None:
        if self.out is not None:
            self.out.print(f"--- {title} ---", style="bold")
            self.out.print(visible(text), soft_wrap=True)


@contextmanager
def _progress(request: Request, observer: Watched, aside: Console) -> Iterator[None]:
    """A moving line while the model works (on a terminal), then a line that stays, with the seconds it took."""
    what = request.kind if request.section is None else observer.place(request.section)
    start = time.perf_counter()
    with aside.status(f"{what} ..."):
        yield
    aside.print(f"{what}  {time.perf_counter() - start:.1f} s", soft_wrap=True)


def _engine(wish: Ask, name: str, request_limit: int) -> Engine:
    model, tokenizer = load_model(name, dtype=wish.dtype, device=wish.device, adapter=wish.adapter)
    from .engines.transformers import Transformers

    return Transformers(model, tokenizer, batch_size=1, request_limit=request_limit)


def _conclude(outcome: Outcome, answer_format: str, out: Console, *, trace: bool) -> None:
    """Prints the answer as it would be scored, or all that was said where the model gave none in the format."""
    extracted = extract(outcome.answer_text, answer_format)
    if trace:
        out.print("--- last reply ---", style="bold")
        out.print(visible(outcome.answer_text), soft_wrap=True)
    if extracted:
        out.print(f"answer: {visible(extracted)}", soft_wrap=True)
    else:
        out.print(f"no answer in the expected form; the model said: {visible(outcome.answer_text)}", soft_wrap=True)
