"""Two steps of training with the real vLLM beside the trainer, on a tiny random model.

The CPU build of vLLM rearranges its weights and drops what loads new ones; for this test alone it is told not to. A
build for GPUs does not do it.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

TRAIN = Path(__file__).parents[1] / "train"
needs_trl = pytest.mark.skipif(importlib.util.find_spec("trl") is None, reason="trl is not installed here")


@pytest.fixture
def _updatable(monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM's CPU build with plain weights, and what the harness of training lies at."""
    import functools

    import torch

    def keep(layer: Any, remove_weight: bool) -> None:
        layer.cpu_linear = torch.nn.functional.linear

    layers = "vllm.model_executor.layers"
    for name in (f"{layers}.utils", f"{layers}.linear", f"{layers}.vocab_parallel_embedding"):
        module = importlib.import_module(name)
        if hasattr(module, "dispatch_cpu_unquantized_gemm"):
            monkeypatch.setattr(module, "dispatch_cpu_unquantized_gemm", keep)
    generation = importlib.import_module("trl.generation.vllm_generation")
    monkeypatch.setattr(generation, "LLM", functools.partial(generation.LLM, enforce_eager=True, dtype="float32"))
    monkeypatch.setattr(sys, "path", [str(TRAIN), *sys.path])


@needs_trl
@pytest.mark.usefixtures("_updatable")
def test_two_steps_are_trained_on_what_vllm_samples_with_the_trainers_weights(tmp_path: Path) -> None:
    from train_harness import (  # pyright: ignore[reportMissingImports]
        Questions,
        build_trainer,
        example,
        save_tiny_model,
    )

    model = save_tiny_model(tmp_path / "tiny", head_dim=32)
    examples = [example(i) for i in range(12)]
    trainer = build_trainer(
        model,
        tmp_path / "run",
        Questions(max_tokens=8),
        examples,
        dev_examples=examples[:2],
        trl_max_steps=2,
        trl_learning_rate=0.1,
        trl_use_vllm=True,
        trl_vllm_gpu_memory_utilization=0.1,
        trl_vllm_max_model_length=256,
        trl_vllm_importance_sampling_mode="token_truncate",
    )
    trainer.train()
    first, second = [log for log in trainer.state.log_history if "grad_norm" in log]
    assert first["grad_norm"] > 0
    assert first["sampler/checksum"] != second["sampler/checksum"]
    for log in (first, second):  # the second step's too: it is sampled by the weights of the first
        assert log["sampling/sampling_logp_difference/max"] < 5e-3
    (one,) = trainer.roll_out(examples[:1], greedy=True)
    assert trainer.checksum != second["sampler/checksum"], "the weights of the second step were sent for this"
    import torch

    for reply in (call.reply for call in one.calls):
        ids = torch.tensor([[*reply.prompt_ids, *reply.completion_ids]])
        with torch.no_grad():
            table = trainer.policy(input_ids=ids).logits[0, len(reply.prompt_ids) - 1 : -1].log_softmax(-1)
        chosen = table.gather(1, torch.tensor(reply.completion_ids)[:, None])[:, 0]
        assert float((table.max(-1).values - chosen).max()) < 5e-3
