"""A look at examples: the support is highlighted, nothing of a document steers the terminal."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console
from treeagent.data.catalog import Collection
from treeagent.data.contexts import Counter
from treeagent.data.examples import Plan, generate
from treeagent.data.preview import excerpts, show
from treeagent.data.tasks import TASKS


def test_the_answer_stands_in_the_highlighted_stretch(towns: Collection, words: Counter) -> None:
    lookups = tuple(name for name in TASKS if name.endswith(("field", "fields", "records")))
    rows = list(generate(Plan("test", 2, lookups, 3, (900,), ("compact", "indented")), [towns], [words]))
    for row in rows:
        found = excerpts(row)
        each = len(row["answers"]) // len(found)
        for i, (before, support, after) in enumerate(found):
            assert all(value in support for value in row["answers"][i * each : (i + 1) * each])
            assert before + support + after in row["context"]
            assert len(support) < 1000


def test_statistics_say_tasks_lengths_answers_and_positions(towns: Collection, words: Counter) -> None:
    rows = list(generate(Plan("test", 2, tuple(TASKS), 1, (900, 1800), ("compact",)), [towns], [words]))
    console = Console(file=io.StringIO(), width=160, force_terminal=True, color_system="standard")
    show(rows, [words], console)
    assert isinstance(console.file, io.StringIO)
    said = console.file.getvalue()
    assert all(name in said for name in TASKS)
    assert "1,800" in said
    assert "supports from begin to end" in said
    assert "\x1b[30;43m" in said  # black on yellow


def test_what_a_document_says_is_shown_and_not_obeyed(words: Counter) -> None:
    row: dict[str, Any] = {
        "task": "single_field",
        "length": 10,
        "format": "html",
        "context": "<p>[red]x \x1b[31m evil \x07 [/red]</p>",
        "question": "What is [bold]\x1b]0;title\x07?",
        "answers": ["evil"],
        "support": [0.5],
        "spec": "{}",
    }
    console = Console(file=io.StringIO(), width=160, force_terminal=False)
    show([row], [words], console)
    assert isinstance(console.file, io.StringIO)
    said = console.file.getvalue()
    assert "\x1b" not in said
    assert "\x07" not in said
    assert "[red]" in said
    assert "[bold]" in said
