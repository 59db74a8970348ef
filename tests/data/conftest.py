"""A small invented collection, and a token counter that needs no model."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

import pytest
from treeagent.data.catalog import Collection, Field, Provenance, Role, Scope, Table, Unit
from treeagent.data.frames import LAYOUTS, frame_for


class Words:
    """Counts words and signs as tokens."""

    name, fingerprint = "words", "words-1"

    def count(self, text: str) -> int:
        return len(re.findall(r"\w+|[^\w\s]", text))


@pytest.fixture(scope="session")
def words() -> Words:
    return Words()


@pytest.fixture(scope="session")
def towns() -> Collection:
    """400 towns in five nations, with numbers, lists and nested fields."""
    rng = Random(1)
    nations = ["Arland", "Borland", "Corland", "Dorland", "Erland"]
    every: frozenset[Role] = frozenset({"ask", "condition", "measure"})
    nation = Field(("nation", "name"), "nation", "text", frozenset({"condition", "group"}))
    records = [
        {
            "id": i,
            "name": f"Town {i}",
            "nation": {"name": rng.choice(nations)},
            "stats": {"people": rng.randint(100, 10**6), "areaKm": round(rng.uniform(1, 500), 2)},
            "mayor": f"Mayor {rng.randint(1, 10**6)}",
            "aka": [f"T{i}x{k}" for k in range(rng.randint(0, 3))],
            "goods": rng.sample(["salt", "iron", "wool", "wine"], 2),
            "guild": rng.choice(["weavers", "smiths", "bakers", "masons", "tanners", "brewers"]),
            "river": f"River {rng.randint(1, 200)}",
            "coast": rng.random() < 0.3,
            "founded": rng.randint(800, 1900),
            "schools": rng.randint(1, 4000),
        }
        for i in range(400)
    ]
    table = Table(
        name="test/towns",
        singular="town",
        plural="towns",
        label="",
        scope=Scope("$.result.towns.*"),
        records=records,
        unit_of=range(len(records)),
        identity=("id",),
        naming=Field(("name",), "name", "text"),
        aliases=("aka",),
        qualifiers=(nation,),
        fields=(
            nation,
            Field(("stats", "people"), "population", "number", every),
            Field(("stats", "areaKm"), "area", "number", every),
            Field(("mayor",), "mayor", "text", frozenset({"ask"})),
            Field(("goods",), "goods", "list", frozenset({"condition"})),
            Field(("guild",), "leading guild", "text", frozenset({"ask", "group"})),
            Field(("river",), "river", "text", frozenset({"ask"})),
            Field(("coast",), "sea access", "boolean", frozenset({"ask", "condition"})),
            Field(("founded",), "founding year", "number", every),
            Field(("schools",), "number of schools", "number", every),
        ),
    )
    return collection_of(table, {"status": {"code": 200}, "result": {"total": 400, "towns": [], "next": None}})


def collection_of(table: Table, envelope: Any) -> Collection:
    """A JSON collection whose units are the records of a table, listed at its scope's path."""
    origin = Provenance(table.name, "CC0-1.0", "invented", "https://example.org", {"version": "1"})
    path = tuple(table.scope.pattern.split(".")[1:-1])
    units = [Unit(json.dumps(record), f"{table.name} {i}", {}, origin) for i, record in enumerate(table.records)]
    frame = frame_for("json", envelope=envelope, list_path=path)
    return Collection(table.name, "json", units, [table], frame, tuple(LAYOUTS), origin)
