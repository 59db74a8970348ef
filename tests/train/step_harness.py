"""Trains by plain gradient descent with a rate of 1, so that a step's difference is its gradient however parameters are
kept, and compares it with the objective written out. Run as a script it does so on several processes:
`python -m torch.distributed.run --nproc-per-node 2 step_harness.py MODEL OUT '{"stage": 3}'`."""

from __future__ import annotations

import json
import os
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import stub_vllm
import torch
import train_harness
from objective import Reference, Terms
from train_harness import Questions, build_trainer, example, group_advantages, relative_error
from treeagent.data.rollout import Rollout


def deepspeed_settings(stage: int) -> dict[str, Any]:
    """ZeRO in float32, with sizes so small that even this model is cut up. Skips the C++ build of a faster exchange."""
    import deepspeed.ops

    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    return {
        "train_micro_batch_size_per_gpu": "auto",
        "train_batch_size": "auto",
        "gradient_accumulation_steps": "auto",
        "zero_allow_untested_optimizer": True,
        "zero_optimization": {"stage": stage, "stage3_param_persistence_threshold": 0},
    }


def whole(trainer: Any, parameters: list[Any]) -> AbstractContextManager[Any]:
    """Within it, parameters that ZeRO-3 has cut up are whole."""
    if not trainer.is_deepspeed_enabled:
        return nullcontext()
    import deepspeed

    return deepspeed.zero.GatheredParameters(parameters)


def trained(trainer: Any) -> dict[str, torch.Tensor]:
    """Copies of the adapter's parameters by name. Every process takes part."""
    plain = trainer.accelerator.unwrap_model(trainer.model)
    named = [(name, p) for name, p in plain.named_parameters() if p.requires_grad]
    with whole(trainer, [p for _, p in named]):
        return {name: p.detach().float().clone() for name, p in named}


def check_steps(
    model: Path,
    out: Path,
    *,
    stage: int = 0,
    group: int = 4,
    terms: Terms = Terms(),  # noqa: B008 - a frozen value
    environment: Any = None,
    kind: Any = None,
    **options: Any,
) -> dict[str, Any]:
    """Trains and compares each step with the objective over all processes' rollouts."""
    from accelerate.utils import gather_object
    from transformers import TrainerCallback
    from treeagent.train.trainer import ConversationTrainer

    facts: dict[str, Any] = {"errors": [], "clipped": [], "calls": [], "flat": [], "norms": []}
    base: Any = kind or ConversationTrainer

    class Recording(base):
        def roll_out(self, *args: Any, **kwargs: Any) -> list[Rollout]:
            self.sampled_with = trained(self)
            self.seen = super().roll_out(*args, **kwargs)
            return self.seen

    class Compare(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            after = trained(trainer)
            rollouts = gather_object(trainer.seen)
            examples = {e.key: e for e in trainer.train_examples}
            rewards = [sum(f(r, examples[r.key]) for f in trainer.rewards) for r in rollouts]
            advantages = group_advantages(rewards, group)
            now = facts.pop("now", None) or trainer.sampled_with
            want = reference.gradient(rollouts, advantages, trainer.sampled_with, now)
            facts["syncs"] = getattr(getattr(trainer, "vllm_generation", None), "syncs", 0)
            got = {name: now[name] - after[name] for name in want}
            facts["errors"].append(relative_error(got, want))
            facts["clipped"].append(reference.clipped)
            facts["calls"].append(gather_object([sum(len(r.calls) for r in trainer.seen)]))
            groups = [rewards[i : i + group] for i in range(0, len(rewards), group)]
            facts["flat"].append(sum(len(set(one)) == 1 for one in groups) / len(groups))
            facts["norms"].append(sum(float((value**2).sum()) for value in want.values()) ** 0.5)
            facts["now"] = after

    reference = Reference(model, terms)  # before the trainer, whose configuration cuts up all later models
    defaults: dict[str, Any] = {
        "trl_optim": "sgd",
        "trl_learning_rate": 1.0,
        "trl_num_generations": group,
        "trl_max_steps": 2,
        "per_micro_batch": 3,
    }
    if stage:
        defaults["trl_deepspeed"] = deepspeed_settings(stage)
    trainer = build_trainer(
        model, out, environment or Questions(), [example(i) for i in range(12)], kind=Recording, **(defaults | options)
    )
    trainer.add_callback(Compare())
    trainer.train()
    del facts["now"]
    facts["world"] = trainer.accelerator.num_processes
    facts["distributed"] = str(trainer.accelerator.distributed_type)
    facts["logs"] = [log for log in trainer.state.log_history if "grad_norm" in log or "loss" in log]
    return facts


if __name__ == "__main__":
    chosen = json.loads(sys.argv[3])
    if "rewards" in chosen:
        chosen["rewards"] = [getattr(train_harness, name) for name in chosen["rewards"]]
    if sampling := chosen.pop("stub", ""):
        stub_vllm.install(setattr)
        chosen |= stub_vllm.options(sampling) | {"terms": Terms(sampling=sampling, most=stub_vllm.MOST)}
    found = check_steps(Path(sys.argv[1]), Path(sys.argv[2]), **chosen)
    if os.environ.get("RANK", "0") == "0":
        Path(sys.argv[2], "facts.json").write_text(json.dumps(found))
