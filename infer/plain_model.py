"""A model as a folder of plain files, for programs that cannot read what it came in.

A `.gguf` file is unpacked once, into the cache folder, under the hash of its content: it takes two bytes a parameter
there, or four. The folder appears whole or not at all, whoever else unpacks the same file at the same time.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from ..data.tokens import cache_folder, content_name
from ..errors import ModelError
from . import models


def plain_folder(name: str, dtype: str = "bf16") -> str:
    """The folder that holds the model of a `.gguf` file with weights of this dtype; any other name as it is.

    Raises ModelError for a file that cannot be unpacked and for a cache folder that cannot be written.
    """
    path = Path(name)
    if path.suffix != ".gguf":
        return name
    if dtype not in models.DTYPES:
        raise ModelError(f"unknown dtype {dtype!r}; known: {', '.join(models.DTYPES)}")
    folder = cache_folder() / "models" / f"{content_name(path)}-{models.DTYPES[dtype]}"
    if not folder.is_dir():
        _unpack(name, dtype, folder)
    return str(folder)


def _unpack(name: str, dtype: str, folder: Path) -> None:
    tokenizer = models.load_chat_tokenizer(name)
    model = models.load_weights(name, dtype=dtype, device="cpu")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as scratch:
            part = Path(scratch) / "model"
            model.save_pretrained(part)
            tokenizer.save_pretrained(part)
            _put(part, folder)
    except OSError as error:
        raise ModelError(f"model {name} cannot be unpacked into {folder}: {error.strerror or error}") from error


def _put(part: Path, folder: Path) -> None:
    try:
        part.rename(folder)
    except OSError:  # somebody else was faster: the content is the same
        if not folder.is_dir():
            raise
