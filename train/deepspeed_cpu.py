"""DeepSpeed without a GPU, as tests and first trials use it."""

from __future__ import annotations

import os


def without_compiling() -> None:
    """Where DeepSpeed was launched on a machine without a GPU: names the CPU, and leaves out its shared-memory
    exchange, which it would compile in C++ for a minute before the first step (gloo exchanges instead)."""
    import torch

    if os.environ.get("ACCELERATE_USE_DEEPSPEED") != "true" or torch.cuda.is_available():
        return
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    import deepspeed.ops

    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
