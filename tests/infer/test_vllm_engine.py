"""The vLLM engine over a fake vLLM: what it asks for, in one stage and two, and what becomes of every failure.

`tests/vllm` runs the real one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from treeagent.data.rollout import Reply, Request
from treeagent.errors import ModelError
from treeagent.infer import models
from treeagent.infer.engines import Sampling, thinking
from treeagent.infer.engines.options import VllmOptions

pytest.importorskip("torch")
from treeagent.infer.engines.vllm import Library, Vllm

GREEDY = Sampling()
END = 1  # <|im_end|> of the tiny tokenizer
POSITIONS = 400


class DeadError(Exception):
    """As vLLM's EngineDeadError."""


class Params:
    """As vLLM's SamplingParams: refuses what is beyond its limits, and lifts a tiny temperature without a word."""

    def __init__(self, **given: Any) -> None:
        if given["temperature"] > 2:
            raise ValueError("temperature must be\nin [0, 2]")
        self.given = given
        self.temperature = max(given["temperature"], 0.01) if given["temperature"] else 0.0


@dataclass
class Fake:
    """A vLLM that says what `say` makes of a prompt and its parameters, and nothing before `together` requests were
    asked. It keeps all that it was asked."""

    say: Callable[[list[int], dict[str, Any]], list[int]] = lambda prompt, params: [END]
    finish: str | None = None
    start_error: Exception | None = None
    lora_error: Exception | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[list[int], dict[str, Any], str, Any]] = field(default_factory=list)
    loras: list[Any] = field(default_factory=list)
    shutdowns: int = 0
    together: int = 0
    model_config: Any = None

    def library(self) -> Library:
        return Library(
            engine=self,
            arguments=lambda **settings: settings,
            sampling=Params,
            lora=lambda name, number, path: SimpleNamespace(lora_name=name, lora_int_id=number, lora_path=path),
            whole="whole",
            dead=DeadError,
        )

    def from_engine_args(self, settings: dict[str, Any]) -> Fake:
        if self.start_error:
            raise self.start_error
        self.settings = settings
        self.model_config = SimpleNamespace(max_model_len=settings["max_model_len"] or POSITIONS)
        return self

    async def add_lora(self, lora: Any) -> bool:
        if self.lora_error:
            raise self.lora_error
        self.loras.append(lora)
        return True

    async def generate(
        self, prompt: dict[str, list[int]], params: Params, request_id: str, *, lora_request: Any
    ) -> AsyncIterator[Any]:
        ids, given = prompt["prompt_token_ids"], params.given
        self.asked.append((ids, given, request_id, lora_request))
        while len(self.asked) < self.together:
            await asyncio.sleep(0)
        said = self.say(ids, given)[: given["max_tokens"]]
        finish = self.finish or ("stop" if said and said[-1] in given["stop_token_ids"] else "length")
        logprobs = None
        if given["logprobs"] is not None:
            logprobs = [{token: SimpleNamespace(logprob=-i / 8)} for i, token in enumerate(said)]
        yield SimpleNamespace(outputs=[SimpleNamespace(token_ids=said, logprobs=logprobs, finish_reason=finish)])

    def shutdown(self) -> None:
        self.shutdowns += 1


Make = Callable[..., Vllm]


@pytest.fixture(scope="module")
def tokenizer(tiny_chat_folder: Path) -> Any:
    return models.load_chat_tokenizer(str(tiny_chat_folder))


@pytest.fixture
def make(tiny_chat_folder: Path, tokenizer: Any) -> Iterator[Make]:
    """Makes an engine over a fake, and closes it."""
    made: list[Vllm] = []

    def engine(fake: Fake, options: VllmOptions | None = None, **settings: Any) -> Vllm:
        made.append(Vllm(str(tiny_chat_folder), tokenizer, options, library=fake.library, **settings))
        return made[-1]

    yield engine
    for engine_made in made:
        engine_made.close()


def _request(text: str = "a question", max_tokens: int = 20, **more: Any) -> Request:
    return Request("memory", ({"role": "user", "content": text},), max_tokens, **more)


def _scripted(tokenizer: Any, *texts: str, end: bool = True) -> Callable[..., list[int]]:
    replies = iter(texts)
    return lambda prompt, params: [*tokenizer.encode(next(replies)), *([END] if end else [])]


