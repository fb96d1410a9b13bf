"""Beliefs about bins: chance is flattened, structure stays, thin evidence counts for what it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.control.belief import believed, clustered

BINS = 20
EVEN = np.full(BINS, 1.0 / BINS)


def counted(truth: np.ndarray, rows: np.ndarray, seed: int) -> np.ndarray:
    """What so many rows count in each bin, a row."""
    return np.asarray(np.random.default_rng(seed).poisson(truth * rows) / rows)


@pytest.mark.parametrize("results", [30.0, 300.0, 3000.0])
def test_where_nothing_differs_chance_is_flattened(results: float) -> None:
    rows = np.full(BINS, results)
    off, raw = [], []
    for seed in range(40):
        found = counted(EVEN, rows, seed)
        off.append(((believed(found, rows, EVEN) - EVEN) ** 2).sum())
        raw.append(((found - EVEN) ** 2).sum())
    assert np.mean(off) < 0.2 * np.mean(raw)


@pytest.mark.parametrize("deviation", [0.3, 1.0, 3.0])
def test_peaks_stay_where_they_are(deviation: float) -> None:
    truth = np.exp(-0.5 * ((np.arange(BINS) - 7) / deviation) ** 2)
    truth /= truth.sum()
    rows = np.full(BINS, 300.0)
    best = np.sort(truth)[::-1][:5].sum()
    for seed in range(20):
        chosen = np.argsort(-believed(counted(truth, rows, seed), rows, EVEN))[:5]
        assert truth[chosen].sum() > 0.93 * best


def test_a_bin_that_was_well_looked_at_is_believed_and_a_chance_find_is_not() -> None:
    found, rows = np.full(BINS, 1.0), np.full(BINS, 1e4)
    found[3] = found[11] = 3.0
    rows[11] = 4.0
    held = believed(found, rows, EVEN, clusters=5.0)
    assert held[3] > 2.5
    assert held[11] < 1.5


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0, 1e3), min_size=1, max_size=BINS),
    st.floats(0.01, 1e6),
    st.floats(1, 20),
    st.integers(0, 1000),
)
def test_beliefs_are_finite_and_follow_the_rate(found: list[float], rows: float, clusters: float, seed: int) -> None:
    share = np.random.default_rng(seed).uniform(0.1, 1.0, len(found))
    held = believed(found, np.full(len(found), rows), share, clusters)
    assert np.isfinite(held).all()
    assert (held >= 0).all()
    twice = believed(2 * np.array(found), np.full(len(found), rows / 2), share, clusters)
    assert twice == pytest.approx(2 * held, rel=1e-6, abs=1e-9)


def test_clusters() -> None:
    assert clustered(100.0, 1) == 1.0
    assert clustered(9.0, 2) == 4.0
