"""`treeagent train` from a recipe to an adapter that `evaluate` loads, over real documents and the real environment."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from treeagent.cli import main
from treeagent.config import load
from treeagent.data.build import BuildConfig, SplitConfig, build
from treeagent.errors import ConfigError, RunError
from treeagent.train.config import TrainConfig
from treeagent.train.grpo import train


@pytest.fixture(scope="module")
def model(tiny_model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model, but a third of its tokens end a reply: some rollouts complete all memories, others do not."""
    folder = tmp_path_factory.mktemp("model") / "tiny"
    shutil.copytree(tiny_model_folder, folder)
    file = folder / "generation_config.json"
    settings = json.loads(file.read_text())
    settings["eos_token_id"] = [settings["eos_token_id"], *range(90)]
    file.write_text(json.dumps(settings))
    return folder


@pytest.fixture(scope="module")
def benchmark(tiny_model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight documents of about 2,000 bytes to train on and two to evaluate on."""
    out = tmp_path_factory.mktemp("benchmark") / "data"
    small, none = SplitConfig(8, (2048,)), SplitConfig()
    config = BuildConfig(
        str(out),
        tasks=("single_field",),
        layouts=("compact",),
        tokenizers=(str(tiny_model_folder),),
        train=small,
        dev=SplitConfig(2, (2048,)),
        test=none,
    )
    build(config, Console(file=io.StringIO()))
    return out


@pytest.fixture
def words(model: Path, benchmark: Path, tmp_path: Path) -> list[str]:
    """Settings of a run of two steps that takes seconds."""
    settings = {
        "out": tmp_path / "run",
        "model": model,
        "benchmark.folder": benchmark,
        "dtype": "fp32",
        "agent_options.max_tokens": 6,
        "budget": 1024,
        "steps": 2,
        "prompts_per_step": 2,
        "rollouts_per_prompt": 4,
        "save_every": 1,
        "conversations_per_micro_batch": 4,
        "gradient_checkpointing": False,
        "optimizer.learning_rate": 1e-3,
        "rewards.memory_complete": 1.0,
    }
    return [word for name, value in settings.items() for word in (f"--{name}", str(value))]


def run(words: list[str]) -> tuple[str, Path]:
    config = load(TrainConfig, None, words)
    out = io.StringIO()
    train(config, Console(file=out, width=200))
    return out.getvalue(), Path(config.out)


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def same_adapter(a: Path, b: Path) -> bool:
    return (a / "adapter_model.safetensors").read_bytes() == (b / "adapter_model.safetensors").read_bytes()


@pytest.mark.slow
def test_a_run_is_resumed_bitwise_and_its_adapter_is_evaluated(
    words: list[str], model: Path, benchmark: Path, tmp_path: Path
) -> None:
    dev = ["--eval_every", "1", "--benchmark.dev_split", "dev"]
    printed, folder = run([*words, *dev])
    steps = lines(folder / "train.jsonl")
    assert [step["step"] for step in steps] == [1, 2]
    assert set(steps[0]["rewards"]) == {"answer_score", "valid_interaction", "memory_complete"}
    assert all(step["conversations"] >= 8 * 3 for step in steps)
    assert [line["step"] for line in lines(folder / "dev.jsonl")] == [0, 1, 2]
    for shown in ("step 1/2: reward", "gradient norm", "zero-variance groups", "conversations", "adapter's change"):
        assert shown in printed

    interrupted = tmp_path / "interrupted"
    shutil.copytree(folder, interrupted)
    for name in ("summary.json", "adapter", "checkpoints/checkpoint-2"):
        shutil.rmtree(interrupted / name) if (interrupted / name).is_dir() else (interrupted / name).unlink()
    printed, _ = run([*words, *dev, "--out", str(interrupted)])
    assert "resuming" in printed
    assert same_adapter(folder / "adapter", interrupted / "adapter")

    def timeless(file: Path) -> list[dict[str, Any]]:
        return [{key: value for key, value in line.items() if key != "seconds"} for line in lines(file)]

    assert timeless(folder / "train.jsonl") == timeless(interrupted / "train.jsonl")
    printed, _ = run([*words, *dev])
    assert "finished" in printed
    with pytest.raises(RunError, match=r"these differ: .*seed"):
        run([*words, *dev, "--seed", "1"])

    from treeagent.infer.models import load_model

    tuned, _ = load_model(str(model), dtype="fp32", device="cpu", adapter=str(folder / "adapter"))
    assert any(parameter.abs().sum() > 0 for name, parameter in tuned.named_parameters() if "lora_B" in name)
    models = ["--model", str(model), "--adapter", str(folder / "adapter"), "--dtype", "fp32"]
    documents = ["--benchmark.folder", str(benchmark), "--benchmark.split", "dev", "--observers", "treeagent"]
    agents = ["--agents", "{memagent: {max_tokens: 6}}", "--budget", "1024", "--out", str(tmp_path / "tuned")]
    assert main(["evaluate", "demo", *models, *documents, *agents]) == 0
    assert len(lines(tmp_path / "tuned" / "results.jsonl")) == 2


def test_too_few_examples_for_a_step_are_refused_before_a_model_is_loaded(words: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"prompts_per_step: 9, but .* has 8"):
        run([*words, "--prompts_per_step", "9"])


def test_a_run_where_all_rewards_are_equal_says_that_nothing_could_be_learned(words: list[str]) -> None:
    """Only the answer score counts, and a random model answers nothing right."""
    zero = ["--rewards.memory_complete", "0", "--rewards.valid_interaction", "0", "--steps", "1"]
    printed, _ = run([*words, *zero])
    assert "Nothing could be learned: in every group all rollouts had the same reward" in printed


@pytest.mark.slow
def test_the_tracker_keeps_its_files_in_the_run_folder_and_needs_no_network(words: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "treeagent", "train", "demo", *words, "--steps", "1", "--report_to", "wandb"]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("WANDB_")}
    ran = subprocess.run(
        command, env=inherited | {"WANDB_MODE": "offline"}, capture_output=True, text=True, timeout=240, cwd=tmp_path
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    (log,) = (tmp_path / "run" / "wandb").glob("offline-run-*/run-*.wandb")
    assert b"rewards/answer_score/mean" in log.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


@pytest.mark.slow
def test_accelerate_launches_two_processes_that_share_the_step(words: list[str], tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    recipe = tmp_path / "empty.yaml"
    recipe.write_text("")
    launch = ["-m", "accelerate.commands.launch", "--config_file", str(root / "configs" / "accelerate" / "cpu_2.yaml")]
    command = [sys.executable, *launch, "-m", "treeagent.train", str(recipe), *words, "--processes", "2"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "CUDA_VISIBLE_DEVICES": ""}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr[-3000:]
    steps = lines(tmp_path / "run" / "train.jsonl")
    assert [(step["step"], step["rollouts"]) for step in steps] == [(1, 8), (2, 8)]
    assert len(list((tmp_path / "run" / "checkpoints" / "checkpoint-2").glob("rng_state_*.pth"))) == 2
    assert ran.stdout.count("step 2/2") == 1, "only one process speaks"


def test_the_command_line_reports_a_bad_setting_in_one_line(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "demo", *words, "--loss.type", "grpo"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "use dapo or cispo" in error
