"""Evaluation as a whole: what is stored, what is owed after a stop, and that stopping leaves no mark on the results."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from benchmark_folder import write
from rich.console import Console
from treeagent import config as recipes
from treeagent.data.rollout import Example, Reference, Reply, Request
from treeagent.data.tokens import load_tokenizer
from treeagent.errors import ConfigError, InputError, ModelError, RunError
from treeagent.infer import agents
from treeagent.infer.backend import Backend, backend_of
from treeagent.infer.config import Benchmark, EvaluateConfig
from treeagent.infer.engines import Background, Batched, Sampling
from treeagent.infer.evaluate import evaluate
from treeagent.infer.report import report
from treeagent.infer.store import read_results, read_run

ROOT = Path(__file__).parents[2]


def _examples() -> list[Example]:
    """Five documents over two tasks; the last two are the same."""
    examples = []
    for i in range(4):
        cities = [{"name": f"Town {k}", "people": k * 10 + i} for k in range(4 + i)]
        reference = Reference((str(20 + i),), "number")
        example = Example(json.dumps(cities), "json", f"How many people live in Town 2? ({i})", reference)
        examples.append(dataclasses.replace(example, task=("field", "count")[i % 2], length=64, base_id=f"b{i}"))
    return [*examples, examples[-1]]


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("benchmark")
    write(folder, _examples())
    return folder


@pytest.fixture
def settings(benchmark: Path, tmp_path: Path) -> EvaluateConfig:
    return EvaluateConfig(
        out=str(tmp_path / "run"),
        benchmark=Benchmark(folder=str(benchmark)),
        observers=("flat", "treeagent"),
        budget=40,
        batch_size=2,
        workers=0,
    )


class Fickle(Batched):
    """Its replies depend on the whole batch, as 16-bit arithmetic makes them; after `patience` calls it is stopped."""

    def __init__(self, patience: int = 10**9) -> None:
        super().__init__()
        self.patience, self.calls = patience, 0

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Reply]:
        self.calls += 1
        if self.calls > self.patience:
            raise KeyboardInterrupt
        prompts = [request.messages[0]["content"] for request in requests]
        said = hashlib.sha256("\0".join(prompts).encode()).hexdigest()[:6]
        return [
            Reply(f"{said}. Therefore, the answer is {20 + int(said, 16) % 4}", prompt_tokens=len(prompt))
            for prompt in prompts
        ]


@pytest.fixture
def backend(tiny_chat_folder: Path) -> Callable[..., Backend]:
    tokenizer = load_tokenizer(str(tiny_chat_folder))

    def make(engine: Any = None, **identity: Any) -> Backend:
        return Backend(tokenizer, lambda: {"model": "fickle"} | identity, lambda: engine or Fickle())

    return make


def _evaluate(config: EvaluateConfig, backend: Backend) -> str:
    out = io.StringIO()
    evaluate(config, Console(file=out, width=160), backend)
    return out.getvalue()


def _table(config: EvaluateConfig) -> str:
    """What `treeagent report` prints, without its title, which is the folder."""
    out = io.StringIO()
    report([config.out], Console(file=out, width=160))
    return "\n".join(out.getvalue().splitlines()[2:])


def _bytes(config: EvaluateConfig) -> bytes:
    return (Path(config.out) / "results.jsonl").read_bytes()


def test_every_agent_observer_and_example_has_one_result(settings: EvaluateConfig, backend: Any) -> None:
    _evaluate(settings, backend())
    rows = read_results(Path(settings.out))
    keys = [example.key for example in _examples()]
    wanted = {("memagent", observer, key, i == 4) for observer in ("flat", "treeagent") for i, key in enumerate(keys)}
    assert {(row["agent"], row["observer"], row["key"], bool(row["copy"])) for row in rows} == wanted
    assert len(rows) == 10


def test_a_result_holds_what_the_report_and_a_reader_need(settings: EvaluateConfig, backend: Any) -> None:
    class Knows(Fickle):
        def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Reply]:
            return [
                Reply(
                    "Therefore, the answer is **21**.",
                    "length",
                    forced_close=True,
                    n_requests=2,
                    prompt_tokens=9,
                    completion_tokens=4,
                )
                for _ in requests
            ]

    _evaluate(settings, backend(Knows()))
    row = next(row for row in read_results(Path(settings.out)) if row["base_id"] == "b1" and row["observer"] == "flat")
    sections = row["sections"]
    assert sections > 1
    assert row == {
        "agent": "memagent",
        "observer": "flat",
        "key": _examples()[1].key,
        "copy": 0,
        "task": "count",
        "format": "json",
        "length": 64,
        "base_id": "b1",
        "score": 1.0,
        "values": ["21"],
        "answer": "Therefore, the answer is **21**.",
        "failure": "",
        "calls": sections + 1,
        "requests": 2 * (sections + 1),
        "input_tokens": 9 * (sections + 1),
        "output_tokens": 4 * (sections + 1),
        "cut_replies": sections + 1,
        "forced_closes": sections + 1,
        "sections": sections,
        "stopped_at": None,
        "flags": {"valid_interaction": False, "memory_complete": False},
        "notes": {"wrapper_tokens": 0, "oversize": 0},
    }


def test_stopped_anywhere_and_resumed_equals_uninterrupted_byte_for_byte(
    settings: EvaluateConfig, backend: Any, tmp_path: Path
) -> None:
    whole = dataclasses.replace(settings, out=str(tmp_path / "whole"))
    engine = Fickle()
    _evaluate(whole, backend(engine))
    for patience in range(0, engine.calls, 3):
        stopped = dataclasses.replace(settings, out=str(tmp_path / f"stopped{patience}"))
        with pytest.raises(KeyboardInterrupt):
            _evaluate(stopped, backend(Fickle(patience)))
        printed = _evaluate(stopped, backend())
        assert _bytes(stopped) == _bytes(whole)
        assert _table(stopped) == _table(whole)
        assert _table(stopped) in printed


class Server(Background):
    """Answers by the prompt alone, in no order; stopped after `patience` requests."""

    def __init__(self, patience: int = 10**9) -> None:
        super().__init__()
        self.patience, self.calls = patience, 0

    async def answer(self, request: Request, sampling: Sampling) -> Reply:
        self.calls += 1
        if self.calls > self.patience:
            raise ModelError("the server is gone")
        said = hashlib.sha256(request.messages[0]["content"].encode()).digest()[0]
        await asyncio.sleep(said / 1e5)
        return Reply(f"{said}. Therefore, the answer is {20 + said % 4}", prompt_tokens=said)


def test_rollouts_of_a_server_end_in_any_order_and_resume_to_the_same_report(
    settings: EvaluateConfig, backend: Any, tmp_path: Path
) -> None:
    served = dataclasses.replace(settings, engine="openai", model="m", batch_size=8, rollouts=3, workers=1)
    whole = dataclasses.replace(served, out=str(tmp_path / "whole"))
    engine = Server()
    _evaluate(whole, backend(engine))
    stopped = dataclasses.replace(served, out=str(tmp_path / "stopped"))
    for patience in (0, engine.calls // 2):
        with pytest.raises(ModelError, match="gone"):
            _evaluate(stopped, backend(Server(patience)))
    assert 0 < len(read_results(Path(stopped.out))) < 10
    rest = Server()
    _evaluate(dataclasses.replace(stopped, rollouts=1), backend(rest))
    assert rest.calls < engine.calls
    assert sorted(_bytes(stopped).splitlines()) == sorted(_bytes(whole).splitlines())
    assert _table(stopped) == _table(whole)


def test_any_torn_tail_is_done_again_to_the_same_bytes(settings: EvaluateConfig, backend: Any) -> None:
    _evaluate(settings, backend())
    whole, path = _bytes(settings), Path(settings.out) / "results.jsonl"
    tail = whole[:-1].rindex(b"\n", 0, whole[:-1].rindex(b"\n"))
    for cut in [0, *range(tail - 2, len(whole), 97), len(whole) - 1]:
        path.write_bytes(whole[:cut])
        _evaluate(settings, backend())
        assert path.read_bytes() == whole


def test_a_finished_run_asks_for_no_engine_and_prints_the_same_table(settings: EvaluateConfig, backend: Any) -> None:
    first = _evaluate(settings, backend())

    def none_left() -> Any:
        raise AssertionError("there is nothing left to do")

    again = _evaluate(settings, dataclasses.replace(backend(), engine=none_left))
    assert again.splitlines() == first.splitlines()[-len(again.splitlines()) :]


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"budget": 41}, "budget"),
        ({"batch_size": 3}, "batch_size"),
        ({"observers": ("flat",)}, "observers"),
        ({"agents": {"memagent": {"max_tokens": 9}}}, r"agents\.memagent\.max_tokens"),
        ({"agents": {"memagent": {"answer_format": "boxed"}}}, r"prompts\.memagent"),
        ({"sampling": Sampling(temperature=1.0)}, r"sampling\.temperature"),
    ],
)
def test_other_settings_are_another_run(
    settings: EvaluateConfig, backend: Any, changes: dict[str, Any], key: str
) -> None:
    _evaluate(settings, backend())
    with pytest.raises(RunError, match=key):
        _evaluate(dataclasses.replace(settings, **changes), backend())


def test_other_contents_are_another_run_and_other_places_are_not(
    settings: EvaluateConfig, backend: Any, tmp_path: Path
) -> None:
    _evaluate(settings, backend())
    with pytest.raises(RunError, match="other model:"):
        _evaluate(settings, backend(model="another"))
    write(tmp_path / "moved", _examples())
    moved = dataclasses.replace(settings, benchmark=Benchmark(folder=str(tmp_path / "moved")), traces=True)
    _evaluate(moved, backend())
    write(tmp_path / "moved", _examples()[1:])
    with pytest.raises(RunError, match=r"benchmark\.examples"):
        _evaluate(moved, backend())


def test_failed_calls_score_0_and_are_listed_with_their_reason(settings: EvaluateConfig, backend: Any) -> None:
    class Failing(Fickle):
        def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Reply]:
            replies = super().generate(requests, sampling)
            over = Reply("", "overflow", n_requests=0, error="too long")
            return [
                over if "(1)" in r.messages[0]["content"] and r.section == 1 else reply
                for r, reply in zip(requests, replies, strict=True)
            ]

    printed = _evaluate(settings, backend(Failing()))
    failed = [row for row in read_results(Path(settings.out)) if row["failure"]]
    assert {(row["base_id"], row["failure"], row["score"], row["answer"], row["calls"]) for row in failed} == {
        ("b1", "overflow", 0.0, "", 1)
    }
    lines = [json.loads(line) for line in (Path(settings.out) / "failures.jsonl").read_text().splitlines()]
    assert [(line["observer"], line["section"], line["error"]) for line in lines] == [
        ("flat", 1, "too long"),
        ("treeagent", 1, "too long"),
    ]
    assert "0 errors, 2 beyond the request limit" in printed


def test_a_document_that_is_none_names_its_example_and_loses_nothing(
    settings: EvaluateConfig, backend: Any, tmp_path: Path
) -> None:
    broken = dataclasses.replace(_examples()[2], context='{"a": }')
    write(tmp_path / "broken", [*_examples()[:2], broken])
    config = dataclasses.replace(settings, benchmark=Benchmark(folder=str(tmp_path / "broken")))
    with pytest.raises(InputError, match=f"example {broken.key} .*not valid json: line 1, column 7"):
        _evaluate(config, backend())
    assert len(read_results(Path(config.out))) == 4


def test_traces_show_every_prompt_and_reply(settings: EvaluateConfig, backend: Any) -> None:
    class Telling(Fickle):
        def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Reply]:
            ids = {"prompt_ids": (1, 2), "completion_ids": (3, 4), "logprobs": (-0.5, -0.25)}
            return [dataclasses.replace(reply, **ids) for reply in super().generate(requests, sampling)]

    _evaluate(dataclasses.replace(settings, traces=True), backend(Telling()))
    for row in read_results(Path(settings.out)):
        name = f"{row['agent']}.{row['observer']}.{row['key']}.{row['copy']}.jsonl"
        head, *calls = [json.loads(line) for line in (Path(settings.out) / "calls" / name).read_text().splitlines()]
        assert head["prompts"] == agents.build("memagent", tokenizer=None).prompts_hash
        assert [call["kind"] for call in calls] == ["memory"] * row["sections"] + ["answer"]
        assert calls[-1]["text"] == row["answer"]
        assert calls[0]["messages"][0]["content"].endswith("Updated memory:\n")
        assert (calls[0]["prompt_ids"], calls[0]["completion_ids"]) == ([1, 2], [3, 4])
        assert calls[0]["logprobs"] == [-0.5, -0.25]


def test_the_run_folder_holds_a_recipe_that_is_the_run(settings: EvaluateConfig, backend: Any) -> None:
    _evaluate(settings, backend())
    assert recipes.load(EvaluateConfig, Path(settings.out) / "config.yaml") == settings
    about = read_run(Path(settings.out))
    assert about["identity"]["tokenizer"] == backend().tokenizer.fingerprint
    assert about["examples"] == 5


def test_a_local_model_is_evaluated_and_resumed(settings: EvaluateConfig, tiny_chat_folder: Path) -> None:
    local = dataclasses.replace(
        settings, model=str(tiny_chat_folder), dtype="fp32", device="cpu", agents={"memagent": {"max_tokens": 8}}
    )
    out = io.StringIO()
    evaluate(local, Console(file=out))
    whole = _bytes(local)
    assert all(0 < row["output_tokens"] <= 8 * row["calls"] for row in read_results(Path(local.out)))
    (Path(local.out) / "results.jsonl").write_bytes(whole[: len(whole) // 2])
    evaluate(local, Console(file=out))
    assert _bytes(local) == whole


def test_an_adapter_is_part_of_the_identity_and_is_checked_first(
    settings: EvaluateConfig, tiny_chat_folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match=r"no adapter_config.json"):
        backend_of(dataclasses.replace(settings, model=str(tiny_chat_folder), adapter=str(tmp_path)))
    (tmp_path / "adapter_config.json").write_text("{}")
    tuned = backend_of(dataclasses.replace(settings, model=str(tiny_chat_folder), adapter=str(tmp_path)))
    plain = backend_of(dataclasses.replace(settings, model=str(tiny_chat_folder)))
    assert tuned.identity()["model"] == plain.identity()["model"]
    assert plain.identity()["adapter"] is None
    assert tuned.identity()["adapter"]


def test_a_model_that_only_the_server_knows_asks_for_a_tokenizer(settings: EvaluateConfig, tmp_path: Path) -> None:
    served = dataclasses.replace(settings, engine="openai", model=str(tmp_path / "alias.gguf"), batch_size=8)
    with pytest.raises(ModelError, match=r"^set tokenizer: the server's name of the model .*alias"):
        backend_of(served)
    with pytest.raises(ModelError, match=r"^(?!set tokenizer).*other"):
        backend_of(dataclasses.replace(served, tokenizer=str(tmp_path / "other.gguf")))


def test_the_demo_recipe_begins_with_its_command_and_loads() -> None:
    path = ROOT / "configs" / "eval" / "demo.yaml"
    lines = path.read_text().splitlines()
    assert lines[0] == "# treeagent evaluate configs/eval/demo.yaml"
    assert lines[1].startswith(lines[0] + " --")
    demo = recipes.load(EvaluateConfig, path, lines[1].removeprefix(lines[0]).split())
    assert demo.observers == ("flat", "tree", "tree+path", "treeagent")
    assert (demo.budget, demo.dtype, demo.batch_size, demo.agents) == (512, "bf16", 8, {"memagent": {"max_tokens": 48}})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--budget", "15"], "the least is 16"),
        (["--observers", "[flat, treeagnt]"], "did you mean treeagent"),
        (["--observers", "[flat, flat]"], "named twice"),
        (["--observers", "[]"], "name at least one"),
        (["--agents.memagent.max_tokns", "48"], "did you mean max_tokens"),
        (["--agents", "{memagnt: {}}"], "did you mean memagent"),
        (["--sampling.top_p", "0"], "sampling.top_p"),
        (["--sampling.top_k", "5"], "do nothing without sampling.temperature"),
        (["--batch_size", "0"], "the least is 1"),
        (["--engine", "vlm"], "did you mean vllm"),
        (["--engine", "openai", "--dtype", "fp32"], "dtype does nothing with engine openai"),
        (["--engine", "openai"], "engine openai needs a tokenizer"),
        (["--engine", "openai", "--model", "m", "--batch_size", "4"], "does nothing with this engine: set rollouts"),
        (["--engine", "vllm", "--openai.retries", "4"], "openai does nothing with engine vllm"),
        (["--vllm.enforce_eager", "true"], "vllm does nothing with engine transformers"),
        (["--rollouts", "4"], "rollouts does nothing with padded batches: set batch_size"),
        (["--batching", "continuous", "--batch_size", "4"], "batch_size does nothing"),
        (["--tokenizer", "x"], "tokenizer does nothing with engine transformers"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_runs(options: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        recipes.load(EvaluateConfig, None, ["--out", "x", "--benchmark.folder", "y", *options])
