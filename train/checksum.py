"""One number for a set of weights that is the same however they are laid out.

A sampler fuses the trainer's matrices (queries, keys and values become one), pads none and changes no value. The sum of
the bit patterns of all entries does not see how they are put together, and one changed bit shows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

MODULUS = 2**48
"""Checksums stay below it, so that they can be logged as exact numbers."""
_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def of_tensor(values: torch.Tensor) -> int:
    """Sum of the bit patterns, below `MODULUS`."""
    return int(values.detach().contiguous().view(_INTEGERS[values.element_size()]).sum(dtype=torch.int64)) % MODULUS


class Watched:
    """The matrices that the adapter changes, by the names of their modules on both sides.

    `targets` are names of adapted modules (`q_proj`), `packed` tells which of them the sampler keeps as one
    (`{"qkv_proj": ["q_proj", "k_proj", "v_proj"]}`): a fused matrix is watched whole.
    """

    def __init__(self, targets: Collection[str], packed: Mapping[str, Sequence[str]]) -> None:
        touched = {name: parts for name, parts in packed.items() if set(parts) & set(targets)}
        self._trained = set(targets) | {part for parts in touched.values() for part in parts}
        self._served = self._trained | set(touched)

    def passing(
        self, weights: Iterable[tuple[str, torch.Tensor]], dtype: torch.dtype, found: list[int]
    ) -> Iterator[tuple[str, torch.Tensor]]:
        """The trainer's weights as they come; at their end their checksum in the sampler's number format is added to
        `found`."""
        total = 0
        for name, value in weights:
            if _is_of(name, self._trained):
                total += of_tensor(value.to(dtype))
            yield name, value
        found.append(total % MODULUS)

    def served(self, model: Any) -> int:
        """The checksum of what the sampler's model holds."""
        return sum(of_tensor(p) for name, p in model.named_parameters() if _is_of(name, self._served)) % MODULUS


def _is_of(name: str, modules: Collection[str]) -> bool:
    *_, module, kind = ("", *name.split("."))
    return kind == "weight" and module in modules
