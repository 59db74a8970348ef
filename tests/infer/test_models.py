"""Loading models: folders, GGUF files, adapters, and one line for everything that can be wrong."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tiny_gguf import CHAT_TEMPLATE, write_gguf
from treeagent.errors import ModelError
from treeagent.infer import models

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")  # peft's


def _copy(folder: Path, to: Path) -> Path:
    shutil.copytree(folder, to)
    return to


def _without_template(folder: Path) -> None:
    (folder / "chat_template.jinja").unlink(missing_ok=True)
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    settings.pop("chat_template", None)
    path.write_text(json.dumps(settings))


@pytest.fixture(scope="module")
def adapter(tiny_chat_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An adapter whose weights are far from nothing."""
    import peft

    model, _ = models.load_model(str(tiny_chat_folder), dtype="fp32", device="cpu")
    tuned = peft.get_peft_model(model, peft.LoraConfig(r=2, target_modules="all-linear", task_type="CAUSAL_LM"))
    with torch.no_grad():
        for name, weight in tuned.named_parameters():
            if "lora_B" in name:
                weight.fill_(0.5)
    folder = tmp_path_factory.mktemp("adapter")
    tuned.save_pretrained(str(folder))
    return folder


@pytest.mark.parametrize(("name", "dtype"), [("bf16", "bfloat16"), ("fp32", "float32"), ("float16", "float16")])
def test_a_folder_loads_in_the_dtype_asked_for(tiny_chat_folder: Path, name: str, dtype: str) -> None:
    model, tokenizer = models.load_model(str(tiny_chat_folder), dtype=name, device="cpu")
    assert {weight.dtype for weight in model.parameters()} == {getattr(torch, dtype)}
    assert not model.training
    assert tokenizer.chat_template


def test_an_adapter_changes_what_the_model_says_and_not_its_weights(tiny_chat_folder: Path, adapter: Path) -> None:
    plain, _ = models.load_model(str(tiny_chat_folder), dtype="fp32", device="cpu")
    tuned, _ = models.load_model(str(tiny_chat_folder), dtype="fp32", device="cpu", adapter=str(adapter))
    ids = torch.arange(10)[None]
    with torch.no_grad():
        assert not torch.allclose(tuned(ids).logits, plain(ids).logits)
        with tuned.disable_adapter():
            assert torch.equal(tuned(ids).logits, plain(ids).logits)


def test_a_gguf_model_is_rebuilt_so_that_it_can_be_saved_and_trained(tiny_chat_folder: Path, tmp_path: Path) -> None:
    """The same weights come back from a GGUF file that was written by hand, without a quantization mark."""
    pytest.importorskip("gguf")
    path = write_gguf(tiny_chat_folder, tmp_path / "tiny.gguf")
    model, tokenizer = models.load_model(str(path), dtype="fp32", device="cpu")
    plain, _ = models.load_model(str(tiny_chat_folder), dtype="fp32", device="cpu")
    ids = torch.arange(10)[None]
    with torch.no_grad():
        assert torch.allclose(model(ids).logits, plain(ids).logits, atol=1e-5)
    assert getattr(model.config, "quantization_config", None) is None
    model.save_pretrained(tmp_path / "saved")
    assert tokenizer.chat_template == CHAT_TEMPLATE


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "nobody/no-such-model"}, "nobody/no-such-model"),
        ({"name": "/no/such/folder"}, "neither a folder, a .gguf file, nor a Hugging Face name"),
        ({"name": ""}, "empty"),
        ({"name": "missing.gguf"}, "no such file"),
        ({"dtype": "int3"}, "unknown dtype 'int3'; known: bf16"),
        ({"device": "cuda:99"}, "cannot be loaded"),
        ({"device": "toaster"}, "cannot be loaded"),
        ({"adapter": "/no/adapter"}, "no adapter_config.json"),
    ],
)
def test_what_cannot_be_loaded_is_told_in_one_line(
    tiny_chat_folder: Path, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        models.load_model(**({"name": str(tiny_chat_folder), "device": "cpu"} | arguments))
    assert "\n" not in str(caught.value)


def test_a_folder_without_a_model_or_template_is_told_in_one_line(
    tiny_chat_folder: Path, adapter: Path, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match=r"no config.json there$"):
        models.load_model(str(tmp_path))
    with pytest.raises(ModelError, match="it holds an adapter"):
        models.load_model(str(adapter))
    folder = _copy(tiny_chat_folder, tmp_path / "model")
    _without_template(folder)
    with pytest.raises(ModelError, match="no chat template"):
        models.load_model(str(folder))
    (folder / "config.json").write_text("{}")
    with pytest.raises(ModelError, match=r"model .*:"):
        models.load_model(str(folder))


def test_an_adapter_for_another_model_is_refused(tiny_chat_folder: Path, adapter: Path, tmp_path: Path) -> None:
    other = _copy(adapter, tmp_path / "adapter")
    settings = json.loads((other / "adapter_config.json").read_text())
    settings["target_modules"] = ["no_such_module"]
    (other / "adapter_config.json").write_text(json.dumps(settings))
    with pytest.raises(ModelError, match="does not fit the model"):
        models.load_model(str(tiny_chat_folder), dtype="fp32", device="cpu", adapter=str(other))


def test_a_fingerprint_follows_the_content_and_not_the_place(tiny_chat_folder: Path, tmp_path: Path) -> None:
    moved = _copy(tiny_chat_folder, tmp_path / "moved")
    assert models.fingerprint(str(moved)) == models.fingerprint(str(tiny_chat_folder))
    (moved / "README.md").write_text("words about the model are not the model")
    assert models.fingerprint(str(moved)) == models.fingerprint(str(tiny_chat_folder))
    data = bytearray((moved / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (moved / "model.safetensors").write_bytes(data)
    assert models.fingerprint(str(moved)) != models.fingerprint(str(tiny_chat_folder))


def test_a_torn_gguf_file_is_refused_in_one_line(tmp_path: Path) -> None:
    torn = tmp_path / "torn.gguf"
    torn.write_bytes(b"GGUF\x03\x00\x00\x00\x01")
    with pytest.raises(ModelError, match=r"torn\.gguf"):
        models.load_chat_tokenizer(str(torn))
