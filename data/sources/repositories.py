"""Static initialisers in the JavaScript of six repositories under the MIT licence: a unit is one statement.

The code comes as an archive of one commit each, as packages of the npm registry (`from: npm`), or from a folder in
which the repositories lie side by side. Nothing is run. A statement is a unit if tree-sitter and JSON5 read its one
initialiser alike, it reads the same alone as in its file, and it holds nothing that looks like a secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...errors import ConfigError, InputError
from ..catalog import Collection, Provenance, Unit, identity_of
from ..formats import parse
from ..formats.javascript_tree import JavascriptDocument
from ..frames import frame_for
from ..record_lists.javascript_lists import statements
from .archives import is_whole
from .fetch import Call, Fetcher
from .files import archived
from .source import RawFile, Skipped, Wish, collected

LICENCE = "MIT"
_ARCHIVE_BYTES = 1 << 30
_MOST_CHARACTERS = 2_000_000  # of a file; beyond are bundles
_FEWEST_VALUES = 3
_MADE = re.compile(r"(?:^|/)(?:dist|node_modules|vendor|build)/|[.-]min\.\w+\Z", re.I)
_COMMIT = re.compile(r"[0-9a-f]{7,40}\Z")
_HOLDS = re.compile(r"[={(,\[]\s*[{\[]|default\s*[{\[]")


@dataclass(frozen=True)
class Repository:
    """A repository: the paper's commit, other names by which its folder may go, and its packages in the npm registry
    with their versions."""

    slug: str
    commit: str
    names: tuple[str, ...]
    packages: tuple[tuple[str, str], ...]

    @property
    def folder(self) -> str:
        """The name by which its folder goes first."""
        return self.slug.rpartition("/")[2]


REPOSITORIES = (
    Repository(
        "babel/babel",
        "86b96c84eef3",
        ("babel",),
        (
            ("@babel/core", "7.23.7"),
            ("@babel/generator", "7.23.6"),
            ("@babel/helpers", "7.23.8"),
            ("@babel/preset-env", "7.23.8"),
            ("@babel/traverse", "7.23.7"),
            ("@babel/types", "7.23.6"),
        ),
    ),
    Repository("eslint/eslint", "6ddf8587e5cf", ("eslint",), (("eslint", "8.56.0"), ("@eslint/js", "8.56.0"))),
    Repository("lodash/lodash", "a666ba591064", ("lodash",), (("lodash", "4.17.21"),)),
    Repository("plotly/plotly.js", "0af79ccbd45f", ("plotly.js", "plotly"), (("plotly.js", "2.27.0"),)),
    Repository("mrdoob/three.js", "27e70ddf91e9", ("three.js", "three", "threejs"), (("three", "0.160.0"),)),
    Repository("webpack/webpack", "2043f6e66e87", ("webpack",), (("webpack", "5.89.0"),)),
)


@dataclass(frozen=True)
class Repositories:
    """The source of JavaScript statements. `only` names repositories, `commits` other commits of theirs
    (`eslint=0123abc,webpack=…`), `from` says git or npm."""

    name: str = "repositories"
    formats: tuple[str, ...] = ("javascript",)
    suffixes: tuple[str, ...] = (".js", ".mjs", ".cjs")
    hosts: tuple[str, ...] = ("codeload.github.com", "registry.npmjs.org")
    licence: str = LICENCE
    attribution: str = "the authors of Babel, ESLint, Lodash, Plotly.js, three.js and webpack (MIT licence each)"
    options: Mapping[str, str] = field(default_factory=lambda: {"from": "git", "only": "", "commits": ""})

    def fetch(self, fetcher: Fetcher, wish: Wish) -> list[RawFile]:
        """All JavaScript of the repositories: an archive has no part that could be asked for alone."""
        options = wish.resolved(self)
        commits = dict(pair.split("=", 1) for pair in options["commits"].split(",") if "=" in pair)
        files: list[RawFile] = []
        for repository in _named(options["only"]):
            commit = commits.get(repository.folder, repository.commit)
            for archive, url in _archives(repository, commit, options["from"]):
                call = Call(url, suffix=".tar.gz", pace=2.0, most_bytes=_ARCHIVE_BYTES, check=is_whole)
                fetched = fetcher.get(call, self.hosts)
                files += archived(
                    fetched.path, self.suffixes, Skipped(), name=archive, url=fetched.url, date=fetched.date
                )
        return files

    def read(self, files: Sequence[RawFile], skipped: Skipped | None = None) -> list[Collection]:
        """One collection of the statements of all files, equal ones once."""
        skipped = Skipped() if skipped is None else skipped
        units: dict[str, Unit] = {}
        for file in files:
            origin = origin_of(file.path)
            if origin is None:
                skipped["files of no known repository"] += 1
            elif _MADE.search(origin[2]) or len(file.text) > _MOST_CHARACTERS:
                skipped["files that are built, bundled or another's"] += 1
            elif _HOLDS.search(file.text):
                for unit in self._units(file, *origin, skipped):
                    if unit.identity in units:
                        skipped["initialisers seen before"] += 1
                    units.setdefault(unit.identity, unit)
        about = Provenance(self.name, LICENCE, self.attribution, "https://github.com")
        return collected(self.name, "javascript", list(units.values()), frame_for("javascript"), about, skipped)

    def _units(self, file: RawFile, repository: Repository, commit: str, path: str, skipped: Skipped) -> Iterator[Unit]:
        """The accepted statements of a file."""
        try:
            document = parse(file.text, "javascript")
        except InputError:
            skipped["files that cannot be read as JavaScript"] += 1
            return
        assert isinstance(document, JavascriptDocument)
        for found in statements(document):
            if found.refused:
                skipped[f"initialisers refused: {found.refused}"] += 1
            elif _values(found.reading.value) < _FEWEST_VALUES:
                skipped["initialisers with too few values"] += 1
            else:
                place = f"{repository.slug}{f'@{commit}' if commit else ''}:{path}#L{found.line}"
                origin = Provenance(repository.slug, LICENCE, self.attribution, place, {"sha256": file.sha256})
                identity = identity_of([found.name, json.dumps(found.reading.value, sort_keys=True, default=str)])
                yield Unit(found.text, identity, {"name": found.name, "file": path}, origin)


SOURCE = Repositories()


def origin_of(path: str) -> tuple[Repository, str, str] | None:
    """Repository, commit or version ("" if none is said) and path inside it, told by the path of a file: the first
    folder or archive that goes by a repository's name, alone or followed by `-COMMIT` or `-VERSION`."""
    steps = path.replace("!/", "/!/").split("/")
    for place, step in enumerate(steps[:-1]):
        for repository in REPOSITORIES:
            rest = _version(step, repository)
            if rest is not None:
                return repository, rest, _inside(steps[place + 1 :])
    return None


