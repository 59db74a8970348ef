"""Reads every document under a folder in sections, and checks what a reader relies on.

python benchmarks/corpus.py DIR [--tokenizer T] [--budgets 64 512 5000] [--format F]

A row a file: tokens, sections at each budget, and for files of 100 KB or more the CPU time of the structure part
relative to one plain pass of the tokenizer. A file that is not of its format is listed with the line and column where
it breaks. Violations are printed in full and make the exit status 1. They are named as the properties they break:

P1 spans and gaps are the document; P2 in order; P3 a subtree that fits is in one section; P4 none is over budget but
an indivisible leaf, and the stored count is that of the slice; P6 every step of a path is unique among siblings; P8
the budget is in [C, 2C-1]; P9 a second reading gives the same; P10 no unit of a split text is cut.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from rich.console import Console
from rich.table import Table
from treeagent.data.formats import SUFFIXES, parse, read_text
from treeagent.data.tokens import Tokenizer, default_tokenizer, load_tokenizer
from treeagent.data.tree import Document, Node
from treeagent.errors import InputError, ParseError
from treeagent.infer.plan import Plan, plan_document

LARGE = 100_000  # bytes from which the relative cost is worth measuring
MOST_NODES = 20_000  # nodes of a document that are checked one by one


@dataclass
class Finding:
    """What one file gave: sections by budget, relative cost, violations; or why it was refused."""

    path: Path
    tokens: int = 0
    sections: list[int] = field(default_factory=list)
    cost: float | None = None
    refused: str = ""
    violations: list[str] = field(default_factory=list)


def examine(path: Path, format: str, tokenizer: Tokenizer, budgets: list[int]) -> Finding:
    """Reads one file at every budget and checks each plan."""
    found = Finding(path)
    try:
        text = read_text(str(path), format)
        document = parse(text, format)
    except (ParseError, InputError) as error:
        found.refused = str(error).removeprefix(f"{path}: ")
        return found
    for budget in budgets:
        plan = plan_document(document, tokenizer, budget=budget)
        found.tokens = plan.document_tokens
        found.sections.append(len(plan.sections))
        again = plan_document(parse(text, format), tokenizer, budget=budget)
        broken = [
            *violations(plan, tokenizer, budget),
            *(() if same(plan, again) else ("P9: a second reading differs",)),
        ]
        found.violations += [f"C={budget}: {what}" for what in broken]
    if path.stat().st_size >= LARGE:
        found.cost = cost(text, format, tokenizer, budgets[-1])
    return found


def violations(plan: Plan, tokenizer: Tokenizer, base: int) -> Iterator[str]:
    """The properties that a plan breaks, each with the first place where it does."""
    text, sections = plan.document.text, plan.sections
    edges = [0, *(edge for s in sections for edge in (s.start, s.end)), len(text)]
    for before, after in pairwise(edges):
        if before > after:
            yield f"P1/P2: {before} comes before {after}"
            break
    counted = tokenizer.count_all([text[s.start : s.end] for s in sections])
    for section, tokens in zip(sections, counted, strict=True):
        if section.tokens != tokens:
            yield f"P4: section {section.index} has {tokens} tokens, {section.tokens} were stored"
        if tokens > plan.budget and not section.oversize:
            yield f"P4: section {section.index} is over budget"
        if section.oversize and section.place is not None and section.place.n_children:
            yield f"P4: section {section.index} is over budget and could be opened"
    if not base <= plan.budget <= 2 * base - 1:
        yield f"P8: budget {plan.budget}"
    yield from _split_units(plan)
    yield from _whole_subtrees(plan, tokenizer)
    yield from _steps(plan)


def _split_units(plan: Plan) -> Iterator[str]:
    for section in plan.sections:
        if section.kind != "text" or section.place is None:
            continue
        leaf = plan.document.leaf_text(section.place)
        for start, end in zip(leaf.unit_starts, leaf.unit_ends, strict=True):
            if start < section.start < end or start < section.end < end:
                yield f"P10: section {section.index} cuts {plan.document.text[start:end]!r}"
                return


def _whole_subtrees(plan: Plan, tokenizer: Tokenizer) -> Iterator[str]:
    text = plan.document.text
    starts = [s.start for s in plan.sections]
    nodes = list(_nodes(plan.document))
    for node, tokens in zip(nodes, tokenizer.count_all([text[n.start : n.end] for n in nodes]), strict=True):
        if tokens <= plan.budget and node.start < node.end:
            cuts = sum(node.start < s < node.end for s in starts)
            if cuts:
                yield f"P3: {plan.document.path(node)[:80]} fits and is cut"
                return


def _nodes(document: Document) -> Iterator[Node]:
    stack, left = [document.root], MOST_NODES
    while stack and left:
        node, left = stack.pop(), left - 1
        yield node
        if node.n_children <= left:
            stack.extend(document.children(node))


def _steps(plan: Plan) -> Iterator[str]:
    seen: set[int] = set()
    for section in plan.sections:
        node = section.place
        while node is not None and node.parent is not None and node.parent.start not in seen:
            parent = node.parent
            seen.add(parent.start)
            if parent.n_children <= MOST_NODES:
                steps = Counter(plan.document.step(child) for child in plan.document.children(parent))
                twice = [step for step, times in steps.items() if times > 1]
                if twice:
                    yield f"P6: {twice[0]!r} stands twice below {plan.document.path(parent)[:80]}"
                    return
            node = parent


def same(one: Plan, other: Plan) -> bool:
    """Whether two plans print alike."""
    return [s.to_json() for s in one.sections] == [s.to_json() for s in other.sections]


def cost(text: str, format: str, tokenizer: Tokenizer, budget: int) -> float:
    """CPU time of the structure part over that of one plain pass, each the minimum of three."""
    structure = min(_seconds(lambda: plan_document(parse(text, format), tokenizer, budget=budget)) for _ in range(3))
    return structure / min(_seconds(lambda: tokenizer.encode(text)) for _ in range(3))


def _seconds(work: object) -> float:
    start = time.process_time()
    work()  # pyright: ignore[reportCallIssue]
    return time.process_time() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tokenizer", default=None, help="as for `treeagent sections`; default: the demo model's")
    parser.add_argument("--budgets", type=int, nargs="+", default=[64, 512, 5000])
    parser.add_argument("--format", default=None, help="only files of this format; default: all, by suffix")
    options = parser.parse_args()
    tokenizer = load_tokenizer(options.tokenizer or default_tokenizer(), engine="tokenizer")
    suffixes = {suffix: format for suffix, format in SUFFIXES.items() if options.format in (None, format)}
    files = sorted(p for p in options.folder.rglob("*") if p.is_file() and p.suffix.lower() in suffixes)
    findings = [examine(p, suffixes[p.suffix.lower()], tokenizer, options.budgets) for p in files]
    return show(findings, options.folder, options.budgets)


def show(findings: list[Finding], folder: Path, budgets: list[int]) -> int:
    """Prints the table and the violations; 1 if there are any."""
    console = Console(width=140)
    table = Table("file", "tokens", *(f"C={b}" for b in budgets), "cost", "", title=f"{len(findings)} files")
    for found in findings:
        counts = [f"{n:,}" for n in found.sections] or [""] * len(budgets)
        state = found.refused or ("ok" if not found.violations else f"{len(found.violations)} violations")
        ratio = "" if found.cost is None else f"{found.cost:.2f}"
        table.add_row(str(found.path.relative_to(folder)), f"{found.tokens:,}", *counts, ratio, state)
    console.print(table, markup=False)
    for found in findings:
        for what in found.violations:
            console.print(f"{found.path.relative_to(folder)}: {what}", markup=False, soft_wrap=True)
    read = [f for f in findings if not f.refused]
    worst = max((f.cost for f in read if f.cost is not None), default=0.0)
    broken = sum(bool(f.violations) for f in read)
    console.print(
        f"{len(read)} read, {len(findings) - len(read)} refused, {broken} with violations, highest cost {worst:.2f}"
    )
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
