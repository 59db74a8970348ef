"""The dataset card of a benchmark: the configuration that `datasets` reads, and what a person wants to know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .catalog import Collection

_COLUMNS = {
    "id": "identity of the example: a hash of all that is asked and answered",
    "task, format": "what kind of question it is, and the format of the document",
    "context": "the document, as a service would answer it",
    "question": "asks for the values only",
    "answers": "the reference values",
    "ordered": "whether the question asks for an order, in which the values then stand",
    "answer_kind": "how a value is compared: `text`, or `number` within max(0.01, 0.1 %)",
    "count": "how many values the question asks for",
    "spec": "the reference specification (JSON), which gives the answers when executed over the context",
    "length": "bucket in tokens; the context fills 90 to 100 % of it under each tokenizer named above",
    "base_id": "shared by the contexts of one question at several lengths",
    "support": "where in the context the supporting records lie, from 0 to 1",
    "source, license": "where the records come from",
}


def render(manifest: Mapping[str, Any], collections: Sequence[Collection]) -> str:
    """The text of README.md: a YAML header with `configs`, then tables."""
    splits = manifest["splits"]
    files = "".join(f"  - split: {name}\n    path: {split['file']}\n" for name, split in splits.items())
    licenses = sorted({collection.provenance.license.lower() for collection in collections})
    credits = sorted({collection.provenance.attribution for collection in collections})
    total = "\n".join(
        f"| {name} | {split['rows']:,} | {', '.join(split['tasks'])} | {', '.join(map(str, split['lengths']))} |"
        for name, split in splits.items()
    )
    tokenizers = ", ".join(f"`{fingerprint}`" for fingerprint in manifest["identity"]["tokenizers"])
    columns = "\n".join(f"| {name} | {meaning} |" for name, meaning in _COLUMNS.items())
    return f"""---
license: {licenses[0] if len(licenses) == 1 else "other"}
language: en
task_categories: [question-answering]
tags: [structured-data, long-context]
configs:
- config_name: json
  default: true
  data_files:
{files}---

# Questions over structured documents

Made by `treeagent build` with seed {manifest["identity"]["seed"]}; every example passed an independent check. No record
is in two splits. Content fingerprint: `{manifest["content"]}`. Lengths are measured by the tokenizers with the
fingerprints {tokenizers}.

| split | examples | tasks | lengths (tokens) |
|---|---|---|---|
{total}

| column | meaning |
|---|---|
{columns}

## Sources

{chr(10).join(f"* {credit}" for credit in credits)}
"""
