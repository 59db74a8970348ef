"""The benchmark as a `datasets` builder, for pipelines that live in that library.

`Benchmark(config_name="json", recipe=...)` prepares the same rows as `treeagent build`, into the library's own cache,
keyed by the recipe. Scripts on the hub are no longer run by `datasets`; this class is imported from the package.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import datasets

from .benchmark import features
from .build import CONSTRUCTION, BuildConfig, checked_rows, load_sources, load_tokenizers


@dataclass
class BenchmarkConfig(datasets.BuilderConfig):
    """A recipe, as for `treeagent build`; its `out` is not used. The library stores the data in its own cache."""

    recipe: BuildConfig = field(default_factory=lambda: BuildConfig(out=""))


class Benchmark(datasets.GeneratorBasedBuilder):
    """Questions over structured documents, made from public sources. One configuration per format."""

    VERSION = datasets.Version(f"{CONSTRUCTION}.0.0")
    BUILDER_CONFIG_CLASS = BenchmarkConfig
    BUILDER_CONFIGS = [BenchmarkConfig(name="json", version=VERSION, description="JSON responses")]  # noqa: RUF012
    DEFAULT_CONFIG_NAME = "json"
    DEFAULT_WRITER_BATCH_SIZE = 16

    @property
    def recipe(self) -> BuildConfig:
        """What is built."""
        assert isinstance(self.config, BenchmarkConfig)
        return self.config.recipe

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(features=features(), license="cc-by-4.0")

    def _split_generators(self, dl_manager: Any) -> list[Any]:
        collections, tokenizers = load_sources(self.recipe), load_tokenizers(self.recipe)
        made = checked_rows(self.recipe, collections, tokenizers)
        return [datasets.SplitGenerator(name=name, gen_kwargs={"rows": rows}) for name, rows in made.items()]

    def _generate_examples(self, **kwargs: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
        for number, row in enumerate(kwargs["rows"]):
            yield number, dict(row)
