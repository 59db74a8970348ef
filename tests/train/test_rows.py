"""Rollouts become rows: nothing lost, nothing invented, and the masses are those that were asked for."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from treeagent.data.rollout import Call, Outcome, Reply, Request, Rollout
from treeagent.train.rows import PADDING, Totals, from_rollouts, pad, padded_count, spread

Ids = tuple[int, ...]


def rollout(*calls: tuple[Ids, Ids]) -> Rollout:
    """A rollout whose calls have these prompt and completion ids."""
    made = tuple(
        Call(Request("memory", (), 9), Reply("", prompt_ids=prompt, completion_ids=completion))
        for prompt, completion in calls
    )
    return Rollout("key", made, Outcome("", "", None, {}), len(made))


ids = st.lists(st.integers(0, 9), min_size=1, max_size=5).map(tuple)
completions = st.lists(st.integers(0, 9), max_size=5).map(tuple)
rollouts = st.lists(st.lists(st.tuples(ids, completions), max_size=4).map(lambda calls: rollout(*calls)), max_size=5)


def totals_of(made: Sequence[Rollout]) -> Totals:
    replies = [call.reply for one in made for call in one.calls if call.reply.completion_ids]
    return Totals(sum(len(reply.completion_ids) for reply in replies), len(replies), len(made))


@given(rollouts)
def test_every_call_that_generated_something_is_one_row_with_the_ids_the_engine_saw(made: list[Rollout]) -> None:
    expected = [
        (i, call.reply.prompt_ids, call.reply.completion_ids)
        for i, one in enumerate(made)
        for call in one.calls
        if call.reply.completion_ids
    ]
    rows = from_rollouts(made)
    assert [(row.rollout, row.prompt_ids, row.completion_ids) for row in rows] == expected
    assert all(row.mask == (1,) * len(row.completion_ids) for row in rows)


def test_what_the_engine_inserted_is_in_the_row_and_not_trained() -> None:
    reply = Reply("", prompt_ids=(1,), completion_ids=(2, 3, 4, 5), inserted=(1, 3), logprobs=(-1.0, 0.0, 0.0, -2.0))
    call = Call(Request("memory", (), 9, think_tokens=1), reply)
    (row,) = from_rollouts([Rollout("key", (call,), Outcome("", "", None, {}), 1)])
    assert (row.completion_ids, row.mask, row.trained_tokens) == ((2, 3, 4, 5), (1, 0, 0, 1), 2)


def test_an_empty_completion_gives_no_row() -> None:
    assert len(from_rollouts([rollout(((1,), ()), ((1, 2), (3,)))])) == 1


@pytest.mark.parametrize(
    ("most", "size", "count"), [(0, 3, 3), (1, 3, 3), (3, 3, 3), (4, 3, 6), (7, 1, 7), (5, 64, 64)]
)
def test_every_rank_brings_whole_micro_batches_enough_for_the_fullest(most: int, size: int, count: int) -> None:
    assert padded_count(most, size) == count


@given(rollouts, st.integers(0, 6))
def test_padding_rows_have_no_mass_and_no_trained_token(made: list[Rollout], extra: int) -> None:
    rows = from_rollouts(made)
    padded = pad(rows, len(rows) + extra, token=0)
    assert padded[: len(rows)] == rows
    assert len(padded) == len(rows) + extra
    assert all(row.rollout == PADDING and row.trained_tokens == 0 and row.completion_ids for row in padded[len(rows) :])
    advantages = spread([1.0] * len(made), padded, totals_of(made))
    assert advantages[len(rows) :] == [0.0] * extra


@given(rollouts, st.randoms(use_true_random=False))
def test_every_row_carries_its_own_rollouts_advantage_in_any_order(made: list[Rollout], rng: random.Random) -> None:
    rows = pad(from_rollouts(made), 25, token=0)
    rng.shuffle(rows)
    advantages = [float(i + 1) for i in range(len(made))]
    assert spread(advantages, rows, totals_of(made)) == [float(row.rollout + 1) for row in rows]


@given(rollouts.filter(lambda made: totals_of(made).tokens > 0))
def test_weighting_by_rollout_gives_every_rollout_the_same_mass(made: list[Rollout]) -> None:
    rows, totals = from_rollouts(made), totals_of(made)
    weights = spread([1.0] * len(made), rows, totals, "rollout")
    for i, one in enumerate(made):
        mass = sum(
            w * row.trained_tokens / totals.tokens for w, row in zip(weights, rows, strict=True) if row.rollout == i
        )
        spoke = any(call.reply.completion_ids for call in one.calls)
        assert mass == pytest.approx(1 / len(made) if spoke else 0.0)


@given(rollouts.filter(lambda made: totals_of(made).tokens > 0))
def test_weighting_by_call_gives_every_call_the_same_mass(made: list[Rollout]) -> None:
    rows, totals = from_rollouts(made), totals_of(made)
    weights = spread([1.0] * len(made), rows, totals, "call")
    masses = [w * row.trained_tokens / totals.tokens for w, row in zip(weights, rows, strict=True)]
    assert masses == pytest.approx([1 / len(rows)] * len(rows))
