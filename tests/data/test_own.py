"""Collections from a folder of anyone's documents, and the reasons why some offer nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from treeagent.data import own as own_documents
from treeagent.data.catalog import Collection
from treeagent.data.formats import parse
from treeagent.data.own import collections, own
from treeagent.errors import InputError


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    return folder


def cities(first: int, count: int = 4) -> str:
    rows = [{"name": f"City {i}", "population": 1000 * i + 7} for i in range(first, first + count)]
    return json.dumps({"status": "ok", "data": {"cities": rows, "next": None}})


def context(collection: Collection, layout: str) -> str:
    """All units in their frame."""
    before, glue, after = collection.frame.shell(layout)
    return before + glue.join("".join(collection.frame.unit(unit, layout)) for unit in collection.units) + after


def test_elements_of_like_responses_are_units_of_one_collection_in_their_envelope(tmp_path: Path) -> None:
    write(tmp_path, b_json=cities(4), a_json=cities(0), c__d_json=cities(2))
    found = own(tmp_path, license="CC0-1.0")
    (collection,) = found.collections
    assert (collection.format, len(collection.units), collection.layouts) == (
        "json",
        8,
        ("compact", "spaced", "indented"),
    )
    assert [json.loads(unit.text)["name"] for unit in collection.units] == [f"City {i}" for i in range(8)]
    assert {one.path for one in found.refused} == {"c/d.json"}
    assert "twice" in found.refused[0].reason
    text = json.loads(context(collection, "compact"))
    assert list(text) == ["status", "data"]
    assert len(text["data"]["cities"]) == 8
    assert collection.units[0].provenance.license == "CC0-1.0"
    assert collection.tables[0].plural == "cities"


def test_files_with_one_like_object_each_are_elements_of_one_list(tmp_path: Path) -> None:
    for i in range(4):
        write(tmp_path, **{f"n{i}_json": json.dumps({"title": f"Note {i}", "size": i * 3, "meta": {"by": f"x{i}"}})})
    (collection,) = collections(tmp_path)
    assert [json.loads(unit.text)["title"] for unit in collection.units] == [f"Note {i}" for i in range(4)]
    assert len(json.loads(context(collection, "compact"))) == 4


TABLE = "<table><tr><th>Name</th><th>Size</th></tr>" + "".join(
    f"<tr><td>n{i}</td><td>{i * 5}</td></tr>" for i in range(4)
)


def test_pages_are_units_known_by_their_titles(tmp_path: Path) -> None:
    head = "<!DOCTYPE html><html><head><title>Same</title></head><body>"
    write(
        tmp_path, a_html=f"{head}<h1>A</h1>{TABLE}</table></body></html>", b_html=f"{head}{TABLE}<tr><td>z<td>9</table>"
    )
    write(tmp_path, c_html=f"<h1>Only a heading</h1><p>{TABLE}</table>", d_htm="<title>x</title>")
    found = own(tmp_path)
    (collection,) = found.collections
    assert [unit.about["title"] for unit in collection.units] == ["Same (a.html)", "Same (b.html)", "Only a heading"]
    assert collection.units[0].text == f"<h1>A</h1>{TABLE}</table>"
    assert ("d.htm", "its body is empty") in {(one.path, one.reason) for one in found.refused}
    document = parse(context(collection, "native"), "html")
    assert document.text.count("<article title=") == 3


def test_documents_of_a_stream_are_units_that_make_a_stream_again(tmp_path: Path) -> None:
    one = "title: One\njobs:\n- {name: a, size: 1}\n- {name: b, size: 2}\n- {name: c, size: 3}\n"
    two = "# about two\n\ntitle: Two\njobs:\n- {name: d, size: 4}\n- {name: e, size: 5}\n- {name: f, size: 6}"
    write(tmp_path, a_yaml=f"---\n{one}---   # second\n{two}\n...\n")
    (collection,) = collections(tmp_path)
    assert [unit.about for unit in collection.units] == [{"title": "One"}, {"title": "Two"}]
    assert [unit.text for unit in collection.units] == [one, f"{two}\n"]
    document = parse(context(collection, "native"), "yaml")
    assert document.root.n_children == 2
    (jobs,) = collection.tables
    assert (jobs.whole, jobs.plural, len(jobs.records)) == (True, "jobs", 6)


def test_static_initialisers_are_units_with_their_line(tmp_path: Path) -> None:
    rows = ", ".join(f"{{ name: 'n{i}', size: {i * 3} }}" for i in range(4))
    text = f"import x from 'y';\n\n/* sizes */\nexport const sizes = [{rows}];\nfoo({{ a: 1 }});\nconst made = [f()];\n"
    write(tmp_path, a__b_js=text, c_js="f(1);")
    found = own(tmp_path)
    (collection,) = found.collections
    (unit,) = collection.units
    assert unit.text == f"export const sizes = [{rows}];"
    assert (unit.about, unit.provenance.location) == ({"name": "sizes", "file": "a/b.js"}, "a/b.js#L4")
    assert [(one.path, one.reason) for one in found.refused] == [("c.js", "it has no static initialiser")]


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.json", "{", "not valid json"),
        ("a.json", '{"a": 1}', "no list of like objects"),
        ("a.json", '{"x": {"n": 1}, "y": {"n": 2}, "z": {"n": 3}}', "a map of like objects"),
        ("a.json", json.dumps([{"ok": True}] * 4), "names its records"),
        ("a.yaml", "a: [", "not valid yaml"),
        ("a.yaml", "a: 1", "no list"),
        ("a.js", "const a = [{ x: f() }, { x: 2 }];", "a call"),
        ("a.html", "<p>words</p>", "no list"),
    ],
)
def test_a_document_that_offers_nothing_is_told_with_the_reason(
    tmp_path: Path, name: str, text: str, reason: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    found = own(tmp_path)
    assert not found.collections
    (refused,) = found.refused
    assert refused.path == name
    assert reason in refused.reason


def test_what_holds_a_secret_is_left_out(tmp_path: Path) -> None:
    rows = [{"name": f"n{i}", "size": i, "token": "none"} for i in range(5)]
    rows[2]["token"] = "ghp_" + "a1B2" * 9
    write(tmp_path, a_json=json.dumps(rows))
    found = own(tmp_path)
    assert len(found.collections[0].units) == 4
    assert "access token" in found.refused[0].reason


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    write(tmp_path, out__a_json=cities(0), in__b_json=cities(0))
    (tmp_path / "in" / "link.json").symlink_to(tmp_path / "out" / "a.json")
    (tmp_path / "in" / "linked").symlink_to(tmp_path / "out")
    found = own(tmp_path / "in")
    assert [(one.path, "leads out" in one.reason) for one in found.refused] == [("link.json", True)]
    assert len(found.collections[0].units) == 4


def test_pipes_folders_and_links_to_themselves_are_no_files(tmp_path: Path) -> None:
    write(tmp_path, in__b_json=cities(0))
    (tmp_path / "in" / "loop.json").symlink_to("loop.json")
    (tmp_path / "in" / "gone.json").symlink_to("nowhere.json")
    os.mkfifo(tmp_path / "in" / "pipe.json")  # would be waited for
    found = own(tmp_path / "in")
    assert [(one.path, one.reason) for one in found.refused] == [
        (f"{name}.json", "it is no file") for name in ("gone", "loop", "pipe")
    ]
    assert len(found.collections[0].units) == 4


def test_records_with_numbers_too_long_to_read_are_left_out(tmp_path: Path) -> None:
    long = "9" * 400
    write(tmp_path, a_json=cities(0).replace(": 7}", f": {long}}}"), b_json=cities(4).replace('"ok"', long))
    found = own(tmp_path)
    assert len(found.collections[0].units) == 3
    assert [(one.path, "too long" in one.reason) for one in found.refused] == [("b.json", True), ("a.json", True)]


def test_files_beyond_the_limits_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, a_json=cities(0), b_json=cities(0, 40))
    monkeypatch.setattr(own_documents, "MAX_BYTES", 1000)
    assert [(one.path, "too large" in one.reason) for one in own(tmp_path).refused] == [("b.json", True)]


def test_no_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no folder"):
        own(tmp_path / "none")
