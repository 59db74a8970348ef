"""`treeagent build`: the folder, its bytes, and what is refused."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from treeagent.config import load
from treeagent.data.benchmark import load_examples, read_manifest
from treeagent.data.build import BuildConfig, SplitConfig, build
from treeagent.errors import ConfigError, InputError, RunError

EMPTY = SplitConfig(0, ())
RECIPE = Path(__file__).parents[2] / "configs" / "data" / "demo.yaml"
THREE = ("single_field", "conditional_count", "numerical_extremum")
SMALL = BuildConfig(
    "", tasks=THREE, tokenizers=("tiny",), test=SplitConfig(1, (2500, 6000)), dev=SplitConfig(1, (2500,)), train=EMPTY
)


def run(config: BuildConfig) -> str:
    """What `build` says."""
    console = Console(file=io.StringIO(), width=200)
    build(config, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.fixture(scope="module")
def config(tiny_model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> BuildConfig:
    """A small recipe; lengths are counted in bytes by the tiny model's tokenizer. Built once."""
    out = tmp_path_factory.mktemp("build") / "data"
    config = replace(SMALL, out=str(out), tokenizers=(str(tiny_model_folder),))
    assert "test: 6 examples" in run(config)
    return config


def test_plain_load_dataset_reads_the_folder(config: BuildConfig, tmp_path: Path) -> None:
    import datasets

    data = datasets.load_dataset(config.out, cache_dir=str(tmp_path))
    assert {name: len(split) for name, split in data.items()} == {"dev": 3, "test": 6}
    named = datasets.load_dataset(config.out, "json", split="test", cache_dir=str(tmp_path))
    assert named.features["context"] == datasets.Value("large_string")
    assert set(named["license"]) == {"CC-BY-4.0"}


def test_the_same_examples_are_loaded_back(config: BuildConfig) -> None:
    examples = load_examples(config.out, "test")
    assert [(e.task, e.length) for e in examples[:3]] == [
        ("single_field", 2500),
        ("single_field", 6000),
        ("conditional_count", 2500),
    ]
    assert len({example.key for example in examples}) == 6
    assert all(0.9 * e.length <= len(e.context.encode()) <= e.length for e in examples)


def test_examples_are_chosen_by_task_length_and_number(config: BuildConfig) -> None:
    assert {e.task for e in load_examples(config.out, "test", tasks=["conditional_count"])} == {"conditional_count"}
    assert [e.length for e in load_examples(config.out, "test", lengths=[6000], limit=2)] == [6000, 6000]
    assert load_examples(config.out, "test", limit=0) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"split": "tset"}, "did you mean test"),
        ({"split": "test", "tasks": ["single_feld"]}, "did you mean single_field"),
        ({"split": "test", "lengths": [4096]}, "no length 4096"),
    ],
)
def test_what_is_not_in_the_folder_is_named(config: BuildConfig, options: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        load_examples(config.out, **options)  # pyright: ignore[reportArgumentType]


def test_a_folder_that_is_no_benchmark_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="treeagent build"):
        load_examples(tmp_path, "test")


def test_a_damaged_file_is_named(config: BuildConfig, tmp_path: Path) -> None:
    shutil.copytree(config.out, tmp_path / "data")
    damaged = tmp_path / "data" / "data" / "test-00000-of-00001.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-100])
    with pytest.raises(InputError, match=f"{damaged.name} cannot be read"):
        load_examples(tmp_path / "data", "test")


def test_the_same_recipe_again_does_nothing(config: BuildConfig) -> None:
    before = {path: path.stat().st_mtime_ns for path in Path(config.out).rglob("*")}
    assert "nothing to do" in run(config)
    assert {path: path.stat().st_mtime_ns for path in Path(config.out).rglob("*")} == before


def test_another_recipe_is_refused_by_the_keys_that_differ(config: BuildConfig) -> None:
    with pytest.raises(RunError, match=r"these differ: seed, test\.per_task"):
        run(replace(config, seed=1, test=replace(config.test, per_task=2)))


def test_a_folder_with_something_else_is_refused(config: BuildConfig, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match="no benchmark"):
        run(replace(config, out=str(tmp_path)))
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_build_that_fails_leaves_nothing(config: BuildConfig, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="questions found"):
        run(replace(config, out=str(tmp_path / "data"), dev=EMPTY, test=SplitConfig(1, (300,))))
    assert list(tmp_path.iterdir()) == []


def test_no_record_is_in_two_splits(config: BuildConfig) -> None:
    seen = {
        split: {r["geonameId"] for e in load_examples(config.out, split) for r in json.loads(e.context)["geonames"]}
        for split in ("dev", "test")
    }
    assert seen["dev"].isdisjoint(seen["test"])


@pytest.mark.slow
def test_bytes_depend_on_the_recipe_alone(config: BuildConfig, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from rich.console import Console\n"
        "from treeagent.config import load\n"
        "from treeagent.data.build import BuildConfig, build\n"
        "build(load(BuildConfig, None, sys.argv[1:]), Console())"
    )
    options = ["--tokenizers", config.tokenizers[0], "--train.per_task", "0", "--dev.per_task", "1"]
    options += [
        "--dev.lengths",
        "2500",
        "--test.per_task",
        "1",
        "--test.lengths",
        "2500,6000",
        "--tasks",
        ",".join(THREE),
    ]
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", code, "--out", str(tmp_path / seed), *options]
        subprocess.run(command, check=True, env=environment, capture_output=True)
    folders = [Path(config.out), tmp_path / "1", tmp_path / "2"]
    contents = [{p.relative_to(f): p.read_bytes() for p in f.rglob("*") if p.is_file()} for f in folders]
    assert contents[0] == contents[1] == contents[2]
    assert len(read_manifest(folders[0])["content"]) == 64


def test_the_datasets_builder_gives_the_same_rows(config: BuildConfig, tmp_path: Path) -> None:
    import datasets
    from treeagent.data.builder import Benchmark

    builder = Benchmark(config_name="json", recipe=config, cache_dir=str(tmp_path / "cache"))
    builder.download_and_prepare()
    plain = datasets.load_dataset(config.out, split="test", cache_dir=str(tmp_path))
    assert list(builder.as_dataset("test")) == list(plain)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--tasks", "single_feld"], "did you mean single_field"),
        (["--sources", "geoname"], "did you mean geonames"),
        (["--layouts", "pretty"], "layouts: unknown name"),
        (["--tasks", "single_field,single_field"], "none twice"),
        (["--test.per_task", "0", "--dev.per_task", "0", "--train.per_task", "0"], "all are empty"),
        (["--test.per_task", "-1"], "test: give per_task"),
    ],
)
def test_a_recipe_with_a_mistake_is_refused_in_words(options: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load(BuildConfig, RECIPE, options)


def test_the_demo_recipe_is_what_the_demo_needs() -> None:
    config = load(BuildConfig, RECIPE, [])
    assert config.test == SplitConfig(2, (2048,))
    assert config.train == SplitConfig(12, (1024,))
    assert config.dev == SplitConfig(2, (1024,))
