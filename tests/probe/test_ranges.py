"""Row ranges of a clock against a look at every row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.probe import naive
from windrow.errors import UsageError
from windrow.probe.ranges import first_at_least, intersect, row_ranges

SMALLEST, LARGEST = -(2**63), 2**63 - 1
ticks = st.sampled_from([SMALLEST, SMALLEST + 1, -5, -1, 0, 1, 2, 3, 4, 7, LARGEST - 1, LARGEST])


@given(st.lists(ticks, max_size=40), st.lists(st.tuples(ticks, ticks), max_size=30))
def test_same_rows_as_looking_at_each(clock: list[int], ranges: list[tuple[int, int]]) -> None:
    clock.sort()
    low, high = [low for low, _ in ranges], [high for _, high in ranges]
    row_low, row_high = row_ranges(np.array(clock, np.int64), np.array(low, np.int64), np.array(high, np.int64))
    assert row_low.dtype == row_high.dtype == np.int32
    found = [list(range(start, stop)) for start, stop in zip(row_low, row_high, strict=True)]
    assert found == naive.row_ranges(clock, low, high)
    assert (row_low <= row_high).all()


@pytest.mark.parametrize("order", ["ascending", "nearly", "any"])
def test_long_clock_in_any_order_of_probes(order: str) -> None:
    chance = np.random.default_rng(3)
    clock = np.sort(chance.integers(0, 50_000, 20_000))
    low = np.sort(chance.integers(-1000, 51_000, 500))
    if order != "ascending":
        low = low[np.argsort(np.arange(500) + chance.normal(0, 5 if order == "nearly" else 1e6, 500))]
    row_low, row_high = row_ranges(clock, low, low + 700)
    assert row_low.tolist() == np.searchsorted(clock, low, "left").tolist()
    assert row_high.tolist() == np.searchsorted(clock, low + 700, "right").tolist()


@given(st.lists(st.integers(0, 20), max_size=40), st.integers(-1, 21), st.integers(0, 40))
def test_search_does_not_depend_on_the_hint(keys: list[int], target: int, hint: int) -> None:
    keys.sort()
    found = first_at_least(np.array(keys, np.int64), target, min(hint, len(keys)))
    assert found == sum(key < target for key in keys)


bounds = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted), min_size=1, max_size=9)


@given(bounds, bounds)
def test_intersection_holds_the_common_rows(first: list[list[int]], second: list[list[int]]) -> None:
    size = min(len(first), len(second))
    one, two = (np.array(ranges[:size], np.int32).T for ranges in (first, second))
    low, high = intersect((one[0], one[1]), (two[0], two[1]))
    for number in range(size):
        common = set(range(*first[number])) & set(range(*second[number]))
        assert set(range(low[number], high[number])) == common
    assert low.dtype == high.dtype == np.int32


def test_uneven_bounds_are_refused() -> None:
    with pytest.raises(UsageError, match="2 lower and 1 upper"):
        row_ranges(np.arange(3), np.arange(2), np.arange(1))
