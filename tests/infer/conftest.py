"""A tiny random chat model on disk, and an observer of plain texts for agents that need no document."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think></think>{% endif %}{% endif %}"
)
SPECIAL = ["<|im_start|>", "<|im_end|>", "<|pad|>"]


@dataclass
class Texts:
    """An observer of given section texts, that keeps what is committed."""

    sections: Sequence[str]
    committed: list[tuple[int, str, int]] = field(default_factory=list)

    @property
    def n(self) -> int:
        return len(self.sections)

    def text(self, t: int) -> str:
        return self.sections[t]

    def observe(self, t: int, question: str, pass_id: int = 0) -> str:
        return self.sections[t]

    def commit(self, t: int, memory: str, pass_id: int = 0) -> None:
        self.committed.append((t, memory, pass_id))


@pytest.fixture
def texts() -> Callable[[Sequence[str]], Texts]:
    """Makes an observer of given section texts."""
    return Texts


@pytest.fixture(scope="session")
def tiny_chat_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a random two-layer Llama with 300 tokens (byte-level, so that any text can be encoded)."""
    folder = tmp_path_factory.mktemp("tiny-chat")
    tokenizer = _tokenizer()
    tokenizer.save_pretrained(folder)
    _model(len(tokenizer), tokenizer.eos_token_id).save_pretrained(folder)
    return folder


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator(["the memory of the section and the answer to the problem"] * 3, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|im_end|>", pad_token="<|pad|>")
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def _model(vocabulary: int, end: int) -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        eos_token_id=end,
        bos_token_id=None,
        pad_token_id=2,
        initializer_range=0.5,  # peaked logits: no ties that rounding could break
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return LlamaForCausalLM(config)
