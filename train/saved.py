"""An adapter as it lies in a folder, without its model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def saved_change(folder: Path) -> float:
    """Frobenius norm of all that a saved LoRA adapter adds to its model, as `adapter.change` gives it for a loaded one.

    Of a model that is divided among processes only the file holds whole matrices.
    """
    from safetensors.torch import load_file

    config: dict[str, Any] = json.loads((folder / "adapter_config.json").read_text("utf-8"))
    scaling = config["lora_alpha"] / config["r"]
    tensors = load_file(folder / "adapter_model.safetensors")
    total = 0.0
    for name, value in tensors.items():
        if "lora_A" in name:
            a, b = value.double(), tensors[name.replace("lora_A", "lora_B")].double()
            total += float(((b.T @ b) * (a @ a.T)).sum()) * scaling**2
    return total**0.5
