"""What the tests of training share: a tiny random model over single characters, an environment without documents, a
trainer in float32, and the policy gradient written out in plain torch. Run as a script it checks the gradient on
several processes: `python -m torch.distributed.run --nproc-per-node 2 train_harness.py MODEL OUT '{"per_micro_batch":
3}'`."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.update(
    HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1", TOKENIZERS_PARALLELISM="false", DS_ACCELERATOR="cpu"
)
os.environ.setdefault("WANDB_MODE", "disabled")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from treeagent.data.rollout import Call, Example, Outcome, Reference, Reply, Request, Rollout

CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ012345"
EARLY = frozenset("abcdefghijklm")
FLAGS = {"valid_interaction": True, "memory_complete": True}


def save_tiny_model(folder: Path, *, scale: float = 4.0, head_dim: int = 8) -> Path:
    """A two-layer Qwen3 over 64 tokens. The embeddings are scaled up because tied ones of the usual size bound the
    logits so tightly that nothing can be learned; x4 keeps the entropy high."""
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    words = ["<eos>", "<pad>", "<user>", "<reply>", *CHARACTERS, "<unk>", "<spare>"]
    inner = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Split("", "isolated")  # pyright: ignore[reportAttributeAccessIssue]
    inner.decoder = decoders.Fuse()  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token="<eos>", pad_token="<pad>", additional_special_tokens=["<user>", "<reply>"]
    )
    tokenizer.chat_template = (
        "{% for m in messages %}<user>{{ m['content'] }}{% endfor %}{% if add_generation_prompt %}<reply>{% endif %}"
    )
    config = Qwen3Config(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=head_dim, max_position_embeddings=512, tie_word_embeddings=True,
        eos_token_id=0, pad_token_id=1, bos_token_id=None,
    )  # fmt: skip
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(config)
    with torch.no_grad():
        model.model.embed_tokens.weight.mul_(scale)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def example(index: int, question: str = "") -> Example:
    """An example told apart by its question and number."""
    return Example("", "json", question or CHARACTERS[index % 26], Reference(("x",)), base_id=str(index))


def on_two_processes(harness: str, model: Path, out: Path, **options: Any) -> dict[str, Any]:
    """What two gloo processes that run this script of the folder found, with these options."""
    out.mkdir(exist_ok=True)
    script = str(Path(__file__).with_name(harness))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", script]
    ran = subprocess.run(
        [*command, str(model), str(out), json.dumps(options)],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "DS_ACCELERATOR": "cpu"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    facts = json.loads((out / "facts.json").read_text())
    assert facts["world"] == 2
    return facts


@dataclass
class Questions:
    """An environment of 1 to `most` questions: how many depends on the example and on the first reply, so that
    rollouts of one group differ in their number of calls. Prompts grow, and each request has its own token limit."""

    most: int = 6
    max_tokens: int = 4

    def rollout(self, example: Example) -> Generator[Request, Reply, Rollout]:
        """Asks; the answer is all replies joined."""
        calls: list[Call] = []
        count = 1
        while len(calls) < count:
            turn = len(calls)
            words = example.question * (1 + turn) + "abc"[: turn % 3]
            request = Request("memory", ({"role": "user", "content": words},), self.max_tokens + turn % 3)
            calls.append(Call(request, (yield request)))
            if turn == 0:
                count = 1 + (int(example.base_id) + sum(calls[0].reply.completion_ids)) % self.most
        text = "".join(call.reply.text for call in calls)
        return Rollout(example.key, tuple(calls), Outcome(text, "", None, FLAGS), n_sections=len(calls))


def early_letters(rollout: Rollout, example: Example) -> float:
    """The share of a..m among the generated characters."""
    text = rollout.outcome.answer_text
    return sum(c in EARLY for c in text) / max(len(text), 1)


def length(rollout: Rollout, example: Example) -> float:
    """Generated characters, in tens."""
    return len(rollout.outcome.answer_text) / 10


def half_flat(rollout: Rollout, example: Example) -> float:
    """As `early_letters` for every other example; for the rest always the same."""
    return 0.3 if int(example.base_id) % 2 else early_letters(rollout, example)


def flat(rollout: Rollout, example: Example) -> float:
    """Always the same: nothing to learn from."""
    return 0.3


def build_trainer(model: Path, out: Path, environment: Any, examples: list[Example], **options: Any) -> Any:
    """A trainer in float32 on the CPU with plain LoRA; options that begin with `trl_` go to TRL's configuration."""
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from treeagent.train.trainer import ConversationTrainer
    from trl.trainer.grpo_config import GRPOConfig

    settings: dict[str, Any] = {
        "output_dir": str(out), "use_cpu": True, "bf16": False, "report_to": [], "disable_tqdm": True,
        "logging_steps": 1, "save_strategy": "no", "activation_checkpointing": False, "learning_rate": 1e-2,
        "lr_scheduler_type": "constant",
        "max_steps": 1, "per_device_train_batch_size": 4, "num_generations": 4, "max_grad_norm": 0.0, "seed": 3,
        "ddp_find_unused_parameters": False,
    }  # fmt: skip
    settings |= {name.removeprefix("trl_"): options.pop(name) for name in list(options) if name.startswith("trl_")}
    kind = options.pop("kind", ConversationTrainer)
    defaults: dict[str, Any] = {"rewards": [early_letters, length], "per_micro_batch": 2}
    if not hasattr(GRPOConfig, "activation_checkpointing"):  # its name before transformers 5.24
        settings["gradient_checkpointing"] = settings.pop("activation_checkpointing")
    arguments = GRPOConfig(**settings)  # before the model: it starts the processes' group
    if settings.get("deepspeed"):
        import deepspeed

        deepspeed.init_distributed(dist_backend="gloo", verbose=False)
    return kind(
        model=AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32),
        processing_class=AutoTokenizer.from_pretrained(model),
        args=arguments,
        environment=environment,
        examples=examples,
        peft_config=lora(),
        **(defaults | options),
    )


