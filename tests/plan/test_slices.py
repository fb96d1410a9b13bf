"""Slices: a probe that can reach a stored row visits the slice that holds it, and none without need."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from windrow.plan.slices import SHORTEST_SPAN_US, SPANS_A_WINDOW, TimeSlices, time_slices

LEAST, MOST = -(2**63), 2**63 - 1

WORDS = st.one_of(
    st.integers(-60, 60), st.integers(LEAST, LEAST + 60), st.integers(MOST - 60, MOST), st.integers(LEAST, MOST)
)
SLICES = st.builds(TimeSlices, st.integers(1, 7), st.one_of(st.integers(1, 12), st.integers(1, 2**61)))


@given(SLICES, st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=8))
@example(TimeSlices(5, 1), [(2**53, 2**53 + 1, 2**53 + 1), (MOST - 3, MOST - 1, MOST), (LEAST, LEAST + 4, LEAST + 4)])
@example(TimeSlices(3, 1), [(LEAST, 0, MOST), (LEAST, LEAST, LEAST), (MOST, MOST, MOST), (-1, 0, 0)])
def test_whatever_a_range_contains_lies_in_a_visited_slice(
    slices: TimeSlices, drawn: list[tuple[int, int, int]]
) -> None:
    ordered = [sorted(three) for three in drawn]
    low, inside, high = (np.array([three[k] for three in ordered], np.int64) for k in range(3))
    homes = slices.of(inside)
    visited = slices.visits(low, high)
    assert visited.shape == (len(drawn), slices.count)
    assert ((homes >= 0) & (homes < slices.count)).all()
    assert visited[np.arange(len(drawn)), homes].all()
    assert (visited.sum(axis=1) >= 1).all()


@given(SLICES, st.lists(st.tuples(WORDS, WORDS), max_size=8))
def test_a_range_visits_as_many_slices_as_it_has_spans(slices: TimeSlices, drawn: list[tuple[int, int]]) -> None:
    low, high = (np.array([pair[k] for pair in drawn], np.int64) for k in range(2))
    spans = [max(0, b // slices.span_us - a // slices.span_us + 1) if a <= b else 0 for a, b in drawn]
    assert slices.visits(low, high).sum(axis=1).tolist() == [min(count, slices.count) for count in spans]


def test_an_empty_range_visits_nothing() -> None:
    slices = TimeSlices(4, 10)
    low, high = np.array([5, MOST, 0], np.int64), np.array([4, LEAST, -1], np.int64)
    assert not slices.visits(low, high).any()
    assert slices.visits(low[:0], high[:0]).shape == (0, 4)


def test_rows_go_to_the_slices_in_turn() -> None:
    times = np.arange(-30, 30, dtype=np.int64)
    homes = TimeSlices(3, 5).of(times)
    assert homes.tolist() == [(time // 5) % 3 for time in range(-30, 30)]
    assert np.bincount(homes).tolist() == [20, 20, 20]


@pytest.mark.parametrize("count", [1, 2, 5, 64])
@pytest.mark.parametrize("window_us", [0, 1, 20_000_000, 86_400_000_000, MOST, None])
def test_a_window_is_spread_over_all_slices(count: int, window_us: int | None) -> None:
    slices = time_slices(count, window_us)
    assert slices.count == count
    assert slices.span_us >= SHORTEST_SPAN_US
    if window_us is not None and window_us >= SPANS_A_WINDOW * count * SHORTEST_SPAN_US:
        assert slices.span_us * SPANS_A_WINDOW * count <= window_us
        low = np.array([-window_us], np.int64)
        assert slices.visits(low, np.array([0], np.int64)).all()


def test_spans_follow_the_window() -> None:
    assert time_slices(5, 20_000_000) == TimeSlices(5, 618_033)
    assert time_slices(2, 0) == TimeSlices(2, SHORTEST_SPAN_US)
    assert time_slices(3, None) == TimeSlices(3, 3_090_169)


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("window_us", [4_000_000, 20_000_000, 60_000_000, 3_600_000_000])
def test_whole_seconds_do_not_fall_to_one_slice(count: int, window_us: int) -> None:
    homes = time_slices(count, window_us).of(np.arange(600, dtype=np.int64) * 1_000_000)
    assert np.bincount(homes, minlength=count).min() > 600 // count // 3
