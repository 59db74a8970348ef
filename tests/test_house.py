"""How the house stands: one way imports, an installable package that holds all it needs, code of a readable size."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = ("data", "rewards", "infer", "train")
"""From the bottom up: a layer imports from itself and from those before it."""
FLOOR = ("errors", "annotations", "recipe", "config", "terminal", "parsing")
TOP = ("verbs", "cli")
"""Modules at the root that every layer may import; they import only one another."""
PACKAGE_DATA = ("py.typed", "configs/**/*.yaml", "configs/**/*.sh", "infer/agents/prompts/**/*")
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "base", "core", "tools"}

Definition = ast.FunctionDef | ast.AsyncFunctionDef


def sources(*folders: str) -> list[Path]:
    """All Python files of the given folders; of the whole package, its root included, if none is given."""
    files = [file for folder in folders or LAYERS for file in sorted((ROOT / folder).rglob("*.py"))]
    return files if folders else [*files, *sorted(ROOT.glob("*.py"))]


def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def imports(file: Path) -> Iterator[str]:
    """Modules that a file of the package imports, as `layer.module` for our own and by full name for others."""
    package = ("treeagent", *file.relative_to(ROOT).parent.parts)
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, [start, node.module]))
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def own(file: Path) -> set[str]:
    """First parts, below `treeagent`, of what a file imports: layers and modules of the root."""
    return {name.split(".")[1] for name in imports(file) if name.startswith("treeagent.")}


def name(file: Path) -> str:
    return str(file.relative_to(ROOT))


def test_a_layer_imports_no_layer_above_it() -> None:
    for place, layer in enumerate(LAYERS):
        for file in sources(layer):
            if file.name == "__main__.py":  # runs the command line, as the console script does
                continue
            above = own(file) & {*LAYERS[place + 1 :], *TOP}
            assert not above, f"{name(file)} imports {above}"


def test_the_floor_imports_no_layer() -> None:
    for module in FLOOR:
        assert own(ROOT / f"{module}.py") <= set(FLOOR), module


def test_modules_of_the_root_are_those_that_are_named() -> None:
    assert {file.stem for file in ROOT.glob("*.py")} == {"__init__", "__main__", *TOP, *FLOOR}


def test_no_module_of_ours_is_imported_by_its_bare_name() -> None:
    bare = {*LAYERS, *FLOOR, *TOP, "tests"}
    for file in [*sources(), *sources("tests", "benchmarks")]:
        for node in ast.walk(tree(file)):
            found: set[str] = set()
            if isinstance(node, ast.Import):
                found = {alias.name.split(".")[0] for alias in node.names} & bare
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found = {(node.module or "").split(".")[0]} & bare
            assert not found, f"{name(file)}:{getattr(node, 'lineno', 0)} imports {found}"


def test_no_module_shadows_a_standard_one() -> None:
    stems = {file.stem for file in sources()} - {"__init__", "__main__"}
    assert not stems & sys.stdlib_module_names


def test_no_file_has_a_name_that_says_nothing() -> None:
    for file in [*sources(), *sources("tests", "benchmarks")]:
        assert file.stem not in VAGUE, name(file)


def test_no_function_is_longer_than_eighty_lines() -> None:
    for file in [*sources(), *sources("tests", "benchmarks")]:
        for node in ast.walk(tree(file)):
            if isinstance(node, Definition):
                assert (node.end_lineno or 0) - node.lineno < 80, f"{name(file)}: {node.name}"


def test_every_module_and_every_public_definition_says_what_it_is() -> None:
    for file in sources():
        module = tree(file)
        assert ast.get_docstring(module), name(file)
        for node in module.body:
            if isinstance(node, Definition | ast.ClassDef) and not node.name.startswith("_"):
                assert ast.get_docstring(node), f"{name(file)}: {node.name}"


def test_light_layers_import_nothing_heavy_at_the_top() -> None:
    heavy = {
        "torch",
        "transformers",
        "trl",
        "peft",
        "datasets",
        "wandb",
        "accelerate",
        "vllm",
        "deepspeed",
        "matplotlib",
    }
    allowed = {"infer/engines/transformers.py", "infer/engines/vllm.py", "data/builder.py"}
    for file in sources("data", "rewards", "infer"):
        top = {
            part.split(".")[0]
            for node in tree(file).body
            if isinstance(node, ast.Import | ast.ImportFrom) and not getattr(node, "level", 0)
            for part in ([a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""])
        }
        assert name(file) in allowed or not top & heavy, f"{name(file)}: {top & heavy}"


def test_the_listed_packages_are_the_folders_with_code() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {file.parent for layer in LAYERS for file in (ROOT / layer).rglob("*.py")}
    assert sorted(listed) == sorted(
        ["treeagent", *(f"treeagent.{name(folder).replace('/', '.')}" for folder in folders)]
    )
    assert all((folder / "__init__.py").is_file() for folder in folders)


def test_every_prompt_and_recipe_says_how_it_is_used() -> None:
    for file in sorted((ROOT / "configs").rglob("*.yaml")):
        first = file.read_text(encoding="utf-8").splitlines()[0]
        assert first.startswith("#"), f"{name(file)} does not begin with the command that runs it"
        assert name(file) in file.read_text(encoding="utf-8").split("\n\n")[0], name(file)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built wheel; built from a copy, so that nothing is left in the working tree."""
    copy, out = tmp_path_factory.mktemp("source") / "clone", tmp_path_factory.mktemp("wheel")
    left_out = shutil.ignore_patterns(".*", "build", "runs", "tests", "__pycache__", "*.egg-info")
    shutil.copytree(ROOT, copy, ignore=left_out)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-qq",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(out),
        str(copy),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return next(out.glob("*.whl"))


def test_the_wheel_holds_all_code_and_all_data(wheel: Path) -> None:
    wanted = {name(file) for file in sources()}
    wanted |= {name(file) for pattern in PACKAGE_DATA for file in ROOT.glob(pattern) if file.is_file()}
    with zipfile.ZipFile(wheel) as archive:
        held = {entry for entry in archive.namelist() if ".dist-info/" not in entry}
        assert held == {f"treeagent/{file}" for file in wanted if "__pycache__" not in file}
        assert any(entry.endswith("licenses/LICENSE") for entry in archive.namelist())


def test_an_installed_wheel_finds_its_prompts_recipes_and_types(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    program = """
import importlib.resources, sys
import treeagent
from treeagent.recipe import find
root = importlib.resources.files("treeagent")
assert str(root).startswith(sys.argv[1]), root
assert root.joinpath("py.typed").is_file()
from treeagent.infer.agents import build
assert len(build("memagent", tokenizer=None).prompts_hash) > 0
for folder in ("data", "eval", "train"):
    assert str(find("demo", folder)).startswith(sys.argv[1])
"""
    run = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr


def test_the_public_surface_of_reading_is_what_the_readme_teaches() -> None:
    from treeagent import infer
    from treeagent.infer import agents

    assert {"Plan", "Section", "plan_sections"} <= set(infer.__all__)
    assert {"AGENTS", "Outcome", "Reply", "Request", "build"} <= set(agents.__all__)


def test_the_test_command_of_ci_is_that_of_the_readme() -> None:
    commands = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line and line[0] not in "#sc"]
    assert commands == ["make test"]
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")
