"""The `openai` engine against a real llama.cpp server with the demo model. What such a small model says is not looked
at, only that it is what the server said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from llama_server import NAME, SLOT_TOKENS, serving
from treeagent.data.rollout import Reply, Request
from treeagent.errors import ModelError
from treeagent.infer.engines import Sampling
from treeagent.infer.engines.openai_server import OpenAI
from treeagent.infer.engines.options import OpenAIOptions
from treeagent.infer.engines.thinking import CLOSING
from treeagent.infer.models import load_chat_tokenizer

WAYS: list[dict[str, Any]] = [
    {"api": "chat"},
    {"api": "completions"},
    {"api": "completions", "prompt_format": "ids"},
]
INSERTED = f"\n\n{CLOSING}\n</think>\n\n"
Connect = Callable[..., OpenAI]


@pytest.fixture(scope="module")
def address(demo_tokenizer: str) -> Iterator[str]:
    with serving(demo_tokenizer) as url:
        yield url


@pytest.fixture(scope="module")
def renderer(demo_tokenizer: str) -> Any:
    return load_chat_tokenizer(demo_tokenizer)


@pytest.fixture
def connect(address: str, renderer: Any) -> Iterator[Connect]:
    """Makes engines for the server, and closes them all. The server remembers no prompts, which would change the
    order of its sums."""
    engines: list[OpenAI] = []

    def make(model: str | None = NAME, *, counting: bool = True, **options: Any) -> OpenAI:
        chosen = OpenAIOptions(base_url=(address,), timeout=60, extra={"cache_prompt": False}, **options)
        engines.append(OpenAI(chosen, model=model, renderer=renderer if counting else None))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()


def request(content: str = "Name three colours.", max_tokens: int = 8, think: int = 0) -> Request:
    return Request("memory", ({"role": "user", "content": content},), max_tokens, think)


def ask(engine: OpenAI, asked: Request | None = None, sampling: Sampling | None = None) -> Reply:
    return engine.generate([asked or request()], sampling or Sampling())[0]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_greedy_reply_repeats_and_uses_the_models_own_template(connect: Connect, renderer: Any, way: Any) -> None:
    engine = connect(None, **way)
    first, second = ask(engine), ask(engine)
    assert first == second
    assert first.text.strip()
    assert (first.finish, first.n_requests, first.completion_tokens, first.error) == ("length", 1, 8, "")
    messages = [dict(message) for message in request().messages]
    ids = renderer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    assert first.prompt_tokens == len(ids)
    assert list(first.prompt_ids) == (ids if way.get("prompt_format") == "ids" else [])


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_each_token_of_a_reply_comes_with_its_logprob(connect: Connect, renderer: Any, way: Any) -> None:
    reply = ask(connect(logprobs=True, **way))
    assert reply.logprobs is not None
    assert len(reply.completion_ids) == len(reply.logprobs) == 8
    assert all(-30 < logprob <= 0 for logprob in reply.logprobs)
    assert renderer.decode(list(reply.completion_ids)).strip() == reply.text.strip()


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_thinking_is_closed_when_its_tokens_run_out_and_the_reply_goes_on(connect: Connect, way: Any) -> None:
    engine = connect(**way)
    thought = ask(engine, request(max_tokens=6)).text
    reply = ask(engine, request(think=6))
    assert (reply.forced_close, reply.n_requests, reply.completion_tokens) == (True, 2, 14)
    opening, inserted, answer = reply.text.partition(INSERTED)
    assert (opening, inserted) == (thought.strip(), INSERTED)
    assert answer.strip()
    assert CLOSING not in answer  # this server repeats what it continues in a chat


def test_the_ids_of_both_stages_are_those_the_server_saw(connect: Connect, renderer: Any) -> None:
    reply = ask(connect(api="completions", prompt_format="ids", logprobs=True), request(think=6))
    start, end = reply.inserted
    assert reply.logprobs is not None
    assert len(reply.completion_ids) == len(reply.logprobs) == 14 + end - start
    assert renderer.decode(list(reply.completion_ids[start:end])).endswith(INSERTED.lstrip())
    assert set(reply.logprobs[start:end]) == {0.0}
    assert renderer.decode(list(reply.completion_ids)).strip() == reply.text
    both = 2 * len(reply.prompt_ids) + end
    assert (reply.prompt_tokens, reply.completion_tokens) == (both, 14)


def test_more_requests_than_slots_are_all_answered(connect: Connect) -> None:
    asked = [request(f"Say {n}.", max_tokens=3) for n in range(12)]
    replies = connect(concurrency=6).generate(asked, Sampling())
    assert {(reply.finish, reply.n_requests) for reply in replies} <= {("length", 1), ("stop", 1)}


def test_sampling_follows_the_seed(connect: Connect) -> None:
    engine = connect()
    texts = {ask(engine, sampling=Sampling(temperature=2.0, top_p=0.99, top_k=200, seed=n)).text for n in range(3)}
    assert len(texts) > 1


def test_what_the_context_cannot_hold_is_refused_here_or_there(connect: Connect) -> None:
    long = request("word " * SLOT_TOKENS)
    here, there = ask(connect(), long), ask(connect(counting=False), long)
    assert (here.finish, here.n_requests) == ("overflow", 0)
    assert (there.finish, there.n_requests) == ("overflow", 1)
    assert str(SLOT_TOKENS) in here.error
    assert "exceed" in there.error


def test_another_model_is_refused_by_name(connect: Connect) -> None:
    with pytest.raises(ModelError, match=f"'other' is not served there; served: {NAME}"):
        ask(connect("other"))
