"""The real vLLM with the demo model. `make test-vllm` runs these tests in an environment of their own; they take
minutes and are collected only where this folder or a file in it is named on the command line.

What vLLM says is held against transformers by teacher forcing: at every generated token, how much likelier would
another one have been, given the same ids before it? Greedy replies fall short by nothing but rounding; one token chosen
otherwise at a near tie does not make the rest of the reply count as wrong.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROUNDING = 5e-4
"""Nats by which two orders of summation in 32 bits may differ. 0.00003 was the most in 2,048 tokens of this model."""
STARTING = 300.0
"""Seconds that vLLM may take to start on a loaded machine."""


def _named(config: pytest.Config) -> bool:
    named = [Path(str(argument).split("::")[0]).resolve() for argument in config.invocation_params.args]
    return any(path == HERE or HERE in path.parents for path in named)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return None if _named(config) else True


def pytest_configure(config: pytest.Config) -> None:
    if _named(config):
        config.addinivalue_line("filterwarnings", "ignore")  # those of vLLM, up to what it leaves open at the end


@pytest.fixture(scope="session", autouse=True)
def environment() -> None:
    """What a CPU build of vLLM needs to know; a build for GPUs does not look at it. Child processes inherit it."""
    openmp = Path(sys.prefix) / "lib" / "libiomp5.so"
    os.environ["VLLM_CPU_KVCACHE_SPACE"] = "1"  # GiB
    os.environ["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"
    os.environ.setdefault("OMP_NUM_THREADS", str(min(4, os.cpu_count() or 1)))
    os.environ["KMP_BLOCKTIME"] = "1"
    if openmp.is_file():
        os.environ["LD_PRELOAD"] = str(openmp)


@pytest.fixture(scope="session")
def demo(demo_tokenizer: str) -> str:
    """The demo model as it comes: a GGUF file."""
    return demo_tokenizer


@pytest.fixture(scope="session")
def folder(demo: str) -> str:
    """The demo model as a folder with weights of 32 bits."""
    from treeagent.infer.plain_model import plain_folder

    return plain_folder(demo, "fp32")


@pytest.fixture(scope="session")
def tokenizer(folder: str) -> Any:
    from treeagent.infer import models

    return models.load_chat_tokenizer(folder)


@pytest.fixture(scope="session")
def reference(folder: str) -> Any:
    """The model in transformers, 32 bits."""
    from treeagent.infer import models

    return models.load_weights(folder, dtype="fp32", device="cpu")


@dataclass(frozen=True)
class Judged:
    """Of each generated token: the log-probability that transformers gives it, and by how much it falls short of the
    likeliest."""

    logprobs: list[float]
    shortfalls: list[float]


Judge = Callable[..., Judged]


@pytest.fixture(scope="session")
def judge() -> Judge:
    """Judges the ids that a reply generated, by one pass of a transformers model over prompt and reply."""
    import torch

    def judge(
        model: Any, prompt: Sequence[int], completion: Sequence[int], inserted: tuple[int, int] = (0, 0)
    ) -> Judged:
        with torch.inference_mode():
            logits = model(torch.tensor([[*prompt, *completion]])).logits[0, len(prompt) - 1 : -1]
        table = torch.log_softmax(logits.float(), -1)
        chosen = table.gather(1, torch.tensor(completion)[:, None])[:, 0]
        generated = [i for i in range(len(completion)) if not inserted[0] <= i < inserted[1]]
        return Judged(chosen[generated].tolist(), (table.max(-1).values - chosen)[generated].tolist())

    return judge


@pytest.fixture(scope="session")
def adapter(folder: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random adapter of rank 8 for every linear layer, far from nothing."""
    import peft
    import torch
    from treeagent.infer import models

    model = models.load_weights(folder, dtype="fp32", device="cpu")
    settings = peft.LoraConfig(r=8, lora_alpha=16, target_modules="all-linear", task_type="CAUSAL_LM")
    tuned = peft.get_peft_model(model, settings)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, weight in tuned.named_parameters():
            if "lora_" in name:
                weight.copy_(torch.randn(weight.shape, generator=generator) * 0.02)
    out = tmp_path_factory.mktemp("adapter")
    tuned.save_pretrained(str(out))
    return out


@pytest.fixture(scope="session")
def served(folder: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of a vLLM server of the model, named smollm2. The module is what `vllm serve` runs."""
    port = _free_port()
    command = [
        *(sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", folder),
        *("--served-model-name", "smollm2", "--host", "127.0.0.1", "--port", str(port)),
        *("--dtype", "float32", "--max-model-len", "2048", "--max-num-seqs", "16", "--enforce-eager"),
        *("--generation-config", "vllm"),
    ]
    log = tmp_path_factory.mktemp("served") / "log"
    quiet = os.environ | {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    with log.open("w") as out, subprocess.Popen(command, stdout=out, stderr=out, env=quiet) as process:
        try:
            _wait_until_served(port, process, log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _wait_until_served(port: int, process: subprocess.Popen[Any], log: Path) -> None:
    for _ in range(int(STARTING)):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        try:
            process.wait(1)
        except subprocess.TimeoutExpired:
            continue
        break
    pytest.fail(f"the vLLM server did not start:\n{log.read_text()[-3000:]}")
