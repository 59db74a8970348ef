"""`treeagent build`: a benchmark from public sources, by one recipe.

1. Sources give collections of records; each split draws from records of its own.
2. Examples are made one by one, checked by the independent validator, and written as they come.
3. Parquet files, dataset card and manifest appear together, when all is done.
4. The same recipe, sources and tokenizers give the same bytes, in any process; a folder of another recipe is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ..config import Positive, differing, option, suggestion, to_dict
from ..errors import ConfigError, RunError
from . import benchmark, card
from .catalog import SPLITS, Collection
from .contexts import LAYOUTS
from .examples import Plan, Row, generate
from .sources import SOURCES
from .tasks import TASKS
from .tokens import Tokenizer, default_tokenizer, load_tokenizer
from .validate import Validator

CONSTRUCTION = 1  # raised whenever the same recipe would give other examples


@dataclass(frozen=True)
class SplitConfig:
    """How many examples a split has, and how long they are."""

    per_task: int = option(0, "examples per task and length; 0: no such split")
    lengths: tuple[Positive, ...] = option((), "lengths of the contexts, in tokens; each is filled to 90-100 %")


@dataclass(frozen=True)
class BuildConfig:
    """A benchmark: its sources, tasks, lengths and splits."""

    out: str = option(help="folder to make; one that holds the same benchmark is left as it is")
    seed: int = option(42, "seed of everything that is drawn")
    sources: tuple[str, ...] = option(("geonames",), "where records come from: geonames (offline, by pip)")
    formats: tuple[Literal["json"], ...] = option(("json",), "formats of the contexts")
    tasks: tuple[str, ...] = option(tuple(TASKS), f"what is asked: {', '.join(TASKS)}")
    layouts: tuple[str, ...] = option(("compact", "indented"), f"how responses are printed: {', '.join(LAYOUTS)}")
    tokenizers: tuple[str, ...] = option(
        (), "names, folders or .gguf files; a length holds under each of them; none: the demo model's"
    )
    test: SplitConfig = option(SplitConfig(50, tuple(2**k for k in range(13, 21))), "the test split")
    dev: SplitConfig = option(SplitConfig(50, (2**15,)), "the development split")
    train: SplitConfig = option(SplitConfig(2000, (2**15,)), "the training split")

    def __post_init__(self) -> None:
        """Raises ConfigError for unknown names, and where there would be nothing to build."""
        known = {"sources": SOURCES, "tasks": TASKS, "layouts": LAYOUTS}
        for key, names in known.items():
            for name in getattr(self, key):
                if name not in names:
                    raise ConfigError(f"{key}: unknown name {name!r}: {suggestion(name, list(names))}")
        for key in (*known, "formats"):
            chosen = getattr(self, key)
            if not chosen or len(set(chosen)) < len(chosen):
                raise ConfigError(f"{key}: name at least one, and none twice")
        if not self.splits():
            raise ConfigError("test, dev, train: all are empty; give one a per_task and lengths")

    def splits(self) -> dict[str, SplitConfig]:
        """The splits that have examples. Raises ConfigError for one that is half given."""
        wanted = {name: getattr(self, name) for name in SPLITS}
        for name, split in wanted.items():
            if split.per_task < 0 or (split.per_task and not split.lengths):
                raise ConfigError(f"{name}: give per_task (0: no such split) and at least one of lengths")
            if len(set(split.lengths)) < len(split.lengths):
                raise ConfigError(f"{name}.lengths: one is there twice")
        return {name: split for name, split in wanted.items() if split.per_task}


def build(config: BuildConfig, console: Console) -> None:
    """Makes the benchmark at `config.out`, or says that it is there. Raises TreeAgentError; then nothing is left."""
    out = Path(config.out)
    tokenizers, collections = load_tokenizers(config), load_sources(config)
    identity = _identity(config, collections, tokenizers)
    if _is_there(out, identity):
        console.print(f"{out} already holds this benchmark; nothing to do.")
        return
    made = checked_rows(config, collections, tokenizers)
    with benchmark.new_folder(out) as folder, _progress(console) as progress:
        splits = {}
        for name, split in config.splits().items():
            total = split.per_task * len(config.tasks) * len(split.lengths)
            splits[name] = benchmark.write_split(folder, name, progress.track(made[name], total, description=name))
            console.print(f"{name}: {splits[name]['rows']:,} examples made and checked")
        manifest = {"identity": identity, "content": _content(splits), "splits": splits, "made_with": _versions()}
        benchmark.write_text(folder / benchmark.CARD, card.render(manifest, collections))
        benchmark.write_text(folder / benchmark.MANIFEST, json.dumps(manifest, indent=2, sort_keys=True) + "\n")
    console.print(_summary(splits))
    console.print(f"Written to {out}")


def load_sources(config: BuildConfig) -> list[Collection]:
    """The collections of the recipe's sources."""
    return [collection for name in config.sources for collection in SOURCES[name]()]


