"""The benchmark as a `datasets` builder, for pipelines that live in that library.

`Benchmark(config_name="json", recipe=...)` prepares the same rows as `treeagent build`, into the library's own cache,
keyed by the recipe. Scripts on the hub are no longer run by `datasets`; this class is imported from the package.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import datasets
from rich.console import Console

from ..errors import ConfigError
from .benchmark import features
from .build import CONSTRUCTION, BuildConfig, Format, checked_rows, load_collections
from .gather import load_tokenizers


@dataclass
class BenchmarkConfig(datasets.BuilderConfig):
    """A recipe, as for `treeagent build`; its `out` is not used. The library stores the data in its own cache."""

    recipe: BuildConfig = field(default_factory=lambda: BuildConfig(out=""))


_ABOUT = {
    "json": "responses of public services",
    "html": "web pages",
    "yaml": "OpenAPI documents",
    "javascript": "static initialisers of source files",
    "own": "documents of your own, in any of the formats",
}
_VERSION = datasets.Version(f"{CONSTRUCTION}.0.0")


class Benchmark(datasets.GeneratorBasedBuilder):
    """Questions over structured documents. One configuration per format, and one for own documents."""

    VERSION = _VERSION
    BUILDER_CONFIG_CLASS = BenchmarkConfig
    BUILDER_CONFIGS = [  # noqa: RUF012
        BenchmarkConfig(name=name, version=_VERSION, description=_ABOUT[name]) for name in get_args(Format)
    ]
    DEFAULT_CONFIG_NAME = "json"
    DEFAULT_WRITER_BATCH_SIZE = 16

    @property
    def recipe(self) -> BuildConfig:
        """What is built. Raises ConfigError where the recipe is for another format than the configuration."""
        assert isinstance(self.config, BenchmarkConfig)
        recipe = self.config.recipe
        if recipe.format != self.config.name:
            raise ConfigError(f"the recipe is for {recipe.format}, the configuration for {self.config.name}")
        return replace(recipe, num_proc=1, preview=0, push_to_hub="")

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(features=features())

    def _split_generators(self, dl_manager: Any) -> list[Any]:
        collections = load_collections(self.recipe, Console(file=io.StringIO()))
        made = checked_rows(self.recipe, collections, load_tokenizers(self.recipe.tokenizers))
        return [datasets.SplitGenerator(name=name, gen_kwargs={"rows": rows}) for name, rows in made.items()]

    def _generate_examples(self, **kwargs: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
        for number, row in enumerate(kwargs["rows"]):
            yield number, dict(row)
