"""Pages, OpenAPI documents and JavaScript: which become units, how they are named, where they say they are from."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from api_server import Answer, Asked, Detour, Waits, serving
from treeagent.data.catalog import Collection, Unit
from treeagent.data.sources import SOURCES, RawFile, Skipped, Wish
from treeagent.data.sources.fetch import Fetcher
from treeagent.data.sources.repositories import origin_of
from treeagent.data.sources.websrc import stands_alone
from treeagent.errors import ConfigError, InputError

ROWS = "".join(f"<tr><td>Item {i}</td><td>{i * 3}</td><td>red</td></tr>" for i in range(5))
TABLE = f"<table><tr><th>Name</th><th>Price</th><th>Colour</th></tr>{ROWS}</table>"


def page(title: str, body: str) -> str:
    return f"<html><head><title>{title}</title></head><body class='x'>\n{body}\n</body></html>"


def read(name: str, files: list[RawFile], skipped: Skipped | None = None) -> Collection:
    (found,) = SOURCES[name].read(files, skipped)
    return found


def named(units: Any) -> list[dict[str, str]]:
    return [dict(unit.about) for unit in units]


def context(found: Collection, units: list[Unit]) -> str:
    before, glue, after = found.frame.shell(found.layouts[0])
    return before + glue.join("".join(found.frame.unit(unit, found.layouts[0])) for unit in units) + after


class Fetching:
    """A fetcher into a folder, by way of a server."""

    def __init__(self, folder: Path, server: Any, *hosts: str) -> None:
        waits = Waits()
        self.fetcher = Fetcher(folder, hosts, transport=Detour(server), clock=waits.clock, sleep=waits.sleep)

    def __enter__(self) -> Fetcher:
        return self.fetcher

    def __exit__(self, *exception: object) -> None:
        self.fetcher.__exit__(*exception)


def packed(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


# Pages.


def test_a_page_is_the_inside_of_its_body_under_its_title() -> None:
    found = read("websrc", [RawFile.of("a.html", page("Cars &amp; more", TABLE))])
    (unit,) = found.units
    assert (unit.text, unit.about["title"]) == (TABLE, "Cars & more")
    assert unit.provenance.license == "CC-BY-4.0"
    assert found.format == "html"
    assert [len(table.records) for table in found.tables] == [5]
    assert context(found, [unit]).count('<article title="Cars &amp; more">') == 1


def test_pages_of_one_title_are_told_apart_by_their_place() -> None:
    places = ("data/auto/03/processed_data/0300542.html", "x/book/01/processed_data/0100001.html", "other/page.html")
    files = [RawFile.of(path, page("Same", f"{TABLE}<p>{path}</p>")) for path in places]
    found = read("websrc", files)
    assert named(found.units) == [
        {"title": "Same (auto page 0300542)"},
        {"title": "Same (book page 0100001)"},
        {"title": "Same (page)"},
    ]
    assert all(found.names_unit(i) for i in range(3))


def test_a_page_without_title_goes_by_its_place() -> None:
    found = read("websrc", [RawFile.of("auto/03/processed_data/0300542.html", f"<html><body>{TABLE}</body></html>")])
    assert named(found.units) == [{"title": "auto page 0300542"}]


@pytest.mark.parametrize(
    "inside",
    [
        "<table><tr><td>1",
        "<p><b>bold",
        "<!-- open",
        "<script>",
        "<textarea>x",
        "</article><p>x",
        "<select><option>",
        "<a href='x",
    ],
)
def test_a_page_that_would_swallow_the_next_does_not_stand_alone(inside: str) -> None:
    assert not stands_alone(inside)


@pytest.mark.parametrize(
    "inside",
    [
        "<p>open",
        "<ul><li>a<li>b",
        TABLE,
        "plain",
        "<b>bold</b>",
        "<script>if (a<b) c</script>",
        "<svg>",
        "<article>x</article>",
        "<br></p>",
    ],
)
def test_a_page_that_ends_where_it_ends_stands_alone(inside: str) -> None:
    assert stands_alone(inside)


def test_pages_that_offer_nothing_are_counted() -> None:
    skipped = Skipped()
    files = [
        RawFile.of("a.html", page("A", TABLE)),
        RawFile.of("b.html", page("B", TABLE)),
        RawFile.of("c.html", page("C", "")),
        RawFile.of("d.html", page("D", "<table><tr><td>")),
    ]
    assert len(read("websrc", files, skipped).units) == 1
    assert skipped["pages seen before"] == 1
    assert skipped["pages without content"] == 1
    assert skipped["pages that do not end where they end"] == 1


def test_the_archive_is_the_users(tmp_path: Path) -> None:
    path = tmp_path / "WebSRC.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data/auto/03/processed_data/2.html", page("Two", TABLE))
        archive.writestr("data/auto/03/processed_data/1.html", page("One", TABLE + "<p>1</p>"))
        archive.writestr("data/auto/03/processed_data/1.png", b"\x89")
    source = SOURCES["websrc"]
    with Fetcher(tmp_path / "cache", []) as fetcher:
        files = source.fetch(fetcher, Wish(options={"archive": str(path)}))
        with pytest.raises(ConfigError, match="needs its archive"):
            source.fetch(fetcher, Wish())
        with pytest.raises(InputError, match="no such archive"):
            source.fetch(fetcher, Wish(options={"archive": str(tmp_path / "none.zip")}))
        with pytest.raises(ConfigError, match=r"files\.example is not among the hosts"):
            source.fetch(fetcher, Wish(options={"archive": "https://files.example/x.zip"}))
    assert named(read("websrc", files).units) == [{"title": "One"}, {"title": "Two"}]


def test_an_archive_is_fetched_once_from_a_host_of_the_recipe(tmp_path: Path) -> None:
    body = packed({"auto/03/processed_data/1.html": page("One", TABLE)})
    wish = Wish(options={"archive": "https://files.example/x/WebSRC.tar.gz"})
    with serving(lambda asked: Answer(body)) as server:
        with Fetching(tmp_path, server, "files.example") as fetcher:
            first = SOURCES["websrc"].fetch(fetcher, wish)
        with Fetching(tmp_path, server, "files.example") as fetcher:
            assert SOURCES["websrc"].fetch(fetcher, wish) == first
        assert len(server.asked) == 1
    found = read("websrc", first)
    assert found.units[0].provenance.location == "https://files.example/x/WebSRC.tar.gz#auto/03/processed_data/1.html"


# OpenAPI.


def openapi(title: str, license: str = "", more: str = "") -> str:
    paths = "".join(f"  /things/{i}:\n    get:\n      operationId: get{i}\n      summary: Get {i}\n" for i in range(4))
    return f"openapi: 3.0.0\ninfo:\n  title: {title}\n  version: '1'\n{license}{more}paths:\n{paths}"


def test_a_document_is_a_unit_under_its_own_licence() -> None:
    licence = "  license:\n    name: Apache 2.0\n    url: https://example.org/licence\n"
    origin = "  x-origin:\n    - url: https://example.org/openapi.json\n"
    found = read("apisguru", [RawFile.of("a.yaml", openapi("Things", licence, origin))])
    (unit,) = found.units
    assert unit.about == {"title": "Things"}
    assert unit.provenance.license == "Apache 2.0 https://example.org/licence"
    assert unit.provenance.location == "https://example.org/openapi.json"
    assert unit.text == openapi("Things", licence, origin)
    assert [len(table.records) for table in found.tables] == [4]


def test_a_document_that_states_no_licence_is_said_to_state_none() -> None:
    (unit,) = read("apisguru", [RawFile.of("a.yaml", openapi("Things"))]).units
    assert unit.provenance.license.startswith("not stated")
    assert unit.provenance.location == "a.yaml"


def test_documents_of_one_content_or_one_title_are_taken_once() -> None:
    skipped = Skipped()
    same = openapi("Things").replace("'1'", '"1"') + "# a remark\n"
    texts = [openapi("Things"), same, openapi("things", more="  description: new\n"), openapi("Other")]
    found = read("apisguru", [RawFile.of(f"{i}.yaml", text) for i, text in enumerate(texts)], skipped)
    assert named(found.units) == [{"title": "Things"}, {"title": "Other"}]
    assert skipped["documents seen before"] == 1
    assert skipped["documents whose title another one has"] == 1


def test_what_is_no_openapi_document_is_counted() -> None:
    skipped = Skipped()
    files = [
        RawFile.of("a.yaml", openapi("Things")),
        RawFile.of("ci.yaml", "jobs: {build: {steps: [run]}}\n"),
        RawFile.of("broken.yaml", "a: [1\n"),
        RawFile.of("untitled.yaml", openapi("''")),
    ]
    assert len(read("apisguru", files, skipped).units) == 1
    assert dict(skipped) == {
        "documents that are no OpenAPI": 1,
        "files that cannot be read as YAML": 1,
        "documents without a title": 1,
    }


def test_documents_stand_in_one_stream() -> None:
    found = read("apisguru", [RawFile.of(f"{i}.yaml", f"---\n{openapi(f'API {i}')}") for i in range(3)])
    text = context(found, list(found.units))
    assert text == "---\n".join(openapi(f"API {i}") for i in range(3))


def test_the_directory_gives_the_preferred_version_of_a_few_apis_of_each_provider(tmp_path: Path) -> None:
    def entry(name: str) -> dict[str, Any]:
        versions = {v: {"swaggerYamlUrl": f"https://api.apis.guru/v2/specs/{name}/{v}.yaml"} for v in ("1", "2")}
        return {"preferred": "2", "versions": versions}

    listed = {name: entry(name) for name in ("a.com:x", "a.com:y", "a.com:z", "b.org", "gone.net")}

    def answers(asked: Asked) -> Answer:
        if asked.path == "/v2/list.json":
            return Answer.of(listed)
        if "gone" in asked.path:
            return Answer(status=404)
        return Answer(openapi(asked.path).encode())

    with serving(answers) as server, Fetching(tmp_path, server, "api.apis.guru") as fetcher:
        files = SOURCES["apisguru"].fetch(fetcher, Wish(100, {"per_provider": "2"}))
        assert len(files) == 3
        assert all(file.path.endswith(".yaml") and file.url.endswith("/2.yaml") for file in files)
        assert sum(file.path.startswith("a.com") for file in files) == 2
        assert len(SOURCES["apisguru"].fetch(fetcher, Wish(1))) == 1


# JavaScript.

CODE = """'use strict';
const RULES = [
  { name: 'semi', fixable: true, count: 3 },
  { name: "eqeqeq", fixable: false, count: 7 },
  { name: 'curly', fixable: true, count: 1 },
];

