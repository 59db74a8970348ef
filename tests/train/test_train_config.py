"""Recipes of training: the paper's values by default, one line for what cannot work or would do nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from treeagent.config import keys, load
from treeagent.errors import ConfigError
from treeagent.train.config import TrainConfig

RECIPES = sorted((Path(__file__).parents[2] / "configs" / "train").glob("*.yaml"))
LEAST = ["--out", "runs/x", "--benchmark.folder", "runs/data"]


def config(*words: str) -> TrainConfig:
    return load(TrainConfig, None, [*LEAST, *words])


def test_defaults_are_those_of_appendix_d() -> None:
    c = config()
    assert (c.steps, c.prompts_per_step, c.rollouts_per_prompt, c.seed, c.save_every) == (30, 64, 4, 42, 5)
    assert (c.lora.rank, c.lora.alpha, c.lora.dropout, c.lora.targets) == (32, 32, 0, "all-linear")
    assert c.optimizer.learning_rate == 5e-6
    assert (c.rewards.answer_score, c.rewards.valid_interaction, c.rewards.memory_complete) == (1.0, 0.05, 0.05)
    assert c.rollouts_per_step == 256


def test_every_key_is_explained() -> None:
    assert [key.name for key in keys(TrainConfig) if not key.help] == []


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_recipes_load_and_begin_with_their_command_and_one_override(recipe: Path) -> None:
    first, second, *_ = recipe.read_text().splitlines()
    assert first == f"# treeagent train configs/train/{recipe.name}"
    assert second.startswith(first + " --")
    load(TrainConfig, recipe, second.split()[4:])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--loss.type", "grpo"], "loss.type: 'grpo' depends on padding"),
        (["--loss.type", "bnpo"], "use dapo or cispo"),
        (["--loss.type", "cispo"], "loss.epsilon_high: cispo clips"),
        (["--loss.beta", "0.1", "--loss.weighting", "rollout"], "loss.beta: the KL term is not scaled"),
        (["--conversations_per_micro_batch", "0"], "conversations_per_micro_batch"),
        (["--rollouts_per_prompt", "1"], "rollouts_per_prompt"),
        (["--budget", "15"], "budget"),
        (["--eval_every", "5"], "do nothing without each other"),
        (["--benchmark.dev_split", "dev"], "do nothing without each other"),
        (["--benchmark.dev_limit", "3"], "does nothing without benchmark.dev_split"),
        (["--eval_every", "3", "--benchmark.dev_split", "dev"], "save_every: 5 is not a multiple of eval_every (3)"),
        (["--optimizer.warmup_steps", "3"], "does nothing with schedule constant"),
        (["--optimizer.warmup_steps", "30", "--optimizer.schedule", "linear"], "not below steps"),
        (
            ["--rewards.answer_score", "0", "--rewards.valid_interaction", "0", "--rewards.memory_complete", "0"],
            "nothing to learn",
        ),
        (["--agent", "memagnet"], "memagent"),
        (["--agent_options", "{max_token: 48}"], "max_tokens"),
        (["--learning_rate", "1e-5"], "optimizer.learning_rate"),
        (["--exploration.temperature", "0"], "exploration.temperature"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(words: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        config(*words)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_rollouts_must_divide_among_processes() -> None:
    c = config("--prompts_per_step", "3", "--rollouts_per_prompt", "4")
    assert c.check_processes(2) == 6  # a group may lie on two processes
    with pytest.raises(ConfigError, match="12 rollouts cannot be divided among 5 processes"):
        c.check_processes(5)


def test_a_run_for_two_processes_refuses_one() -> None:
    with pytest.raises(ConfigError, match="2 were asked for, 1 run"):
        config("--processes", "2").check_processes(1)
