"""Least squares without negative coefficients, against a fine grid and the conditions an optimum has to meet."""

from __future__ import annotations

import numpy as np
import pytest

from windrow.control.nonnegative import nonnegative


@pytest.mark.parametrize("seed", range(40))
def test_the_optimum_meets_its_conditions(seed: int) -> None:
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 6))
    rows = random.normal(size=(count + 3, count))
    matrix, right = rows.T @ rows, rows.T @ random.normal(size=count + 3)
    found = nonnegative(matrix, right)
    slope = matrix @ found - right
    assert (found >= 0).all()
    assert (slope >= -1e-9).all()  # no coefficient at 0 would be better above it
    assert np.abs(slope[found > 0]).max(initial=0) < 1e-9  # and the others are where they belong


def test_all_at_zero_may_be_best() -> None:
    assert nonnegative(np.eye(3), np.array([-1.0, -2.0, 0.0])).tolist() == [0.0, 0.0, 0.0]
