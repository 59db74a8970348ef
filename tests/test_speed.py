"""The structure part of a document of a million tokens costs less than reading it once with the tokenizer.

CPU time in one process, so that other work on the machine matters little; the limits are those of the design with
30 % slack.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from treeagent.data.tokens import default_tokenizer, load_tokenizer

SLACK = 1.3


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    path = Path(__file__).parents[1] / "benchmarks" / "sectioning.py"
    spec = importlib.util.spec_from_file_location("sectioning_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "limit"), [("tokenizer", 0.75), ("tiktoken", 0.30)])
def test_a_million_tokens_cost_a_fraction_of_one_plain_pass(benchmark: ModuleType, engine: str, limit: float) -> None:
    tokenizer = load_tokenizer(default_tokenizer(), engine=engine)  # pyright: ignore[reportArgumentType]
    benchmark._whole("[1]", tokenizer)
    text = benchmark.document(1_048_576, "indented", tokenizer)
    cost = benchmark.measure(text, tokenizer._hf, tokenizer, repeat=2)
    assert 1_000_000 < cost.tokens < 1_100_000
    assert cost.ratio <= limit * SLACK
    assert cost.memory <= 300


@pytest.mark.slow
def test_cost_grows_no_faster_than_the_document(benchmark: ModuleType) -> None:
    tokenizer = load_tokenizer(default_tokenizer(), engine="tiktoken")
    benchmark._whole("[1]", tokenizer)
    small, large = (
        benchmark.measure(benchmark.document(size, "compact", tokenizer), tokenizer._hf, tokenizer, repeat=2)
        for size in (65_536, 1_048_576)
    )
    assert large.whole / small.whole <= SLACK * large.tokens / small.tokens