def lora() -> Any:
    """The adapter of the tests."""
    from peft import LoraConfig

    return LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM")


def group_advantages(rewards: Sequence[float], group: int) -> list[float]:
    """(r - mean) / (std + 1e-4) within each group, with the sample standard deviation (GRPO, Eq. 3 of DeepSeekMath)."""
    out = []
    for start in range(0, len(rewards), group):
        values = rewards[start : start + group]
        mean = sum(values) / group
        std = (sum((v - mean) ** 2 for v in values) / (group - 1)) ** 0.5
        out += [(v - mean) / (std + 1e-4) for v in values]
    return out


def logprobs(model: Any, prompt: tuple[int, ...], completion: tuple[int, ...]) -> torch.Tensor:
    """Log-probabilities of a completion: one sequence, no padding, no mask, full logits."""
    logits = model(input_ids=torch.tensor([[*prompt, *completion]])).logits[0, len(prompt) - 1 : -1]
    return logits.log_softmax(-1).gather(1, torch.tensor(completion)[:, None])[:, 0]


def plain_gradient(
    model: Any, rollouts: list[Rollout], advantages: list[float], weighting: str
) -> dict[str, torch.Tensor]:
    """The gradient of -sum of advantage times log-probability over all tokens: over T; or averaged within calls, then
    over calls; or within rollouts, then over rollouts."""
    texts = [[c.reply for c in rollout.calls if c.reply.completion_ids] for rollout in rollouts]
    all_tokens = sum(len(reply.completion_ids) for replies in texts for reply in replies)
    all_calls = sum(len(replies) for replies in texts)
    total = torch.zeros(())
    for replies, advantage in zip(texts, advantages, strict=True):
        sums = [logprobs(model, reply.prompt_ids, reply.completion_ids).sum() for reply in replies]
        lengths = [len(reply.completion_ids) for reply in replies]
        if weighting == "token":
            objective = sum(sums) / all_tokens
        elif weighting == "call":
            objective = sum(s / n for s, n in zip(sums, lengths, strict=True)) / all_calls
        else:
            objective = sum(sums) / sum(lengths) / len(rollouts)
        total = total - advantage * objective
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    return dict(zip(named, torch.autograd.grad(total, list(named.values())), strict=True))


