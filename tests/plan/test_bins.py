"""Lag bins: they share out all lags, ranges of them and numbers say the same, row windows count in rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plan.queries import SCHEMA
from windrow.errors import PlanError
from windrow.plan.bins import FAR, Bins, lag_bins
from windrow.query.spec import QuerySpec
from windrow.query.sql import parse

every_bins = st.builds(
    lambda window, count, behind, share: Bins(window, count, behind, round(share * count)),
    st.integers(0, 1000),
    st.integers(1, 25),
    st.integers(0, 500),
    st.floats(0, 1),
)


def spec_of(window: str) -> QuerySpec:
    return parse(f"SELECT a.x AS out FROM t AS a, t AS b, t AS c WHERE a.x = b.x AND b.x = c.x {window}", {"t": SCHEMA})


@given(every_bins)
def test_bins_share_out_all_lags(bins: Bins) -> None:
    edges = bins.edges.tolist()
    assert edges == sorted(set(edges))
    assert edges[-1] == bins.window + 1
    assert edges[0] == (-bins.behind if bins.behind_count and bins.behind else 0)
    assert edges[bins.first_ahead] == 0
    lags = np.arange(edges[0], edges[-1])
    places = bins.place(lags)
    for lag, place in zip(lags.tolist(), places.tolist(), strict=True):
        assert edges[place] <= lag < edges[place + 1]
    assert bins.widths[bins.first_ahead :].sum() == pytest.approx(1.0 if bins.window else 0.0)


@given(every_bins, st.data())
def test_ranges_and_numbers_say_the_same(bins: Bins, data: st.DataObject) -> None:
    chosen = sorted(data.draw(st.sets(st.integers(0, bins.size - 1))))
    ranges = bins.ranges(chosen)
    assert bins.within(ranges) == tuple(chosen)
    lags = np.arange(bins.edges[0], bins.edges[-1])
    inside = np.isin(bins.place(lags), chosen)
    assert inside.tolist() == [any(low <= lag < high for low, high in ranges) for lag in lags.tolist()]
    assert all(one[1] < other[0] for one, other in pairwise(ranges))


def test_a_bin_covers_its_ages() -> None:
    """GJ-06: bin j of a window holds the ages from (j - 1) b to j b, whenever it is looked at."""
    bins = Bins(window=20_000_000, count=10)
    assert [bins.ranges((j - 1,))[0][0] for j in range(1, 11)] == [(j - 1) * 2_000_000 for j in range(1, 11)]
    assert bins.ranges((9,)) == (((18_000_000, 20_000_001)),)


def test_windows_of_a_query() -> None:
    spec = spec_of("WINDOW a 10 SECONDS, b ROWS 30, c 4 SECONDS")
    assert lag_bins(spec, "a", ("b", "c"), 5) == (Bins(30, 5, FAR, 0), Bins(4_000_000, 5, 10_000_000, 0))
    assert lag_bins(spec, "b", ("a",), 5, behind=True) == (Bins(10_000_000, 5, FAR, 1),)
    assert Bins(3, 20).size == 3  # no bin is narrower than a tick


@pytest.mark.parametrize("wrong", [(-1, 4, 0, 0), (10, 0, 0, 0), (10, 4, -1, 0), (10, 4, 5, 5)])
def test_what_cannot_be_divided(wrong: tuple[int, int, int, int]) -> None:
    with pytest.raises(PlanError, match="a window cannot be divided"):
        Bins(*wrong)
