"""Known lags: the paper's identities, and scores."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.papers.grubjoin.lags import FIRST, Lag, Lagged

lags = st.builds(Lag, st.floats(-20, 20), st.floats(0, 10))


def test_scores_of_the_first_direction() -> None:
    """GJ-24: A_21 around -5 s, b = 2, n = 10: rows of S1 find them in the third basic window."""
    scores = (FIRST - Lag(-5.0, 0.14)).scores(bins=10, bin_s=2.0)
    assert int(np.argmax(scores)) + 1 == 3
    assert max(scores) == pytest.approx(1.0, abs=0.01)


@given(lags, lags)
def test_the_identities_of_lags(one: Lag, other: Lag) -> None:
    """GJ-26: A_ij = -A_ji, A_il = A_i1 - A_l1."""
    assert one - other == -(other - one)
    assert one - FIRST == one
    assert FIRST - one == -one


@given(st.floats(-20, 20), st.floats(0.01, 10), st.integers(1, 20))
def test_scores_are_the_mass_within_the_window(mean_s: float, deviation_s: float, bins: int) -> None:
    drawn = np.random.default_rng(1).normal(mean_s, deviation_s, 20_000)
    found = np.histogram(drawn, bins=bins, range=(0.0, 10.0))[0] / len(drawn)
    assert np.abs(found - Lag(mean_s, deviation_s).scores(bins, 10.0 / bins)).max() < 5 * math.sqrt(0.25 / len(drawn))


def test_a_certain_lag_falls_into_one_window() -> None:
    assert Lag(5.0, 0.0).scores(bins=5, bin_s=2.0) == (0.0, 0.0, 1.0, 0.0, 0.0)
    assert sum(Lag(-1.0, 0.0).scores(bins=5, bin_s=2.0)) == 0.0


def test_both_directions_share_the_matches_of_a_pair() -> None:
    """The whole of a pair's matches, when its window holds them all, however they are divided."""
    join = Lagged((10.0, 10.0), (FIRST, Lag(1.0, 1.0)), window_s=100.0, bins=50)
    pair = {frozenset((0, 1)): 0.01}
    divided, alike = (join.statistics(((1,), (0,)), pair, per_direction=divided) for divided in (True, False))
    assert [steps[0].selectivity for steps in alike.directions] == [0.01, 0.01]
    shares = [steps[0].selectivity / 0.02 for steps in divided.directions]
    assert sum(shares) == pytest.approx(1.0)
    assert shares[1] == pytest.approx(0.8413, abs=1e-4)
