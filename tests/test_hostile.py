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
    "html": {
        "nested elements": (6_000, lambda n: "<div>" * n + "x" + "</div>" * n),
        "unclosed elements": (6_000, lambda n: "<b><i>" * n + "x"),
        "misnested elements": (2_000, lambda n: "<b><div>x</b>" * n),
        "siblings": (20_000, lambda n: "<p>x</p>" * n),
        "attributes": (20_000, lambda n: "<p " + " ".join(f"a{i}=1" for i in range(n)) + ">x</p>"),
        "one text": (300_000, lambda n: "<p>" + "word " * (n // 5) + "</p>"),
        "entities": (100_000, lambda n: "<p>" + "&amp;" * (n // 5)),
        "unterminated": (100_000, lambda n: "<p><!-- " + "x" * n),
        "NUL": (100_000, lambda n: "<p>" + "\x00" * n),
    },
    "yaml": {
        "items": (20_000, lambda n: "- 1\n" * n),
        "entries": (10_000, lambda n: "".join(f"k{i}: {i}\n" for i in range(n))),
        "aliases": (
            5_000,
            lambda n: "a0: &a0 [x]\n" + "".join(f"a{i + 1}: &a{i + 1} [*a{i}, *a{i}]\n" for i in range(n)),
        ),
        "one string": (300_000, lambda n: 'a: "' + "word " * (n // 5) + '"\n'),
        "comments": (20_000, lambda n: "# x\n" * n + "a: 1\n"),
        "documents": (3_000, lambda n: "--- x\n" * n),
    },
    "javascript": {
        "nested arrays": (5_000, lambda n: "x = " + "[" * n + "]" * n),
        "elements": (20_000, lambda n: "x = [" + "1," * n + "]"),
        "initialisers": (5_000, lambda n: "".join(f"const x{i} = [{i}];\n" for i in range(n))),
        "one string": (300_000, lambda n: 'x = ["' + "word " * (n // 5) + '"]'),
        "code": (5_000, lambda n: "f(1);\n" * n),
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
    "yaml": {
        "nested flow": lambda n: "[" * n + "]" * n,
        "unterminated flow": lambda n: "[" + "a, " * n,
        "unterminated string": lambda n: 'a: "' + "x" * n,
        "NUL": lambda n: "a: " + "x" * n + "\x00",
    },
    "javascript": {
        "unterminated arrays": lambda n: "x = " + "[" * (n // 10),
        "unterminated string": lambda n: 'x = ["' + "x" * n,
        "missing commas": lambda n: "x = [" + "1 " * (n // 10) + "]",
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
