"""Documents made to hurt: time and memory grow no faster than the document, and what is refused is refused clearly.

Growth is compared, not seconds: four times the size may cost four times the time, with some slack for caches and noise.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import pytest
from tokenizers_at_hand import trained
from treeagent.data.formats import parse
from treeagent.data.tokens import Tokenizer, load_tokenizer
from treeagent.errors import InputError
from treeagent.infer.plan import plan_document

READ: dict[str, dict[str, tuple[int, Callable[[int], str]]]] = {
    "json": {
        "nested arrays": (20_000, lambda n: "[" * n + "]" * n),
        "nested arrays with neighbours": (3_000, lambda n: "[1," * n + "1" + "]" * n),
        "nested objects": (6_000, lambda n: '{"a":' * n + "1" + "}" * n),
        "siblings": (125_000, lambda n: "[" + ",".join(["1"] * n) + "]"),
        "empty siblings": (50_000, lambda n: "[" + ",".join(["[]"] * n) + "]"),
        "members": (20_000, lambda n: "{" + ",".join(f'"k{i}":{i}' for i in range(n)) + "}"),
        "equal keys": (20_000, lambda n: "{" + ",".join(['"k":[1]'] * n) + "}"),
        "one string": (800_000, lambda n: '"' + "word " * (n // 5) + '"'),
        "one string without blanks": (500_000, lambda n: '"' + "x" * n + '"'),
        "escapes": (100_000, lambda n: '"' + "\\ud83d\\ude00" * (n // 12) + '"'),
        "backslashes": (200_000, lambda n: '"' + "\\\\" * (n // 2) + '"'),
        "white space": (500_000, lambda n: "[" + " " * n + "1]"),
    },
}
REFUSED: dict[str, dict[str, Callable[[int], str]]] = {
    "json": {
        "unterminated arrays": lambda n: "[" * n,
        "unterminated string": lambda n: '"' + "x" * n,
        "unterminated escape": lambda n: '"' + "\\" * (2 * n + 1),
        "NUL": lambda n: '["' + "x" * n + '\x00"]',
        "closing brackets": lambda n: "[" + "]" * n,
        "missing commas": lambda n: "[" + "1 " * n + "]",
    },
}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return load_tokenizer(trained("gpt2"), engine="tokenizer")


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


@pytest.mark.slow
@pytest.mark.parametrize(("format", "name"), [(f, name) for f, cases in READ.items() for name in cases])
def test_cost_grows_no_faster_than_a_hostile_document(format: str, name: str, tokenizer: Tokenizer) -> None:
    size, make = READ[format][name]

    def read(n: int) -> None:
        plan_document(parse(make(n), format), tokenizer, budget=500)

    read(size // 50)
    small = min(seconds(lambda: read(size)) for _ in range(2))
    large = seconds(lambda: read(4 * size))
    assert large <= 4 * 2 * small + 0.5


@pytest.mark.parametrize(("format", "name"), [(f, name) for f, cases in REFUSED.items() for name in cases])
def test_what_is_broken_is_refused_in_linear_time(format: str, name: str) -> None:
    make = REFUSED[format][name]

    def refuse(n: int) -> None:
        with pytest.raises(InputError):
            parse(make(n), format)

    small = min(seconds(lambda: refuse(50_000)) for _ in range(2))
    assert seconds(lambda: refuse(200_000)) <= 4 * 2 * small + 0.5


@pytest.mark.slow
def test_memory_of_a_million_siblings_is_bounded_by_arrays_not_objects() -> None:
    text = "[" + ",".join(["1"] * 1_000_000) + "]"
    tracemalloc.start()
    document = parse(text, "json")
    document.spans(document.root)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * len(text), "bytes per character of the text"
