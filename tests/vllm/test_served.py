"""vLLM as a server, asked by the openai engine: both APIs, text and ids, against transformers on the same ids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from treeagent.data.rollout import Reply, Request
from treeagent.infer.engines import Sampling
from treeagent.infer.engines.openai_server import OpenAI
from treeagent.infer.engines.options import OpenAIOptions

ROUNDING = 5e-4  # see conftest
GREEDY = Sampling()
WAYS = [
    {"api": "chat"},
    {"api": "completions", "prompt_format": "text"},
    {"api": "completions", "prompt_format": "ids"},
]


@pytest.fixture(params=WAYS, ids=lambda way: "-".join(way.values()))
def engine(request: pytest.FixtureRequest, served: str, tokenizer: Any) -> Iterator[OpenAI]:
    options = OpenAIOptions(base_url=(served,), logprobs=True, token_ids=True, **request.param)
    made = OpenAI(options, model="smollm2", renderer=tokenizer)
    yield made
    made.close()


def _request(text: str, max_tokens: int = 24, **more: Any) -> Request:
    return Request("memory", ({"role": "user", "content": text},), max_tokens, **more)


def _ids(tokenizer: Any, request: Request) -> tuple[int, ...]:
    messages = [dict(message) for message in request.messages]
    return tuple(tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=True, return_dict=False))


def _check(judge: Any, model: Any, reply: Reply) -> None:
    judged = judge(model, reply.prompt_ids, reply.completion_ids, reply.inserted)
    assert max(judged.shortfalls) < ROUNDING


def test_replies_are_greedy_and_come_with_ids_and_logprobs(
    engine: OpenAI, tokenizer: Any, reference: Any, judge: Any
) -> None:
    requests = [_request(text) for text in ("Name three animals that live in the sea.", "Say yes.", "Count to ten.")]
    for request, reply in zip(requests, engine.generate(requests, GREEDY), strict=True):
        assert reply.error == ""
        assert reply.prompt_ids == _ids(tokenizer, request)
        assert reply.prompt_tokens == len(reply.prompt_ids)
        assert reply.completion_tokens == len(reply.completion_ids)
        judged = judge(reference, reply.prompt_ids, reply.completion_ids)
        assert max(judged.shortfalls) < ROUNDING
        assert list(reply.logprobs or ()) == pytest.approx(judged.logprobs, abs=ROUNDING)


def test_thinking_in_two_stages_works_over_http(engine: OpenAI, reference: Any, judge: Any) -> None:
    (reply,) = engine.generate([_request("What is two and two?", max_tokens=12, think_tokens=6)], GREEDY)
    assert reply.error == ""
    assert (reply.forced_close, reply.n_requests) == (True, 2)
    assert "</think>" in reply.text
    if reply.completion_ids:
        _check(judge, reference, reply)


def test_the_length_that_the_server_tells_is_kept(engine: OpenAI) -> None:
    (reply,) = engine.generate([_request("Hello.", max_tokens=2048)], GREEDY)
    assert (reply.finish, reply.n_requests) == ("overflow", 0)


def test_many_requests_at_once_all_come_back(engine: OpenAI) -> None:
    replies = engine.generate([_request(f"Write the number {i}.", max_tokens=4) for i in range(48)], GREEDY)
    assert [reply.error for reply in replies] == [""] * 48
