"""How units of each format stand in one context: a response, a page of articles, a stream of documents, a source file.

Nothing is rewritten but JSON, which is printed in one of several layouts; other units keep every character.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import Any

from .catalog import FieldPath, Frame, Unit

NATIVE = ("native",)
"""The layouts of a format whose units stand as they are."""
LAYOUTS: Mapping[str, dict[str, Any]] = {
    "compact": {"separators": (",", ":")},
    "spaced": {"separators": (", ", ": ")},
    "indented": {"indent": 2},
}
"""How a JSON response may be printed."""
_MARK = "\uf8ff"


@dataclass(frozen=True, eq=False)
class Response:
    """JSON: units are the elements of the list at `list_path` of a response, whose other members are the envelope."""

    envelope: Any
    list_path: FieldPath

    def shell(self, layout: str) -> tuple[str, str, str]:
        """The response around its list."""
        return _printed(json.dumps(_enclosed(self.envelope, self.list_path), ensure_ascii=False), layout)

    def unit(self, unit: Unit, layout: str) -> tuple[str, str, str]:
        """The element, indented as deep as it stands."""
        text = _dumps(json.loads(unit.text), layout)
        indent = self._indent(layout)
        return "", text.replace("\n", indent) if indent else text, ""

    def _indent(self, layout: str) -> str:
        return self.shell(layout)[1].lstrip(",") if layout == "indented" else ""


@dataclass(frozen=True, eq=False)
class Pages:
    """HTML: units are the insides of bodies, each in an `article` of one page whose title attribute is the unit's."""

    title: str

    def shell(self, layout: str) -> tuple[str, str, str]:
        """The page around its articles."""
        del layout
        head = f"<head><title>{escape(self.title)}</title></head>"
        return f"<!DOCTYPE html>\n<html>\n{head}\n<body>\n", "\n", "\n</body>\n</html>\n"

    def unit(self, unit: Unit, layout: str) -> tuple[str, str, str]:
        """The article."""
        del layout
        return f'<article title="{escape(unit.about["title"])}">\n', unit.text, "\n</article>"


@dataclass(frozen=True, eq=False)
class Stream:
    """YAML: units are documents of one stream, separated by `---`."""

    def shell(self, layout: str) -> tuple[str, str, str]:
        """Nothing around the documents."""
        del layout
        return "", "---\n", ""

    def unit(self, unit: Unit, layout: str) -> tuple[str, str, str]:
        """The document, ended by a line break."""
        del layout
        return "", unit.text, "" if unit.text.endswith("\n") else "\n"


@dataclass(frozen=True, eq=False)
class Statements:
    """JavaScript: units are statements of one source file, each after a comment that tells where it comes from."""

    def shell(self, layout: str) -> tuple[str, str, str]:
        """An empty line between statements."""
        del layout
        return "", "\n\n", "\n"

    def unit(self, unit: Unit, layout: str) -> tuple[str, str, str]:
        """The statement under its comment."""
        del layout
        place = f"{unit.provenance.source} {unit.about.get('file', '')}".strip()
        comment = " ".join(f"{place} ({unit.provenance.license})".split())
        return f"// {comment}\n", unit.text, ""


def frame_for(format: str, *, title: str = "", envelope: Any = None, list_path: FieldPath = ()) -> Frame:
    """The frame of a format: HTML takes a title, JSON an envelope and where its list lies (a bare list: neither)."""
    if format == "json":
        return Response(envelope, list_path)
    return {"html": Pages(title), "yaml": Stream(), "javascript": Statements()}[format]


@lru_cache(maxsize=64)
def _printed(envelope: str, layout: str) -> tuple[str, str, str]:
    """A response printed around a list of one mark: before, between two elements, after."""
    before, after = _dumps(json.loads(envelope), layout).split(f'"{_MARK}"')
    indent = before[before.rfind("\n") :] if layout == "indented" else ""
    return before, "," + indent if indent else LAYOUTS[layout]["separators"][0], after


def _enclosed(envelope: Any, path: FieldPath) -> Any:
    """A copy of the envelope with a list of one mark at `path`; its place among the members is kept."""
    root = {"": json.loads(json.dumps(envelope))}
    place: Any = root
    for key, step in zip(("", *path), (*path, None), strict=True):
        where: Any = int(key) if isinstance(place, list) else key
        if step is None:
            place[where] = [_MARK]
        elif isinstance(place, dict) and not isinstance(place.get(where), dict | list):
            place[where] = {}
        place = place[where]
    return root[""]


def _dumps(value: Any, layout: str) -> str:
    return json.dumps(value, ensure_ascii=False, **LAYOUTS[layout])
