"""Continuous batching on a tiny random model: the padded engine's replies, limits, faults, and threads that end."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from treeagent.data.rollout import Reply, Request
from treeagent.errors import ConfigError, ModelError
from treeagent.infer import models
from treeagent.infer.engines import Sampling
from treeagent.infer.engines.continuous import Continuous

torch = pytest.importorskip("torch")
from treeagent.infer.engines.transformers import Transformers  # noqa: E402

GREEDY = Sampling()
PATIENCE = 30  # seconds; a reply that hangs fails the test
Make = Callable[..., Continuous]


@pytest.fixture(scope="module")
def loaded(tiny_chat_folder: Path) -> tuple[Any, Any]:
    return models.load_model(str(tiny_chat_folder), dtype="fp32", device="cpu")


@pytest.fixture
def make(loaded: tuple[Any, Any]) -> Iterator[Make]:
    """Makes engines, closes them, and sees that no thread of theirs is left."""
    made: list[Continuous] = []
    before = set(threading.enumerate())

    def engine(model: Any = None, **options: Any) -> Continuous:
        made.append(Continuous(loaded[0] if model is None else model, loaded[1], **options))
        return made[-1]

    yield engine
    for one in made:
        one.close()
    left = set(threading.enumerate()) - before
    assert not [thread for thread in left if "tqdm" not in thread.name]


def _request(text: str, max_tokens: int = 12, **options: Any) -> Request:
    return Request("memory", ({"role": "user", "content": text},), max_tokens, **options)


MIXED = [_request("word " * n, most) for n, most in ((1, 12), (40, 3), (7, 9), (90, 12), (2, 1), (15, 7))]
MIXED += [_request("word " * n, 6, think_tokens=9) for n in (3, 20)]


def _without_logprobs(replies: list[Reply]) -> list[Reply]:
    return [replace(reply, logprobs=None) for reply in replies]


def test_greedy_replies_are_those_of_padded_batches(loaded: tuple[Any, Any], make: Make) -> None:
    expected = Transformers(*loaded, logprobs=True).generate(MIXED, GREEDY)
    assert any(reply.forced_close for reply in expected)
    assert make(slots=1).generate(MIXED, GREEDY) == _without_logprobs(expected)
    replies = make(slots=3, logprobs=True).generate(MIXED, GREEDY)
    assert _without_logprobs(replies) == _without_logprobs(expected)
    for reply, wanted in zip(replies, expected, strict=True):
        assert reply.logprobs == pytest.approx(wanted.logprobs, abs=1e-3)


def test_an_engine_answers_again_and_its_model_is_left_as_it_was(loaded: tuple[Any, Any], make: Make) -> None:
    model = copy.deepcopy(loaded[0])
    model.generation_config.update(repetition_penalty=5.0, do_sample=True, temperature=0.2, top_k=2)
    model.set_attn_implementation("eager")
    engine = make(model)
    assert engine.generate(MIXED, GREEDY) == engine.generate(MIXED, GREEDY)
    engine.close()
    engine.close()
    assert model.config._attn_implementation == "eager"
    assert Transformers(model, loaded[1]).generate(MIXED, GREEDY) == Transformers(*loaded).generate(MIXED, GREEDY)


def test_more_requests_than_the_cache_holds_wait_for_room(loaded: tuple[Any, Any], make: Make) -> None:
    requests = [_request(letter * 230, 60) for letter in "abcdef"]
    engine = make(slots=4, cache_tokens=512)
    assert engine.generate(requests, GREEDY) == Transformers(*loaded).generate(requests, GREEDY)


def test_a_request_beyond_its_limit_the_positions_or_the_cache_is_refused(make: Make) -> None:
    engine, small = make(slots=1), make(slots=1, cache_tokens=512)
    length = engine.generate(MIXED[:1], GREEDY)[0].prompt_tokens
    limits = [replace(MIXED[0], limit=length + most) for most in (12, 11)]
    assert [reply.finish == "overflow" for reply in engine.generate(limits, GREEDY)] == [False, True]
    for one, most in ((engine, 2048), (small, 512)):
        fits, over = one.generate([_request("x", most - length - 4), _request("x" * most, 9)], GREEDY)
        assert fits.finish in ("stop", "length")
        assert (over.finish, over.n_requests) == ("overflow", 0)
        assert f"limit of {most}" in over.error


def test_an_end_token_stops_a_reply_and_belongs_to_its_ids_only(loaded: tuple[Any, Any], make: Make) -> None:
    model, tokenizer = copy.deepcopy(loaded[0]), loaded[1]
    said = Transformers(*loaded).generate(MIXED[:1], GREEDY)[0].completion_ids
    model.generation_config.eos_token_id = [said[2], tokenizer.eos_token_id]
    (reply,) = make(model).generate(MIXED[:1], GREEDY)
    length = said.index(said[2]) + 1
    assert (reply.completion_ids, reply.finish) == (said[:length], "stop")
    assert reply.text == tokenizer.decode(said[:length], skip_special_tokens=True)


def test_sampling_is_refused_and_a_cancelled_request_leaves_the_others_alone(
    loaded: tuple[Any, Any], make: Make
) -> None:
    engine = make(slots=2)
    with pytest.raises(ConfigError, match="greedily only"):
        engine.submit(MIXED[0], Sampling(temperature=0.7))
    long = engine.submit(_request("word " * 9, 1500), GREEDY)
    others = [engine.submit(request, GREEDY) for request in MIXED]
    long.cancel()
    replies = [other.result(PATIENCE) for other in others]
    assert replies == Transformers(*loaded).generate(MIXED, GREEDY)


def _failing(model: Any) -> Any:
    """A copy whose forward pass raises."""

    def forward(*_: Any, **__: Any) -> Any:
        raise RuntimeError("mat1 and mat2\nshapes cannot be multiplied")

    failing = copy.deepcopy(model)
    failing.forward = forward
    return failing


def _faults(engine: Continuous, requests: list[Request]) -> set[str]:
    futures = [engine.submit(request, GREEDY) for request in requests]
    errors = [future.exception(PATIENCE) for future in futures]
    assert all(isinstance(error, ModelError) for error in errors)
    return {str(error) for error in errors}


def test_a_fault_in_the_batches_is_raised_for_every_request_now_and_later(loaded: tuple[Any, Any], make: Make) -> None:
    engine = make(_failing(loaded[0]), slots=2)
    message = "continuous batching has stopped: mat1 and mat2 shapes cannot be multiplied"
    assert _faults(engine, [_request("word " * n, 200) for n in range(1, 8)]) == {message}
    assert _faults(engine, MIXED) == {message}


def test_no_request_waits_for_batches_whose_thread_has_ended_silently(loaded: tuple[Any, Any], make: Make) -> None:
    engine = make(_failing(loaded[0]))
    engine._batches.output_router.deliver = lambda output: None
    assert _faults(engine, MIXED) == {"continuous batching has stopped: its thread ended"}


def test_closing_does_not_wait_for_replies(make: Make) -> None:
    engine = make(slots=1)
    futures = [engine.submit(_request("word", 2000), GREEDY) for _ in range(50)]
    engine.close()
    assert all(future.cancelled() or future.done() for future in futures)


def test_what_cannot_batch_continuously_is_refused_in_one_line(loaded: tuple[Any, Any], make: Make) -> None:
    class Older:
        config = loaded[0].config

    with pytest.raises(ModelError, match="has no continuous batching") as older:
        make(Older())
    unfit = copy.deepcopy(loaded[0])
    unfit.config._attn_implementation = "flex_attention"
    with pytest.raises(ModelError, match=r"is not possible for this model: .*flex_attention") as other:
        make(unfit)
    assert "\n" not in f"{older.value}{other.value}"
