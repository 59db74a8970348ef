"""Recipe files: where a recipe given by name lies, and what is in it.

`demo` means `configs/FOLDER/demo.yaml`, in the working directory or else in the installed package; a path means itself,
or the same path inside the package. Recipes are safe YAML without repeated keys; nothing in them is ever executed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from .errors import ConfigError

PACKAGE = Path(__file__).parent


def find(name: str, folder: str) -> Path:
    """The file that `name` means where recipes lie in `configs/FOLDER`. Raises ConfigError if there is none."""
    places = [Path(name), PACKAGE / name]
    if "/" not in name and not name.endswith((".yaml", ".yml")):
        inside = Path("configs") / folder / f"{name}.yaml"
        places = [*places, inside, PACKAGE / inside]
    for place in places:
        if place.is_file():
            return place
    if Path(name).exists():
        raise ConfigError(f"{name}: a recipe is a YAML file, this is none")
    known = ", ".join(sorted(path.stem for path in (PACKAGE / "configs" / folder).glob("*.yaml")))
    raise ConfigError(f"{name}: no such recipe; give a file or one of: {known}")


def read(path: Path) -> dict[str, Any]:
    """The keys and values of a recipe file; an empty file is an empty recipe. Raises ConfigError with the place."""
    try:
        data = parse(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{path}: the recipe cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: the recipe is not UTF-8: byte {error.start}") from error
    except ValueError as error:
        raise ConfigError(f"{path}: not a recipe: {error}") from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: not a recipe: it must be a mapping of keys to values, not a {type(data).__name__}")
    return data


def parse(text: str) -> Any:
    """The value of a YAML text. Raises ValueError, with line and column where they are known, for a bad one."""
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a subclass of the safe loader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ValueError(place + " ".join(filter(None, [error.context, error.problem]))) from error
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


class _Loader(yaml.SafeLoader):
    """Safe YAML that refuses a key given twice, and the character that no path may hold."""

    def construct_scalar(self, node: Any) -> Any:
        if "\0" in node.value:
            raise yaml.MarkedYAMLError(problem="a NUL character", problem_mark=node.start_mark)
        return super().construct_scalar(node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key in seen and key != "<<":
                raise yaml.MarkedYAMLError(problem=f"the key {key!r} is given twice", problem_mark=key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep=deep)