def _one(engine: Vllm, request: Request, sampling: Sampling = GREEDY) -> Reply:
    return engine.generate([request], sampling)[0]


def test_the_prompt_is_sent_as_the_ids_of_the_chat_template_and_the_ids_of_the_reply_are_kept(
    make: Make, tokenizer: Any
) -> None:
    fake = Fake(_scripted(tokenizer, "the memory"))
    reply = _one(make(fake), _request())
    wanted = tokenizer.encode("<|im_start|>user\na question<|im_end|>\n<|im_start|>assistant\n")
    said = (*tokenizer.encode("the memory"), END)
    assert fake.asked[0][0] == wanted
    assert reply == Reply(
        "the memory",
        "stop",
        prompt_ids=tuple(wanted),
        completion_ids=said,
        prompt_tokens=len(wanted),
        completion_tokens=len(said),
    )


def test_greedy_requests_leave_nothing_to_the_models_own_generation_config(make: Make) -> None:
    fake = Fake()
    _one(make(fake), _request(max_tokens=7))
    assert fake.asked[0][1] == {
        "temperature": 0.0,
        "top_p": 1.0,
        "top_k": 0,
        "seed": None,
        "max_tokens": 7,
        "stop_token_ids": [END],
        "ignore_eos": True,
        "logprobs": None,
        "detokenize": False,
        "output_kind": "whole",
    }
    assert fake.settings["generation_config"] == "vllm"


def test_sampling_is_passed_on_with_a_seed_made_of_its_own(make: Make) -> None:
    fake = Fake()
    engine = make(fake)
    _one(engine, _request(), Sampling(temperature=0.7, top_p=0.9, top_k=5, seed=1))
    _one(engine, _request(), Sampling(temperature=0.7, top_p=0.9, top_k=5, seed=2))
    first, second = (params for _, params, *_ in fake.asked)
    assert (first["temperature"], first["top_p"], first["top_k"]) == (0.7, 0.9, 5)
    assert first["seed"] != second["seed"]
    assert 0 <= first["seed"] < 2**63 - 1


def test_a_repeated_call_has_the_same_seeds_and_equal_requests_in_one_call_have_different_ones(make: Make) -> None:
    fake = Fake()
    engine = make(fake)
    for asked in (5, 10):
        fake.together = asked
        engine.generate([_request()] * 4 + [_request("another")], Sampling(temperature=1.0))
    seeds = [params["seed"] for _, params, *_ in fake.asked]
    assert len(set(seeds[:5])) == 5
    assert sorted(seeds[:5]) == sorted(seeds[5:])


def test_a_temperature_that_vllm_would_change_or_refuse_is_an_error_for_all(make: Make) -> None:
    engine = make(Fake())
    with pytest.raises(ModelError, match=r"no temperature of 0\.001"):
        _one(engine, _request(), Sampling(temperature=0.001))
    with pytest.raises(ModelError, match=r"temperature must be in \[0, 2\]"):
        _one(engine, _request(), Sampling(temperature=3.0))


def test_logprobs_are_those_of_the_chosen_tokens(make: Make, tokenizer: Any) -> None:
    fake = Fake(_scripted(tokenizer, "abc"))
    reply = _one(make(fake, logprobs=True), _request())
    assert fake.asked[0][1]["logprobs"] == 0
    assert reply.logprobs == tuple(-i / 8 for i in range(len(reply.completion_ids)))


def test_a_reply_that_reaches_its_limit_is_cut_and_says_so(make: Make, tokenizer: Any) -> None:
    reply = _one(make(Fake(lambda prompt, params: tokenizer.encode("xyxyxyxyxy"))), _request(max_tokens=3))
    assert (reply.finish, len(reply.completion_ids), reply.text) == ("length", 3, "xyx")


