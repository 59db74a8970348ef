"""Which fields name records, can be asked for, tested, compared and counted."""

from __future__ import annotations

from typing import Any

import pytest
from treeagent.data.field_roles import Profile, answerable, profiled
from treeagent.data.record_lists.secret_strings import looks_secret, secret_in

STARS = [
    "Vega",
    "Sirius",
    "Deneb",
    "Rigel",
    "Capella",
    "Altair",
    "Antares",
    "Spica",
    "Pollux",
    "Regulus",
    "Castor",
    "Mizar",
]
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----"


def stars(**more: Any) -> list[dict[str, Any]]:
    """Twelve records with all kinds of fields; `more` maps a name to a function of a record's place."""
    return [
        {
            "id": f"HD-{100 + i}",
            "name": name,
            "magnitude": round(0.3 * i - 1, 2),
            "type": "ABFG"[i % 4],
            "variable": i % 3 == 0,
            "tags": ["bright", "north" if i % 2 else "south"],
            "nothing": None,
            "galaxy": "Milky Way",
            "slug": f"the-star-{name.lower()}",
            "notes": "a long tale " * 20 + name,
            **{key: make(i) for key, make in more.items()},
        }
        for i, name in enumerate(STARS)
    ]


def roles(profile: Profile) -> dict[str, str]:
    return {field.name: " ".join(sorted(field.roles)) for field in profile.fields}


def test_roles_follow_from_values() -> None:
    found = profiled(stars())
    assert found.naming is not None
    assert (found.naming.name, found.qualifiers, found.identity) == ("name", (), ("id",))
    assert roles(found) == {
        "ID": "ask",
        "magnitude": "ask condition measure",
        "type": "ask condition group",
        "variable": "condition",
        "tags": "condition",
    }
    assert set(found.left_out) == {("galaxy",), ("slug",), ("notes",)}


def test_a_name_that_is_not_unique_is_qualified() -> None:
    found = profiled([{"name": f"Springfield {i % 4}", "state": f"state {i % 3}", "n": i * 7} for i in range(12)])
    assert found.naming is not None
    assert (found.naming.name, [field.name for field in found.qualifiers]) == ("name", ["state"])


def test_names_come_before_identifiers_and_identifiers_before_dates_and_names_of_other_things() -> None:
    def named(*drop: str) -> str:
        sponsors = stars(sponsor=lambda i: {"name": f"Sponsor {i % 8}"}, published=lambda i: f"2020-01-{i + 1:02}")
        found = profiled([{key: value for key, value in row.items() if key not in drop} for row in sponsors])
        return found.naming.name if found.naming else ""

    assert [named(), named("name"), named("name", "slug", "id")] == ["name", "ID", "sponsor name"]


def test_records_without_a_name_offer_nothing_and_it_is_said_why() -> None:
    assert "names its records" in profiled([{"ok": True, "size": 1.5} for _ in range(5)]).refused
    assert "fewer than 3" in profiled(stars()[:2]).refused
    assert "asked for" in profiled([{"name": f"n{i}"} for i in range(5)]).refused


def test_fields_that_two_readers_may_read_apart_are_not_offered() -> None:
    found = profiled(stars(mixed=lambda i: i if i % 2 else str(i)), unclear=frozenset({("magnitude",)}))
    assert {("mixed",), ("magnitude",)} <= set(found.left_out)
    assert "magnitude" not in roles(found)


def test_fields_with_one_name_are_told_apart_by_what_they_stand_in_or_left_out() -> None:
    found = profiled(stars(north=lambda i: {"reach": i}, south=lambda i: {"reach": 50 - i}))
    assert {"north reach", "south reach"} <= set(roles(found))
    alike = profiled(stars(fooBar=lambda i: i, foo_bar=lambda i: 50 - i))
    assert {("fooBar",), ("foo_bar",)} <= set(alike.left_out)


