"""Anyone's own documents as collections: a folder of files of the four formats, cut into units, with their tables.

JSON: the elements of the best record list, in their envelope; files with like lists are one collection, and so are
files that hold one like object each. HTML: pages. YAML: documents of streams. JavaScript: static initialisers. What
offers nothing is named with the reason.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import InputError
from .catalog import Collection, FieldPath, Provenance, Unit, identity_of
from .cutting import page_parts, yaml_documents, yaml_title
from .field_roles import FEWEST_RECORDS, profiled
from .formats import SUFFIXES, parse, read_text
from .formats.html_tree import HtmlDocument
from .formats.javascript_tree import JavascriptDocument
from .formats.yaml_tree import YamlDocument
from .frames import LAYOUTS, NATIVE, frame_for
from .record_lists.finding import readings
from .record_lists.javascript_lists import statements
from .record_lists.lists import alike, found_in, name_of
from .record_lists.patterns import EVERY, Step, objects_at, written
from .record_lists.secret_strings import secret_in
from .tables import Examined, examined
from .tree import Document

MAX_BYTES, MAX_FILES, MAX_TOTAL = 64 << 20, 100_000, 2 << 30
"""Size of a file, number of files and their size together that are read."""
LICENSE = "not stated"
_UNREAD = "it holds a number that is too long to be read"


@dataclass(frozen=True, slots=True)
class Refused:
    """A document, or a part of one, that offers nothing, and why, in one line."""

    path: str
    reason: str


@dataclass(frozen=True)
class Rights:
    """Under which terms the documents may be used, as their owner states it."""

    license: str = LICENSE
    attribution: str = ""


@dataclass(frozen=True)
class File:
    """A file of a known format: its path below the folder, and its text."""

    path: str
    format: str
    text: str


@dataclass(eq=False)
class Own:
    """What documents offer: collections, documents that offer nothing, and lists that do not in others."""

    collections: list[Collection] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    left_out: list[Refused] = field(default_factory=list)


def collections(folder: str | Path, **rights: str) -> list[Collection]:
    """The collections of a folder. See `own`, which says also what was left out."""
    return own(folder, **rights).collections


def own(folder: str | Path, *, license: str = LICENSE, attribution: str = "") -> Own:
    """Reads all documents below a folder, in the order of their paths. Raises InputError where there is none."""
    refused: list[Refused] = []
    found = offered(list(_files(Path(folder), refused)), license=license, attribution=attribution)
    found.refused[:0] = refused
    return found


def offered(files: Sequence[File], *, license: str = LICENSE, attribution: str = "") -> Own:
    """What these files offer."""
    found, rights = Own(), Rights(license, attribution)
    for format, gather in _GATHER.items():
        of_format = [file for file in files if file.format == format]
        if of_format:
            gather(found, of_format, rights)
    return found


def _files(folder: Path, refused: list[Refused]) -> Iterator[File]:
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder")
    root, total, count = folder.resolve(), 0, 0
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(place) / name
            shown = str(path.relative_to(folder))
            format = SUFFIXES.get(path.suffix.lower())
            if format is None:
                continue
            if not path.is_file():  # a folder, a pipe that would be waited for, a link to nothing or to itself
                refused.append(Refused(shown, "it is no file"))
                continue
            if not path.resolve().is_relative_to(root):
                refused.append(Refused(shown, "it is a link that leads out of the folder"))
                continue
            size = path.stat().st_size
            total, count = total + size, count + 1
            if size > MAX_BYTES or total > MAX_TOTAL or count > MAX_FILES:
                refused.append(Refused(shown, f"too large: {size:,} bytes, {total:,} with those before it"))
                continue
            try:
                yield File(shown, format, read_text(str(path), format))
            except InputError as error:
                refused.append(Refused(shown, str(error).removeprefix(f"{path}: ")))


def _parsed(file: File, refused: list[Refused]) -> Document | None:
    try:
        return parse(file.text, file.format)
    except InputError as error:
        refused.append(Refused(file.path, str(error)))
        return None


# JSON.


@dataclass(frozen=True)
class _Response:
    """A JSON document with the record list chosen from it."""

    file: File
    value: Any
    steps: tuple[Step, ...]
    records: Sequence[Mapping[str, Any]]


def _gather_json(found: Own, files: Sequence[File], rights: Rights) -> None:
    responses: list[_Response] = []
    single: list[_Response] = []
    for file in files:
        document = _parsed(file, found.refused)
        if document is None:
            continue
        reading = next(readings(document))
        if reading.faults:
            found.refused.append(Refused(file.path, reading.faults[0].reason))
            continue
        chosen, reason = _best_list(file, reading.value)
        if chosen is not None and not _is_plain(_envelope(chosen)):
            found.refused.append(Refused(file.path, _UNREAD))
        elif chosen is not None:
            responses.append(chosen)
        elif isinstance(reading.value, dict):
            single.append(_Response(file, reading.value, (), [reading.value]))
        else:
            found.refused.append(Refused(file.path, reason))
    for group in _alike(responses):
        _add_json(found, group, rights, _envelope(group[0]), group[0].steps)
    for group in _alike(single):
        if len(group) < FEWEST_RECORDS:
            found.refused.extend(
                Refused(one.file.path, _best_list(one.file, one.value)[1] or "no list of like objects") for one in group
            )
        else:
            _add_json(found, group, rights, None, ())


def _best_list(file: File, value: Any) -> tuple[_Response | None, str]:
    """The list of like objects that offers most, and why there is none."""
    best: tuple[int, _Response] | None = None
    reason = "no list of like objects"
    for steps in found_in(value):
        records = [record for _, record in objects_at(value, (*steps, EVERY))]
        if isinstance(_at(value, steps), dict):
            reason = f"{written(steps)} is a map of like objects, not a list"
            continue
        profile = profiled([record for record in records if _is_plain(record)])
        if profile.refused:
            reason = f"{written(steps)}: {profile.refused}"
            continue
        size = len(records) * len(profile.fields)
        if best is None or size > best[0]:
            best = size, _Response(file, value, steps, records)
    return (best[1], "") if best else (None, reason)


def _at(value: Any, steps: Sequence[Step]) -> Any:
    for step in steps:
        value = value[step]
    return value


def _alike(responses: Sequence[_Response]) -> list[list[_Response]]:
    """Documents with like records at the same place, together."""
    groups: list[list[_Response]] = []
    by_place: dict[tuple[Step, ...], list[list[_Response]]] = defaultdict(list)
    for one in responses:
        for group in by_place[one.steps]:
            if alike([*group[0].records[:20], *one.records[:20]]) and alike([group[0].records[0], one.records[0]]):
                group.append(one)
                break
        else:
            group = [one]
            by_place[one.steps].append(group)
            groups.append(group)
    return groups


def _envelope(one: _Response) -> Any:
    """The response without its records."""
    if not one.steps:
        return None
    root = {"": one.value}
    place: Any = root
    for key, step in zip(("", *one.steps), (*one.steps, None), strict=False):
        place[key] = [] if step is None else copy(place[key])
        place = place[key]
    return root[""]


def _is_plain(value: Any) -> bool:
    """Whether all of it was read, so that it can be printed."""
    try:
        json.dumps(value)
    except TypeError:
        return False
    return True


def _add_json(found: Own, group: Sequence[_Response], rights: Rights, envelope: Any, steps: tuple[Step, ...]) -> None:
    units: list[Unit] = []
    seen: set[str] = set()
    for one in group:
        for record in one.records:
            if not _is_plain(record):
                found.refused.append(Refused(one.file.path, f"a record is left out: {_UNREAD}"))
                continue
            canonical = identity_of([json.dumps(record, sort_keys=True)])
            secret = secret_in(record)
            if canonical in seen or secret:
                reason = f"it holds what looks like {secret}" if secret else "it is there twice"
                found.refused.append(Refused(one.file.path, f"a record is left out: {reason}"))
                continue
            seen.add(canonical)
            text = json.dumps(record, ensure_ascii=False)
            units.append(Unit(text, canonical, {}, _provenance(one.file.path, rights, canonical)))
    path: FieldPath = tuple(map(str, steps))
    first = group[0].file.path
    named = name_of(steps) or (Path(first).stem if len(group) == 1 else "")
    seen_tables = examined(units, "json", name=f"own/{first}", pattern=written((*steps, EVERY)), named=named)
    frame = frame_for("json", envelope=envelope, list_path=path)
    _finish(found, [one.file for one in group], f"own/{first}", "json", units, seen_tables, frame, rights)


# HTML, YAML, JavaScript: one collection a format.


def _gather_html(found: Own, files: Sequence[File], rights: Rights) -> None:
    pages: list[tuple[File, str, str]] = []
    for file in files:
        document = _parsed(file, found.refused)
        if isinstance(document, HtmlDocument):
            body, title = page_parts(document)
            if body:
                pages.append((file, body, title or Path(file.path).stem))
            else:
                found.refused.append(Refused(file.path, "its body is empty"))
    times = Counter(title.casefold() for _, _, title in pages)
    units: list[tuple[File, Unit]] = []
    for file, body, title in pages:
        said = title if times[title.casefold()] == 1 else f"{title} ({file.path})"
        identity = identity_of([body])
        units.append((file, Unit(body, identity, {"title": said}, _provenance(file.path, rights, identity))))
    _add(found, units, "html", rights)


def _gather_yaml(found: Own, files: Sequence[File], rights: Rights) -> None:
    units: list[tuple[File, Unit]] = []
    for file in files:
        document = _parsed(file, found.refused)
        if not isinstance(document, YamlDocument):
            continue
        for text, reading in yaml_documents(document):
            secret = secret_in(reading.value)
            if secret:
                found.refused.append(Refused(file.path, f"it holds what looks like {secret}"))
                continue
            identity = identity_of([repr(reading.value)])
            about = {"title": title} if (title := yaml_title(reading.value)) else {}
            units.append((file, Unit(text, identity, about, _provenance(file.path, rights, identity))))
    _add(found, units, "yaml", rights)


def _gather_javascript(found: Own, files: Sequence[File], rights: Rights) -> None:
    units: list[tuple[File, Unit]] = []
    for file in files:
        document = _parsed(file, found.refused)
        if not isinstance(document, JavascriptDocument):
            continue
        reasons: Counter[str] = Counter()
        accepted = 0
        for one in statements(document):
            if one.refused:
                reasons[one.refused] += 1
                continue
            if not one.reading.value:
                continue
            accepted += 1
            identity = identity_of([one.name, json.dumps(one.text)])
            location = f"{file.path}#L{one.line}"
            about = {"name": one.name, "file": file.path}
            provenance = Provenance("own", rights.license, rights.attribution, location, {"content": identity})
            units.append((file, Unit(one.text, identity, about, provenance)))
        if not accepted:
            most = reasons.most_common(1)
            found.refused.append(Refused(file.path, most[0][0] if most else "it has no static initialiser"))
    _add(found, units, "javascript", rights)


def _add(found: Own, units: Sequence[tuple[File, Unit]], format: str, rights: Rights) -> None:
    if not units:
        return
    seen: dict[str, str] = {}
    kept: list[tuple[File, Unit]] = []
    for file, unit in units:
        if unit.identity in seen:
            found.refused.append(Refused(file.path, f"the same as in {seen[unit.identity]}"))
            continue
        seen[unit.identity] = file.path
        kept.append((file, unit))
    tables = examined([unit for _, unit in kept], format, name=f"own/{format}")
    frame = frame_for(format, title="Own documents")
    _finish(found, [file for file, _ in kept], f"own/{format}", format, [u for _, u in kept], tables, frame, rights)


def _finish(
    found: Own,
    files: Sequence[File],
    name: str,
    format: str,
    units: Sequence[Unit],
    seen: Examined,
    frame: Any,
    rights: Rights,
) -> None:
    """Adds a collection, and says what of it offers nothing."""
    for i, reason in sorted(seen.unfit.items()):
        found.refused.append(Refused(files[min(i, len(files) - 1)].path, reason))
    place = units[0].provenance.location if units else name
    found.left_out.extend(
        Refused(units[left.unit].provenance.location if left.unit >= 0 else place, f"{left.pattern}: {left.reason}")
        for left in seen.left_out
    )
    offering = {unit for table in seen.tables for unit in table.unit_of}
    why: dict[int, str] = {}
    for left in seen.left_out:
        why.setdefault(left.unit, f"{left.pattern}: {left.reason}")
    if format != "json":
        for i in range(len(units)):
            if i not in offering and i not in seen.unfit:
                found.refused.append(Refused(files[i].path, why.get(i, "no list of like records")))
    elif not seen.tables:
        found.refused.extend(Refused(file.path, why.get(-1, "nothing can be asked")) for file in files)
    kept, tables = seen.settled(units)
    if not tables:
        return
    identity = {"content": identity_of(unit.identity for unit in kept)}
    provenance = Provenance(name, rights.license, rights.attribution, "", identity)
    layouts = tuple(LAYOUTS) if format == "json" else NATIVE
    found.collections.append(Collection(name, format, kept, tables, frame, layouts, provenance))


def _provenance(path: str, rights: Rights, identity: str) -> Provenance:
    return Provenance("own", rights.license, rights.attribution, path, {"content": identity})


_GATHER: Mapping[str, Callable[[Own, Sequence[File], Rights], None]] = {
    "json": _gather_json,
    "html": _gather_html,
    "yaml": _gather_yaml,
    "javascript": _gather_javascript,
}
