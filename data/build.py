"""`treeagent build`: a benchmark from public sources or from your own documents, by one recipe.

1. Sources give collections of units; each split draws from units of its own.
2. Questions are made one by one, in as many processes as asked, checked by the independent validator, and kept: the
   same command goes on after an interruption.
3. Parquet files, dataset card and manifest appear together, when all is done.
4. The same recipe, sources and tokenizers give the same bytes, in any process; a folder of another recipe is refused.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from .catalog import SHARES, SPLITS, Collection
from .examples import Made, Maker, Plan, Row
from .frames import LAYOUTS
from .gather import OWN, Gathering, fingerprint, gather, load_tokenizers
from .making import Bench, collect, made_here, workers
from .preview import show
from .sources import SOURCES
from .tasks import TASKS
from .tokens import Tokenizer

CONSTRUCTION = 3  # raised whenever the same recipe would give other examples
_SAY_EVERY = 30.0  # seconds between two lines of progress where there is no terminal

Format = Literal["json", "html", "yaml", "javascript", "own"]


@dataclass(frozen=True)
class SplitConfig:
    """How many examples a split has, and how long they are."""

    per_task: int = option(0, "examples per task and length; 0: no such split")
    lengths: tuple[Positive, ...] = option((), "lengths of the contexts, in tokens; each is filled to 90-100 %")


@dataclass(frozen=True)
class ShareConfig:
    """Which share of the units may support which split, in percent."""

    train: int = option(SHARES["train"], "percent of the units that train may use")
    dev: int = option(SHARES["dev"], "percent of the units that dev may use")
    test: int = option(SHARES["test"], "percent of the units that test may use")


@dataclass(frozen=True)
class BuildConfig:
    """A benchmark: its sources, tasks, lengths and splits."""

    out: str = option(help="folder to make; one that holds the same benchmark is left as it is")
    seed: int = option(42, "seed of everything that is drawn")
    format: Format = option("json", "format of the contexts; own: your documents, each in its format")
    sources: tuple[str, ...] = option(("geonames",), f"where units come from: {', '.join(SOURCES)}; [] for own")
    from_: str = option("", "folder with your own documents, or with files of the sources; then nothing is fetched")
    records: dict[str, Positive] = option(
        {}, "about how many units single sources are asked for: {SOURCE: N}; else 1000"
    )
    options: dict[str, dict[str, str]] = option({}, "settings of single sources: {SOURCE: {name: value}}")
    hosts: tuple[str, ...] = option((), "hosts that may be fetched from; none: those that the sources name")
    cache: str = option("", "folder that keeps responses; none: $TREEAGENT_CACHE or ~/.cache/treeagent")
    tasks: tuple[str, ...] = option(tuple(TASKS), f"what is asked: {', '.join(TASKS)}")
    leave_out: bool = option(False, "leave out tasks that no list of records suits, and say so; otherwise an error")
    layouts: tuple[str, ...] = option(("compact", "indented"), f"how responses are printed: {', '.join(LAYOUTS)}")
    tokenizers: tuple[str, ...] = option(
        (), "names, folders or .gguf files; a length holds under each of them; none: the demo model's"
    )
    shares: ShareConfig = option(ShareConfig(), "which units may support which split")
    test: SplitConfig = option(SplitConfig(50, tuple(2**k for k in range(13, 21))), "the test split")
    dev: SplitConfig = option(SplitConfig(50, (2**15,)), "the development split")
    train: SplitConfig = option(SplitConfig(2000, (2**15,)), "the training split")
    num_proc: Positive = option(1, "processes that make questions; each has a copy of the sources in memory")
    preview: int = option(0, "print so many examples and what they are made of; nothing is written")
    push_to_hub: str = option("", "name of a data set on the Hugging Face hub to upload to, private; none: no upload")

    def __post_init__(self) -> None:
        """Raises ConfigError for unknown names, and where there would be nothing to build."""
        known = {"sources": SOURCES, "tasks": TASKS, "layouts": LAYOUTS}
        for key, names in known.items():
            chosen = getattr(self, key)
            for name in chosen:
                if name not in names:
                    raise ConfigError(f"{key}: unknown name {name!r}: {suggestion(name, list(names))}")
            if len(set(chosen)) < len(chosen) or (not chosen and not (key == "sources" and self.format == OWN)):
                raise ConfigError(f"{key}: name at least one, and none twice")
        self._check_sources()
        shares = (self.shares.train, self.shares.dev, self.shares.test)
        if min(shares) < 0 or sum(shares) > 100:
            raise ConfigError("shares: percentages that make 100 at most, none below 0")
        if self.preview < 0:
            raise ConfigError("preview: a number of examples, or 0 for none")
        if not self.splits():
            raise ConfigError("test, dev, train: all are empty; give one a per_task and lengths")

    def _check_sources(self) -> None:
        if self.format == OWN and not self.from_:
            raise ConfigError("from: name the folder with your documents: --from DIR")
        if self.format == OWN and self.sources not in ((), ("geonames",)):
            raise ConfigError("sources: own documents come from a folder alone; leave sources out")
        for name in self.sources if self.format != OWN else ():
            if self.format not in SOURCES[name].formats:
                offered = ", ".join(SOURCES[name].formats)
                raise ConfigError(f"sources: {name} has no {self.format}, it has {offered}")
        for key in ("options", "records"):
            for name in getattr(self, key):
                if name not in self.sources:
                    raise ConfigError(f"{key}: {name} is none of the sources: {suggestion(name, list(self.sources))}")

    def splits(self) -> dict[str, SplitConfig]:
        """The splits that have examples. Raises ConfigError for one that is half given."""
        wanted = {name: getattr(self, name) for name in SPLITS}
        for name, split in wanted.items():
            if split.per_task < 0 or (split.per_task and not split.lengths):
                raise ConfigError(f"{name}: give per_task (0: no such split) and at least one of lengths")
            if len(set(split.lengths)) < len(split.lengths):
                raise ConfigError(f"{name}.lengths: one is there twice")
            if split.per_task and not getattr(self.shares, name):
                raise ConfigError(f"shares.{name}: the split has examples, so it needs a share above 0")
        return {name: split for name, split in wanted.items() if split.per_task}


def build(config: BuildConfig, console: Console) -> None:
    """Makes the benchmark at `config.out`, or says that it is there. Raises TreeAgentError; what is finished is kept
    for the next try, unless the recipe itself is at fault."""
    out = Path(config.out)
    tokenizers, collections = load_tokenizers(config.tokenizers), load_collections(config, console)
    if config.leave_out:
        config = _with_suited_tasks(config, console, collections, tokenizers)
    if config.preview:
        _preview(config, console, collections, tokenizers)
        return
    identity = _identity(config, collections, tokenizers)
    if _is_there(out, identity):
        console.print(f"{out} already holds this benchmark; nothing to do.")
    else:
        _make(config, console, collections, tokenizers, identity)
        console.print(f"Written to {out}")
    if config.push_to_hub:
        _push(out, config, console)


def _with_suited_tasks(
    config: BuildConfig, console: Console, collections: Sequence[Collection], tokenizers: Sequence[Tokenizer]
) -> BuildConfig:
    """The recipe with the tasks that some list of records suits in every split. Raises ConfigError if none is left."""
    makers = [Maker(plan, collections, tokenizers) for plan in plans(config)]
    suited = tuple(task for task in config.tasks if all(maker.suits(task) for maker in makers))
    if not suited:
        raise ConfigError(
            "tasks: no list of records in these documents suits any of them; add documents, or lengthen the contexts"
        )
    if left := [task for task in config.tasks if task not in suited]:
        console.print(f"left out, for want of a list that suits: {', '.join(left)}", highlight=False)
    return replace(config, tasks=suited)


def load_collections(config: BuildConfig, console: Console) -> list[Collection]:
    """The collections of the recipe's sources."""
    return gather(
        Gathering(
            config.sources,
            config.format,
            Path(config.from_) if config.from_ else None,
            config.records,
            config.options,
            config.hosts,
            Path(config.cache) if config.cache else None,
        ),
        console,
    )


