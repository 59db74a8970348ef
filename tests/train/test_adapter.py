"""The adapter is merged without touching the base, and its size is that of the difference it makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from treeagent.train.adapter import change, merged_parameters


@pytest.fixture(params=[torch.float32, torch.bfloat16])
def model(tiny_model: Path, request: pytest.FixtureRequest) -> Any:
    """The tiny model with a LoRA adapter of random weights on every linear layer."""
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    plain = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=request.param)
    model = get_peft_model(plain, LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM"))
    torch.manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                parameter.normal_(std=0.1)
    return model


def copy(model: Any) -> dict[str, torch.Tensor]:
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def test_merging_leaves_base_and_adapter_bit_for_bit(model: Any) -> None:
    before = copy(model)
    for _ in range(30):
        list(merged_parameters(model))
    assert all(torch.equal(parameter, before[name]) for name, parameter in model.named_parameters())


def test_the_merged_weights_are_those_of_peft_under_the_base_models_names(model: Any, tiny_model: Path) -> None:
    from transformers import AutoModelForCausalLM

    got = {name: value.clone() for name, value in merged_parameters(model)}
    model.merge_adapter()
    names = {name for name, _ in AutoModelForCausalLM.from_pretrained(tiny_model).named_parameters()}
    assert set(got) == names
    for name, value in got.items():
        there = "base_model.model." + name
        plain = dict(model.named_parameters())
        want = plain.get(there.removesuffix(".weight") + ".base_layer.weight", plain.get(there))
        assert want is not None
        assert value.dtype == want.dtype
        assert torch.equal(value, want), name


def test_the_size_of_the_change_is_the_norm_of_the_difference(model: Any) -> None:
    base = {name: p.double() for name, p in copy(model).items() if "base_layer" in name}
    merged = {name: value.double() for name, value in merged_parameters(model)}
    squares = [
        ((merged[name.removeprefix("base_model.model.").replace(".base_layer", "")] - value) ** 2).sum()
        for name, value in base.items()
    ]
    rounding = 1e-5 if model.dtype == torch.float32 else 2e-2
    assert change(model) == pytest.approx(float(sum(squares)) ** 0.5, rel=rounding)


def test_a_fresh_adapter_changes_nothing(tiny_model: Path) -> None:
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    plain = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float32)
    assert change(get_peft_model(plain, LoraConfig(r=4, target_modules="all-linear"))) == 0.0
