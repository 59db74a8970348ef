"""The transformers engine on a tiny random model: ids, limits, batches, seeds, memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from treeagent.data.rollout import Reply, Request
from treeagent.infer import models
from treeagent.infer.engines import Sampling
from treeagent.infer.engines.thinking import CLOSING

torch = pytest.importorskip("torch")
from treeagent.infer.engines.transformers import Transformers  # noqa: E402

GREEDY = Sampling()
Make = Callable[..., Transformers]


@pytest.fixture(scope="module")
def loaded(tiny_chat_folder: Path) -> tuple[Any, Any]:
    return models.load_model(str(tiny_chat_folder), dtype="fp32", device="cpu")


@pytest.fixture
def make(loaded: tuple[Any, Any]) -> Make:
    return lambda **options: Transformers(*loaded, **options)


def _request(text: str, max_tokens: int = 12, **options: Any) -> Request:
    return Request("memory", ({"role": "user", "content": text},), max_tokens, **options)


MIXED = [_request("word " * n, max_tokens) for n, max_tokens in ((1, 12), (40, 3), (7, 9), (90, 12), (2, 1), (15, 7))]


def _prompt(loaded: tuple[Any, Any], request: Request) -> list[int]:
    text = f"<|im_start|>user\n{request.messages[0]['content']}<|im_end|>\n<|im_start|>assistant\n"
    return loaded[1].encode(text, add_special_tokens=False)


def _by_hand(loaded: tuple[Any, Any], request: Request) -> list[int]:
    """Greedy decoding without a cache, without padding, without generate()."""
    return _continued(loaded, _prompt(loaded, request), request.max_tokens)


def _continued(loaded: tuple[Any, Any], ids: list[int], most: int) -> list[int]:
    model, tokenizer = loaded
    new: list[int] = []
    with torch.no_grad():
        while len(new) < most and tokenizer.eos_token_id not in new:
            new.append(int(model(torch.tensor([ids + new])).logits[0, -1].argmax()))
    return new


def test_greedy_replies_are_those_of_decoding_by_hand_whatever_the_batch(loaded: tuple[Any, Any], make: Make) -> None:
    expected = [_by_hand(loaded, request) for request in MIXED]
    assert len({tuple(ids) for ids in expected}) == len(MIXED)
    for batch_size in (1, 2, 4, 6):
        replies = make(batch_size=batch_size).generate(MIXED, GREEDY)
        assert [list(reply.completion_ids) for reply in replies] == expected


def test_prompt_ids_are_those_of_the_chat_template_without_padding(loaded: tuple[Any, Any], make: Make) -> None:
    for request, reply in zip(MIXED, make(batch_size=6).generate(MIXED, GREEDY), strict=True):
        assert list(reply.prompt_ids) == _prompt(loaded, request)


def test_each_row_keeps_its_own_token_limit(make: Make) -> None:
    replies = make(batch_size=6).generate(MIXED, GREEDY)
    for request, reply in zip(MIXED, replies, strict=True):
        assert reply.finish in ("stop", "length")
        if reply.finish == "length":
            assert len(reply.completion_ids) == request.max_tokens
    assert any(reply.finish == "length" for reply in replies)


def test_an_end_token_stops_a_reply_and_belongs_to_its_ids_only(loaded: tuple[Any, Any]) -> None:
    """The model is made to end where it would have said its third token."""
    model, tokenizer = loaded
    third = _by_hand(loaded, MIXED[0])[2]
    engine = Transformers(model, tokenizer, batch_size=2)
    engine._ends = (third,)
    reply = engine.generate(MIXED[:2], GREEDY)[0]
    assert reply.finish == "stop"
    assert reply.completion_ids[-1] == third
    assert len(reply.completion_ids) == _by_hand(loaded, MIXED[0]).index(third) + 1


def test_a_reply_that_ends_exactly_at_its_limit_has_ended_by_itself(loaded: tuple[Any, Any]) -> None:
    model, tokenizer = loaded
    said = _by_hand(loaded, MIXED[0])
    first = said.index(said[2])
    engine = Transformers(model, tokenizer)
    engine._ends = (said[2],)
    assert engine.generate([_request("word ", first + 1)], GREEDY)[0].finish == "stop"


def test_sampled_replies_repeat_with_the_seed_and_leave_random_state_alone(make: Make) -> None:
    sampling = Sampling(temperature=1.0, seed=7)
    state = torch.random.get_rng_state()
    first = make(batch_size=4).generate(MIXED, sampling)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert make(batch_size=4).generate(MIXED, sampling) == first
    assert make(batch_size=4).generate(MIXED, Sampling(temperature=1.0, seed=8)) != first


def test_equal_batches_in_one_call_draw_differently(make: Make) -> None:
    """Four copies of a prompt in batches of two, as in training: no two alike."""
    replies = make(batch_size=2).generate([_request("same")] * 4, Sampling(temperature=2.0))
    assert len({reply.completion_ids for reply in replies}) == 4


def test_top_k_of_one_samples_what_greedy_decoding_says(make: Make) -> None:
    greedy = make().generate(MIXED, GREEDY)
    assert make().generate(MIXED, Sampling(temperature=1.0, top_k=1)) == greedy


def test_the_models_own_generation_settings_do_not_count(loaded: tuple[Any, Any]) -> None:
    import copy

    model, tokenizer = loaded
    expected = Transformers(model, tokenizer).generate(MIXED, GREEDY)
    changed = copy.deepcopy(model)
    changed.generation_config.update(repetition_penalty=5.0, do_sample=True, temperature=0.2, top_k=2, top_p=0.3)
    assert Transformers(changed, tokenizer).generate(MIXED, GREEDY) == expected


def test_logprobs_are_the_models_own(loaded: tuple[Any, Any], make: Make) -> None:
    replies = make(batch_size=3, logprobs=True).generate(MIXED, Sampling(temperature=0.7, top_k=5))
    for reply in replies:
        ids = torch.tensor([reply.prompt_ids + reply.completion_ids])
        with torch.no_grad():
            table = torch.log_softmax(loaded[0](ids).logits[0], -1)
        start = len(reply.prompt_ids)
        expected = [float(table[start + i - 1, token]) for i, token in enumerate(reply.completion_ids)]
        assert reply.logprobs == pytest.approx(expected, abs=1e-3)


def test_a_request_over_its_own_limit_is_refused_without_being_sent(make: Make) -> None:
    length = len(make().generate([MIXED[0]], GREEDY)[0].prompt_ids)
    fits, over = (replace(MIXED[0], limit=length + most) for most in (12, 11))
    sent, refused, other = make().generate([fits, over, MIXED[4]], GREEDY)
    assert refused == Reply(
        "", "overflow", n_requests=0, error=f"{length} prompt + 12 new tokens, over the limit of {length + 11}"
    )
    assert sent.finish in ("stop", "length")
    assert other.finish in ("stop", "length")


def test_the_models_positions_are_a_limit_too(make: Make) -> None:
    reply = make().generate([_request("x" * 3000, limit=40_000)], GREEDY)[0]
    assert reply.finish == "overflow"
    assert "limit of 2048" in reply.error


def test_usage_is_counted_without_padding_and_without_what_was_cut(make: Make) -> None:
    for reply in make(batch_size=6).generate(MIXED, GREEDY):
        assert (reply.prompt_tokens, reply.completion_tokens) == (len(reply.prompt_ids), len(reply.completion_ids))


def test_the_thinking_flag_reaches_the_chat_template_only_where_it_is_set(loaded: tuple[Any, Any], make: Make) -> None:
    flags = (None, True, False)
    replies = make().generate([_request("x", enable_thinking=flag) for flag in flags], GREEDY)
    ends = [loaded[1].decode(reply.prompt_ids).endswith("<think></think>") for reply in replies]
    assert ends == [False, False, True]


THINKERS = [_request("word " * n, 4 + n % 3, think_tokens=5 + n % 4) for n in (2, 30, 9)]


def test_thinking_is_generated_closed_and_gone_on_from(loaded: tuple[Any, Any], make: Make) -> None:
    """By hand: decode the thinking, take trailing blanks off, append the closing, decode the rest."""
    tokenizer = loaded[1]
    for batch_size in (1, 4):
        replies = make(batch_size=batch_size).generate([*MIXED, *THINKERS], GREEDY)
        assert replies[: len(MIXED)] == make(batch_size=batch_size).generate(MIXED, GREEDY)
        for request, reply in zip(THINKERS, replies[len(MIXED) :], strict=True):
            prompt = _prompt(loaded, request)
            first = _continued(loaded, prompt, request.think_tokens)
            assert tokenizer.decode(first) == tokenizer.decode(first).rstrip()
            kept = [token for token in first if token != tokenizer.eos_token_id]
            closing = tokenizer.encode(f"\n\n{CLOSING}\n</think>\n\n", add_special_tokens=False)
            second = _continued(loaded, prompt + kept + closing, request.max_tokens)
            assert list(reply.completion_ids) == kept + closing + second
            assert reply.inserted == (len(kept), len(kept) + len(closing))
            assert (reply.forced_close, reply.n_requests) == (True, 2)
            assert list(reply.prompt_ids) == prompt
            assert reply.prompt_tokens == 2 * len(prompt) + len(kept) + len(closing)
            assert reply.completion_tokens == len(first) + len(second)


def test_requests_that_think_share_the_second_stages_batches_with_the_others(loaded: tuple[Any, Any]) -> None:
    model = Failing(loaded[0], 10**9, RuntimeError())
    Transformers(model, loaded[1], batch_size=4).generate([MIXED[0], THINKERS[0], MIXED[2], THINKERS[2]], GREEDY)
    assert model.rows == [2, 4]


def test_logprobs_of_a_thought_are_the_models_own_and_zero_where_something_was_inserted(
    loaded: tuple[Any, Any], make: Make
) -> None:
    for reply in make(batch_size=2, logprobs=True).generate(THINKERS, Sampling(temperature=0.9)):
        ids = torch.tensor([reply.prompt_ids + reply.completion_ids])
        with torch.no_grad():
            table = torch.log_softmax(loaded[0](ids).logits[0], -1)
        before, (start, end) = len(reply.prompt_ids) - 1, reply.inserted
        expected = [
            0.0 if start <= i < end else float(table[before + i, token]) for i, token in enumerate(reply.completion_ids)
        ]
        assert reply.logprobs == pytest.approx(expected, abs=1e-3)


def test_sampled_thoughts_repeat_with_the_seed(make: Make) -> None:
    sampling = Sampling(temperature=1.0, seed=7)
    first = make(batch_size=2).generate(THINKERS, sampling)
    assert make(batch_size=2).generate(THINKERS, sampling) == first
    assert make(batch_size=2).generate(THINKERS, Sampling(temperature=1.0, seed=8)) != first


def test_a_thought_that_closed_by_itself_is_gone_on_from_as_it_is(loaded: tuple[Any, Any]) -> None:
    """The model is made to say these two replies, and remembers what it was given."""
    model, tokenizer = loaded
    first = tokenizer.encode("<think>hm</think> \n", add_special_tokens=False)
    second = tokenizer.encode("seven", add_special_tokens=False)
    end = tokenizer.eos_token_id
    saying = Saying(model, [[*first, end], [*second, end]])
    request = _request("x", 20, think_tokens=len(first) + 1)
    (reply,) = Transformers(saying, tokenizer).generate([request], GREEDY)
    prompt = _prompt(loaded, request)
    assert saying.given == [prompt, prompt + first]
    assert reply.text == "<think>hm</think> \nseven"
    assert (reply.forced_close, reply.inserted, reply.finish) == (False, (0, 0), "stop")
    assert list(reply.completion_ids) == [*first, *second, end]


class Saying:
    """The model, but each generation over one prompt gives the next of these rows."""

    def __init__(self, model: Any, rows: list[list[int]]) -> None:
        self.model, self.rows = model, iter(rows)
        self.given: list[list[int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def generate(self, *, input_ids: Any, **options: Any) -> Any:
        self.given.append(input_ids[0].tolist())
        return SimpleNamespace(sequences=torch.tensor([self.given[-1] + next(self.rows)]))


class Failing:
    """The model, but generating over more than `room` prompt tokens, padding included, raises the error."""

    def __init__(self, model: Any, room: int, error: Exception) -> None:
        self.model, self.room, self.error = model, room, error
        self.rows: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def generate(self, *, input_ids: Any, **options: Any) -> Any:
        if input_ids.numel() > self.room:
            raise self.error
        self.rows.append(len(input_ids))
        return self.model.generate(input_ids=input_ids, **options)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: can't allocate memory"),
    ],
)
def test_a_batch_that_does_not_fit_is_halved_and_a_lone_request_becomes_an_error(
    loaded: tuple[Any, Any], make: Make, error: Exception
) -> None:
    expected = make().generate(MIXED, GREEDY)
    model, tokenizer = loaded
    replies = Transformers(Failing(model, 150, error), tokenizer, batch_size=6).generate(MIXED, GREEDY)
    fits = [len(reply.prompt_ids) <= 150 for reply in expected]
    assert 0 < sum(fits) < len(fits)
    for reply, wanted, small in zip(replies, expected, fits, strict=True):
        if small:
            assert reply == wanted
        else:
            assert (reply.text, reply.finish) == ("", "error")
            assert reply.error.startswith("out of memory: 1 request")


def test_memory_that_only_suffices_for_the_thinking_gives_an_error_that_counts_it(loaded: tuple[Any, Any]) -> None:
    length = len(_prompt(loaded, THINKERS[0]))
    model = Failing(loaded[0], length, torch.OutOfMemoryError("CUDA out of memory."))
    (reply,) = Transformers(model, loaded[1]).generate(THINKERS[:1], GREEDY)
    assert (reply.text, reply.finish, reply.n_requests) == ("", "error", 2)
    thought = _continued(loaded, _prompt(loaded, THINKERS[0]), THINKERS[0].think_tokens)
    assert (reply.prompt_tokens, reply.completion_tokens) == (length, len(thought))
    (none,) = Transformers(Failing(loaded[0], 0, model.error), loaded[1]).generate(THINKERS[:1], GREEDY)
    assert (none.finish, none.n_requests, none.prompt_tokens) == ("error", 1, 0)


def test_other_faults_are_raised(loaded: tuple[Any, Any]) -> None:
    error = RuntimeError("mat1 and mat2 shapes cannot be multiplied")
    with pytest.raises(RuntimeError, match="shapes"):
        Transformers(Failing(loaded[0], 0, error), loaded[1]).generate(MIXED, GREEDY)


def test_a_training_model_is_evaluated_and_left_training(loaded: tuple[Any, Any], make: Make) -> None:
    loaded[0].train()
    make().generate(MIXED[:1], GREEDY)
    assert loaded[0].training
    loaded[0].eval()


def test_no_requests_give_no_replies(make: Make) -> None:
    assert make().generate([], GREEDY) == []
