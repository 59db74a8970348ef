"""How close the driver keeps a server to its limit, and what a call costs here.

    python benchmarks/driver.py

A local server answers every call after a fixed time, a fixed number at once; MemAgent reads documents of eight sections
through the observer `treeagent`, so a rollout makes nine calls. Printed: wall time by the ideal one (calls x latency /
concurrency), and the CPU time of this process for a call: prompts, spans, HTTP and scheduling, everything but the
server and the workers that cut documents. Documents are cut before the clock starts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from treeagent.data.rollout import Example, Reference
from treeagent.data.tokens import Tokenizer, default_tokenizer, load_tokenizer
from treeagent.infer import agents
from treeagent.infer.documents import Documents
from treeagent.infer.engines import Sampling
from treeagent.infer.engines.openai_server import OpenAI
from treeagent.infer.engines.options import OpenAIOptions
from treeagent.infer.environment import MemoryEnv
from treeagent.infer.run import drive

SECTIONS = 8


@contextmanager
def server(latency: float, concurrency: int) -> Iterator[str]:
    """The base URL of a running server."""
    words = [sys.executable, str(Path(__file__).with_name("fake_server.py")), "--latency", str(latency)]
    words += ["--concurrency", str(concurrency)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


def examples(count: int, tokenizer: Tokenizer, budget: int) -> list[Example]:
    """Documents of `SECTIONS` sections of about `budget` tokens each, no two alike."""
    towns = 10 * budget * 19 // 20 // tokenizer.count(json.dumps([{"town": "Town 100-5-20", "people": 12345}] * 10))
    made = []
    for i in range(count):
        parts = {
            f"part{k}": [{"town": f"Town {100 + i}-{k}-{10 + j}", "people": 10_000 + i * k + j} for j in range(towns)]
            for k in range(SECTIONS)
        }
        question = f"How many people live in Town {100 + i}-3-12?"
        made.append(Example(json.dumps(parts), "json", question, Reference((str(10_002 + i * 3),), "number")))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollouts", type=int, default=256)
    parser.add_argument("--latency", type=float, default=0.5, help="seconds that a call takes in the server")
    parser.add_argument("--concurrency", type=int, default=64, help="calls that the server answers at once")
    parser.add_argument("--budget", type=int, default=500, help="tokens of a section")
    given = parser.parse_args()
    tokenizer = load_tokenizer(default_tokenizer())
    agent = agents.build("memagent", tokenizer=tokenizer)
    with server(given.latency, given.concurrency) as url:
        options = OpenAIOptions(base_url=(url,), concurrency=2 * given.concurrency)
        with (
            Documents(tokenizer, given.budget, capacity=given.rollouts, workers=2) as documents,
            OpenAI(options, model="fake", count=tokenizer.count) as engine,
        ):
            environment = MemoryEnv(agent, "treeagent", tokenizer, documents=documents, prompts=False)
            tasks = examples(given.rollouts, tokenizer, given.budget)
            for future in [documents.readings(task.context, task.format) for task in tasks]:
                future.result()
            wall, cpu = time.perf_counter(), time.process_time()
            done = dict(drive((environment.rollout(task) for task in tasks), engine, Sampling()))
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    failed = sum(bool(rollout.failure) for rollout in done.values())
    calls = sum(len(rollout.calls) for rollout in done.values())
    ideal = calls * given.latency / given.concurrency
    print(f"{len(done)} rollouts, {calls} calls, {failed} failed")
    print(f"wall {wall:.2f} s, ideal {ideal:.2f} s: {wall / ideal:.3f}")
    print(f"CPU {1000 * cpu / calls:.2f} ms a call")


if __name__ == "__main__":
    main()
