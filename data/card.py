"""The dataset card of a benchmark: the configuration that `datasets` reads, and what a person wants to know."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from .catalog import Collection, Provenance

_COLUMNS = {
    "id": "identity of the example: a hash of all that is asked and answered",
    "task, format": "what kind of question it is, and the format of the document",
    "context": "the document, in its native syntax",
    "question": "asks for the values only",
    "answers": "the reference values; of the most frequent ones, all that tie",
    "ordered": "whether the question asks for an order, in which the values then stand",
    "answer_kind": "how a value is compared: `text`, or `number` within max(0.01, 0.1 %)",
    "count": "how many values the question asks for; null where ties decide",
    "spec": "the reference specification (JSON), which gives the answers when executed over the context",
    "length": "bucket in tokens; the context fills 90 to 100 % of it under each tokenizer named above",
    "base_id": "shared by the contexts of one question at several lengths",
    "support": "where in the context the supporting records lie (or the pages, documents, statements that hold them), "
    "from 0 to 1",
    "source, license": "where the context comes from, and the licences of all that is in it",
    "sources": "source, licence and location of each part of the context, equal ones once",
}
_MOST_LISTED = 200  # rows of the attribution table


def render(manifest: Mapping[str, Any], collections: Sequence[Collection], tokenizers: Sequence[str]) -> str:
    """The text of README.md: a YAML header with `configs`, then tables."""
    splits, identity = manifest["splits"], manifest["identity"]
    files = "".join(f"  - split: {name}\n    path: {split['file']}\n" for name, split in splits.items())
    licenses = sorted({unit.provenance.license.lower() for c in collections for unit in c.units})
    total = "\n".join(
        f"| {name} | {split['rows']:,} | {', '.join(split['tasks'])} | {', '.join(map(str, split['lengths']))} |"
        for name, split in splits.items()
    )
    measured = ", ".join(
        f"{_cell(_place_free(name))} (`{fingerprint}`)"
        for name, fingerprint in zip(tokenizers, identity["tokenizers"], strict=True)
    )
    columns = "\n".join(f"| {name} | {meaning} |" for name, meaning in _COLUMNS.items())
    return f"""---
license: {licenses[0] if len(licenses) == 1 and re.fullmatch(r"[a-z0-9.-]+", licenses[0]) else "other"}
language: en
task_categories: [question-answering]
tags: [structured-data, long-context]
configs:
- config_name: {identity["format"]}
  default: true
  data_files:
{files}---

# Questions over structured documents

Made by `treeagent build` with seed {identity["seed"]}; every example passed an independent check. No record is in two
splits. Content fingerprint: `{manifest["content"]}`. Lengths are measured by {measured}.

| split | examples | tasks | lengths (tokens) |
|---|---|---|---|
{total}

| column | meaning |
|---|---|
{columns}

## Sources

| source | licence | attribution | parts |
|---|---|---|---|
{_attributions(collections)}
"""


def _attributions(collections: Sequence[Collection]) -> str:
    """One row for each source, licence and attribution; the column `sources` names every part."""
    parts = Counter(_credit(unit.provenance) for collection in collections for unit in collection.units)
    rows = [f"| {' | '.join(map(_cell, credit))} | {count:,} |" for credit, count in sorted(parts.items())]
    rest = len(rows) - _MOST_LISTED
    more = [f"| and {rest:,} more, each named in the column `sources` | | | |"] if rest > 0 else []
    return "\n".join([*rows[:_MOST_LISTED], *more])


def _credit(origin: Provenance) -> tuple[str, str, str]:
    return origin.source, origin.license, origin.attribution


def _place_free(name: str) -> str:
    """The name of a tokenizer without the folder that it lay in: a card tells no place of a machine."""
    return name if name.count("/") == 1 and not name.startswith((".", "/", "~")) else name.rsplit("/", 1)[-1]


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
