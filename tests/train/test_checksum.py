"""The checksum of weights does not see how they are laid out, and sees every changed bit."""

from __future__ import annotations

import struct

import pytest
import torch
from treeagent.train.checksum import MODULUS, Watched, of_tensor


def test_it_is_the_sum_of_the_bit_patterns() -> None:
    values = [1.0, -2.5, 0.0, 3e-5]
    want = sum(struct.unpack("<i", struct.pack("<f", value))[0] for value in values) % MODULUS
    assert of_tensor(torch.tensor(values)) == want


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_fused_or_padded_matrices_have_the_checksum_of_their_parts_and_one_bit_shows(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    parts = {name: torch.randn(4, 6).to(dtype) for name in ("q_proj", "k_proj", "v_proj")}
    model = torch.nn.Module()
    model.qkv_proj = torch.nn.Linear(6, 14, bias=False, dtype=dtype)
    model.norm = torch.nn.LayerNorm(6, dtype=dtype)
    model.qkv_proj.weight.data = torch.cat([*parts.values(), torch.zeros(2, 6, dtype=dtype)])
    watched = Watched({"q_proj"}, {"qkv_proj": list(parts), "gate_up_proj": ["gate_proj", "up_proj"]})
    found: list[int] = []
    weights = [(f"layers.0.{name}.weight", value) for name, value in parts.items()]
    passed = list(watched.passing([*weights, ("layers.0.norm.weight", torch.ones(6))], dtype, found))
    assert [name for name, _ in passed] == [name for name, _ in weights] + ["layers.0.norm.weight"]
    assert found == [watched.served(model)]
    model.qkv_proj.weight.data.view(torch.int16)[0, 0] ^= 1
    assert found != [watched.served(model)]
