"""LoRA adapters as matrices: how far they moved the model, and the merged weights without touching the base.

A sampler with its own copy of the model needs merged weights after every step. Merging in place and back again (as
PEFT does) rounds the base each time; in bf16 the frozen weights drift by as much as a short training moves the
adapter. Here `W + B A s` is made out of place, one matrix at a time, so the base stays as it is, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from peft.tuners.lora import LoraLayer

Whole = Callable[[list[Any]], AbstractContextManager[Any]]


def _as_they_are(parameters: list[Any]) -> AbstractContextManager[Any]:
    return nullcontext()


@torch.no_grad()
def merged_parameters(model: Any, whole: Whole = _as_they_are) -> Iterator[tuple[str, torch.Tensor]]:
    """Names and values of the base model's parameters with the active adapter merged in, in the base's number format.

    `model` is a PeftModel with LoRA on linear layers. Unchanged parameters are yielded themselves, changed ones as new
    tensors. `whole` makes parameters that are cut up among processes whole while a value is in use; then every process
    must go through all of them.
    """
    layers = {f"{name}.base_layer.weight": [layer] for name, layer in adapted(model).items()}
    for name, parameter in model.named_parameters():
        if model.prefix in name:
            continue
        changing = [(layer, adapter) for layer in layers.get(name, ()) for adapter in layer.active_adapters]
        factors = [part[adapter].weight for layer, adapter in changing for part in (layer.lora_A, layer.lora_B)]
        with whole([parameter, *factors]):
            value = parameter.data
            for layer, adapter in changing:
                value = (value + layer.get_delta_weight(adapter)).to(parameter.dtype)  # rounded once
            yield name.removeprefix("base_model.model.").replace(".base_layer", ""), value


def adapted(model: Any) -> dict[str, Any]:
    """The layers with an adapter by their names in `model`."""
    return {name: layer for name, layer in model.named_modules() if isinstance(layer, LoraLayer)}


@torch.no_grad()
def change(model: Any) -> float:
    """Frobenius norm of all that the active adapter adds to the model: sqrt of the sum of |s B A|^2 over its layers.

    |B A|^2 is the sum over entries of (B^T B) * (A A^T), so the large product is never made.
    """
    total = 0.0
    layers: list[Any] = [module for module in model.modules() if isinstance(module, LoraLayer)]
    for layer in layers:
        for adapter in layer.active_adapters:
            a, b = layer.lora_A[adapter].weight.double(), layer.lora_B[adapter].weight.double()
            total += float(((b.T @ b) * (a @ a.T)).sum()) * layer.scaling[adapter] ** 2
    return total**0.5
