"""Archives and folders: what is read, in which order, and what hostile ones get."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from treeagent.data.sources import RawFile, Skipped
from treeagent.data.sources.archives import ArchiveBounds, is_safe, is_whole, members
from treeagent.data.sources.files import raw_files
from treeagent.errors import InputError, LimitError

HOSTILE = ("/etc/passwd.js", "../up.js", "a/../../up.js", "C:/x.js", "a\\..\\b.js", "a\x01.js", "//host/x.js")


def zipped(path: Path, files: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def tarred(path: Path, files: Mapping[str, bytes], links: Mapping[str, str] | None = None, mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, target in (links or {}).items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def held(path: Path, skipped: Skipped | None = None, **bounds: int) -> dict[str, bytes]:
    wanted = ArchiveBounds(**bounds)
    return dict(members(path, lambda name: name.endswith(".js"), Skipped() if skipped is None else skipped, wanted))


FILES = {"b/x.js": b"1", "a.js": b"22", "c.txt": b"no"}


def test_a_zip_and_every_kind_of_tar_hold_the_same(tmp_path: Path) -> None:
    wanted = {"b/x.js": b"1", "a.js": b"22"}
    assert held(zipped(tmp_path / "x.zip", FILES)) == wanted
    for name, mode in (("x.tar", "w"), ("x.tgz", "w:gz"), ("x.tar.bz2", "w:bz2"), ("x.tar.xz", "w:xz")):
        assert held(tarred(tmp_path / name, FILES, mode=mode)) == wanted


@pytest.mark.parametrize("name", HOSTILE)
def test_a_path_that_leads_out_is_not_safe(name: str) -> None:
    assert not is_safe(name)


@pytest.mark.parametrize("name", ["a.js", "a/b..c/d.js", "a/...js", "é/ü.js", "./a.js"])
def test_a_path_that_stays_inside_is_safe(name: str) -> None:
    assert is_safe(name)


def test_hostile_members_are_left_out_and_counted(tmp_path: Path) -> None:
    skipped = Skipped()
    path = tarred(tmp_path / "x.tgz", dict.fromkeys(HOSTILE, b"x") | {"good.js": b"y"}, {"link.js": "/etc/passwd"})
    assert held(path, skipped) == {"good.js": b"y"}
    assert skipped["archive members with an unsafe path"] == len(HOSTILE)
    assert skipped["archive members that are links or devices"] == 1
    assert list(tmp_path.iterdir()) == [path]


def test_hostile_members_of_a_zip_are_left_out_and_counted(tmp_path: Path) -> None:
    skipped, path = Skipped(), tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("../up.js", "/abs.js", "good.js"):
            archive.writestr(name, b"y")
        link = zipfile.ZipInfo("link.js")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    assert held(path, skipped) == {"good.js": b"y"}
    assert sum(skipped.values()) == 3


def test_a_member_that_unpacks_to_too_much_is_left_out(tmp_path: Path) -> None:
    skipped = Skipped()
    path = zipped(tmp_path / "x.zip", {"bomb.js": b"0" * 4_000_000, "good.js": b"y"})
    assert held(path, skipped) == {"good.js": b"y"}
    assert skipped["archive members that unpack to too much"] == 1


def test_a_member_that_is_too_large_is_left_out(tmp_path: Path) -> None:
    for path in (zipped(tmp_path / "x.zip", {"a.js": b"123456"}), tarred(tmp_path / "x.tar.gz", {"a.js": b"123456"})):
        skipped = Skipped()
        assert held(path, skipped, member_bytes=5) == {}
        assert skipped["archive members that are too large"] == 1


def test_a_tar_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    path = tarred(tmp_path / "x.tgz", {f"{i}.txt": b"0" * 100_000_000 for i in range(2)})
    with pytest.raises(LimitError, match="unpacks to more"):
        held(path, total_bytes=10_000_000)


def test_a_tar_header_that_asks_for_all_memory_is_refused(tmp_path: Path) -> None:
    entry = tarfile.TarInfo("x")
    entry.type, entry.size = tarfile.XHDTYPE, 1 << 40
    path = tmp_path / "x.tar.gz"
    path.write_bytes(gzip.compress(entry.tobuf() + b"0" * 10_000))
    with pytest.raises((LimitError, InputError)):
        held(path)


def test_too_many_members_are_refused(tmp_path: Path) -> None:
    files = {f"{i}.js": b"" for i in range(20)}
    for path in (zipped(tmp_path / "x.zip", files), tarred(tmp_path / "x.tgz", files)):
        with pytest.raises(LimitError, match="more than 10 members"):
            held(path, members=10)


@pytest.mark.parametrize("name", ["x.zip", "x.tgz"])
def test_an_archive_cut_short_is_not_whole(tmp_path: Path, name: str) -> None:
    content = {f"{i}.js": os.urandom(3000) for i in range(5)}
    path = zipped(tmp_path / name, content) if name.endswith("zip") else tarred(tmp_path / name, content)
    is_whole(path)
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(ValueError, match=r"cannot be read as an archive"):
        is_whole(path)


@pytest.mark.parametrize("content", [b"", b"PK", b"no archive at all", b"\x1f\x8b\x08", b"BZh9", b"\xfd7zXZ\x00"])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.tgz"
    path.write_bytes(content)
    with pytest.raises(InputError):
        held(path)


def test_a_folder_is_read_in_the_order_of_its_paths_archives_in_place(tmp_path: Path) -> None:
    (tmp_path / "z").mkdir()
    (tmp_path / "z" / "last.js").write_text("z")
    (tmp_path / "a.js").write_bytes(b"\xef\xbb\xbfa")
    (tmp_path / "b.md").write_text("no")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "hook.js").write_text("no")
    zipped(tmp_path / "m.zip", {"y.js": b"y", "node_modules/p.js": b"no", "b.js": b"b"})
    files = raw_files(tmp_path, (".js",), Skipped())
    assert [(file.path, file.text) for file in files] == [
        ("a.js", "a"),
        ("m.zip!/b.js", "b"),
        ("m.zip!/y.js", "y"),
        ("z/last.js", "z"),
    ]
    assert files[0].sha256 == hashlib.sha256(b"\xef\xbb\xbfa").hexdigest()


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "x.js").write_text("out")
    (tmp_path / "in" / "link.js").symlink_to(tmp_path / "out" / "x.js")
    (tmp_path / "in" / "folder").symlink_to(tmp_path / "out")
    assert raw_files(tmp_path / "in", (".js",), Skipped()) == []


def test_a_file_that_is_no_text_is_counted(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"\xff\xfe\x00")
    skipped = Skipped()
    assert raw_files(tmp_path, (".json",), skipped) == []
    assert skipped == {"files that are not UTF-8": 1}


def test_one_file_is_a_place_too(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("{}")
    assert raw_files(path, (".json",), Skipped()) == [RawFile.of("a.json", "{}")]
    with pytest.raises(InputError, match="no such file or folder"):
        raw_files(tmp_path / "none", (".json",), Skipped())