def test_thinking_is_closed_by_force_and_the_second_request_goes_on_from_there(make: Make, tokenizer: Any) -> None:
    fake = Fake(_scripted(tokenizer, "qqqqqqqq", "the answer "))
    reply = _one(make(fake, logprobs=True), _request(think_tokens=4, max_tokens=30))
    (prompt, first, *_), (longer, second, *_) = fake.asked
    thought, inserted = tokenizer.encode("qqqq"), tokenizer.encode(thinking.INSERTED)
    said = [*tokenizer.encode("the answer "), END]
    assert (first["max_tokens"], second["max_tokens"]) == (4, 30)
    assert longer == [*prompt, *thought, *inserted]
    assert reply.text == f"qqqq{thinking.INSERTED}the answer"
    assert reply.completion_ids == (*thought, *inserted, *said)
    assert reply.inserted == (4, 4 + len(inserted))
    assert (reply.forced_close, reply.n_requests, reply.finish) == (True, 2, "stop")
    assert reply.logprobs is not None
    assert reply.logprobs[4 : 4 + len(inserted)] == (0.0,) * len(inserted)
    assert reply.prompt_tokens == len(prompt) + len(longer)
    assert reply.completion_tokens == 4 + len(said)


def test_thinking_that_ends_by_itself_gets_its_second_request_without_the_end_token(make: Make, tokenizer: Any) -> None:
    fake = Fake(_scripted(tokenizer, "so</think>it is", " it"))
    reply = _one(make(fake), _request(think_tokens=40))
    prompt, longer = fake.asked[0][0], fake.asked[1][0]
    assert longer == [*prompt, *tokenizer.encode("so</think>it is")]
    assert (reply.forced_close, reply.n_requests, reply.text) == (False, 2, "so</think>it isit")


def test_a_request_beyond_a_limit_is_not_sent(make: Make) -> None:
    fake = Fake()
    engine = make(fake, VllmOptions(max_model_len=100))
    length = len(_one(engine, _request(max_tokens=1)).prompt_ids)
    fake.asked.clear()
    own = _one(engine, _request(max_tokens=10, limit=length + 9))
    engines = _one(engine, _request(max_tokens=101 - length))
    thought = _one(engine, _request(max_tokens=10, think_tokens=5, limit=length + 14))
    for reply in (own, engines, thought):
        assert (reply.finish, reply.n_requests, reply.prompt_tokens) == ("overflow", 0, 0)
    assert not fake.asked
    assert _one(engine, _request(max_tokens=100 - length)).finish == "stop"
    assert _one(engine, _request(max_tokens=10, limit=length + 10)).finish == "stop"


def test_every_option_reaches_vllm_and_prefix_caching_is_on(make: Make) -> None:
    options = VllmOptions(
        tensor_parallel_size=2,
        data_parallel_size=4,
        max_model_len=300,
        gpu_memory_utilization=0.5,
        max_num_seqs=16,
        enforce_eager=True,
        quantization="fp8",
    )
    fake = Fake()
    make(fake, options, dtype="fp32")
    wanted = {
        "tensor_parallel_size": 2,
        "data_parallel_size": 4,
        "max_model_len": 300,
        "gpu_memory_utilization": 0.5,
        "max_num_seqs": 16,
        "enforce_eager": True,
        "quantization": "fp8",
        "dtype": "float32",
        "enable_prefix_caching": True,
    }
    assert wanted.items() <= fake.settings.items()
    assert "enable_lora" not in fake.settings


def _adapter(folder: Path, **settings: Any) -> str:
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 9, "lora_alpha": 4} | settings))
    return str(folder)


