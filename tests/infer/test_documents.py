"""Documents are cut once, here or in another process, to the same sections."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path

import pytest
from treeagent.data.formats import parse
from treeagent.data.tokens import Tokenizer, load_tokenizer
from treeagent.errors import ParseError, RunError
from treeagent.infer import agents, observe
from treeagent.infer.documents import Documents
from treeagent.infer.reading import Readings

TEXT = json.dumps({"towns": [{"name": f"Town {i}", "people": i * 1000} for i in range(40)], "note": "x " * 300})
PAGE = "<!doctype html><title>Towns</title><ul>" + "<li>Town <b>A</b> of <i>many</i> people</li>" * 30 + "</ul>"
DEEP = "[" * 700 + "1" + "]" * 700


@pytest.fixture(scope="module")
def tokenizer(tiny_chat_folder: Path) -> Tokenizer:
    return load_tokenizer(str(tiny_chat_folder))


def _shown(kind: str, cut: Readings, tokenizer: Tokenizer) -> list[tuple[str, str]]:
    observer = observe.over(kind, cut, tokenizer)
    for t in range(observer.n - 1):
        observer.commit(t, f"Town {t} is known. people many")
    return [(observer.text(t), observer.observe(t, "How many people in Town 7?")) for t in range(observer.n)]


def test_a_document_is_cut_once_by_text_and_format(tokenizer: Tokenizer) -> None:
    documents = Documents(tokenizer, 100, capacity=2)
    first = documents.readings(TEXT, "json")
    assert documents.readings("".join(TEXT), "json") is first
    assert documents.readings(TEXT, "yaml") is not first
    assert documents.readings(TEXT, "json") is first
    documents.readings("[1]", "json")
    assert documents.readings(TEXT, "json") is first
    documents.readings("[1]", "json")
    documents.readings("[2]", "json")
    assert documents.readings(TEXT, "json") is not first


@pytest.mark.slow
def test_workers_cut_as_this_process_does(tokenizer: Tokenizer) -> None:
    texts = [
        (TEXT, "json"),
        (DEEP, "json"),
        (PAGE, "html"),
        ("a: [1, 2]\nb: x\n", "yaml"),
        ("let a = [1];", "javascript"),
    ]
    here = Documents(tokenizer, 50)
    with Documents(tokenizer, 50, workers=2) as elsewhere:
        futures = [elsewhere.readings(*text) for text in texts]
        for text, future in zip(texts, futures, strict=True):
            expected, cut = here.readings(*text).result(), future.result(60)
            for kind in observe.KINDS:
                assert _shown(kind, cut, tokenizer) == _shown(kind, expected, tokenizer)
                observer, other = observe.over(kind, cut, tokenizer), observe.over(kind, expected, tokenizer)
                assert [observer.section(t) for t in range(observer.n)] == [other.section(t) for t in range(other.n)]
            assert cut["tree"].text is text[0]
        with pytest.raises(ParseError, match="line 1, column 2"):
            elsewhere.readings("{oops", "json").result(60)


@pytest.mark.slow
def test_a_worker_that_dies_is_an_error_and_no_hang(tokenizer: Tokenizer) -> None:
    with Documents(tokenizer, 50, workers=1) as documents:
        documents.readings(TEXT, "json").result(60)
        assert documents._pool is not None
        for worker in documents._pool._processes:
            os.kill(worker, signal.SIGKILL)
        failing: Future[Readings] = documents.readings("[1]", "json")
        with pytest.raises(RunError, match="process that cuts documents died"):
            failing.result(60)
        with pytest.raises(RunError, match="process that cuts documents died"):
            documents.readings("[2]", "json").result(60)


KILLED = """
import os, sys
from treeagent.data.tokens import load_tokenizer
from treeagent.infer.documents import Documents

if __name__ == "__main__":
    with Documents(load_tokenizer(sys.argv[1]), 50, workers=1) as documents:
        documents.readings("[1, 2]", "json").result(60)
        os.kill(os.getpid(), 9)
"""


@pytest.mark.slow
def test_workers_end_with_a_process_that_was_killed(tiny_chat_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "killed.py").write_text(KILLED)
    words = [sys.executable, str(tmp_path / "killed.py"), str(tiny_chat_folder)]
    # The worker holds the pipe too, which ends only with it.
    assert subprocess.run(words, stdout=subprocess.PIPE, timeout=60).returncode == -signal.SIGKILL


def test_what_is_derived_from_sections_is_shared_by_those_who_read_them(tokenizer: Tokenizer) -> None:
    document = parse(TEXT, "json")
    one, two, flat = (
        observe.build(kind, document, tokenizer=tokenizer, budget=50) for kind in ("tree", "treeagent", "flat")
    )
    one.shared["index"] = "made once"
    assert two.shared == {"index": "made once"}
    assert flat.shared == {}


@pytest.mark.slow
def test_workers_send_what_agents_derive_from_the_sections(tokenizer: Tokenizer) -> None:
    agent = agents.build("infmem", tokenizer=tokenizer)
    with Documents(tokenizer, 50, workers=1, agents=[agent]) as documents:
        cut = documents.readings(TEXT, "json").result(60)
    here = Documents(tokenizer, 50).readings(TEXT, "json").result()
    for name, reading in cut.items():
        ((key, index),) = reading.shared.items()
        texts = [here[name].source(t) for t in range(len(here[name].sections))]
        expected = agent.derive(texts)[key]
        assert index.texts == expected.texts
        assert index.search("Town 7", 8, "?", 0) == expected.search("Town 7", 8, "?", 0)
        assert not here[name].shared
