"""Launch files: each begins with its command, which starts as many processes as the file does; the script for SLURM,
run with stand-ins of SLURM's commands and of the launcher."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from treeagent.config import load
from treeagent.train.config import TrainConfig

ROOT = Path(__file__).parents[2]
FILES = sorted([*(ROOT / "configs" / "accelerate").glob("*"), *(ROOT / "configs" / "deepspeed").glob("*")])
SCRIPT = ROOT / "configs" / "slurm" / "train.sh"
RUN_IN_TESTS = {"cpu_2.yaml", "cpu_2_zero2.yaml", "cpu_2_zero3.yaml"}


def name(file: Path) -> str:
    return str(file.relative_to(ROOT))


@pytest.mark.parametrize("file", FILES, ids=name)
def test_a_launch_file_begins_with_a_command_that_fits_it(file: Path) -> None:
    words = file.read_text().splitlines()[0].removeprefix("# ").split()
    settings: dict[str, Any] = yaml.safe_load(file.read_text())
    assert words[:4] == ["accelerate", "launch", "--config_file", name(file)]
    assert "--cpu" not in words
    start = words.index("-m")
    assert words[start + 1] == "treeagent.train"
    config = load(TrainConfig, ROOT / words[start + 2], words[start + 3 :])
    assert config.processes == settings["num_processes"]
    config.check_processes(settings["num_processes"])
    assert settings["num_processes"] % settings["num_machines"] == 0
    assert (
        ("deepspeed_config" in settings) == (settings["distributed_type"] == "DEEPSPEED") == ("deepspeed" in name(file))
    )


@pytest.mark.parametrize("file", FILES, ids=name)
def test_a_launch_file_that_no_test_runs_says_so(file: Path) -> None:
    said = "Not run" in file.read_text().split("compute_environment")[0]
    assert said == (file.name not in RUN_IN_TESTS)


@pytest.mark.parametrize("file", [file for file in FILES if "zero" in file.name], ids=name)
def test_the_stage_is_that_of_the_name(file: Path) -> None:
    settings = yaml.safe_load(file.read_text())["deepspeed_config"]
    assert f"zero{settings['zero_stage']}" in file.name
    assert settings["offload_optimizer_device"] == "none", "else DeepSpeed compiles an optimiser"


@pytest.fixture
def cluster(tmp_path: Path) -> dict[str, str]:
    """An environment as SLURM makes it on two nodes with four GPUs each."""
    stands = {
        "scontrol": '#!/bin/bash\nprintf "node-a\\nnode-b\\n"\n',
        "srun": '#!/bin/bash\nshift\nfor id in 0 1; do SLURM_NODEID=$id "$@" || exit 1; done\n',
        "accelerate": '#!/bin/bash\nkill -USR1 $$\nprintf "%q " "$@"\necho\n',
    }
    for command, text in stands.items():
        (tmp_path / command).write_text(text)
        (tmp_path / command).chmod(0o755)
    return {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "SLURM_NNODES": "2",
        "SLURM_GPUS_ON_NODE": "4",
        "SLURM_JOB_NODELIST": "node-[a-b]",
    }


def test_the_slurm_script_starts_one_launcher_a_node_which_outlives_the_signal(cluster: dict[str, str]) -> None:
    command = ["bash", str(SCRIPT), "configs/train/infmem_grpo.yaml", "--out", "/shared/a run"]
    ran = subprocess.run(command, env=cluster, capture_output=True, text=True, check=True)
    first, second = (shlex.split(line) for line in ran.stdout.splitlines())
    assert first == [
        *("launch", "--config_file", "configs/deepspeed/nodes_2_zero2.yaml", "--num_machines", "2"),
        *("--num_processes", "8", "--machine_rank", "0", "--main_process_ip", "node-a"),
        *("-m", "treeagent.train", "configs/train/infmem_grpo.yaml", "--out", "/shared/a run", "--processes", "8"),
    ]
    assert second == ["1" if first[i - 1] == "--machine_rank" else word for i, word in enumerate(first)]


def test_the_slurm_script_wants_a_recipe_and_shows_its_command(cluster: dict[str, str]) -> None:
    ran = subprocess.run(["bash", str(SCRIPT)], env=cluster, capture_output=True, text=True, check=False)
    assert ran.returncode != 0
    assert "the recipe comes first" in ran.stderr
    assert SCRIPT.read_text().splitlines()[1].startswith(f"# sbatch {name(SCRIPT)} configs/train/infmem_grpo.yaml")
