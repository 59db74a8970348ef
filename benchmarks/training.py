"""What training costs beyond the model's own work.

    python benchmarks/training.py

Three figures, on one process, in float32, on a random model:
1. milliseconds a call for everything but the model (chat template, agent, rows, advantages, logging), with MemAgent
   reading documents of eight sections and a sampler that answers at once and a loss that is not computed;
2. seconds a trained token against TRL's own GRPO on the same model, with prompts, completions and rewards of the same
   sizes, generation left out on both sides (medians of alternating steps; the aim is at most 1.1);
3. the largest memory of a step above where the process stood, for R and for the number of conversations (Linux).
Seconds are of CPU time: on a shared machine the clock on the wall says more of the neighbours.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1", TQDM_DISABLE="1", WANDB_MODE="disabled")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from treeagent.data.rollout import Call, Example, Outcome, Reference, Reply, Request, Rollout
from treeagent.train.trainer import ConversationTrainer

PROMPT, COMPLETION = 192, 64
"""Tokens of a conversation in the second figure."""
LONG_PROMPT = 1024
"""Tokens of a prompt in the third."""
VOCABULARY = 512


def save_model(folder: Path) -> Path:
    """A random model of 4 layers and width 128 whose tokens are words `w0`, `w1`, ..."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    words = ["<eos>", "<pad>", "<unk>", *(f"w{i}" for i in range(VOCABULARY - 3))]
    inner = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<eos>", pad_token="<pad>", unk_token="<unk>")
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }} {% endfor %}"
    config = Qwen3Config(
        vocab_size=VOCABULARY, hidden_size=128, intermediate_size=512, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, head_dim=32, max_position_embeddings=1 << 20, tie_word_embeddings=True,
        eos_token_id=0, pad_token_id=1, bos_token_id=None,
    )  # fmt: skip
    torch.manual_seed(0)
    Qwen3ForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@dataclass
class Fixed:
    """Rollouts of a fixed number of calls whose prompts and completions have fixed sizes."""

    calls: int
    prompt: int = PROMPT

    def rollout(self, example: Example) -> Generator[Request, Reply, Rollout]:
        """Asks nothing of anyone: the ids are made here."""
        yield from ()
        generator = torch.Generator().manual_seed(int(example.base_id))
        request, made = Request("memory", (), COMPLETION), []
        for _ in range(self.calls):
            ids = torch.randint(3, VOCABULARY, (self.prompt + COMPLETION,), generator=generator).tolist()
            reply = Reply("w", prompt_ids=tuple(ids[: self.prompt]), completion_ids=tuple(ids[self.prompt :]))
            made.append(Call(request, reply))
        flags = {"valid_interaction": True, "memory_complete": True}
        return Rollout(example.key, tuple(made), Outcome("w", "", None, flags), self.calls)


class Scores:
    """Rewards that differ within every group, in turn."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> float:
        self.count += 1
        return float(self.count % 4)


def settings(out: Path, rollouts: int, steps: int) -> dict[str, Any]:
    """TRL's arguments that both sides share."""
    return {
        "output_dir": str(out), "use_cpu": True, "bf16": False, "report_to": [], "disable_tqdm": True,
        "logging_steps": 1, "save_strategy": "no", "gradient_checkpointing": False, "learning_rate": 1e-4,
        "max_steps": steps, "num_generations": 4, "loss_type": "dapo",
        "per_device_train_batch_size": rollouts, "log_completions": False, "ddp_find_unused_parameters": False,
    }  # fmt: skip


def parts(model: Path) -> dict[str, Any]:
    """Model, tokenizer and adapter, new ones for each trainer."""
    from peft import LoraConfig
    from transformers import AutoModelForCausalLM, AutoTokenizer

    return {
        "model": AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32),
        "processing_class": AutoTokenizer.from_pretrained(model),
        "peft_config": LoraConfig(r=8, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM"),
    }


def questions(count: int) -> list[Example]:
    """Examples without documents."""
    return [Example("", "json", f"w{i}", Reference(("w",)), base_id=str(i)) for i in range(count)]


def ours(model: Path, out: Path, *, calls: int, rollouts: int, per_micro_batch: int, steps: int) -> Any:
    """The trainer over fixed rollouts."""
    from trl.trainer.grpo_config import GRPOConfig

    scores = Scores()

    def score(rollout: Rollout, example: Example) -> float:
        return scores()

    return ConversationTrainer(
        args=GRPOConfig(**settings(out, rollouts, steps)),
        environment=Fixed(calls),
        examples=questions(64),
        rewards=[score],
        per_micro_batch=per_micro_batch,
        **parts(model),
    )