def relative_error(got: dict[str, torch.Tensor], want: dict[str, torch.Tensor]) -> float:
    """|got - want| / |want| over all entries (L2)."""
    difference = sum(((got[name] - want[name]).double() ** 2).sum().item() for name in want)
    return (difference / sum((value.double() ** 2).sum().item() for value in want.values())) ** 0.5


def check_gradient(
    model: Path, out: Path, *, group: int = 4, weighting: str = "token", **options: Any
) -> dict[str, Any]:
    """Trains and compares every step's gradient, as it reaches the optimiser, with the plain one over all ranks'
    rollouts."""
    from accelerate.utils import gather_object
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
    from transformers import TrainerCallback
    from treeagent.train.trainer import ConversationTrainer

    facts: dict[str, Any] = {
        "errors": [],
        "items": [],
        "tokens": [],
        "calls": [],
        "rows": [],
        "sampled": 0,
        "exchanged": 0,
    }

    class Recording(ConversationTrainer):
        def roll_out(self, *args: Any, **kwargs: Any) -> list[Rollout]:
            self.seen = super().roll_out(*args, **kwargs)
            return self.seen

        def sample(self, requests: Any) -> Any:
            facts["sampled"] += 1
            return super().sample(requests)

        def _generate_and_score_completions(self, inputs: Any) -> Any:
            batch = super()._generate_and_score_completions(inputs)
            facts["items"].append(int(batch["num_items_in_batch"]))
            facts["rows"].append(gather_object([len(batch["advantages"])]))
            padding = batch["tool_mask"].amin(dim=1) == 0
            assert not batch["advantages"][padding].any()
            return batch

    @functools.wraps(allreduce_hook)  # torch reads a hook's annotations
    def exchange(group: Any, bucket: Any) -> Any:
        facts["exchanged"] += 1
        return allreduce_hook(group, bucket)

    class Compare(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if trainer.accelerator.num_processes > 1:
                trainer.model_wrapped.register_comm_hook(None, exchange)

        def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            plain = trainer.accelerator.unwrap_model(kwargs["model"])
            got = {name: p.grad.clone() for name, p in plain.named_parameters() if p.requires_grad}
            rollouts = gather_object(trainer.seen)
            examples = {e.key: e for e in trainer.train_examples}
            rewards = [sum(f(r, examples[r.key]) for f in trainer.rewards) for r in rollouts]
            want = plain_gradient(plain, rollouts, group_advantages(rewards, group), weighting)
            facts["errors"].append(relative_error(got, want))
            facts["tokens"].append(sum(len(c.reply.completion_ids) for r in rollouts for c in r.calls))
            facts["calls"].append([sum(len(r.calls) for r in trainer.seen)])
            facts["calls"][-1] = gather_object(facts["calls"][-1])

    options = {"trl_num_generations": group, "kind": Recording, "weighting": weighting} | options
    trainer = build_trainer(model, out, Questions(), [example(i) for i in range(12)], **options)
    trainer.add_callback(Compare())
    trainer.train()
    facts["sampled"] = gather_object([facts["sampled"]])
    facts["world"] = trainer.accelerator.num_processes
    facts["logs"] = [log for log in trainer.state.log_history if "grad_norm" in log or "loss" in log]
    return facts


if __name__ == "__main__":
    found = check_gradient(Path(sys.argv[1]), Path(sys.argv[2]), **json.loads(sys.argv[3]))
    if os.environ.get("RANK", "0") == "0":
        Path(sys.argv[2], "facts.json").write_text(json.dumps(found))
