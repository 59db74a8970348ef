"""A benchmark on disk: a folder of parquet files with a dataset card and a manifest, read and written here.

`load_examples` gives the examples of a split; plain `datasets.load_dataset(FOLDER)` reads the same files. A folder is
written beside its place and moved there when complete, so that half a benchmark never stands where a whole one should.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config import suggestion
from ..errors import ConfigError, InputError, RunError
from .examples import Row, canonical, example_of
from .rollout import Example

if TYPE_CHECKING:
    import pyarrow as pa

MANIFEST, CARD = "manifest.json", "README.md"
_BATCH_CHARACTERS = 8_000_000  # of contexts in one row group
_BATCH_ROWS = 256
_READ_ROWS = 16  # rows may hold megabytes each


def split_file(split: str) -> str:
    """Where a split lies in the folder."""
    return f"data/{split}-00000-of-00001.parquet"


def load_examples(
    folder: str | Path,
    split: str,
    *,
    tasks: Collection[str] | None = None,
    lengths: Collection[int] | None = None,
    limit: int | None = None,
) -> list[Example]:
    """The examples of a split in their order, of some tasks and lengths, the first `limit` of them.

    Raises InputError where folder, split, task or length are not there."""
    manifest = read_manifest(Path(folder))
    split_facts = manifest["splits"].get(split)
    if split_facts is None:
        raise InputError(f"{folder} has no split {split!r}: {suggestion(split, list(manifest['splits']))}")
    _check_known(folder, "task", tasks, split_facts["tasks"])
    _check_known(folder, "length", lengths, split_facts["lengths"])
    chosen = (
        example_of(row)
        for row in _read_rows(Path(folder) / split_file(split))
        if (tasks is None or row["task"] in tasks) and (lengths is None or row["length"] in lengths)
    )
    return list(islice(chosen, limit))


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a benchmark. Raises InputError where there is none that can be read."""
    path = folder / MANIFEST
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{folder} is no benchmark (no {MANIFEST}); make one with: treeagent build RECIPE") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def write_split(folder: Path, split: str, rows: Iterable[Row]) -> dict[str, Any]:
    """Writes a split's parquet file; returns its facts for the manifest. Bytes depend on rows and library alone."""
    pq = _parquet()
    path = folder / split_file(split)
    path.parent.mkdir(parents=True, exist_ok=True)
    content, tasks, lengths, count = hashlib.sha256(), set[str](), set[int](), 0
    schema = _schema()
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in _batches(rows):
            writer.write_table(_table(batch, schema))
            for row in batch:
                content.update(canonical(row))
                tasks.add(row["task"])
                lengths.add(row["length"])
            count += len(batch)
    return {
        "rows": count,
        "tasks": sorted(tasks),
        "lengths": sorted(lengths),
        "content": content.hexdigest(),
        "file": split_file(split),
        "sha256": _digest(path),
    }


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_text(path: Path, text: str) -> None:
    """Writes a file and makes sure that it is on disk."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def unfinished(out: Path, identity: str) -> Iterator[Path]:
    """The folder beside `out` where the benchmark of this identity is made; what an earlier try left is in it. It goes
    when the block ends without an error or with one of ours, and stays otherwise. Raises RunError where another process
    is at work in it, or where it cannot be made."""
    part = out.parent / f".{out.name}.{identity[:12]}.part"
    try:
        part.mkdir(parents=True, exist_ok=True)
        lock = (part / "lock").open("w")
    except OSError as error:
        raise RunError(f"{out} cannot be made: {error.strerror or error}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(f"{out} is being built by another process") from None
        try:
            yield part
        except (ConfigError, InputError):
            shutil.rmtree(part, ignore_errors=True)  # the recipe must change, so nothing of it is of use
            raise
        shutil.rmtree(part, ignore_errors=True)


def appear(folder: Path, out: Path) -> None:
    """Moves a finished folder to its place, which is absent or empty, in one step."""
    folder.chmod(0o755)
    if out.is_dir():
        out.rmdir()
    folder.replace(out)


def write_question(path: Path, rows: Sequence[Row], attempt: int) -> None:
    """Keeps the rows of one question; the file is whole or not there."""
    pq = _parquet()
    part = path.with_suffix(f".{os.getpid()}.part")
    table = _table(list(rows), _schema())
    pq.write_table(table.replace_schema_metadata({"attempt": str(attempt)}), part, compression="zstd")
    part.replace(path)


def read_question(path: Path) -> tuple[tuple[Row, ...], int]:
    """The rows of one question and the attempt that gave them. Raises InputError where the file is damaged."""
    pq = _parquet()
    try:
        table = pq.read_table(path, partitioning=None)
        return tuple(table.to_pylist()), int(table.schema.metadata[b"attempt"])
    except (OSError, ValueError, KeyError, TypeError) as error:  # the library's errors derive from these
        raise InputError(f"{path} cannot be read: {error}") from error


def _read_rows(path: Path) -> Iterator[Row]:
    pq = _parquet()
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_READ_ROWS):
                yield from batch.to_pylist()
    except (OSError, ValueError) as error:  # the library's errors derive from these
        raise InputError(f"{path} cannot be read: {error}; build the benchmark again") from error


def _parquet() -> Any:
    """The parquet module of pyarrow. Raises InputError where it is not installed."""
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise InputError("benchmarks on disk need pyarrow: pip install 'treeagent[demo]'") from None
    return pq


def features() -> Any:
    """The columns as `datasets` knows them."""
    from datasets import Features

    return Features.from_arrow_schema(_schema())


def _schema() -> pa.Schema:
    import pyarrow as pa

    texts = {name: pa.string() for name in ("id", "base_id", "task", "format")}
    return pa.schema(
        {
            **texts,
            "length": pa.int32(),
            "context": pa.large_string(),
            "question": pa.string(),
            "answers": pa.list_(pa.string()),
            "answer_kind": pa.string(),
            "ordered": pa.bool_(),
            "count": pa.int32(),
            "spec": pa.string(),
            "source": pa.string(),
            "license": pa.string(),
            "sources": pa.list_(pa.string()),
            "support": pa.list_(pa.float64()),
        }
    )


def _table(rows: list[Row], schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += len(row["context"])
        if size >= _BATCH_CHARACTERS or len(batch) >= _BATCH_ROWS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _check_known(folder: str | Path, kind: str, wanted: Collection[Any] | None, known: list[Any]) -> None:
    for item in wanted or ():
        if item not in known:
            raise InputError(f"{folder} has no {kind} {item}: {suggestion(str(item), [str(name) for name in known])}")
