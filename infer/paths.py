"""Structural paths as text (paper, Eq. 12-13)."""

from __future__ import annotations

ELIDED = "…"
PATH_CHARACTERS = 1_000
"""A longer path is shown to an agent without its middle, so that deep nesting never crowds out content."""


def path_line(path: str, range: tuple[int, int] | None) -> str:
    """`PATH`, or `PATH [i, j]` for the children i to j of the node at PATH, both included."""
    return path if range is None else f"{path} [{range[0]}, {range[1]}]"


def shorten(path: str, most: int) -> str:
    """The path in at most `most` characters: a long one loses its middle, visibly."""
    if len(path) <= most:
        return path
    head = (most - 1) // 2
    return path[:head] + ELIDED + path[len(path) - (most - 1 - head) :]
