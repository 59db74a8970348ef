"""How fast the benchmark is built, and what a second process brings.

    python benchmarks/build.py
    python benchmarks/build.py --length 131072 --per-task 8

The offline source, all eight tasks, one length, the demo model's tokenizer; loading is not counted, starting the
processes is, and so is that each of them counts the tokens of every unit once: short runs gain less. Printed: examples
and tokens a second with one process and with several, CPU time (on a machine that has more to do, what tells), their
ratio, and whether the rows are the same.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from treeagent.data.catalog import Collection
from treeagent.data.examples import Plan, canonical
from treeagent.data.gather import load_tokenizers
from treeagent.data.making import collect, workers
from treeagent.data.sources import geonames
from treeagent.data.tasks import TASKS
from treeagent.data.tokens import Tokenizer


def measure(
    plan: Plan, processes: int, collections: Sequence[Collection], tokenizers: Sequence[Tokenizer]
) -> tuple[float, float, str]:
    """Seconds, seconds of CPU in all processes, and a fingerprint of the rows."""
    content = hashlib.sha256()
    begun, used = time.perf_counter(), sum(os.times()[:4])
    with tempfile.TemporaryDirectory() as folder, workers(processes, [plan], collections, tokenizers) as submit:
        for made in collect(plan, Path(folder), submit, processes):
            for row in made.rows:
                content.update(canonical(row))
    return time.perf_counter() - begun, sum(os.times()[:4]) - used, content.hexdigest()


def main() -> None:
    """Builds the same examples with one process and with several."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=32768, help="tokens of a context (default: 32768)")
    parser.add_argument("--per-task", type=int, default=100, help="examples of each task (default: 100)")
    parser.add_argument("--processes", type=int, default=2, help="processes to compare with one (default: 2)")
    arguments = parser.parse_args()
    plan = Plan("train", 42, tuple(TASKS), arguments.per_task, (arguments.length,), ("compact", "indented"))
    collections, tokenizers = geonames.load(), load_tokenizers(())
    total = plan.per_task * len(plan.tasks)
    seconds, contents = {}, set()
    for processes in (1, arguments.processes):
        seconds[processes], used, content = measure(plan, processes, collections, tokenizers)
        contents.add(content)
        rate = total / seconds[processes]
        print(
            f"{processes} process(es): {rate:.1f} examples/s, {rate * arguments.length:,.0f} tokens/s, CPU {used:.1f} s"
        )
    print(
        f"ratio {seconds[1] / seconds[arguments.processes]:.2f}, rows {'equal' if len(contents) == 1 else 'DIFFERENT'}"
    )


if __name__ == "__main__":
    main()
