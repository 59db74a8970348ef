"""A few seconds of the mutation fuzzer; `make fuzz` runs it for a minute."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def test_the_parsers_survive_five_seconds_of_mutations() -> None:
    path = Path(__file__).parent / "fuzz" / "fuzz_parsers.py"
    spec = importlib.util.spec_from_file_location("fuzz_parsers", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.fuzz(seconds=5, seed=1) > 100
