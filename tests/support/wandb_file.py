"""Reads what Weights & Biases keeps of an offline run: `run-ID.wandb`, a log of protocol buffers.

After a header of 7 bytes the file is a LevelDB log: blocks of 32 KiB, in which a record lies whole or in parts. Each
part has a checksum (4 bytes, not checked here), its length (2) and its kind (1): whole, first, middle or last.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_BLOCK, _FILE_HEADER, _PART_HEADER = 32 * 1024, 7, 7
_WHOLE, _FIRST, _LAST = 1, 2, 4


def _parts(file: io.BufferedReader) -> Iterator[tuple[int, bytes]]:
    """Kind and bytes of every part; what is left of a block after its last part is skipped."""
    file.seek(_FILE_HEADER)
    while True:
        room = _BLOCK - file.tell() % _BLOCK
        if room < _PART_HEADER:
            file.seek(room, io.SEEK_CUR)
        header = file.read(_PART_HEADER)
        if len(header) < _PART_HEADER:
            return
        yield header[6], file.read(int.from_bytes(header[4:6], "little"))


def _records(file: io.BufferedReader) -> Iterator[Any]:
    from wandb.proto import wandb_internal_pb2

    messages: Any = wandb_internal_pb2  # its classes are made when it is imported
    whole = b""
    for kind, part in _parts(file):
        whole = part if kind in (_WHOLE, _FIRST) else whole + part
        if kind in (_WHOLE, _LAST):
            yield messages.Record.FromString(whole)


def _key(item: Any) -> str:
    return item.key or "/".join(item.nested_key)


def history(path: Path) -> list[dict[str, Any]]:
    """Everything that was logged, one mapping for each call of `log`."""
    with path.open("rb") as file:
        return [
            {_key(item): json.loads(item.value_json) for item in record.history.item}
            for record in _records(file)
            if record.HasField("history")
        ]
