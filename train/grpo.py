"""`treeagent train`: GRPO with LoRA over the environment that `evaluate` uses.

What the user can mend is checked before anything heavy is loaded. The run resumes from its newest whole checkpoint, to
the same numbers as if it had not stopped. At the end the adapter lies in `RUN/adapter`, for `treeagent evaluate
--adapter`.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from ..config import to_dict, to_yaml
from ..data.rollout import Example, Rollout
from ..errors import ConfigError, ModelError, RunError
from ..infer import agents
from ..infer.store import write_atomic
from ..rewards import grpo as rewards
from . import card
from .config import TrainConfig
from .deepspeed_cpu import without_compiling
from .memory import advice, ran_out
from .progress import ConsoleProgress, Progress
from .recording import Recorder, RolloutRecorder
from .run_folder import RunFolder, read_lines
from .summary import summarise, summary_lines
from .tracking import Wandb

TRL_VERSION = "1.16"
"""The only minor version whose private methods the trainer knows."""
NOT_IDENTITY = {
    *("out", "processes", "report_to", "log_rollouts"),
    *("conversations_per_micro_batch", "generation_batch", "gradient_checkpointing"),
}
"""What may change when a run is resumed: names, what is told, and what only bounds memory."""
METRIC = "eval_rewards/answer_score/mean"


@dataclass(frozen=True)
class Run:
    """What a run is made of, besides its configuration."""

    config: TrainConfig
    agent: agents.Agent
    model_name: str
    examples: Sequence[Example]
    dev: Sequence[Example]
    folder: RunFolder
    progress: Progress


def train(config: TrainConfig, console: Console) -> None:
    """Trains, resumes or, if all is done, reports. Raises TreeAgentError for what the user can mend."""
    _quiet(config)
    check_trl()
    launched = int(os.environ.get("WORLD_SIZE", "1"))
    config.check_processes(launched)
    first = os.environ.get("RANK", "0") == "0"
    run = _prepare(config, ConsoleProgress(console) if first else Progress())
    if first:
        run.folder.claim(_identity(run, launched), to_yaml(config))
    try:
        if run.folder.summary.exists():
            run.progress.line(f"{run.folder.path}: this run is finished")
        else:
            run.progress.line(f"training {run.model_name}: {len(run.examples)} examples, {config.steps} steps")
            _train(run, launched)
        if first:
            for line in summary_lines(json.loads(run.folder.summary.read_text("utf-8"))):
                run.progress.line(line)
    finally:
        run.progress.stop()
        if first:
            run.folder.release()


def check_trl() -> None:
    """Raises ModelError unless the installed TRL is the one that the trainer was written against."""
    try:
        version = importlib.metadata.version("trl")
    except importlib.metadata.PackageNotFoundError as error:
        raise ModelError("training needs the package trl: pip install 'treeagent[train]'") from error
    if version.split(".")[:2] != TRL_VERSION.split("."):
        raise ModelError(f"training needs trl {TRL_VERSION}.x, {version} is installed: pip install 'trl>=1.16,<1.17'")


def _quiet(config: TrainConfig) -> None:
    """Environment of the libraries, set before their import: no telemetry, no chatter, tracker files in the run."""
    for name, value in {
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "TRL_EXPERIMENTAL_SILENCE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "TRANSFORMERS_VERBOSITY": "error",
        "TQDM_DISABLE": "1",
        "OMP_WAIT_POLICY": "PASSIVE",  # threads that spin while they wait starve one another on a shared machine
        "WANDB_PROJECT": "treeagent",
        "WANDB_DIR": str(Path(config.out)),
        "WANDB_SILENT": "true",
    }.items():
        os.environ.setdefault(name, value)
    warnings.filterwarnings("ignore", module=r"(transformers|trl|peft|accelerate|torch)(\.|$)")


def _prepare(config: TrainConfig, progress: Progress) -> Run:
    """Reads the examples. Raises ConfigError where there are too few for one step."""
    from ..data.benchmark import load_examples
    from ..data.tokens import load_tokenizer
    from ..infer.models import default_model

    data = config.benchmark
    pick = {"tasks": data.tasks, "lengths": data.lengths}
    examples = load_examples(data.folder, data.split, limit=data.limit, **pick)
    dev = load_examples(data.folder, data.dev_split, limit=data.dev_limit, **pick) if data.dev_split else []
    if len(examples) < config.prompts_per_step:
        raise ConfigError(
            f"prompts_per_step: {config.prompts_per_step}, but {data.folder} has {len(examples)} such examples"
        )
    name = config.model or default_model()
    agent = agents.build(config.agent, tokenizer=load_tokenizer(name), **config.agent_options)
    return Run(config, agent, name, examples, dev, RunFolder(Path(config.out)), progress)


def _identity(run: Run, launched: int) -> dict[str, Any]:
    """What must be equal for a run to go on in a folder: settings, contents of model and benchmark, prompts,
    processes."""
    from ..infer.models import fingerprint

    settings = {key: value for key, value in to_dict(run.config).items() if key not in NOT_IDENTITY}
    keys = "".join(example.key for example in (*run.examples, *run.dev))
    return settings | {
        "model": fingerprint(run.model_name),
        "examples": hashlib.sha256(keys.encode()).hexdigest()[:16],
        "prompts": run.agent.prompts_hash,
        "processes": launched,
    }


def _train(run: Run, launched: int) -> None:
    from .saved import saved_change

    config, folder = run.config, run.folder
    run.progress.show("loading the model")
    without_compiling()
    trainer = _trainer(run, config.check_processes(launched))
    if trainer.accelerator.num_processes != launched:
        raise RunError(
            f"{launched} processes were launched, but only {trainer.accelerator.num_processes} work together"
        )
    _learn(run, trainer, folder.last_checkpoint(launched))
    trainer.save_model(str(folder.adapter))
    if trainer.accelerator.is_main_process:
        steps, dev = read_lines(folder.steps), read_lines(folder.dev)
        summarise(folder, steps, dev, saved_change(folder.adapter), trainer.state.best_global_step)
        write_atomic(folder.adapter / "README.md", card.render(card.of_run(folder.path), merged=False))


def _learn(run: Run, trainer: Any, checkpoint: Path | None) -> None:
    """Trains to the end. Raises KeyboardInterrupt after a signal, RunError if memory ran out or numbers are none."""
    from accelerate.utils import gather_object

    from .journal import Journal
    from .stopping import NanGuard, Stopper, to_stderr

    folder, first = run.folder, trainer.accelerator.is_main_process
    stopper = Stopper(lambda count: max(gather_object([count])), to_stderr if first else lambda line: None)
    if first:
        journal = Journal(folder, run.progress, run.config.steps, Wandb() if run.config.report_to == "wandb" else None)
        trainer.add_callback(journal)
        folder.drop_lines_after(0 if checkpoint is None else int(checkpoint.name.split("-")[1]))
        if checkpoint is not None:
            run.progress.line(f"resuming from {checkpoint}")
    else:
        journal = None
    trainer.recorder = _recorder(run, journal)
    trainer.add_callback(NanGuard())
    trainer.add_callback(stopper)
    try:
        with stopper.listening():
            trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    except Exception as error:
        if not ran_out(error):
            raise
        raise RunError(advice(error, run.config)) from error
    if stopper.stopped_at is not None:
        trainer.accelerator.wait_for_everyone()  # a launcher ends all processes when the first one does
        run.progress.line(f"stopped after step {stopper.stopped_at}, which is saved")
        raise KeyboardInterrupt


def _recorder(run: Run, journal: Any) -> Recorder:
    """Records all processes' rollouts, and shows some of the first process."""
    from accelerate.utils import gather_object

    from ..data.tokens import load_tokenizer

    counter = load_tokenizer(run.model_name)
    weights: list[float] = list(to_dict(run.config.rewards).values())
    shown = {"shown": run.config.log_rollouts, "keep": journal.rollouts} if journal else {}
    return RolloutRecorder(weights, run.config.rollouts_per_prompt, counter.count, gather=gather_object, **shown)