def load_tokenizers(config: BuildConfig) -> list[Tokenizer]:
    """The tokenizers that lengths are measured with."""
    return [load_tokenizer(name) for name in config.tokenizers or (default_tokenizer(),)]


def checked_rows(
    config: BuildConfig, collections: Sequence[Collection], tokenizers: Sequence[Tokenizer]
) -> dict[str, Iterator[Row]]:
    """The examples of each split as rows, in order: a pure function of recipe, sources and tokenizers.

    Raises ConfigError at once where the sources hold too little; the iterators raise RunError for a row that fails the
    independent check, which would be a fault of this package."""
    validator = Validator(tokenizers)
    made = {}
    for name, split in config.splits().items():
        plan = Plan(name, config.seed, config.tasks, split.per_task, tuple(sorted(split.lengths)), config.layouts)
        made[name] = generate(plan, collections, tokenizers)
    return {name: _checked(rows, name, validator) for name, rows in made.items()}


def _checked(made: Iterator[Row], split: str, validator: Validator) -> Iterator[Row]:
    for row in made:
        problems = validator.check(split, row)
        if problems:
            where = f"{row['base_id']} of length {row['length']}"
            raise RunError(f"{split}: {where} fails its check: {'; '.join(problems)}")
        yield row


def _identity(
    config: BuildConfig, collections: Sequence[Collection], tokenizers: Sequence[Tokenizer]
) -> dict[str, Any]:
    """What makes a benchmark the same: no place is part of it, contents stand for sources and tokenizers."""
    settings = to_dict(replace(config, out=""))
    del settings["out"], settings["tokenizers"]
    return {
        **settings,
        "tokenizers": [tokenizer.fingerprint for tokenizer in tokenizers],
        "records": {c.name: dict(c.provenance.identity) for c in collections},
        "construction": CONSTRUCTION,
    }


def _is_there(out: Path, identity: Mapping[str, Any]) -> bool:
    """Whether `out` holds the benchmark of this identity. Raises RunError if it holds anything else."""
    if out.exists() and not out.is_dir():
        raise RunError(f"{out} is a file; choose another folder with --out")
    if not out.is_dir() or not any(out.iterdir()):
        return False
    if not (out / benchmark.MANIFEST).is_file():
        raise RunError(f"{out} holds something that is no benchmark; choose another folder with --out")
    there = benchmark.read_manifest(out)["identity"]
    keys = differing(there, identity)
    if keys:
        raise RunError(
            f"{out} holds another benchmark; these differ: {', '.join(keys)}; choose another folder with --out"
        )
    return True


def _content(splits: Mapping[str, Mapping[str, Any]]) -> str:
    """The fingerprint of all examples, whatever library wrote them."""
    return hashlib.sha256(json.dumps({name: s["content"] for name, s in sorted(splits.items())}).encode()).hexdigest()


def _versions() -> dict[str, str]:
    found = {}
    for name in ("treeagent", "pyarrow", "tokenizers"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def _progress(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _summary(splits: Mapping[str, Mapping[str, Any]]) -> Table:
    table = Table("split", "examples", "tasks", "lengths (tokens)")
    for name, split in splits.items():
        lengths = ", ".join(f"{length:,}" for length in split["lengths"])
        table.add_row(name, f"{split['rows']:,}", ", ".join(split["tasks"]), lengths)
    return table
