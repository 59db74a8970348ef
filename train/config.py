"""What `treeagent train` can be told. Defaults follow the paper (Appendix D) where it states a value; help says where
it does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, Lt

from ..config import Budget, Positive, option
from ..errors import ConfigError
from ..infer import agents
from ..infer.observe import Kind

Share = Annotated[float, Ge(0), Le(1)]


@dataclass(frozen=True)
class Examples:
    """Which examples are trained on, and which ones tell how it goes."""

    folder: str = option(help="folder that `treeagent build` made")
    split: str = option("train", "split to train on")
    dev_split: str | None = option(None, "split for greedy evaluation while training; null: none (needs eval_every)")
    tasks: tuple[str, ...] | None = option(None, "only these tasks; null: all")
    lengths: tuple[Positive, ...] | None = option(
        None, "only these lengths, in tokens; null: all (the paper trains on 32K)"
    )
    limit: Positive | None = option(None, "only the first examples of the split; null: all")
    dev_limit: Positive | None = option(None, "only the first examples of the dev split; null: all")


@dataclass(frozen=True)
class Exploration:
    """How rollouts are sampled. The paper does not state it; these are the values of the released InfMem training."""

    temperature: Annotated[float, Gt(0)] = option(1.0, "sampling temperature (ours; not in the paper)")
    top_p: Annotated[float, Gt(0), Le(1)] = option(1.0, "1 keeps all tokens (ours; not in the paper)")
    top_k: Annotated[int, Ge(0)] = option(0, "0 keeps all tokens (ours; not in the paper)")


@dataclass(frozen=True)
class Lora:
    """The adapter."""

    rank: Positive = option(32, "rank (Appendix D)")
    alpha: Annotated[float, Gt(0)] = option(32, "scaling; the factor is alpha / rank (Appendix D)")
    dropout: Annotated[float, Ge(0), Lt(1)] = option(0.0, "dropout (Appendix D)")
    targets: str = option(
        "all-linear", "all-linear (Appendix D), or module names with commas between, as q_proj,v_proj"
    )


@dataclass(frozen=True)
class Optimizer:
    """AdamW without weight decay."""

    learning_rate: Annotated[float, Gt(0)] = option(5e-6, "learning rate (Appendix D)")
    schedule: Literal["constant", "constant_with_warmup", "linear", "cosine"] = option(
        "constant", "how the learning rate changes over the steps (ours; not in the paper)"
    )
    warmup_steps: Annotated[int, Ge(0)] = option(0, "steps until the learning rate is reached (ours; not in the paper)")
    max_grad_norm: Annotated[float, Ge(0)] = option(
        1.0, "gradients are scaled down to this norm; 0: never (ours; not in the paper)"
    )


@dataclass(frozen=True)
class Loss:
    """GRPO's objective over the tokens of all conversations of a step, with one denominator over all processes."""

    type: str = option(
        "dapo", "dapo or cispo: the losses that do not depend on how rows are grouped (ours; not in the paper)"
    )
    epsilon: Annotated[float, Gt(0), Lt(1)] = option(
        0.2, "clip range of the probability ratio (ours; not in the paper)"
    )
    epsilon_high: Annotated[float, Gt(0)] | None = option(
        None, "upper clip range; null: as epsilon; needed by cispo, as 5.0"
    )
    beta: Annotated[float, Ge(0)] = option(0.0, "weight of the KL term to the base model (ours; not in the paper)")
    scale_rewards: Literal["group", "batch", "none"] = option(
        "group", "divide advantages by the deviation of their group, of the batch, or by nothing (as the cited GRPO)"
    )
    weighting: Literal["token", "call", "rollout"] = option(
        "token", "what weighs alike in a step: generated tokens, model calls, or rollouts (ours; not in the paper)"
    )


@dataclass(frozen=True)
class Rewards:
    """Weights of the reward's terms."""

    answer_score: float = option(1.0, "weight of the answer score (Appendix D)")
    valid_interaction: float = option(0.05, "weight of following the agent's protocol (Appendix D)")
    memory_complete: float = option(0.05, "weight of completing every memory update (Appendix D)")


