"""Recipes of training: the paper's values by default, one line for what cannot work or would do nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from treeagent import recipe
from treeagent.config import differing, keys, load, to_dict
from treeagent.errors import ConfigError
from treeagent.train.config import TrainConfig

ROOT = Path(__file__).parents[2]
RECIPES = sorted((ROOT / "configs" / "train").glob("*.yaml"))
RECIPE = ROOT / "configs" / "train" / "infmem_grpo.yaml"
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


def test_the_papers_recipe_is_appendix_d() -> None:
    c = load(TrainConfig, RECIPE, [])
    assert (c.model, c.agent, c.observer) == ("ucmp137538/infmem-4B", "infmem", "treeagent")
    data = c.benchmark
    assert (data.folder, data.split, data.dev_split, data.lengths) == ("runs/data/json", "train", "dev", (32768,))
    assert (data.tasks, data.limit, data.dev_limit) == (None, None, None)
    assert (c.steps, c.prompts_per_step, c.rollouts_per_prompt, c.seed, c.save_every) == (30, 64, 4, 42, 5)
    assert (c.lora.rank, c.lora.alpha, c.lora.dropout, c.lora.targets) == (32, 32, 0, "all-linear")
    assert c.optimizer.learning_rate == 5e-6
    assert (c.rewards.answer_score, c.rewards.valid_interaction, c.rewards.memory_complete) == (1.0, 0.05, 0.05)


def test_the_papers_recipe_says_of_each_value_whose_it_is() -> None:
    text = RECIPE.read_text()
    held = recipe.read(RECIPE)
    agent = held.pop("agent_options")
    given = {f"{outer}.{inner}" for outer, value in held.items() if isinstance(value, dict) for inner in value}
    given |= {name for name, value in held.items() if not isinstance(value, dict)}
    assert given <= {key.name for key in keys(TrainConfig)}
    values = [line for line in text.splitlines() if not line.startswith("#") and not line.endswith(":")]
    for line in values:
        origin = line.partition("  # ")[2]
        assert origin.startswith(("paper, ", "ours: ")), line
    assert len(values) == len(given) + len(agent)


def test_the_papers_benchmark_has_what_its_training_asks_for() -> None:
    data = recipe.read(ROOT / "configs" / "data" / "json.yaml")
    assert data["out"] == load(TrainConfig, RECIPE, []).benchmark.folder
    assert data["train"]["per_task"] * len(data["tasks"]) == 16_000
    assert data["dev"]["per_task"] * len(data["tasks"]) == 400
    assert data["train"]["lengths"] == data["dev"]["lengths"] == [32768]


@pytest.mark.parametrize("agent", ["memagent", "memreread", "rememr1"])
def test_presets_train_the_other_agents_like_it(agent: str) -> None:
    theirs, papers = load(TrainConfig, RECIPE.with_name(f"{agent}.yaml"), []), load(TrainConfig, RECIPE, [])
    assert theirs.agent == agent
    different = differing(to_dict(theirs), to_dict(papers))
    assert {name.partition(".")[0] for name in different} == {"agent", "agent_options", "model", "out"}


def test_own_documents_are_trained_on_from_where_they_are_built() -> None:
    own = load(TrainConfig, RECIPE.with_name("own.yaml"), [])
    assert own.benchmark.folder == recipe.read(ROOT / "configs" / "data" / "own.yaml")["out"]
    assert own.benchmark.lengths is None


@pytest.mark.parametrize("file", RECIPES, ids=lambda path: path.stem)
def test_recipes_load_and_begin_with_their_command_and_one_override(file: Path) -> None:
    first, second, *_ = file.read_text().splitlines()
    assert first == f"# treeagent train configs/train/{file.name}"
    assert second.startswith(first + " --")
    load(TrainConfig, file, second.split()[4:])


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
