"""One way to configure: a frozen dataclass a command, filled from a YAML recipe, then from `--dotted.key value`.

1. Keys are checked first, at every depth: an unknown one is an error that names the nearest valid key.
2. Values are then checked and converted by pydantic against the annotations (`"5e-6"` is a float, `true` is no number).
3. Errors are one line: where (file or option), which key, what is wrong, what to do.
4. `to_yaml` writes the resolved configuration, `load` reads it back unchanged.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import Field, TypeAdapter, ValidationError

from . import recipe as recipes
from .annotations import field_of, fields, key_of, shape
from .errors import ConfigError

T = TypeVar("T")

MIN_BUDGET = 16
Budget = Annotated[int, Field(ge=MIN_BUDGET)]
"""A section budget as users may give it, in tokens. The Python functions take any positive integer."""
Positive = Annotated[int, Field(ge=1)]


def option(default: Any = dataclasses.MISSING, help: str = "") -> Any:
    """A dataclass field with a line of help; without a default the recipe must give it. A list or dict is copied."""
    metadata = {"help": help}
    if isinstance(default, list | dict | set):
        return dataclasses.field(default_factory=lambda: type(default)(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True)
class Key:
    """One key of a configuration: its dotted name, its annotation, its default (`MISSING` if required), its help."""

    name: str
    annotation: Any
    default: Any
    help: str

    @property
    def required(self) -> bool:
        """True where the recipe must give a value."""
        return self.default is dataclasses.MISSING


def keys(cls: type) -> list[Key]:
    """Every key that holds a value, nested ones as `outer.inner`, in the order of the dataclass."""
    return list(_keys(cls, "", None))


def load(cls: type[T], recipe: Path | None, overrides: Sequence[str] = ()) -> T:
    """The configuration `cls` from a recipe file (None: defaults alone) and `--dotted.key value` words, which win.

    Raises ConfigError for anything that the recipe or the options get wrong.
    """
    data = recipes.read(recipe) if recipe else {}
    where = str(recipe) if recipe else "the command line"
    _check_keys(cls, data, "", where)
    overridden = []
    for name, raw in _words(cls, overrides):
        _override(cls, data, name, raw)
        overridden.append(name)
    return _validate(cls, data, where, overridden)


def to_dict(config: Any) -> dict[str, Any]:
    """The configuration as plain values: paths become strings, tuples lists."""
    return _respelled(type(config), _adapter(type(config)).dump_python(config, mode="json"), key_of)


def to_yaml(config: Any) -> str:
    """The resolved configuration as a recipe; `load` gives back the same configuration."""
    return yaml.safe_dump(to_dict(config), sort_keys=False, allow_unicode=True, width=1000)


def differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """The dotted keys whose values differ between two configurations as given by `to_dict`, sorted."""
    flat_a, flat_b = dict(_flat(a, "")), dict(_flat(b, ""))
    return sorted(key for key in flat_a.keys() | flat_b.keys() if _differ(flat_a, flat_b, key))


def nearest(word: str, known: Sequence[str]) -> str | None:
    """The known name that `word` most likely means, compared whole and by its last dotted part; None if none is."""
    plain = word.replace("-", "_").lower()

    def likeness(name: str) -> float:
        forms = {name, name.rpartition(".")[2]}
        return max(difflib.SequenceMatcher(None, plain, form.replace("-", "_").lower()).ratio() for form in forms)

    best = max(known, key=likeness, default=None)
    return best if best is not None and likeness(best) >= 0.6 else None


def suggestion(word: str, known: Sequence[str], prefix: str = "") -> str:
    """The end of an error about an unknown name: the nearest known one, or the known ones."""
    near = nearest(word, known)
    if near is not None:
        return f"did you mean {prefix}{near}?"
    return "known: " + ", ".join(prefix + name for name in known) if known else "nothing can be set here"


@cache
def _adapter(cls: type) -> TypeAdapter[Any]:
    return TypeAdapter(cls)


def _keys(cls: type, prefix: str, values: Any) -> Iterator[Key]:
    """`values` is an instance whose fields are the defaults, if the outer field has one."""
    annotations = fields(cls)
    for field in dataclasses.fields(cls):
        if not field.init:
            continue
        default = getattr(values, field.name) if values is not None else _default(field)
        key = key_of(field.name)
        held = shape(annotations[key])
        if held.kind == "dataclass":
            yield from _keys(held.inner, f"{prefix}{key}.", default if _is_instance(default) else None)
        else:
            yield Key(prefix + key, annotations[key], default, field.metadata.get("help", ""))


def _is_instance(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


# Checking keys.


def _check_keys(annotation: Any, data: Any, prefix: str, where: str) -> None:
    """Refuses unknown keys in every dataclass inside `data`. Values of a wrong kind are left to `_validate`."""
    held = shape(annotation)
    if held.kind == "dataclass" and isinstance(data, Mapping):
        known = fields(held.inner)
        for key, value in data.items():
            if key not in known:
                raise ConfigError(f"{where}: {prefix}{key}: unknown key; {suggestion(str(key), list(known), prefix)}")
            _check_keys(known[key], value, f"{prefix}{key}.", where)
    elif held.kind == "mapping" and isinstance(data, Mapping):
        for key, value in data.items():
            _check_keys(held.inner, value, f"{prefix}{key}.", where)
    elif held.kind == "sequence" and isinstance(data, list):
        for i, value in enumerate(data):
            _check_keys(held.inner, value, f"{prefix.removesuffix('.')}[{i}].", where)


# Overriding.


def _words(cls: type, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """`(dotted key, value as typed)` for each option among the words; a switch without a value means true."""
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--") or word == "--":
            raise ConfigError(f"unexpected argument {word!r}: settings are given as --key value")
        name, equals, raw = word[2:].partition("=")
        name, annotation = _find(cls, name)
        if not equals:
            if rest and not rest[0].startswith("--"):
                raw = rest.pop(0)
            elif annotation is bool:
                raw = "true"
            else:
                raise ConfigError(f"--{name} needs a value")
        yield name, raw


def _find(cls: type, name: str) -> tuple[str, Any]:
    """A dotted key as the dataclass spells it (typed with - for _ it is known too), and its annotation.

    Raises ConfigError with the nearest key if there is none.
    """
    annotation: Any = cls
    parts = []
    for part in name.split("."):
        held = shape(annotation)
        known = fields(held.inner) if held.kind == "dataclass" else {}
        if part.replace("-", "_") in known:
            part = part.replace("-", "_")
            annotation = known[part]
        elif held.kind == "mapping":
            annotation = held.inner
        else:
            raise ConfigError(f"--{name}: unknown option; {suggestion(name, [key.name for key in keys(cls)], '--')}")
        parts.append(part)
    return ".".join(parts), annotation


def _override(cls: type, data: dict[str, Any], name: str, raw: str) -> None:
    _, annotation = _find(cls, name)
    value = _typed(annotation, name, raw)
    _check_keys(annotation, value, "", f"--{name}")
    *outer, last = name.split(".")
    place = data
    for part in outer:
        if not isinstance(place.get(part), dict):
            place[part] = {}
        place = place[part]
    place[last] = value


def _typed(annotation: Any, name: str, raw: str) -> Any:
    """The first reading of the word that fits the annotation: as YAML, then as a list without brackets or as typed."""
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    problem = ""
    bracketed = shape(annotation).kind == "sequence" and not raw.startswith("[")
    for read in (lambda: recipes.parse(raw), lambda: recipes.parse(f"[{raw}]") if bracketed else raw):
        try:
            value = read()
            _fits(adapter, value)
        except ValidationError as error:
            problem = _say(error.errors()[0]) if bracketed else problem or _say(error.errors()[0])
        except ValueError as error:
            problem = problem or str(error)
        else:
            return value
    raise ConfigError(f"--{name}: {problem}")


def _fits(adapter: TypeAdapter[Any], value: Any) -> None:
    """Raises ValidationError if not. Pydantic would take `true` for the number 1, so switches are compared strictly."""
    adapter.validate_python(value, strict=isinstance(value, bool) or None)


# Checking values.


def _respelled(annotation: Any, data: Any, spell: Callable[[str], str]) -> Any:
    """Plain values with the keys of every dataclass spelled another way."""
    held = shape(annotation)
    if held.kind == "dataclass" and isinstance(data, Mapping):
        known = fields(held.inner)
        return {spell(key): _respelled(known.get(key_of(key)), value, spell) for key, value in data.items()}
    return data


def _validate(cls: type[T], data: dict[str, Any], where: str, overridden: Sequence[str]) -> T:
    try:
        _refuse_switches(cls, data)
        return _adapter(cls).validate_python(_respelled(cls, data, field_of))
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error
    except ValidationError as error:
        raise ConfigError(_explain(cls, error, where, overridden)) from error


def _refuse_switches(cls: type, data: Mapping[str, Any], prefix: str = "") -> None:
    """Raises ConfigError for `true` or `false` where no switch belongs."""
    for name, annotation in fields(cls).items():
        value, held = data.get(name), shape(annotation)
        if isinstance(value, bool):
            try:
                _fits(TypeAdapter(annotation), value)
            except ValidationError as error:
                raise ConfigError(f"{prefix}{name}: {_say(error.errors()[0])}") from error
        elif held.kind == "dataclass" and isinstance(value, Mapping):
            _refuse_switches(held.inner, value, f"{prefix}{name}.")


def _explain(cls: type, error: ValidationError, where: str, overridden: Sequence[str]) -> str:
    errors = error.errors()
    missing = [name for item in errors if item["type"] == "missing" for name in _needed(cls, _dotted(cls, item["loc"]))]
    if missing:
        options = " ".join(f"--{name} VALUE" for name in missing)
        return f"{where}: missing: {', '.join(missing)}; set it in the recipe or give {options}"
    name = _dotted(cls, errors[0]["loc"])
    problems = list(dict.fromkeys(_say(item) for item in errors if _dotted(cls, item["loc"]) == name))
    source = f"--{name}" if name in overridden else f"{where}: {name}" if name else where
    return f"{source}: {' or '.join(problems)}"


def _needed(cls: type, name: str) -> list[str]:
    """The keys to give where `name` is missing: itself, or the required ones inside it."""
    return [key.name for key in keys(cls) if key.required and key.name.startswith(f"{name}.")] or [name]


def _dotted(cls: type, loc: Sequence[int | str]) -> str:
    """A place as pydantic gives it, without the names of union members."""
    name, annotation = "", cls
    for part in loc:
        held = shape(annotation)
        if held.kind == "sequence" and isinstance(part, int):
            name, annotation = f"{name}[{part}]", held.inner
        elif held.kind == "mapping":
            name, annotation = f"{name}.{part}", held.inner
        elif held.kind == "dataclass" and (key := key_of(str(part))) in fields(held.inner):
            name, annotation = f"{name}.{key}" if name else key, fields(held.inner)[key]
    return name


def _say(item: Any) -> str:
    """One sentence for one pydantic error."""
    context, given = item.get("ctx", {}), item["input"]
    shown = str(given).lower() if isinstance(given, bool) else repr(given)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    match item["type"].split("_"):
        case ["literal", *_]:
            choices = [choice.strip("'") for choice in context["expected"].replace(" or ", ", ").split(", ")]
            near = nearest(str(given), choices)
            return f"{shown} is not one of {', '.join(choices)}" + (f"; did you mean {near}?" if near else "")
        case ["greater", "than", "equal"]:
            return f"{shown} is too small; the least is {context['ge']}"
        case ["value", "error"]:
            return str(context["error"])
        case ["int" | "float" | "bool" | "string" as kind, *_]:
            noun = {"int": "a whole number", "float": "a number", "bool": "true or false", "string": "text"}[kind]
            return f"{shown} is not {noun}" + ("; put it in quotes" if kind == "string" else "")
        case ["dataclass" | "dict" | "mapping", *_]:
            return f"{shown} is not a mapping of keys to values"
        case ["tuple" | "list" | "set", "type"]:
            return f"{shown} is not a list; write [A, B]"
        case _:
            return f"{shown}: {item['msg'][:1].lower()}{item['msg'][1:]}"


def _flat(values: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _differ(a: Mapping[str, Any], b: Mapping[str, Any], key: str) -> bool:
    return key not in a or key not in b or json.dumps(a[key], sort_keys=True) != json.dumps(b[key], sort_keys=True)