@dataclass(frozen=True)
class TrainConfig:
    """One fine-tuning run by GRPO."""

    out: str = option(help="run folder; repeating the command resumes what it holds")
    benchmark: Examples = option(help="the examples")
    model: str | None = option(
        None, "Hugging Face name, folder, or .gguf file; null: the demo model, if it is installed"
    )
    dtype: Literal["bf16", "fp32"] = option(
        "bf16", "number format of the weights and of the arithmetic; adapters stay in fp32"
    )
    agent: str = option("memagent", "the agent whose calls are trained (the paper trains InfMem)")
    agent_options: dict[str, Any] = option({}, "its options, as in {max_tokens: 48}")
    observer: Kind = option("treeagent", "what the section slot of the prompts shows")
    budget: Budget = option(5000, "section budget C, in tokens of the model's tokenizer")
    steps: Positive = option(30, "optimiser steps (Appendix D)")
    prompts_per_step: Positive = option(64, "questions of one step over all processes (Appendix D)")
    rollouts_per_prompt: Annotated[int, Ge(2)] = option(4, "rollouts of each question, a group (Appendix D)")
    exploration: Exploration = option(Exploration(), "how rollouts are sampled")
    conversations_per_micro_batch: Positive = option(
        1, "R: model calls in one forward and backward pass of a process; bounds memory, changes nothing else"
    )
    generation_batch: Positive = option(32, "prompts in one generation call of a process; bounds memory")
    gradient_checkpointing: bool = option(
        True, "compute activations twice instead of keeping them: less memory, more time"
    )
    drop_zero_advantage: bool = option(
        True, "leave out the calls of groups whose rewards are all equal: less time, the same gradient (without beta)"
    )
    optimizer: Optimizer = option(Optimizer(), "the optimiser")
    lora: Lora = option(Lora(), "the adapter")
    loss: Loss = option(Loss(), "the objective")
    rewards: Rewards = option(Rewards(), "weights of the reward's terms")
    seed: int = option(42, "seed of data order, adapter and sampling (Appendix D)")
    save_every: Positive = option(5, "steps between checkpoints (Appendix D)")
    eval_every: Positive | None = option(None, "steps between greedy evaluations on the dev split; null: never")
    processes: Positive | None = option(None, "refuse to run on another number of processes than this; null: any")
    report_to: Literal["none", "wandb"] = option("none", "tracker; with WANDB_MODE=offline nothing leaves the machine")
    log_rollouts: Annotated[int, Ge(0)] = option(
        4, "rollouts of each step kept turn by turn, in rollouts.jsonl and the tracker's table; 0: none"
    )

    @property
    def rollouts_per_step(self) -> int:
        """Rollouts of one step over all processes."""
        return self.prompts_per_step * self.rollouts_per_prompt

    def __post_init__(self) -> None:
        """Raises ConfigError for what cannot work and for settings that would do nothing."""
        agents.build(self.agent, tokenizer=None, **self.agent_options)
        self._check_loss()
        self._check_evaluation()
        if not any((self.rewards.answer_score, self.rewards.valid_interaction, self.rewards.memory_complete)):
            raise ConfigError("rewards: all weights are 0, there is nothing to learn")
        warms = self.optimizer.schedule != "constant"
        if self.optimizer.warmup_steps and not warms:
            raise ConfigError("optimizer.warmup_steps does nothing with schedule constant: use constant_with_warmup")
        if self.optimizer.warmup_steps >= self.steps and warms:
            raise ConfigError(
                f"optimizer.warmup_steps: {self.optimizer.warmup_steps} is not below steps ({self.steps})"
            )

    def _check_loss(self) -> None:
        if self.loss.type not in ("dapo", "cispo"):
            raise ConfigError(
                f"loss.type: {self.loss.type!r} depends on padding and on how rows are grouped; use dapo or cispo"
            )
        if self.loss.type == "cispo" and self.loss.epsilon_high is None:
            raise ConfigError("loss.epsilon_high: cispo clips at this ratio and needs one, such as 5.0")
        if self.loss.beta and self.loss.weighting != "token":
            raise ConfigError("loss.beta: the KL term is not scaled by the advantage, so it needs loss.weighting token")

    def _check_evaluation(self) -> None:
        if (self.eval_every is None) != (self.benchmark.dev_split is None):
            raise ConfigError("eval_every and benchmark.dev_split do nothing without each other: set both or neither")
        if self.benchmark.dev_limit is not None and self.benchmark.dev_split is None:
            raise ConfigError("benchmark.dev_limit does nothing without benchmark.dev_split")
        if self.eval_every and self.save_every % self.eval_every:
            raise ConfigError(
                f"save_every: {self.save_every} is not a multiple of eval_every ({self.eval_every}), "
                "so the best checkpoint could not be chosen"
            )

    def check_processes(self, launched: int) -> int:
        """Rollouts of one process when `launched` run. Raises ConfigError if they do not divide or another number was
        asked."""
        if self.processes not in (None, launched):
            raise ConfigError(
                f"processes: {self.processes} were asked for, {launched} run: use accelerate launch with its own file"
            )
        if self.rollouts_per_step % launched:
            raise ConfigError(
                f"prompts_per_step x rollouts_per_prompt: {self.rollouts_per_step} rollouts cannot be divided among "
                f"{launched} processes"
            )
        return self.rollouts_per_step // launched
