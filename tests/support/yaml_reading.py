"""A YAML stream read by another library, as plain values that compare: events put together to trees."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import Any

Read = Callable[[str], list[Any]]


def by_ruamel(text: str) -> list[Any]:
    """The documents of a stream as ruamel.yaml's own parser in Python reads them. A mapping is `("map", anchor, tag,
    [(key, value), …])`, a sequence `("seq", anchor, tag, [item, …])`, a scalar `("scalar", anchor, tag, value,
    style)`, an alias `("alias", name)`."""
    from ruamel.yaml import YAML

    return trees(YAML(typ="safe", pure=True).parse(io.StringIO(text.removeprefix("\ufeff"), newline="")))


def by_pyyaml(text: str) -> list[Any]:
    """The same by PyYAML."""
    import yaml

    return trees(yaml.parse(text.removeprefix("\ufeff"), Loader=yaml.CSafeLoader))


def trees(events: Iterable[Any]) -> list[Any]:
    documents: list[Any] = []
    open_: list[tuple[Any, list[Any]]] = []
    for event in events:
        name = type(event).__name__
        if name in ("MappingStartEvent", "SequenceStartEvent"):
            open_.append((event, []))
            continue
        if name in ("MappingEndEvent", "SequenceEndEvent"):
            start, inside = open_.pop()
            pairs = name == "MappingEndEvent"
            content = list(zip(inside[::2], inside[1::2], strict=True)) if pairs else inside
            value: Any = ("map" if pairs else "seq", start.anchor, tag(start), content)
        elif name == "ScalarEvent":
            value = ("scalar", event.anchor, tag(event), event.value, event.style or None)
        elif name == "AliasEvent":
            value = ("alias", event.anchor)
        else:
            continue
        (open_[-1][1] if open_ else documents).append(value)
    return documents


def tag(event: Any) -> str | None:
    return None if event.tag is None else str(event.tag)


def children(value: Any) -> list[Any]:
    """Entries or items; none for scalars and aliases."""
    return value[3] if value[0] in ("map", "seq") else []


def innermost(documents: list[Any], wanted: list[Any]) -> bool:
    """Whether the only document is a chain of collections with one child each, the last of them holding exactly
    `wanted`."""
    if len(documents) != 1:
        return documents == wanted
    value = documents[0]
    while children(value) != wanted:
        inside = children(value)
        if len(inside) != 1:
            return False
        value = inside[0][1] if value[0] == "map" else inside[0]
    return True
