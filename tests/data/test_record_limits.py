"""Finding records costs no more than a document's size, however it is made."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from treeagent.data.formats import parse
from treeagent.data.records import find

CASES: dict[str, tuple[str, int, Callable[[int], str]]] = {
    "json records": ("json", 2_000, lambda n: "[" + ",".join(f'{{"a":{i},"b":{{"c":"{i}"}}}}' for i in range(n)) + "]"),
    "json lists in lists": ("json", 3_000, lambda n: "[{}," * n + "1" + "]" * n),
    "json faults": ("json", 3_000, lambda n: "[" + ",".join(['{"a":1,"a":2}'] * n) + "]"),
    "yaml aliases": ("yaml", 1_500, lambda n: "b: &b {x: 1}\nrows:\n" + "- {a: *b, c: 1}\n" * n),
    "yaml maps in maps": ("yaml", 220, lambda n: "{a: " * n + "1" + "}" * n),
    "html tables in tables": ("html", 800, lambda n: "<table><tr><td>x<td>" * n),
    "html lists in lists": ("html", 800, lambda n: "<dl><dt>a<dd>b<dt>c<dd>" * n),
    "html items in items": ("html", 800, lambda n: "<div><b class=abc>x</b><b class=abd>y</b><p>z" * n),
    "html rows": ("html", 1_500, lambda n: "<table><tr><th>A<th>B" + "<tr><td>1<td>2" * n),
    "html cells": ("html", 8_000, lambda n: "<table><tr>" + "<td>1" * n + "<tr>" + "<td>1" * n),
    "html open tags": ("html", 20_000, lambda n: "<table><tr><td>" + "<" * n),
    "javascript records": ("javascript", 800, lambda n: "x = [" + "{a: 1, b: f(2)}," * n + "]"),
    "javascript arrays in arrays": ("javascript", 1_500, lambda n: "x = " + "[" * n + "]" * n),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_time_grows_no_faster_than_a_hostile_document(name: str) -> None:
    format, size, make = CASES[name]

    def seconds(n: int) -> float:
        document = parse(make(n), format)
        start = time.process_time()
        for one in find(document):
            assert len(one.spans) == len(one.records)
        return time.process_time() - start

    seconds(size // 20)
    small = min(seconds(size) for _ in range(2))
    assert seconds(4 * size) <= 4 * 2 * small + 0.5
