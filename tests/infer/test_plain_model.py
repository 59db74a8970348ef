"""Models unpacked into folders: once, whole or not at all."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tiny_gguf import CHAT_TEMPLATE, write_gguf
from treeagent.errors import ModelError
from treeagent.infer import models
from treeagent.infer.plain_model import plain_folder

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREEAGENT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def packed(tiny_chat_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gguf(tiny_chat_folder, tmp_path_factory.mktemp("packed") / "tiny.gguf")


def test_what_is_no_gguf_file_stays_as_it_is(cache: Path, tiny_chat_folder: Path) -> None:
    assert plain_folder(str(tiny_chat_folder)) == str(tiny_chat_folder)
    assert plain_folder("owner/model") == "owner/model"
    assert not cache.exists()


@pytest.mark.parametrize(("dtype", "kind"), [("bf16", torch.bfloat16), ("fp32", torch.float32)])
def test_a_gguf_file_becomes_a_folder_with_its_weights_tokenizer_and_template(
    packed: Path, tiny_chat_folder: Path, dtype: str, kind: object
) -> None:
    folder = plain_folder(str(packed), dtype)
    model, tokenizer = models.load_model(folder, dtype=dtype, device="cpu")
    wanted, spelling = models.load_model(str(tiny_chat_folder), dtype=dtype, device="cpu")
    for (name, weight), (other, value) in zip(model.named_parameters(), wanted.named_parameters(), strict=True):
        assert (name, weight.dtype) == (other, kind)
        assert torch.equal(weight, value)
    assert tokenizer.encode("the memory <|im_end|>") == spelling.encode("the memory <|im_end|>")
    assert tokenizer.chat_template == CHAT_TEMPLATE


def test_a_file_is_unpacked_once_for_each_content_and_dtype_and_leaves_no_scraps(packed: Path, tmp_path: Path) -> None:
    folder = Path(plain_folder(str(packed)))
    (folder / "mark").touch()
    copy = tmp_path / "copy.gguf"
    shutil.copy(packed, copy)
    assert plain_folder(str(copy)) == str(folder)
    assert (folder / "mark").exists()
    other = Path(plain_folder(str(copy), "fp32"))
    assert sorted(folder.parent.iterdir()) == sorted([folder, other])


def test_a_folder_that_another_process_put_there_meanwhile_is_taken(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = models.load_weights

    def slow_load(name: str, **settings: str) -> object:
        with monkeypatch.context() as undone:
            undone.setattr(models, "load_weights", load)
            faster.append(plain_folder(name))
        (Path(faster[0]) / "mark").touch()
        return load(name, **settings)

    faster: list[str] = []
    monkeypatch.setattr(models, "load_weights", slow_load)
    assert plain_folder(str(packed)) == faster[0]
    assert (Path(faster[0]) / "mark").exists()
    assert len(list(Path(faster[0]).parent.iterdir())) == 1


def test_what_cannot_be_unpacked_is_told_in_one_line_and_leaves_nothing(
    cache: Path, packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ModelError, match="cannot be read: No such file"):
        plain_folder(str(tmp_path / "missing.gguf"))
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"no model at all, only words")
    with pytest.raises(ModelError) as caught:
        plain_folder(str(broken))
    assert "\n" not in str(caught.value)
    with pytest.raises(ModelError, match="unknown dtype 'int3'"):
        plain_folder(str(packed), "int3")
    assert not cache.exists()
    monkeypatch.setenv("TREEAGENT_CACHE", str(broken))
    with pytest.raises(ModelError, match=r"cannot be unpacked into .*: Not a directory"):
        plain_folder(str(packed))
