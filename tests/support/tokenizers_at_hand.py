"""Tokenizers small enough to train in a test: one vocabulary, the ways in which released models cut text before
merging."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA3 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace("{1,3}", "")
_WORDS = "id name place tags null true false alpha beta gamma don't they'll Ünïcode naïve 東京 città \ud7a3 word"
WORDS = _WORDS.split()


def corpus(seed: int = 0, lines: int = 400) -> list[str]:
    """JSON of many shapes, seeded."""
    rng = random.Random(seed)

    def value(depth: int) -> Any:
        kind = rng.randrange(7 if depth else 4)
        if kind == 0:
            return rng.choice([None, True, False, rng.randrange(10**6), rng.random() * 1000])
        if kind < 4:
            return " ".join(rng.choice(WORDS) for _ in range(rng.randrange(6)))
        if kind < 6:
            return {rng.choice(WORDS): value(depth - 1) for _ in range(rng.randrange(5))}
        return [value(depth - 1) for _ in range(rng.randrange(5))]

    styles = [{"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}]
    return [json.dumps(value(3), **rng.choice(styles)) for _ in range(lines)]


@cache
def trained(cut: str) -> Tokenizer:
    """A tokenizer whose text is cut as `cut` says: gpt2, qwen2 (with NFC), llama3, digits; or outside the family:
    gemma (no cutting), words (WordPiece), unknown (an expression nobody has proved)."""
    if cut == "words":
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.train_from_iterator(corpus(), trainers.WordPieceTrainer(vocab_size=300, special_tokens=["[UNK]"]))
        return tokenizer
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bare = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    steps = {
        "gpt2": byte_level,
        "qwen2": pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(QWEN2), "isolated"), bare]),
        "llama3": pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"), bare]),
        "digits": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level]),
        "gemma": bare,
        "unknown": pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"[a-z]+|."), "isolated"), bare]),
    }
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = steps[cut]
    tokenizer.decoder = decoders.ByteLevel()
    if cut == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        special_tokens=["<|end|>", "<think>", "</think>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


FAMILY = ("gpt2", "qwen2", "llama3", "digits")
OUTSIDE = ("gemma", "words", "unknown")
