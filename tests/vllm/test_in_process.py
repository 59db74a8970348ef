"""The vLLM engine in this process, against transformers on the same ids."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from treeagent.data.rollout import Reply, Request
from treeagent.errors import ModelError
from treeagent.infer import models
from treeagent.infer.engines import Sampling, thinking
from treeagent.infer.engines import vllm as module
from treeagent.infer.engines.options import VllmOptions
from treeagent.infer.engines.transformers import Transformers, end_ids
from treeagent.infer.engines.vllm import Vllm

ROUNDING = 5e-4  # see conftest
GREEDY = Sampling()
OPTIONS = VllmOptions(max_model_len=2048, max_num_seqs=64, enforce_eager=True)
PARAGRAPH = (
    "The island has three harbours. Fishing boats leave the northern one before dawn and come back at noon. " * 12
)


def _request(text: str, max_tokens: int = 24, **more: Any) -> Request:
    return Request("memory", ({"role": "user", "content": text},), max_tokens, **more)


class Spy:
    """The real engine, noting for each finished request how many prompt tokens came from the prefix cache."""

    def __init__(self, real: Any, cached: list[int]) -> None:
        self.real, self.cached = real, cached

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    async def generate(self, *arguments: Any, **settings: Any) -> AsyncIterator[Any]:
        async for output in self.real.generate(*arguments, **settings):
            self.cached.append(output.num_cached_tokens)
            yield output


@pytest.fixture(scope="module")
def cached() -> list[int]:
    return []


@pytest.fixture(scope="module")
def engine(demo: str, tokenizer: Any, cached: list[int]) -> Iterator[Vllm]:
    """Made from the GGUF file itself."""

    def library() -> module.Library:
        real = module._library()

        class Spied:
            @staticmethod
            def from_engine_args(settings: Any) -> Spy:
                return Spy(real.engine.from_engine_args(settings), cached)

        return dataclasses.replace(real, engine=Spied)

    made = Vllm(demo, tokenizer, OPTIONS, dtype="fp32", logprobs=True, library=library)
    yield made
    made.close()


def _check(judge: Any, model: Any, reply: Reply) -> None:
    """The reply is greedy and its logprobs are right, up to rounding."""
    judged = judge(model, reply.prompt_ids, reply.completion_ids, reply.inserted)
    assert max(judged.shortfalls) < ROUNDING
    assert reply.logprobs is not None
    start, end = reply.inserted
    generated = [*reply.logprobs[:start], *reply.logprobs[end:]] if end else list(reply.logprobs)
    assert generated == pytest.approx(judged.logprobs, abs=ROUNDING)


def test_greedy_replies_are_those_of_the_transformers_engine(
    engine: Vllm, reference: Any, tokenizer: Any, judge: Any
) -> None:
    texts = ["Name three animals that live in the sea.", "Say yes.", f"{PARAGRAPH}\nWhen do the boats come back?"]
    requests = [_request(text) for text in texts]
    ours = engine.generate(requests, GREEDY)
    theirs = Transformers(reference, tokenizer).generate(requests, GREEDY)
    for reply, other in zip(ours, theirs, strict=True):
        assert reply.prompt_ids == other.prompt_ids
        assert (reply.prompt_tokens, reply.n_requests) == (other.prompt_tokens, 1)
        _check(judge, reference, reply)
    assert any(reply.completion_ids == other.completion_ids for reply, other in zip(ours, theirs, strict=True))
    assert engine._ends == end_ids(reference, tokenizer)


def test_a_reply_ends_at_the_end_token_and_keeps_it_among_its_ids(engine: Vllm) -> None:
    (reply,) = engine.generate([_request("Say only the word yes.", max_tokens=200)], GREEDY)
    assert reply.finish == "stop"
    assert reply.completion_ids[-1] in engine._ends
    assert "<|im_end|>" not in reply.text


def test_thinking_is_closed_by_force_and_goes_on_over_ids(
    engine: Vllm, reference: Any, tokenizer: Any, judge: Any
) -> None:
    request = _request("What is two and two?", max_tokens=12, think_tokens=6)
    (reply,) = engine.generate([request], GREEDY)
    start, end = reply.inserted
    assert (reply.forced_close, reply.n_requests) == (True, 2)
    assert tokenizer.decode(reply.completion_ids[start:end]).endswith(thinking.INSERTED)
    assert reply.prompt_tokens == 2 * len(reply.prompt_ids) + end
    _check(judge, reference, reply)


def test_many_requests_run_together_and_each_gets_its_own_reply(engine: Vllm, reference: Any, judge: Any) -> None:
    requests = [_request(f"Write the number {i} and a word.", max_tokens=4 + i % 9) for i in range(64)]
    replies = engine.generate(requests, GREEDY)
    for i, (request, reply) in enumerate(zip(requests, replies, strict=True)):
        assert len(reply.completion_ids) <= request.max_tokens
        assert (reply.finish == "length") == (reply.completion_ids[-1] not in engine._ends)
        if i % 8 == 0:
            _check(judge, reference, reply)
    assert len({reply.prompt_ids for reply in replies}) == 64


def test_a_shared_beginning_is_computed_once(engine: Vllm, cached: list[int]) -> None:
    first, second = (_request(f"{PARAGRAPH}\n{end}", max_tokens=2) for end in ("Who leaves?", "Who returns?"))
    engine.generate([first], GREEDY)
    (reply,) = engine.generate([second], GREEDY)
    assert len(reply.prompt_ids) - 256 < cached[-1] < len(reply.prompt_ids)  # whole blocks of 128


def test_sampled_replies_repeat_and_equal_requests_differ(engine: Vllm) -> None:
    sampling = Sampling(temperature=1.0, top_p=0.95, top_k=50, seed=7)
    requests = [_request("Tell a story.", max_tokens=16)] * 4
    first, again = (engine.generate(requests, sampling) for _ in range(2))
    other = engine.generate(requests, dataclasses.replace(sampling, seed=8))
    texts = {reply.text for reply in first}
    assert len(texts) == 4
    assert texts == {reply.text for reply in again}
    assert texts.isdisjoint(reply.text for reply in other)


def test_a_request_beyond_the_model_is_refused_unsent(engine: Vllm) -> None:
    (reply,) = engine.generate([_request("Hello.", max_tokens=2048)], GREEDY)
    assert (reply.finish, reply.n_requests) == ("overflow", 0)
    assert engine.limit == 2048


def test_an_adapter_changes_the_replies_as_it_does_in_transformers(
    folder: str, tokenizer: Any, adapter: Path, reference: Any, judge: Any
) -> None:
    tuned = models.load_weights(folder, dtype="fp32", device="cpu", adapter=str(adapter))
    engine = Vllm(folder, tokenizer, OPTIONS, dtype="fp32", adapter=str(adapter), logprobs=True)
    try:
        texts = ["Name three animals that live in the sea.", f"{PARAGRAPH}\nWhen do the boats come back?"]
        for reply in engine.generate([_request(text) for text in texts], GREEDY):
            _check(judge, tuned, reply)
            assert max(judge(reference, reply.prompt_ids, reply.completion_ids).shortfalls) > 0.1
    finally:
        engine.close()


def test_a_model_that_vllm_cannot_run_is_one_line(tokenizer: Any, folder: str) -> None:
    for options in (dataclasses.replace(OPTIONS, max_model_len=10**6), VllmOptions(quantization="nonsense")):
        with pytest.raises(ModelError, match="vLLM cannot run model") as caught:
            Vllm(folder, tokenizer, options)
        assert "\n" not in str(caught.value)


def test_when_the_core_dies_every_request_fails_at_once_and_nothing_is_left_behind(engine: Vllm) -> None:
    """The last test of this engine."""
    requests = [_request(f"Count from {i}.", max_tokens=1500) for i in range(8)]
    futures = [engine.submit(request, GREEDY) for request in requests]
    children = [child for child in psutil.Process().children(recursive=True) if "VLLM" in child.name()]
    assert children
    for child in children:
        child.kill()
    for future in futures:
        with pytest.raises(ModelError, match="vLLM died"):
            future.result(timeout=60)
    with pytest.raises(ModelError, match="vLLM died"):
        engine.generate(requests[:1], GREEDY)
    engine.close()
    gone, alive = psutil.wait_procs(children, timeout=60)
    assert not alive
    assert len(gone) == len(children)
