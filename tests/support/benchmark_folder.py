"""A benchmark folder as the design describes it, written without the builder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from treeagent.data.rollout import Example


def write(folder: Path, examples: Sequence[Example]) -> None:
    """Makes a benchmark of one split, `test`."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "id": example.key,
            "base_id": example.base_id,
            "task": example.task,
            "format": example.format,
            "length": example.length,
            "context": example.context,
            "question": example.question,
            "answers": list(example.reference.values),
            "answer_kind": example.reference.kind,
            "ordered": example.reference.ordered,
            "count": example.reference.count,
            "spec": example.spec,
            "source": "made here",
            "license": "none",
            "support": [],
        }
        for example in examples
    ]
    types = {"length": pa.int32(), "count": pa.int32(), "context": pa.large_string(), "ordered": pa.bool_()}
    lists = {"answers": pa.list_(pa.string()), "support": pa.list_(pa.float64())}
    schema = pa.schema([(name, (types | lists).get(name, pa.string())) for name in rows[0]])
    pq.write_table(pa.Table.from_pylist(rows, schema), folder / "data" / "test-00000-of-00001.parquet")
    card = "---\nconfigs:\n- config_name: default\n  data_files:\n  - split: test\n    path: data/test-*.parquet\n---\n"
    (folder / "README.md").write_text(card)
    facts = {"tasks": sorted({example.task for example in examples}), "lengths": [64]}
    (folder / "manifest.json").write_text(json.dumps({"splits": {"test": facts}}))
