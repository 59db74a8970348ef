"""The budget search against a second transcription of Appendix A.2, over counts that need not be monotone."""

from __future__ import annotations

from math import ceil, log2

from hypothesis import given
from hypothesis import strategies as st
from treeagent.infer.budget import choose_budget, scan_budgets


@st.composite
def searches(draw: st.DrawFn) -> tuple[list[int], int, int]:
    """(n(C) … n(2C-1), N, C)."""
    base = draw(st.integers(1, 40))
    shape = draw(st.sampled_from(["any", "falling"]))
    counts = draw(st.lists(st.integers(1, 30), min_size=base, max_size=base))
    return (counts if shape == "any" else sorted(counts, reverse=True)), draw(st.integers(1, 30)), base


def appendix_a2(counts: list[int], flat: int, base: int) -> int:
    """Retain C if n(C) <= N. Otherwise evaluate n(2C-1) and search for the transition; then compare with the
    predecessor."""
    n = {base + i: count for i, count in enumerate(counts)}
    if n[base] <= flat:
        return base
    goal = max(flat, n[2 * base - 1])
    lo, hi = base, 2 * base - 1
    while lo < hi:
        mid = (lo + hi) // 2
        if n[mid] <= goal:
            hi = mid
        if n[mid] > goal:
            lo = mid + 1
    if n[2 * base - 1] > flat:
        return lo
    candidates = [lo] if lo == base else [lo, lo - 1]
    return sorted(candidates, key=lambda b: (abs(n[b] - flat), 1 if n[b] < flat else 0, b))[0]


@given(searches())
def test_the_search_is_that_of_the_appendix(search: tuple[list[int], int, int]) -> None:
    counts, flat, base = search
    asked: list[int] = []

    def n(budget: int) -> int:
        asked.append(budget)
        return counts[budget - base]

    assert choose_budget(n, flat, base) == appendix_a2(counts, flat, base)
    assert len(asked) == len(set(asked)) <= ceil(log2(base)) + 3 if base > 1 else len(asked) <= 1


@given(searches())
def test_a_full_scan_finds_the_best_of_all(search: tuple[list[int], int, int]) -> None:
    counts, flat, base = search
    chosen = scan_budgets(lambda budget: counts[budget - base], flat, base)
    distance = abs(counts[chosen - base] - flat)
    assert distance == min(abs(count - flat) for count in counts)
    equals = [b for b in range(base, 2 * base) if abs(counts[b - base] - flat) == distance]
    above = [b for b in equals if counts[b - base] >= flat]
    assert chosen == min(above or equals)


def test_a_count_above_is_preferred_to_one_below() -> None:
    assert choose_budget({4: 12, 5: 12, 6: 8, 7: 8}.__getitem__, flat=10, base=4) == 5


def test_the_predecessor_is_compared_also_where_the_greatest_budget_gives_just_as_many_as_flat_cutting() -> None:
    assert choose_budget({3: 11, 4: 5, 5: 10}.__getitem__, flat=10, base=3) == 3
