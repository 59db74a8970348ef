"""Reads the record lists of every document under a folder, and says what questions they are good for.

python benchmarks/records.py DIR [--format F] [--tables]

A row a file: lists found, their records, tables, their fields by role (ask, condition, measure, group), CPU time, and
why lists or the document offer nothing. With --tables every table is printed with its words and fields. A crash makes
the exit status 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table as Grid
from treeagent.data.catalog import Table
from treeagent.data.formats import SUFFIXES, parse, read_text
from treeagent.data.own import File, offered
from treeagent.data.records import find
from treeagent.errors import InputError

ROLES = ("ask", "condition", "measure", "group")


@dataclass
class Finding:
    """What one file gave."""

    path: Path
    lists: int = 0
    records: int = 0
    tables: list[Table] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    refused: str = ""
    seconds: float = 0.0
    crashed: bool = False

    def role(self, role: str) -> int:
        """Fields with this role, over all tables."""
        return sum(len(table.with_role(role)) for table in self.tables)  # pyright: ignore[reportArgumentType]


def examine(path: Path, format: str) -> Finding:
    """Reads one file; a file that is not of its format is refused, anything else that goes wrong is a crash."""
    found = Finding(path)
    start = time.process_time()
    try:
        document = parse(read_text(str(path), format), format)
        lists = find(document)
        found.lists, found.records = len(lists), sum(len(one.records) for one in lists)
        seen = offered([File(path.name, format, document.text)])
        found.tables = [table for collection in seen.collections for table in collection.tables]
        found.reasons.update(left.reason.rpartition(": ")[2] for left in (*seen.left_out, *seen.refused))
    except InputError as error:
        found.refused = str(error).removeprefix(f"{path}: ")
    except Exception as error:  # every fault of ours is listed, none hides the others
        found.refused, found.crashed = f"{type(error).__name__}: {error}", True
    found.seconds = time.process_time() - start
    return found


def show(findings: list[Finding], folder: Path, with_tables: bool) -> int:
    """Prints the table and the totals; 1 if there was a crash."""
    console = Console(width=170)
    grid = Grid("file", "lists", "records", "tables", *ROLES, "seconds", "why not", title=f"{len(findings)} files")
    for found in findings:
        why = found.refused or "; ".join(f"{n}x {reason}" for reason, n in found.reasons.most_common(2))
        counts = [found.lists, found.records, len(found.tables), *(found.role(role) for role in ROLES)]
        grid.add_row(str(found.path.relative_to(folder)), *(f"{n:,}" for n in counts), f"{found.seconds:.2f}", why)
    console.print(grid, markup=False)
    for found in findings if with_tables else ():
        for table in found.tables:
            console.print(f"{found.path.relative_to(folder)} {described(table)}", markup=False, soft_wrap=True)
    reasons = sum((found.reasons for found in findings), Counter[str]())
    for reason, times in reasons.most_common(20):
        console.print(f"{times:6,} {reason}", markup=False)
    crashed = [found for found in findings if found.crashed]
    for found in crashed:
        console.print(f"CRASH {found.path}: {found.refused}", markup=False, soft_wrap=True)
    offering = [found for found in findings if found.tables]
    console.print(
        f"{len(findings)} files, {sum(bool(f.refused) for f in findings)} refused, {len(offering)} offer questions: "
        f"{sum(f.lists for f in findings):,} lists of {sum(f.records for f in findings):,} records, "
        f"{sum(len(f.tables) for f in findings):,} tables, "
        + ", ".join(f"{sum(f.role(role) for f in findings):,} {role}" for role in ROLES)
        + f"; {sum(f.seconds for f in findings):.1f} s"
    )
    return int(bool(crashed))


def described(table: Table) -> str:
    """A table in one line: what its records are called, how one is named, its fields with their roles."""
    fields = "; ".join(f"{f.name} ({f.kind}: {' '.join(sorted(f.roles))})" for f in table.fields)
    named = " + ".join(f.name for f in (table.naming, *table.qualifiers))
    return f"{table.scope.pattern} {len(table.records)} {table.plural} [{table.label}] by {named}: {fields}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--format", default=None, help="only files of this format; default: all, by suffix")
    parser.add_argument("--tables", action="store_true", help="print every table")
    options = parser.parse_args()
    suffixes = {suffix: format for suffix, format in SUFFIXES.items() if options.format in (None, format)}
    files = sorted(p for p in options.folder.rglob("*") if p.is_file() and p.suffix.lower() in suffixes)
    findings = [examine(path, suffixes[path.suffix.lower()]) for path in files]
    return show(findings, options.folder, options.tables)


if __name__ == "__main__":
    sys.exit(main())