def plans(config: BuildConfig) -> list[Plan]:
    """What each split is made of."""
    shares = {name: getattr(config.shares, name) for name in SPLITS}
    return [
        Plan(name, config.seed, config.tasks, split.per_task, tuple(sorted(split.lengths)), config.layouts, shares)
        for name, split in config.splits().items()
    ]


def checked_rows(
    config: BuildConfig, collections: Sequence[Collection], tokenizers: Sequence[Tokenizer]
) -> dict[str, Iterator[Row]]:
    """The examples of each split as rows, in order: a pure function of recipe, sources and tokenizers.

    Raises ConfigError at once where the sources hold too little; the iterators raise RunError for a row that fails the
    independent check, which would be a fault of this package."""
    wanted = plans(config)
    bench = Bench(wanted, collections, tokenizers)
    return {plan.split: _rows(made_here(bench, plan)) for plan in wanted}


def _make(
    config: BuildConfig,
    console: Console,
    collections: Sequence[Collection],
    tokenizers: Sequence[Tokenizer],
    identity: Mapping[str, Any],
) -> None:
    out, wanted = Path(config.out), plans(config)
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    with benchmark.unfinished(out, digest) as part:
        kept, folder = part / "questions", part / "folder"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        splits = {}
        with workers(config.num_proc, wanted, collections, tokenizers) as submit, _Told(console) as told:
            for plan in wanted:
                made = told.of(plan, collect(plan, kept, submit, config.num_proc))
                splits[plan.split] = benchmark.write_split(folder, plan.split, _rows(made))
                console.print(f"{plan.split}: {splits[plan.split]['rows']:,} examples made and checked")
        manifest = {"identity": identity, "content": _content(splits), "splits": splits, "made_with": _versions()}
        names = [tokenizer.name for tokenizer in tokenizers]
        benchmark.write_text(folder / benchmark.CARD, card.render(manifest, collections, names))
        benchmark.write_text(folder / benchmark.MANIFEST, json.dumps(manifest, indent=2, sort_keys=True) + "\n")
        benchmark.appear(folder, out)
    console.print(_summary(splits))