def theirs(model: Path, out: Path, *, conversations: int, per_micro_batch: int, steps: int) -> Any:
    """TRL's own trainer: a conversation is a rollout, gradients are accumulated over micro-batches of R."""
    from datasets import Dataset
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.grpo_trainer import GRPOTrainer

    class Given(GRPOTrainer):
        def _generate_single_turn(self, prompt_ids: list[Any], *rest: Any, **more: Any) -> Any:
            generator = torch.Generator().manual_seed(self.state.global_step)
            size = (len(prompt_ids), COMPLETION)
            return torch.randint(3, VOCABULARY, size, generator=generator).tolist(), None

    scores = Scores()

    def score(completions: list[Any], **_: Any) -> list[float | None]:
        return [scores() for _ in completions]

    arguments = settings(out, per_micro_batch, steps)
    arguments["gradient_accumulation_steps"] = conversations // per_micro_batch
    prompts = [" ".join(f"w{(i * 7 + j) % 500}" for j in range(PROMPT)) for i in range(64)]
    return Given(
        args=GRPOConfig(**arguments),
        reward_funcs=score,
        train_dataset=Dataset.from_dict({"prompt": prompts}),
        **parts(model),
    )


def step_seconds(trainer: Any) -> list[float]:
    """CPU seconds of each optimiser step but the first."""
    from transformers import TrainerCallback

    marks: list[float] = []

    class Clock(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            marks.append(time.process_time())

    trainer.add_callback(Clock())
    trainer.train()
    return [after - before for before, after in itertools.pairwise(marks)]


def ratio(model: Path, out: Path, steps: int) -> tuple[float, float]:
    """Seconds a trained token, here and in TRL's trainer. Rollouts of 4 calls, 16 rollouts, R = 4."""
    mine, other = [], []
    for _ in range(2):
        mine += step_seconds(ours(model, out, calls=4, rollouts=16, per_micro_batch=4, steps=steps))
        other += step_seconds(theirs(model, out, conversations=64, per_micro_batch=4, steps=steps))
    tokens = 64 * COMPLETION
    return statistics.median(mine) / tokens, statistics.median(other) / tokens


def overhead(model: Path, out: Path, steps: int) -> tuple[float, int]:
    """CPU milliseconds a call with a sampler and a loss that take no time, and the calls of a step."""
    from driver import examples
    from treeagent.data.tokens import load_tokenizer
    from treeagent.infer import agents
    from treeagent.infer.documents import Documents
    from treeagent.infer.environment import MemoryEnv
    from trl.trainer.grpo_config import GRPOConfig

    class Instant(ConversationTrainer):
        def _complete(self, prompts: list[list[int]], most: int) -> Any:
            return [([3 + i % 500, 4, 5, 0], None) for i in range(len(prompts))]

        def _get_per_token_logps_and_entropies(self, model: Any, input_ids: Any, *rest: Any, **more: Any) -> Any:
            keep = rest[1]
            weight = next(p for p in model.parameters() if p.requires_grad)
            logps = torch.zeros(len(input_ids), keep) + weight.sum() * 0
            return logps, torch.zeros_like(logps), None

    scores = Scores()

    def score(rollout: Rollout, example: Example) -> float:
        return scores()

    base = parts(model)
    counter = load_tokenizer(base["processing_class"])
    documents = Documents(counter, 400)
    known = examples(4, counter, 400)
    for example in known:
        documents.readings(example.context, example.format).result()
    agent = agents.build("memagent", tokenizer=counter)
    trainer = Instant(
        args=GRPOConfig(**settings(out, 16, steps)),
        environment=MemoryEnv(agent, "treeagent", counter, documents=documents),
        examples=known,
        rewards=[score],
        per_micro_batch=4,
        **base,
    )
    seconds = statistics.median(step_seconds(trainer))
    calls = next(int(log["conversations"]) for log in trainer.state.log_history if "conversations" in log)
    return seconds / calls * 1000, calls


def peak(model: Path, out: Path, calls: int, per_micro_batch: int) -> float:
    """MiB by which a step raised this process's largest memory."""
    trainer = ours(model, out, calls=calls, rollouts=8, per_micro_batch=per_micro_batch, steps=1)
    gc.collect()
    trainer.environment = Fixed(calls, LONG_PROMPT)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = _mebibytes("VmRSS")
    trainer.train()
    return _mebibytes("VmHWM") - before


def _mebibytes(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=6, help="optimiser steps of a run")
    parser.add_argument("--peak", nargs=3, metavar=("MODEL", "CALLS", "R"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    import transformers

    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        if chosen.peak:
            print(f"PEAK {peak(Path(chosen.peak[0]), out, int(chosen.peak[1]), int(chosen.peak[2])):.1f}")
            return
        model = save_model(out / "model")
        lines = []
        each, calls = overhead(model, out, chosen.steps)
        lines.append(f"beyond the model: {each:.2f} ms of CPU a call ({calls} calls a step)")
        mine, other = ratio(model, out, chosen.steps)
        lines.append(
            f"a trained token: {mine * 1e3:.3f} ms here, {other * 1e3:.3f} ms in TRL's own trainer, {mine / other:.2f}x"
        )
        for count, size in ((4, 1), (16, 1), (4, 4), (16, 4)):
            command = [sys.executable, __file__, "--peak", str(model), str(count), str(size)]
            ran = subprocess.run(command, capture_output=True, text=True, check=True)
            told = next(line.split()[1] for line in ran.stdout.splitlines() if line.startswith("PEAK"))
            lines.append(f"memory of a step: R = {size}, {count} conversations a rollout, 8 rollouts: {told} MiB more")
        print("\n".join(lines))


if __name__ == "__main__":
    main()
