"""A small invented collection, and a token counter that needs no model."""

from __future__ import annotations

import re
from random import Random

import pytest
from treeagent.data.catalog import Collection, Field, Provenance, Role


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
    nation = Field(("nation", "name"), "nation", "text", frozenset({"condition"}))
    records = [
        {
            "id": i,
            "name": f"Town {i}",
            "nation": {"name": rng.choice(nations)},
            "stats": {"people": rng.randint(100, 10**6), "areaKm": round(rng.uniform(1, 500), 2)},
            "mayor": f"Mayor {rng.randint(1, 10**6)}",
            "aka": [f"T{i}x{k}" for k in range(rng.randint(0, 3))],
            "goods": rng.sample(["salt", "iron", "wool", "wine"], 2),
        }
        for i in range(400)
    ]
    return Collection(
        name="test/towns",
        singular="town",
        plural="towns",
        records=records,
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
        ),
        envelope={"status": {"code": 200}, "result": {"total": 400, "towns": [], "next": None}},
        list_path=("result", "towns"),
        provenance=Provenance("test/towns", "CC0-1.0", "invented", {"version": "1"}),
    )
