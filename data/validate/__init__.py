"""The independent check of a benchmark: nothing is taken from how it was made.

1. `row`: each context is parsed again by other parsers, the stored specification is executed here, question, answer,
   length, places of the support, licences are compared with it.
2. `ledger`: over all examples: no unit in two splits, one question for each base, no example twice.
3. `folder`: files, manifest and card agree with the examples; the verb `treeagent validate`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .folder import validate
from .ledger import Ledger
from .row import Counter, examine

__all__ = ["Validator", "validate"]


class Validator:
    """Checks examples one after another; remembers hashes only, so that any number of them fits."""

    def __init__(self, tokenizers: Sequence[Counter]) -> None:
        self._tokenizers, self._ledger = tokenizers, Ledger()

    def check(self, split: str, row: Mapping[str, Any]) -> list[str]:
        """What is wrong with the example, in words; empty if nothing."""
        found = examine(row, self._tokenizers)
        return [*found.problems, *self._ledger.add(split, found)]