def test_an_adapter_is_loaded_at_the_start_and_goes_with_every_request(make: Make, tmp_path: Path) -> None:
    fake = Fake()
    engine = make(fake, adapter=_adapter(tmp_path))
    _one(engine, _request(think_tokens=3))
    assert (fake.settings["enable_lora"], fake.settings["max_lora_rank"]) == (True, 16)  # the first size that holds 9
    assert [lora.lora_path for lora in fake.loras] == [str(tmp_path)]
    assert [lora for *_, lora in fake.asked] == fake.loras * 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rank_pattern": {"q_proj": 4}}, "with rank_pattern"),
        ({"alpha_pattern": {"q_proj": 4}, "use_dora": True}, "with alpha_pattern, use_dora"),
        ({"bias": "all"}, "with bias"),
        ({"modules_to_save": ["lm_head"]}, "with modules_to_save"),
        ({"peft_type": "IA3"}, "this one is IA3"),
        ({"r": 513}, "this one is 513"),
        ({"r": None}, "no LoRA configuration"),
    ],
)
def test_an_adapter_that_vllm_would_run_differently_is_refused_before_it_starts(
    make: Make, tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    fake = Fake()
    with pytest.raises(ModelError, match=message):
        make(fake, adapter=_adapter(tmp_path, **settings))
    assert not fake.settings


def test_an_adapter_that_does_not_fit_ends_what_was_started(make: Make, tmp_path: Path) -> None:
    fake = Fake(lora_error=ValueError("no such\nmodule"))
    with pytest.raises(ModelError, match=r"does not fit the model: no such module$"):
        make(fake, adapter=_adapter(tmp_path))
    assert fake.shutdowns == 1
    with pytest.raises(ModelError, match="no adapter_config"):
        make(fake, adapter=str(tmp_path / "nowhere"))


def test_a_start_that_fails_is_one_line(make: Make) -> None:
    with pytest.raises(ModelError, match=r"vLLM cannot run model .*: no device found") as caught:
        make(Fake(start_error=RuntimeError("no device\n  found")))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("finish", ["abort", "error"])
def test_a_request_that_vllm_ends_otherwise_is_an_error_of_this_request_alone(make: Make, finish: str) -> None:
    fake = Fake(finish=finish)
    engine = make(fake)
    reply = _one(engine, _request())
    assert (reply.finish, reply.text, reply.n_requests) == ("error", "", 1)
    assert finish in reply.error
    fake.finish = None
    assert _one(engine, _request()).finish == "stop"


def test_a_request_that_fails_leaves_the_others_alone_and_a_second_stage_that_fails_is_an_error_too(
    make: Make, tokenizer: Any
) -> None:
    bad = tokenizer.encode("bad")

    def say(prompt: list[int], params: dict[str, Any]) -> list[int]:
        if params["max_tokens"] == 13:
            raise ValueError("cannot\ndo this")
        return [*bad, END]

    engine = make(Fake(say))
    whole, refused, half = engine.generate(
        [_request(), _request(max_tokens=13), _request(max_tokens=13, think_tokens=5)], GREEDY
    )
    assert whole.finish == "stop"
    assert (refused.finish, refused.error, refused.n_requests) == ("error", "vLLM: cannot do this", 1)
    assert (half.finish, half.text, half.n_requests) == ("error", "", 2)
    assert half.completion_tokens == len(bad) + 1


def test_a_dead_vllm_is_an_error_for_all_and_is_not_asked_again(make: Make) -> None:
    def say(prompt: list[int], params: dict[str, Any]) -> list[int]:
        raise DeadError("the core\nis gone")

    fake = Fake(say)
    engine = make(fake)
    futures = [engine.submit(_request(str(i)), GREEDY) for i in range(5)]
    for future in futures:
        with pytest.raises(ModelError, match=r"^vLLM died: the core is gone$"):
            future.result(timeout=10)
    asked = len(fake.asked)
    with pytest.raises(ModelError, match="vLLM died"):
        _one(engine, _request())
    assert len(fake.asked) == asked


def test_closing_ends_vllm_once(make: Make) -> None:
    fake = Fake()
    engine = make(fake)
    engine.close()
    engine.close()
    assert fake.shutdowns == 1


def test_the_ends_are_the_models_and_the_tokenizers(make: Make, tiny_chat_folder: Path, tokenizer: Any) -> None:
    """As the transformers engine ends replies."""
    from treeagent.infer.engines.transformers import end_ids

    fake = Fake()
    _one(make(fake), _request())
    model = models.load_weights(str(tiny_chat_folder), dtype="fp32", device="cpu")
    assert fake.asked[0][1]["stop_token_ids"] == list(end_ids(model, tokenizer))


def test_without_the_package_it_says_what_to_install(tiny_chat_folder: Path, tokenizer: Any) -> None:
    import importlib.util

    if importlib.util.find_spec("vllm") is not None:
        pytest.skip("vllm is installed")
    with pytest.raises(ModelError, match=r"pip install 'treeagent\[vllm\]'"):
        Vllm(str(tiny_chat_folder), tokenizer)
