"""Adapters that run unmerged, by rank alone: LoRA as vLLM takes it.

vLLM reads rank, alpha and target modules from `adapter_config.json` and passes over the rest, so an adapter whose
rest means something would run as a different model without a word. Such an adapter is refused here.
"""

from __future__ import annotations

import json
from pathlib import Path

from ...errors import ModelError

_MEANINGFUL = (
    "alpha_pattern",
    "layer_replication",
    "lora_bias",
    "modules_to_save",
    "rank_pattern",
    "target_parameters",
    "trainable_token_indices",
    "use_dora",
    "use_qalora",
)
"""Settings of PEFT that change what an adapter does, beyond its rank and alpha."""


def lora_rank(folder: str) -> int:
    """The rank of a LoRA adapter. Raises ModelError if there is none in the folder or it is of another sort."""
    path = Path(folder) / "adapter_config.json"
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
        rank = int(settings["r"])
    except FileNotFoundError as error:
        raise ModelError(f"adapter {folder}: no adapter_config.json there") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"adapter {folder}: adapter_config.json is no LoRA configuration") from error
    if (sort := settings.get("peft_type")) != "LORA":
        raise ModelError(f"adapter {folder}: vLLM runs LoRA adapters only, this one is {sort}")
    more = [name for name in _MEANINGFUL if settings.get(name)]
    if settings.get("bias", "none") != "none":
        more.append("bias")
    if more:
        raise ModelError(
            f"adapter {folder}: vLLM cannot run an adapter with {', '.join(more)}; use engine transformers"
        )
    return rank