def test_numbers_spelled_by_text_count_only_where_text_is_all_there_is() -> None:
    rows = [{"Name": name, "Length": f"{1 + i},{500 + i}"} for i, name in enumerate(STARS)]
    kinds = {field.path: field.kind for field in profiled(rows, headings=True, numbers=True).fields}
    assert kinds == {("Length",): "number"}
    assert {field.kind for field in profiled(rows).fields} == {"text"}


def test_records_that_are_not_all_that_people_count_are_only_looked_up() -> None:
    assert set(roles(profiled(stars(), counted=False)).values()) == {"ask"}


def test_identifiers_years_and_moments_are_no_measures() -> None:
    found = profiled(stars(number=lambda i: i * 37, year=lambda i: 1900 + i, time=lambda i: 1_700_000_000_000 + i))
    assert {name: said for name, said in roles(found).items() if name in ("number", "year", "time")} == {
        "number": "ask",
        "year": "ask",
        "time": "ask",
    }


@pytest.mark.parametrize(
    "value", ["", "  ", "x" * 100, "two\nlines", "<b>x</b>", "https://a.example/b", True, None, [], KEY]
)
def test_what_is_empty_long_marked_up_or_no_scalar_answers_nothing(value: Any) -> None:
    assert not answerable(value)


@pytest.mark.parametrize("value", ["A short text", 12, -3.5, "3,531", "CVE-2020-1234"])
def test_short_text_and_numbers_answer(value: Any) -> None:
    assert answerable(value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("x", KEY),
        ("x", "AKIA" + "ABCDEFGH23456789"),
        ("x", "ghp_" + "a1B2" * 9),
        ("x", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcdefghijkl"),
        ("db", "postgres://user:hunter22@host/db"),
        ("password", "x9Kq2LmZ81pQwR7t"),
        ("api-key", "0f8fad5bd9cb469fa16570867728950e"),
    ],
)
def test_what_looks_like_a_secret_is_seen(key: str, value: str) -> None:
    assert looks_secret(key, value)
    assert secret_in({"a": [{"b": 1, key: value}]})


@pytest.mark.parametrize(
    ("key", "value"), [("password", "string"), ("token", "a token of the user"), ("id", "0f8fad5bd9cb469f")]
)
def test_words_about_secrets_are_none(key: str, value: str) -> None:
    assert not looks_secret(key, value)


def test_of_fields_called_alike_the_one_in_the_record_itself_is_meant() -> None:
    rows = [{"name": name, "type": "ABC"[i % 3], "items": {"type": "x" * (1 + i % 3)}} for i, name in enumerate(STARS)]
    assert [field.path for field in profiled(rows).fields] == [("type",)]


@pytest.mark.parametrize(("there", "roles"), [(24, {"condition", "measure"}), (12, None)])
def test_numbers_that_most_records_lack_are_compared_where_they_are_many(there: int, roles: set[str] | None) -> None:
    rows = [{"name": f"{name} {i}", "type": "AB"[i % 2]} for i in range(9) for name in STARS]
    rows = [{**row, **({"maximum": i * 7} if i < there else {})} for i, row in enumerate(rows)]
    found = {field.name: set(field.roles) for field in profiled(rows).fields}
    assert found.get("maximum") == roles


def test_what_may_be_added_to_a_name_may_be_asked_for() -> None:
    rows = [{"name": name, "town": "ABCDE"[i % 5] + "-town"} for i, name in enumerate([*STARS, *STARS[:6]])]
    profile = profiled(rows)
    assert [field.name for field in profile.qualifiers] == ["town"]
    assert "ask" in next(field for field in profile.fields if field.name == "town").roles


def test_fields_that_differ_by_a_plural_alone_are_told_apart_or_not_offered() -> None:
    found = profiled(stars(moonCount=lambda i: i % 5, moonsCount=lambda i: i % 4))
    assert not {"moon count", "moons count"} & set(roles(found))
    assert {found.left_out[path] for path in (("moonCount",), ("moonsCount",))} == {"another field has the same name"}