def _preview(
    config: BuildConfig, console: Console, collections: Sequence[Collection], tokenizers: Sequence[Tokenizer]
) -> None:
    """Shows the first examples of the first split that has some."""
    wanted = plans(config)[-1:]
    bench = Bench(wanted, collections, tokenizers)
    rows = _rows(made_here(bench, wanted[0]))
    show([row for _, row in zip(range(config.preview), rows, strict=False)], tokenizers, console)


def _rows(made: Iterable[Made]) -> Iterator[Row]:
    return (row for question in made for row in question.rows)


def _identity(
    config: BuildConfig, collections: Sequence[Collection], tokenizers: Sequence[Tokenizer]
) -> dict[str, Any]:
    """What makes a benchmark the same: no place is part of it, contents stand for sources and tokenizers."""
    settings = to_dict(replace(config, out=""))
    for key in ("out", "tokenizers", "from", "from_", "cache", "hosts", "num_proc", "preview", "push_to_hub"):
        settings.pop(key, None)
    return {
        **settings,
        "tokenizers": [tokenizer.fingerprint for tokenizer in tokenizers],
        "content": {c.name: fingerprint(c) for c in collections},
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


def _push(out: Path, config: BuildConfig, console: Console) -> None:
    """Uploads the folder to a private data set; the token is that of the user's own login."""
    from huggingface_hub import HfApi

    api = HfApi()
    api.create_repo(config.push_to_hub, repo_type="dataset", private=True, exist_ok=True)
    api.upload_folder(repo_id=config.push_to_hub, repo_type="dataset", folder_path=str(out))
    console.print(f"Uploaded to the data set {config.push_to_hub} (private)")


class _Told:
    """Progress with the time that is left: a bar on a terminal, a line now and then elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console, self._lines = console, not console.is_terminal
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=console, transient=True, disable=self._lines)

    def __enter__(self) -> _Told:
        self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.stop()

    def of(self, plan: Plan, made: Iterable[Made]) -> Iterator[Made]:
        """The same questions; tells how far they are."""
        total = plan.per_task * len(plan.tasks)
        task = self._bar.add_task(plan.split, total=total * len(plan.lengths))
        begun = said = time.monotonic()
        for number, question in enumerate(made, 1):
            self._bar.advance(task, len(question.rows))
            now = time.monotonic()
            if self._lines and now - said > _SAY_EVERY:
                said, left = now, (now - begun) / number * (total - number)
                lengths = len(plan.lengths)
                done = f"{number * lengths:,} of {total * lengths:,} examples"
                self._console.print(f"{plan.split}: {done}, about {_spoken(left)} left")
            yield question


def _spoken(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min" if minutes else "a minute"


def _summary(splits: Mapping[str, Mapping[str, Any]]) -> Table:
    table = Table("split", "examples", "tasks", "lengths (tokens)")
    for name, split in splits.items():
        lengths = ", ".join(f"{length:,}" for length in split["lengths"])
        table.add_row(name, f"{split['rows']:,}", ", ".join(split["tasks"]), lengths)
    return table