def _reward_functions(answer_format: str) -> list[Callable[[Rollout, Example], float]]:
    """The three terms, the first one reading answers as the agent states them."""

    def answer_score(rollout: Rollout, example: Example) -> float:
        return rewards.answer_score(rollout, example, answer_format)

    return [answer_score, rewards.valid_interaction, rewards.memory_complete]


def _trainer(run: Run, rollouts_per_process: int) -> Any:
    """Model, environment and trainer."""
    from peft import LoraConfig
    from transformers.trainer_callback import PrinterCallback
    from transformers.utils import logging as transformers_logging

    from ..data.tokens import load_tokenizer
    from ..infer.documents import Documents
    from ..infer.environment import MemoryEnv
    from ..infer.models import load_model
    from .trainer import ConversationTrainer

    transformers_logging.set_verbosity_error()
    config = run.config
    model, tokenizer = load_model(run.model_name, dtype=config.dtype, device="cpu")
    counter = load_tokenizer(tokenizer)
    documents = Documents(counter, config.budget, capacity=config.prompts_per_step)
    environment = MemoryEnv(run.agent, config.observer, counter, documents=documents)
    targets = config.lora.targets
    trainer = ConversationTrainer(
        model=model,
        processing_class=tokenizer,
        args=_arguments(run, rollouts_per_process),
        environment=environment,
        examples=run.examples,
        dev_examples=run.dev,
        rewards=_reward_functions(run.agent.answer_format),
        per_micro_batch=config.conversations_per_micro_batch,
        batch_size=config.generation_batch,
        weighting=config.loss.weighting,
        drop_zero_advantage=config.drop_zero_advantage,
        progress=run.progress,
        peft_config=LoraConfig(
            r=config.lora.rank,
            lora_alpha=config.lora.alpha,  # pyright: ignore[reportArgumentType]
            lora_dropout=config.lora.dropout,
            target_modules=targets if targets == "all-linear" else [name.strip() for name in targets.split(",")],
            task_type="CAUSAL_LM",
        ),
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def _checkpointing(arguments: type) -> str:
    """What transformers calls it: the name changed with 5.24."""
    return "activation_checkpointing" if hasattr(arguments, "activation_checkpointing") else "gradient_checkpointing"


def _arguments(run: Run, rollouts_per_process: int) -> Any:
    """TRL's configuration: one step is one generation batch and one optimiser step."""
    import torch
    from trl.trainer.grpo_config import GRPOConfig

    config = run.config
    resumes = run.folder.last_checkpoint(int(os.environ.get("WORLD_SIZE", "1"))) is not None
    checkpointing: dict[str, Any] = {_checkpointing(GRPOConfig): config.gradient_checkpointing}
    return GRPOConfig(
        output_dir=str(run.folder.checkpoints),
        use_cpu=not torch.cuda.is_available(),
        bf16=config.dtype == "bf16",
        seed=config.seed,
        max_steps=config.steps,
        per_device_train_batch_size=rollouts_per_process,
        gradient_accumulation_steps=1,
        steps_per_generation=1,
        num_generations=config.rollouts_per_prompt,
        max_completion_length=None,
        temperature=config.exploration.temperature,
        top_p=config.exploration.top_p,
        top_k=config.exploration.top_k,
        learning_rate=config.optimizer.learning_rate,
        lr_scheduler_type=config.optimizer.schedule,
        warmup_steps=config.optimizer.warmup_steps,
        max_grad_norm=config.optimizer.max_grad_norm,
        weight_decay=0.0,
        loss_type=config.loss.type,
        epsilon=config.loss.epsilon,
        epsilon_high=config.loss.epsilon_high,
        beta=config.loss.beta,
        scale_rewards=config.loss.scale_rewards,
        reward_weights=list(to_dict(config.rewards).values()),
        **checkpointing,
        ddp_find_unused_parameters=False,
        save_strategy="steps",
        save_steps=config.save_every,
        eval_strategy="steps" if config.eval_every else "no",
        eval_steps=config.eval_every,
        eval_on_start=bool(config.eval_every) and not resumes,
        load_best_model_at_end=bool(config.eval_every),
        metric_for_best_model=METRIC if config.eval_every else None,
        greater_is_better=True if config.eval_every else None,
        num_generations_eval=1,
        logging_steps=1,
        logging_nan_inf_filter=False,
        disable_tqdm=True,
        report_to=[] if config.report_to == "none" else [config.report_to],
        run_name=run.folder.path.name,
    )
