"""Which tokenizers can be counted fast, and a faster engine for them that is proved equal.

Byte-level BPE tokenizers cut text by a regular expression before they merge. For the expressions listed here no piece
runs past a letter or digit that is followed by punctuation or white space, nor past punctuation that is followed by a
blank; what is left and right of such a place is tokenised independently (see `counts`). tiktoken merges by the same
ranks an order of magnitude faster; it is used only where it is shown to give the same tokens.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tiktoken
from tokenizers import Tokenizer as HFTokenizer
from tokenizers import models

GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_TAIL = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_O200K = "|".join(
    (
        rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]*[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]+{_CONTRACTIONS}?",
        rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]+[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]*{_CONTRACTIONS}?",
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    )
)
_CL100K = "|".join(
    (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+",
        r"\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    )
)
_QWEN35 = "|".join(
    (
        rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*",
        r"\s*[\r\n]+|\s+(?!\S)|\s+",
    )
)
KNOWN_PATTERNS = frozenset(
    {
        GPT2,
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
        rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}|{_TAIL}",
        rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{_TAIL}",
        _QWEN35,
        _CL100K,
        _O200K,
    }
)


@dataclass(frozen=True)
class Family:
    """A byte-level BPE tokenizer whose pieces end where `counts` says. `pattern` is None where digits are split off
    first. `added` are the texts cut out before anything else; `loose` those of them that also swallow white space
    around."""

    pattern: str | None
    nfc: bool
    added: tuple[str, ...]
    loose: tuple[str, ...]


def family_of(tokenizer: HFTokenizer) -> Family | None:
    """The family of a tokenizer, or None where counts of slices cannot be had from one pass."""
    spec = json.loads(tokenizer.to_str())
    model, normalizer = spec["model"], spec["normalizer"]
    plain = not (model.get("dropout") or model.get("continuing_subword_prefix") or model.get("end_of_word_suffix"))
    if (
        model["type"] != "BPE"
        or not plain
        or model.get("byte_fallback")
        or (normalizer or {}).get("type", "NFC") != "NFC"
    ):
        return None
    known, pattern = _pattern_of(spec["pre_tokenizer"])
    if not known:
        return None
    tokens = spec["added_tokens"]
    return Family(
        pattern,
        nfc=normalizer is not None,
        added=tuple(t["content"] for t in tokens),
        loose=tuple(t["content"] for t in tokens if t["lstrip"] or t["rstrip"] or t["single_word"]),
    )


def _pattern_of(pre_tokenizer: dict[str, Any] | None) -> tuple[bool, str | None]:
    """(known, pattern) of `[Digits]* [Split]? ByteLevel`; the pattern is None behind a `Digits` step."""
    if pre_tokenizer is None:
        return False, None
    steps = pre_tokenizer["pretokenizers"] if pre_tokenizer["type"] == "Sequence" else [pre_tokenizer]
    digits = False
    while len(steps) > 1 and steps[0]["type"] == "Digits":
        steps, digits = steps[1:], True
    pattern = GPT2
    if len(steps) == 2 and steps[0]["type"] == "Split":
        pattern = steps[0]["pattern"].get("Regex", "")
        if steps[0]["behavior"] != "Isolated" or steps[0]["invert"] or steps[1].get("use_regex", True):
            return False, None
        steps = steps[1:]
    elif len(steps) == 1 and not steps[0].get("use_regex", True):
        return False, None
    if len(steps) != 1:
        return False, None
    level = steps[0]
    known = level["type"] == "ByteLevel" and not level["add_prefix_space"]
    return known and pattern in KNOWN_PATTERNS, None if digits else pattern


def byte_alphabet() -> dict[str, int]:
    """The printable characters by which byte-level vocabularies write the 256 bytes (GPT-2), with their byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [b for b in range(256) if b not in set(printable)]
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(rest)}


class ProvedEngine:
    """tiktoken over the ranks of a tokenizer, for the texts on which both give the same tokens.

    Merges: both join the pair of lowest rank, leftmost first, so they could differ only where tiktoken joins two
    neighbours into a token by another pair than the tokenizer's own; then the tokenizer, given that token's text
    alone, would not return the token. That is checked for every merged token. Cutting: one expression in two
    regular-expression libraries, probed on each character beyond ASCII that a text holds.
    """

    longest_piece = 100_000  # characters; longer ones overflow the stack of tiktoken's expression engine

    def __init__(self, tokenizer: HFTokenizer, family: Family) -> None:
        spec = json.loads(tokenizer.to_str())["model"]
        alphabet = byte_alphabet()
        self._tokenizer, self._family = tokenizer, family
        self._missing = bytes(b for char, b in alphabet.items() if char not in spec["vocab"])
        ranks = {bytes([b]): b for b in range(256)}
        for rank, pair in enumerate(spec["merges"]):
            joined = "".join(pair if isinstance(pair, list) else pair.split(" "))
            ranks.setdefault(bytes(alphabet[char] for char in joined), 256 + rank)
        self.byte_lengths = [0] * (256 + len(spec["merges"]))
        for token, rank in ranks.items():
            self.byte_lengths[rank] = len(token)
        self._encoding = tiktoken.Encoding(
            "proved", pat_str=family.pattern or "", mergeable_ranks=ranks, special_tokens={}
        )
        self._probed: set[str] = set()

    @classmethod
    def prove(cls, tokenizer: HFTokenizer, family: Family) -> ProvedEngine | None:
        """The engine, or None where equality does not hold for every merged token."""
        spec = json.loads(tokenizer.to_str())["model"]
        alphabet, model = byte_alphabet(), tokenizer.model
        if family.pattern is None or not isinstance(model, models.BPE):
            return None
        merged = ["".join(m if isinstance(m, list) else m.split(" ")) for m in spec["merges"]]
        base_only = all(token in alphabet for token in spec["vocab"].keys() - set(merged) - set(family.added))
        if len(set(merged)) != len(merged) or (spec.get("ignore_merges") and not base_only):
            return None
        tokenize: Callable[[str], Sequence[Any]] = model.tokenize
        for token in merged:
            parts = tokenize(token)
            if not all(char in alphabet for char in token) or len(parts) != 1 or parts[0].value != token:
                return None
        return cls(tokenizer, family)

    def suits(self, text: str, foreign: Sequence[str]) -> bool:
        """True where this engine is right for `text`; `foreign` are its distinct characters beyond ASCII."""
        if any(token in text for token in self._family.added):
            return False
        if self._family.nfc and not unicodedata.is_normalized("NFC", text):
            return False
        if self._missing and any(byte in self._missing for byte in _bytes_of(text, foreign)):
            return False
        fresh = [char for char in foreign if char not in self._probed]
        if not all(self._same(char) for char in fresh):
            return False
        self._probed.update(fresh)
        return True

    def _same(self, char: str) -> bool:
        contexts = [f"a{char}b", f" {char} ", f"1{char}2", f"\n{char}\n", char * 2, f"'{char}", f".{char}("]
        found = self._tokenizer.encode_batch_fast(contexts, add_special_tokens=False)
        return all(len(f) == len(self._encoding.encode_ordinary(c)) for f, c in zip(found, contexts, strict=True))

    def encode(self, pieces: Sequence[str]) -> list[list[int]]:
        """Rank ids of each piece; their byte lengths are `byte_lengths`."""
        return [self._encoding.encode_ordinary(piece) for piece in pieces]


def _bytes_of(text: str, foreign: Sequence[str]) -> set[int]:
    ascii_controls = {ord(c) for c in map(chr, [*range(32), 127]) if c in text}
    return ascii_controls | set("".join(foreign).encode())
