"""Reads a folder with every source, and says what each found.

python benchmarks/sources.py DIR [--only NAME ...] [--tables]

A row a source and collection: units, characters, tables, records, and the fields that questions may use, with how many
records hold a value for each of them. Below, what was left out, by reason. Nothing is fetched.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table as Grid
from treeagent.data.catalog import Collection, Table, value_at
from treeagent.data.sources import SOURCES, Skipped
from treeagent.data.sources.files import raw_files


def examine(name: str, folder: Path) -> tuple[list[Collection], Skipped, float]:
    """The source's collections, what it left out, and the CPU seconds that this took."""
    source, skipped, start = SOURCES[name], Skipped(), time.process_time()
    files = raw_files(folder, source.suffixes, skipped) if source.suffixes else []
    collections = source.read(files, skipped)
    return collections, skipped, time.process_time() - start


def problems(collection: Collection) -> list[str]:
    """What a collection must not have."""
    found = [f"unit {i} has no licence" for i, unit in enumerate(collection.units) if not unit.provenance.license]
    found += [
        f"unit {i} says not where it is from" for i, u in enumerate(collection.units) if not u.provenance.location
    ]
    for table in collection.tables:
        if len(table.unit_of) != len(table.records):
            found.append(f"{table.name}: {len(table.records)} records, {len(table.unit_of)} units of them")
        if any(not 0 <= unit < len(collection.units) for unit in table.unit_of):
            found.append(f"{table.name}: a record lies in no unit")
    return found


def filled(table: Table) -> str:
    """The fields with the share of records that hold a value."""
    parts = []
    for field in table.fields:
        held = sum(value_at(record, field.path) is not None for record in table.records)
        parts.append(f"{field.name} {100 * held // max(len(table.records), 1)} %")
    return "; ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", default=sorted(SOURCES), choices=sorted(SOURCES), metavar="NAME")
    parser.add_argument("--tables", action="store_true", help="a line for every table, with its fields")
    options = parser.parse_args()
    console = Console(width=160, highlight=False, markup=False, soft_wrap=True)
    grid = Grid("source", "units", "characters", "tables", "records", "described", "seconds")
    for name in options.only:
        collections, skipped, seconds = examine(name, options.folder)
        if not collections:
            grid.add_row(name, "0", "", "", "", "", f"{seconds:.1f}")
        for collection in collections:
            tables = collection.tables
            described = sum(table.described(i) is not None for table in tables for i in range(len(table.records)))
            numbers = (len(collection.units), sum(len(unit.text) for unit in collection.units), len(tables))
            records = sum(len(table.records) for table in tables)
            shown = [f"{n:,}" for n in (*numbers, records, described)]
            grid.add_row(collection.name, *shown, f"{seconds:.1f}")
            for problem in problems(collection):
                console.print(f"{collection.name}: {problem}")
            for table in tables if options.tables else ():
                console.print(f"{table.name} ({len(table.records)} {table.plural}) {table.label}: {filled(table)}")
        for reason, times in sorted(skipped.items()):
            console.print(f"{name}: {times:,} {reason}")
    console.print(grid)


if __name__ == "__main__":
    main()