def _inside(steps: list[str]) -> str:
    """The path inside a repository; an archive holds one folder, and a package's archive stands for the package."""
    if steps[0] == "!":
        return "/".join(steps[2:])
    if "!" in steps[1:2]:
        return "/".join([steps[0].partition(".")[0], *steps[3:]])
    return "/".join(steps)


def _version(step: str, repository: Repository) -> str | None:
    """What follows a repository's name in the name of a folder or archive; None if that is another's."""
    step = re.sub(r"(?:\.tar\.\w+|\.tgz|\.zip|\.tar)\Z", "", step.lower())
    packed = tuple(package.lstrip("@").replace("/", "-") for package, _ in repository.packages)
    for name in (*repository.names, *packed):
        if step == name:
            return ""
        rest = step.removeprefix(f"{name}-")
        if rest != step and (_COMMIT.match(rest) or re.match(r"v?\d+\.\d", rest)):
            return rest
    return None


def _values(value: Any) -> int:
    """How many scalars a value holds."""
    walk, count = [value], 0
    while walk:
        here = walk.pop()
        if isinstance(here, Mapping):
            walk.extend(here.values())
        elif isinstance(here, list):
            walk.extend(here)
        else:
            count += 1
    return count


def _named(only: str) -> list[Repository]:
    wanted = [name for name in only.split(",") if name]
    known = {repository.folder: repository for repository in REPOSITORIES}
    for name in wanted:
        if name not in known:
            raise ConfigError(f"the source repositories has no {name!r}; known: {', '.join(known)}")
    return [known[name] for name in wanted] or list(REPOSITORIES)


def _archives(repository: Repository, commit: str, kind: str) -> Iterator[tuple[str, str]]:
    """Names and addresses of a repository's archives."""
    if kind == "git":
        yield f"{repository.folder}-{commit}.tar.gz", f"https://codeload.github.com/{repository.slug}/tar.gz/{commit}"
    elif kind == "npm":
        for package, version in repository.packages:
            stem = package.rpartition("/")[2]
            url = f"https://registry.npmjs.org/{package}/-/{stem}-{version}.tgz"
            yield f"{repository.folder}-{version}/{stem}.tgz", url
    else:
        raise ConfigError(f"the source repositories comes from git or npm, not from {kind!r}")
