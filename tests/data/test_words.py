"""Names for people made of keys and headings."""

from __future__ import annotations

import pytest
from treeagent.data.words import field_name, heading_name, nouns, plural, singular, words_of


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("numDownloads", "number downloads"),
        ("HTTPServerName", "HTTP server name"),
        ("snake_case_key", "snake case key"),
        ("is-referenced-by-count", "is referenced by count"),
        ("Award ID", "award ID"),
        ("cvssV3", "cvss v3"),
        ("geonameId", "geoname ID"),
        ("maxLength", "maximum length"),
        ("größe", "größe"),
    ],
)
def test_a_key_is_split_into_words(key: str, words: str) -> None:
    assert " ".join(words_of(key)).casefold() == words.casefold()


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (("properties", "magType"), "magnitude type"),
        (("country", "name"), "country name"),
        (("countries", "name"), "country name"),
        (("name",), "name"),
        (("population",), "population"),
        (("elevation_m", "areaKm"), "area in km"),
        (("price_usd",), "price in US dollars"),
        (("areaInSqKm",), "area in sq km"),
        (("startDateStruct", "date"), "start date"),
        (("nst",), "NST"),
        (("age",), "age"),
    ],
)
def test_a_field_is_named_by_its_last_key_and_its_object_where_that_says_too_little(
    path: tuple[str, ...], name: str
) -> None:
    assert field_name(path) == name


def test_no_field_is_called_by_a_key_that_is_no_word() -> None:
    for key in ("fooBar", "foo_bar", "nst", "x-y", "v2"):
        assert field_name((key,)) != key


@pytest.mark.parametrize(
    ("one", "several"),
    [
        ("city", "cities"),
        ("day", "days"),
        ("box", "boxes"),
        ("class", "classes"),
        ("status", "statuses"),
        ("database", "databases"),
        ("house", "houses"),
        ("person", "people"),
        ("child", "children"),
        ("analysis", "analyses"),
        ("series", "series"),
        ("movie", "movies"),
        ("branch", "branches"),
        ("cache", "caches"),
        ("alias", "aliases"),
        ("match", "matches"),
        ("archive", "archives"),
        ("leaf", "leaves"),
        ("size", "sizes"),
        ("URL", "URLs"),
    ],
)
def test_nouns_have_a_singular_and_a_plural(one: str, several: str) -> None:
    assert (plural(one), singular(several)) == (several, one)


@pytest.mark.parametrize(
    ("named", "shape", "said"),
    [
        ("vulnerabilities", "objects", ("vulnerability", "vulnerabilities")),
        ("author", "objects", ("author", "authors")),
        ("CVE_Items", "objects", ("CVE item", "CVE items")),
        ("colorKeywords", "objects", ("color keyword", "color keywords")),
        ("data", "objects", ("entry", "entries")),
        ("", "objects", ("entry", "entries")),
        ("List of rivers by length", "table", ("river", "rivers")),
        ("Supported Character Sets", "table", ("supported character set", "supported character sets")),
        ("Numeric Types (SQL)", "table", ("numeric type", "numeric types")),
        ("History", "table", ("row", "rows")),
        ("What changed?", "items", ("entry", "entries")),
    ],
)
def test_records_are_called_by_the_key_caption_or_heading_of_their_list(
    named: str, shape: str, said: tuple[str, str]
) -> None:
    assert nouns(named, shape) == said


@pytest.mark.parametrize(
    ("heading", "name"),
    [("Release date", "release date"), ("Engine:", "engine"), ("GDP [1]", "GDP"), ("PPG", "PPG"), ("Types ¶", "types")],
)
def test_a_heading_is_a_name_without_colon_and_footnotes(heading: str, name: str) -> None:
    assert heading_name(heading) == name


def test_characters_that_nobody_sees_are_in_no_name() -> None:
    assert heading_name("Bytes/\u200bChar\u202e") == "Bytes/Char"
