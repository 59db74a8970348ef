"""The tiny model of the training tests, and the path on which their harness lies."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Warnings are errors in this suite, but those of torch, transformers and trl are not ours to mend."""
    for item in items:
        if HERE in item.path.parents:
            for category in ("FutureWarning", "DeprecationWarning", "UserWarning"):
                item.add_marker(pytest.mark.filterwarnings(f"ignore::{category}"))


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the tiny model and its tokenizer."""
    from train_harness import save_tiny_model

    return save_tiny_model(tmp_path_factory.mktemp("tiny"))
