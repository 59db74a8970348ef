"""Residual memory links (paper, Eq. 14-15): from the last section of each child to the last section of its parent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def residual_links(lasts: Iterable[Sequence[int]], n_sections: int) -> tuple[tuple[int, ...], ...]:
    """L_t for every section t: source indices, ascending, each once.

    `lasts` holds, for each parent whose children lie in several sections, the last section of each child. A parent's
    own last section is the greatest of them; a link needs a source strictly before it.
    """
    sources: list[set[int]] = [set() for _ in range(n_sections)]
    for children in lasts:
        target = max(children)
        sources[target].update(source for source in children if source < target)
    return tuple(tuple(sorted(found)) for found in sources)
