"""The budget search (paper, Appendix A.2): the number of sections near that of fixed-length cutting."""

from __future__ import annotations

from collections.abc import Callable


def choose_budget(count: Callable[[int], int], flat: int, base: int) -> int:
    """The budget B in [C, 2C-1] by the search of A.2.

    `count` is n(B), `flat` is N = ceil(tokens / C), `base` is C. Where n is not monotone the result is still what the
    stated binary search gives. At most ceil(log2 C) + 3 counts.
    """
    known: dict[int, int] = {}

    def n(budget: int) -> int:
        if budget not in known:
            known[budget] = count(budget)
        return known[budget]

    if n(base) <= flat:
        return base
    low, high = base, 2 * base - 1
    goal = max(flat, n(high))
    while low < high:
        middle = (low + high) // 2
        if n(middle) <= goal:
            high = middle
        else:
            low = middle + 1
    if n(2 * base - 1) > flat or low == base:
        return low
    return min((low, low - 1), key=lambda budget: (abs(n(budget) - flat), n(budget) < flat, budget))


def scan_budgets(count: Callable[[int], int], flat: int, base: int) -> int:
    """The global arg min of Eq. 11 over all of [C, 2C-1], by the same preferences among equals."""
    counts = {budget: count(budget) for budget in range(base, 2 * base)}
    return min(counts, key=lambda budget: (abs(counts[budget] - flat), counts[budget] < flat, budget))
