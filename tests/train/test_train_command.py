"""`treeagent train` from a recipe to an adapter that `evaluate` loads, over real documents and the real environment."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
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
from wandb_file import history

ROOT = Path(__file__).parents[2]


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
    return small(model, benchmark, tmp_path / "run")


def small(model: Path, benchmark: Path, out: Path) -> list[str]:
    settings = {
        "out": out,
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
def test_the_tracker_is_told_everything_in_the_run_folder_and_needs_no_network(
    words: list[str], tmp_path: Path
) -> None:
    words = [*words, "--steps", "1", "--eval_every", "1", "--benchmark.dev_split", "dev", "--log_rollouts", "2"]
    command = [sys.executable, "-m", "treeagent", "train", "demo", *words, "--report_to", "wandb"]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("WANDB_")}
    ran = subprocess.run(
        command, env=inherited | {"WANDB_MODE": "offline"}, capture_output=True, text=True, timeout=240, cwd=tmp_path
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    (log,) = (tmp_path / "run" / "wandb").glob("offline-run-*/run-*.wandb")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]
    told: dict[str, Any] = {}
    for row in history(log):
        told |= row
    assert {f"train/{name}" for name in TOLD} <= set(told)
    (step,) = lines(tmp_path / "run" / "train.jsonl")
    assert told["train/reward"] == step["reward"]
    assert told["train/score/single_field"] == step["score_by_task"]["single_field"]
    assert told["train/tokens/memory/generated"] == step["generated_by_kind"]["memory"]
    dev = lines(tmp_path / "run" / "dev.jsonl")
    assert told["eval/rewards/answer_score/mean"] == dev[-1]["rewards"]["answer_score"]
    assert [line["step"] for line in dev] == [0, 1]
    assert told["dev/best_step"] == 1, "the model before training is no checkpoint"

    kept = lines(tmp_path / "run" / "rollouts.jsonl")[0]
    assert kept["step"] == 1
    assert {turn["rollout"] for turn in kept["turns"]} == {0, 1}
    table = json.loads((log.parent / "files" / told["rollouts/path"]).read_text())
    assert table["columns"] == ["step", *kept["turns"][0]]
    assert table["data"] == [[1, *turn.values()] for turn in kept["turns"]]


TOLD = [
    *("reward", "rewards/answer_score/mean", "rewards/valid_interaction/mean", "rewards/memory_complete/mean"),
    *("score/single_field", "group_std", "frac_reward_zero_std", "conversations/per_rollout", "memory_tokens/mean"),
    *("tokens/memory/generated", "tokens/answer/prompt", "conversations/cut_share", "calls/forced_close_share"),
    *("clip_ratio/region_mean", "entropy", "grad_norm", "seconds/read", "seconds/generate", "seconds/score"),
]


class Interrupting(io.StringIO):
    """A console on which the user presses Ctrl-C when the first step is shown."""

    pressed = False

    def write(self, text: str) -> int:
        if "step 1/3" in text and not self.pressed:
            self.pressed = True
            os.kill(os.getpid(), signal.SIGINT)
        return super().write(text)


@pytest.mark.slow
def test_an_interrupted_run_is_saved_and_goes_on_to_the_same_adapter(
    words: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = [*words, "--steps", "3", "--save_every", "3"]
    console = Interrupting()
    with pytest.raises(KeyboardInterrupt):
        train(load(TrainConfig, None, words), Console(file=console, width=200))
    assert "SIGINT: step" in capfd.readouterr().err
    (saved,) = (tmp_path / "run" / "checkpoints").iterdir()
    assert f"stopped after step {saved.name.removeprefix('checkpoint-')}, which is saved" in console.getvalue()
    assert saved.name != "checkpoint-3"
    assert not (tmp_path / "run" / "summary.json").exists()
    printed, folder = run([*words, "--conversations_per_micro_batch", "4", "--log_rollouts", "0"])
    assert f"resuming from {saved}" in printed
    _, straight = run([*words, "--out", str(tmp_path / "straight")])
    assert same_adapter(folder / "adapter", straight / "adapter")
    assert (folder / "adapter" / "README.md").read_text().startswith("---\nlibrary_name: peft")


def test_an_adapter_that_is_no_number_is_not_saved(words: list[str], tmp_path: Path) -> None:
    with pytest.raises(RunError, match="step 1: norm of the adapter nan: not a number"):
        run([*words, "--optimizer.learning_rate", "1e38"])
    assert not list((tmp_path / "run").glob("checkpoints/checkpoint-*"))


def launch(config: str, words: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """The demo recipe on two processes."""
    file = ROOT / "configs" / config
    recipe = ROOT / "configs" / "train" / "demo.yaml"
    start = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(file), "-m", "treeagent.train"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(
        [*start, str(recipe), *words, "--processes", "2"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        cwd=cwd,
        check=False,
    )


@pytest.fixture(scope="module")
def two_processes(model: Path, benchmark: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run on two processes that exchange gradients through gloo."""
    out = tmp_path_factory.mktemp("two") / "run"
    ran = launch("accelerate/cpu_2.yaml", small(model, benchmark, out), out.parent)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert ran.stdout.count("step 2/2") == 1, "only one process speaks"
    return out


@pytest.mark.slow
def test_accelerate_launches_two_processes_that_share_the_step(two_processes: Path) -> None:
    steps = lines(two_processes / "train.jsonl")
    assert [(step["step"], step["rollouts"]) for step in steps] == [(1, 8), (2, 8)]
    assert len(list((two_processes / "checkpoints" / "checkpoint-2").glob("rng_state_*.pth"))) == 2


@pytest.mark.slow
@pytest.mark.parametrize("stage", [2, 3])
def test_deepspeed_trains_on_two_processes_as_plain_data_parallelism_does(
    stage: int, words: list[str], two_processes: Path, tmp_path: Path
) -> None:
    pytest.importorskip("deepspeed")
    ran = launch(f"deepspeed/cpu_2_zero{stage}.yaml", words, tmp_path)
    assert ran.returncode == 0, ran.stderr[-3000:]
    folder = tmp_path / "run"
    states = list((folder / "checkpoints" / "checkpoint-2").glob("global_step*/*_optim_states.pt"))
    assert len(states) == 2, "DeepSpeed divided the optimiser"
    for got, want in zip(lines(folder / "train.jsonl"), lines(two_processes / "train.jsonl"), strict=True):
        assert {name: got[name] for name in SAME} == {name: want[name] for name in SAME}
        assert got["grad_norm"] == pytest.approx(want["grad_norm"], rel=1e-4)
    from safetensors.torch import load_file

    got, want = (load_file(at / "adapter" / "adapter_model.safetensors") for at in (folder, two_processes))
    assert set(got) == set(want)
    assert all((got[name] - value).abs().max() < 2e-5 for name, value in want.items())


SAME = ("reward", "rewards", "group_std", "conversations", "generated_tokens", "rollouts", "memory_tokens")


def test_the_command_line_reports_a_bad_setting_in_one_line(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "demo", *words, "--loss.type", "grpo"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "use dapo or cispo" in error
