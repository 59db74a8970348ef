"""SplitText (paper, Appendix A.1): a long leaf becomes consecutive spans within the budget.

A cut never falls inside an escape or another unit that its format keeps whole. Each span reaches as far as the budget
allows and then falls back to the last sentence end, or else the last blank, if that still fills `FILL` of the budget.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right

from ..data.counts import Counts
from ..data.tree import LeafText

FILL = 0.8
_BLANK = r"(?:[ \t\r\n\u3000]|\\[nrt])"
_SENTENCE_END = re.compile(rf"[.!?][)\]\"'»”’]*{_BLANK}+|[。！？]")
_WORD_END = re.compile(rf"{_BLANK}+")


def split_text(leaf: LeafText, counts: Counts, budget: int) -> list[tuple[int, int]]:
    """Spans (start, end) in characters that tile the leaf's text, each of at most `budget` tokens encoded alone,
    except a single indivisible unit that has more."""
    spans = []
    start = leaf.start
    while start < leaf.end:
        end = _span_end(leaf, counts, start, budget)
        spans.append((start, end))
        start = end
    return spans


def _span_end(leaf: LeafText, counts: Counts, start: int, budget: int) -> int:
    if not counts.exceeds(start, leaf.end, budget) and counts.count(start, leaf.end) <= budget:
        return leaf.end
    least = _legal(leaf, start + 1, start)
    reach = _reach(leaf, counts, start, least, budget)
    for boundary in (_SENTENCE_END, _WORD_END):
        cut = _last_natural(leaf, counts, boundary, start, reach, budget)
        if cut:
            return cut
    return reach


def _reach(leaf: LeafText, counts: Counts, start: int, least: int, budget: int) -> int:
    """A legal end at which the span fits and one unit more would not; `least` where not even one unit fits."""
    tokens = bisect_right(counts.ends, start) + budget
    end = max(least, _legal(leaf, _token_end(counts, tokens, leaf.end), start))
    while end > least and (excess := counts.count(start, end) - budget) > 0:
        tokens -= excess
        end = max(least, min(_legal(leaf, _token_end(counts, tokens, leaf.end), start), _legal(leaf, end - 1, start)))
    while end < leaf.end:
        longer = _next_legal(leaf, end)
        if counts.count(start, longer) > budget:
            break
        end = longer
    return end


def _last_natural(
    leaf: LeafText, counts: Counts, boundary: re.Pattern[str], start: int, reach: int, budget: int
) -> int | None:
    """The last cut after `boundary` within the reach that still fills `FILL` of the budget."""
    filled = FILL * budget
    window = _token_end(counts, bisect_right(counts.ends, start) + int(filled) - 8, reach)
    ends = [m.end() for m in boundary.finditer(counts.text, max(start, min(window, reach)), reach)]
    for end in reversed(ends):
        if end > start and _legal(leaf, end, start) == end:
            tokens = counts.count(start, end)
            if tokens < filled:
                return None
            if tokens <= budget:
                return end
    return None


def _token_end(counts: Counts, tokens: int, most: int) -> int:
    """The character at which the document's first `tokens` tokens end, at most `most`."""
    if tokens <= 0:
        return 0
    return min(int(counts.ends[tokens - 1]), most) if tokens <= len(counts.ends) else most


def _legal(leaf: LeafText, position: int, start: int) -> int:
    """The last legal cut at or before `position`; the end of the unit where that would not be beyond `start`."""
    unit = bisect_left(leaf.unit_starts, position) - 1
    if unit < 0 or position >= leaf.unit_ends[unit]:
        return position
    before = leaf.unit_starts[unit]
    return before if before > start else leaf.unit_ends[unit]


def _next_legal(leaf: LeafText, position: int) -> int:
    """The next legal cut after `position`."""
    unit = bisect_left(leaf.unit_starts, position + 1) - 1
    inside = unit >= 0 and position + 1 < leaf.unit_ends[unit]
    return leaf.unit_ends[unit] if inside else position + 1
