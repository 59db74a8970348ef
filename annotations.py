"""What the annotations of a configuration say: what a field holds, and how to put that to a person."""

from __future__ import annotations

import dataclasses
import keyword
import types
import typing
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

_NOUNS = {int: "N", float: "X", str: "TEXT", bool: "true|false", Path: "PATH", type(None): "null"}
_BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


@dataclasses.dataclass(frozen=True)
class Shape:
    """A field holds a dataclass, a mapping or a sequence of values, or a plain value. `inner` is the dataclass, or the
    annotation of the values."""

    kind: Literal["dataclass", "mapping", "sequence", "value"]
    inner: Any = None


def shape(annotation: Any) -> Shape:
    """What a field with this annotation holds; of a union, its first member that is not plain."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return shape(arguments[0])
    if origin in (typing.Union, types.UnionType):
        shapes = [shape(argument) for argument in arguments]
        return next((shape for shape in shapes if shape.kind != "value"), Shape("value"))
    if dataclasses.is_dataclass(annotation):
        return Shape("dataclass", annotation)
    kind = origin or annotation
    if isinstance(kind, type) and issubclass(kind, Mapping):
        return Shape("mapping", arguments[1] if len(arguments) == 2 else Any)
    if isinstance(kind, type) and issubclass(kind, list | tuple | set | frozenset | Sequence) and kind is not str:
        return Shape("sequence", arguments[0] if arguments else Any)
    return Shape("value")


@cache
def fields(cls: type) -> dict[str, Any]:
    """The annotations of a dataclass's fields by key, in order, without those that its constructor does not take."""
    hints = typing.get_type_hints(cls, include_extras=True)
    return {key_of(field.name): hints[field.name] for field in dataclasses.fields(cls) if field.init}


def key_of(name: str) -> str:
    """A field's name as recipes spell it: a word that Python keeps for itself, as in `from_`, without its mark."""
    return name[:-1] if name.endswith("_") and keyword.iskeyword(name[:-1]) else name


def field_of(key: str) -> str:
    """The way back from `key_of`."""
    return f"{key}_" if keyword.iskeyword(key) else key


def noun(annotation: Any) -> str:
    """What to type for a value: `N` a whole number, `X` a number, `a|b` a choice, `A,B` several, `{...}` a mapping."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return noun(arguments[0])
    if origin in (typing.Union, types.UnionType):
        return "|".join(dict.fromkeys(noun(argument) for argument in arguments))
    if origin is Literal:
        return "|".join(map(str, arguments))
    match shape(annotation).kind:
        case "sequence":
            return f"{noun(shape(annotation).inner)},..."
        case "mapping" | "dataclass":
            return "{...}"
        case _:
            return _NOUNS.get(annotation, "VALUE")


def bounds(annotation: Any) -> str:
    """The limits of a number in words, such as `at least 16`; empty without any."""
    found = []
    for part in (annotation, *typing.get_args(annotation)):
        for mark in getattr(part, "__metadata__", ()):
            for limit in getattr(mark, "metadata", [mark]):
                found += [f"{words} {getattr(limit, name)}" for name, words in _BOUNDS.items() if hasattr(limit, name)]
    return ", ".join(dict.fromkeys(found))