function f() { return { a: 1, b: 2, c: 3 }; }
const called = { a: g(), b: 2, c: 3 };
const spread = { ...RULES, b: 2, c: 3 };
const key = { [RULES]: 1, b: 2, c: 3 };
const small = { a: 1 };
const token = { key: 'ghp_0123456789abcdefghijABCDEFGHIJ012345', b: 2, c: 3 };
module.exports = { one: 1, two: 2, three: 3 };
"""


def test_a_static_statement_is_a_unit_that_says_where_it_stands() -> None:
    found = read("repositories", [RawFile.of("eslint-6ddf8587e5cf.tar.gz!/eslint-6ddf/lib/rules.js", CODE)])
    assert named(found.units) == [
        {"name": "RULES", "file": "lib/rules.js"},
        {"name": "module.exports", "file": "lib/rules.js"},
    ]
    rules = found.units[0]
    assert rules.text == CODE[CODE.index("const RULES") : CODE.index("];") + 2]
    assert rules.provenance.source == "eslint/eslint"
    assert rules.provenance.license == "MIT"
    assert rules.provenance.location == "eslint/eslint@6ddf8587e5cf:lib/rules.js#L2"
    assert 3 in [len(table.records) for table in found.tables]
    assert context(found, [rules]).startswith("// eslint/eslint lib/rules.js (MIT)\nconst RULES = [")


def test_why_a_statement_is_refused_is_counted() -> None:
    skipped = Skipped()
    read("repositories", [RawFile.of("eslint/a.js", CODE)], skipped)
    refused = {reason.removeprefix("initialisers refused: ") for reason in skipped}
    assert {"it holds a call", "it holds a spread", "it holds a computed key"} <= refused
    assert any("token" in reason for reason in refused)
    assert skipped["initialisers with too few values"] == 1


def test_equal_statements_are_taken_once_and_built_files_not_at_all() -> None:
    skipped = Skipped()
    paths = ("webpack/lib/a.js", "webpack/lib/b.js", "webpack/dist/c.js", "webpack/x.min.js", "webpack/broken.js")
    texts = (CODE, CODE, CODE, CODE, "const a = {")
    found = read("repositories", [RawFile.of(path, text) for path, text in zip(paths, texts, strict=True)], skipped)
    assert len(found.units) == 2
    assert skipped["initialisers seen before"] == 2
    assert skipped["files that are built, bundled or another's"] == 2


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("babel/packages/x.js", ("babel/babel", "", "packages/x.js")),
        ("clones/babel-86b96c84eef3/packages/x.js", ("babel/babel", "86b96c84eef3", "packages/x.js")),
        ("three.js-27e70ddf91e9.tar.gz!/three.js-27e/src/x.js", ("mrdoob/three.js", "27e70ddf91e9", "src/x.js")),
        ("lodash-4.17.21.tgz!/package/fp/x.js", ("lodash/lodash", "4.17.21", "fp/x.js")),
        ("babel-7.23.6/types.tgz!/package/lib/x.js", ("babel/babel", "7.23.6", "types/lib/x.js")),
        ("babel-types-7.23.6.tgz!/package/lib/x.js", ("babel/babel", "7.23.6", "lib/x.js")),
        ("babel/eslint/babel-eslint-parser/x.js", ("babel/babel", "", "eslint/babel-eslint-parser/x.js")),
    ],
)
def test_a_path_tells_repository_commit_and_place(path: str, wanted: tuple[str, str, str]) -> None:
    found = origin_of(path)
    assert found is not None
    assert (found[0].slug, *found[1:]) == wanted


@pytest.mark.parametrize("path", ["eslint-plugin-x-1.0.0/a.js", "a.js", "webpack-cli/x.js", "babel.js"])
def test_code_of_another_project_is_left_out(path: str) -> None:
    assert origin_of(path) is None


def test_repositories_come_as_archives_of_a_commit(tmp_path: Path) -> None:
    body = packed({"lodash-abc/fp/x.js": CODE, "lodash-abc/README.md": "no", "../up.js": CODE})
    options = {"only": "lodash", "commits": "lodash=0123456789ab"}
    with serving(lambda asked: Answer(body)) as server, Fetching(tmp_path, server, "codeload.github.com") as fetcher:
        files = SOURCES["repositories"].fetch(fetcher, Wish(options=options))
        assert [asked.path for asked in server.asked] == ["/lodash/lodash/tar.gz/0123456789ab"]
    found = read("repositories", files)
    assert found.units[0].provenance.location == "lodash/lodash@0123456789ab:fp/x.js#L2"


def test_repositories_come_as_packages_too(tmp_path: Path) -> None:
    body = packed({"package/lib/x.js": CODE})
    options = {"only": "babel", "from": "npm"}
    with serving(lambda asked: Answer(body)) as server, Fetching(tmp_path, server, "registry.npmjs.org") as fetcher:
        files = SOURCES["repositories"].fetch(fetcher, Wish(options=options))
        assert server.asked[0].path == "/@babel/core/-/core-7.23.7.tgz"
    assert {file.path for file in files} >= {"babel-7.23.7/core.tgz!/package/lib/x.js"}
    assert read("repositories", files).units[0].about["file"] == "core/lib/x.js"


def test_an_unknown_repository_is_an_error(tmp_path: Path) -> None:
    with Fetcher(tmp_path, []) as fetcher, pytest.raises(ConfigError, match="known: babel, eslint"):
        SOURCES["repositories"].fetch(fetcher, Wish(options={"only": "jquery"}))


@pytest.mark.parametrize("name", ["websrc", "apisguru", "repositories"])
def test_a_folder_that_offers_nothing_gives_no_collection(name: str) -> None:
    assert SOURCES[name].read([]) == []
    assert SOURCES[name].read([RawFile.of("x/nothing.txt", json.dumps({}))]) == []
