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
from treeagent.data.benchmark import load_examples, read_manifest, unfinished
from treeagent.data.build import BuildConfig, ShareConfig, SplitConfig, build
from treeagent.errors import ConfigError, InputError, ModelError, RunError

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


def test_a_recipe_for_another_format_does_not_fit_the_configuration(config: BuildConfig, tmp_path: Path) -> None:
    from treeagent.data.builder import Benchmark

    assert set(Benchmark.builder_configs) == {"json", "html", "yaml", "javascript", "own"}
    with pytest.raises(ConfigError, match="the recipe is for json, the configuration for yaml"):
        Benchmark(config_name="yaml", recipe=config, cache_dir=str(tmp_path / "cache")).download_and_prepare()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--tasks", "single_feld"], "did you mean single_field"),
        (["--sources", "geoname"], "did you mean geonames"),
        (["--layouts", "pretty"], "layouts: unknown name"),
        (["--tasks", "single_field,single_field"], "none twice"),
        (["--test.per_task", "0", "--dev.per_task", "0", "--train.per_task", "0"], "all are empty"),
        (["--test.per_task", "-1"], "test: give per_task"),
        (["--test.lengths", "2048,2048"], "test.lengths: one is there twice"),
        (["--shares.train", "70"], "shares: percentages that make 100 at most"),
        (["--shares.test", "-1"], "none below 0"),
        (["--shares.dev", "0"], "shares.dev: the split has examples"),
        (["--format", "html"], "geonames has no html, it has json"),
        (["--format", "own"], "from: name the folder"),
        (["--format", "own", "--from", ".", "--sources", "usgs"], "own documents come from a folder alone"),
        (["--records", "{usgs: 3}"], "records: usgs is none of the sources"),
        (["--options", "{usgs: {a: b}}"], "options: usgs is none of the sources"),
        (["--num-proc", "0"], "too small"),
        (["--preview", "-1"], "preview: a number of examples"),
        (["--format", "jsn"], "did you mean json"),
    ],
)
def test_a_recipe_with_a_mistake_is_refused_in_words(options: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load(BuildConfig, RECIPE, options)


@pytest.mark.parametrize("name", ["json", "html", "yaml", "javascript"])
def test_the_recipes_of_the_paper_have_its_numbers(name: str) -> None:
    config = load(BuildConfig, RECIPE.with_name(f"{name}.yaml"), [])
    lengths = (8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576)
    assert config.test == SplitConfig(50, lengths)
    assert len(config.tasks) * len(lengths) * config.test.per_task == 3200
    assert (config.format, config.seed) == (name, 42)
    assert config.tokenizers == ("Qwen/Qwen2.5-7B-Instruct", "Qwen/Qwen3-4B")
    if name == "json":
        assert (config.train, config.dev) == (SplitConfig(2000, (32768,)), SplitConfig(50, (32768,)))
    else:
        assert set(config.splits()) == {"test"}
    assert not config.push_to_hub


def test_own_documents_of_every_format_become_a_benchmark(tiny_model_folder: Path, tmp_path: Path) -> None:
    import datasets

    for format in ("json", "html", "yaml", "javascript"):
        folder = tmp_path / format
        folder.mkdir()
        write_catalogue(folder, format)
        out = tmp_path / f"{format}_out"
        split = SplitConfig(2, (5000, 9000))
        said = run(
            replace(
                SMALL,
                out=str(out),
                format="own",
                sources=(),
                from_=str(folder),
                tasks=("single_field", "two_records"),
                tokenizers=(str(tiny_model_folder),),
                shares=ShareConfig(0, 0, 100),
                test=split,
                dev=EMPTY,
            )
        )
        assert "test: 8 examples made and checked" in said
        rows = datasets.load_dataset(str(out), "own", split="test", cache_dir=str(tmp_path / "cache"))
        assert {row["format"] for row in rows} == {format}  # pyright: ignore[reportArgumentType, reportCallIssue]


def test_tasks_that_no_list_suits_are_left_out_where_the_recipe_says_so(
    tiny_model_folder: Path, tmp_path: Path
) -> None:
    """Books have two fields of text, so that none of them answers a question for four."""
    (tmp_path / "books").mkdir()
    write_catalogue(tmp_path / "books", "json")
    config = replace(
        SMALL,
        out=str(tmp_path / "out"),
        format="own",
        sources=(),
        from_=str(tmp_path / "books"),
        tasks=("single_field", "four_fields"),
        tokenizers=(str(tiny_model_folder),),
        shares=ShareConfig(0, 0, 100),
        test=SplitConfig(1, (5000,)),
        dev=EMPTY,
    )
    with pytest.raises(ConfigError, match=r"four_fields .*no list of records suits it"):
        run(config)
    said = run(replace(config, leave_out=True, out=str(tmp_path / "other")))
    assert "left out, for want of a list that suits: four_fields" in said
    assert "test: 1 examples made and checked" in said


def write_catalogue(folder: Path, format: str) -> None:
    """Documents of the same kind: books on shelves."""
    for shelf in range(40):
        books = [
            {"title": f"Book {shelf * 50 + i}", "author": f"Writer {(shelf * 7 + i * 3) % 90}", "pages": 90 + shelf * i}
            for i in range(3 + shelf % 6)
        ]
        if format == "html":
            head = "<tr><th>Title</th><th>Author</th><th>Pages</th></tr>"
            lines = "".join("<tr>" + "".join(f"<td>{v}</td>" for v in book.values()) + "</tr>" for book in books)
            text = f"<html><head><title>Shelf {shelf}</title></head><body><h1>Shelf {shelf}</h1>"
            text += f"<table><caption>Books here</caption>{head}{lines}</table></body></html>"
            (folder / f"{shelf}.html").write_text(text)
        elif format == "yaml":
            lines = "".join(f"- title: {b['title']}\n  author: {b['author']}\n  pages: {b['pages']}\n" for b in books)
            (folder / f"{shelf}.yaml").write_text(f"title: Shelf {shelf}\nbooks:\n{lines}")
        elif format == "javascript":
            (folder / f"shelf{shelf}.js").write_text(f"const shelf{shelf} = {json.dumps(books, indent=1)};\n")
        else:
            (folder / f"{shelf}.json").write_text(json.dumps({"shelf": shelf, "books": books}))


def test_documents_that_offer_nothing_are_refused_with_the_reason(tiny_model_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"only": "this"}')
    config = replace(SMALL, out=str(tmp_path / "out"), format="own", sources=(), from_=str(tmp_path))
    with pytest.raises(InputError, match="nothing to ask about"):
        run(replace(config, tokenizers=(str(tiny_model_folder),)))
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_a_preview_shows_examples_and_writes_nothing(config: BuildConfig, tmp_path: Path) -> None:
    said = run(replace(config, out=str(tmp_path / "data"), preview=2))
    assert "1 of 2: single_field" in said
    assert "supports from begin to end" in said
    assert list(tmp_path.iterdir()) == []


def test_a_build_that_another_process_does_is_left_to_it(config: BuildConfig, tmp_path: Path) -> None:
    first, second = (unfinished(tmp_path / "data", "0" * 64) for _ in range(2))
    with first, pytest.raises(RunError, match="by another process"), second:
        pass


def test_a_tokenizer_that_cannot_be_had_names_the_way_without_network(config: BuildConfig, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"--tokenizers '\[\]' takes the one that is installed"):
        run(replace(config, out=str(tmp_path / "data"), tokenizers=("nobody/nothing",)))


def test_the_demo_recipe_is_what_the_demo_needs() -> None:
    config = load(BuildConfig, RECIPE, [])
    assert config.test == SplitConfig(2, (2048,))
    assert config.train == SplitConfig(12, (1024,))
    assert config.dev == SplitConfig(2, (1024,))
