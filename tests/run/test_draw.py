"""Draws: uniform, the same everywhere, and independent of each other."""

from __future__ import annotations

import numpy as np
import pytest

from windrow.run.draw import KEEP, PORTION, STRATUM, draw

MANY = np.arange(200_000)


@pytest.mark.parametrize("purpose", [PORTION, STRATUM, KEEP])
@pytest.mark.parametrize("seed", [0, 7, -3, 2**63 - 1])
def test_draws_are_uniform(purpose: int, seed: int) -> None:
    found = draw(MANY, seed, purpose)
    assert 0 <= found.min() < 1e-4 < 1 - 1e-4 < found.max() < 1
    counts = np.bincount((found * 20).astype(int), minlength=20)
    assert abs(counts / 10_000 - 1).max() < 0.05


def test_draws_are_the_same_on_every_machine() -> None:
    assert draw(np.array([0, 1, -1]), seed=7).tolist() == [
        0.36372565358751785,
        0.8022505793220281,
        0.7439032743451469,
    ]


@pytest.mark.parametrize(
    "other", [draw(MANY, 2), draw(MANY, 1, STRATUM), draw(MANY, 1, KEEP), draw(MANY, 1, PORTION, 1), draw(MANY + 1, 1)]
)
def test_draws_for_other_things_have_nothing_to_do_with_each_other(other: np.ndarray) -> None:
    assert abs(np.corrcoef(draw(MANY, 1), other)[0, 1]) < 0.01


def test_numbers_tell_draws_of_one_word_apart() -> None:
    words = np.full(50_000, 42)
    found = draw(words, 3, STRATUM, np.arange(50_000) - 25_000)
    assert len(np.unique(found)) == 50_000
    assert abs(found.mean() - 0.5) < 0.01
    assert (draw(words[:3], 3, STRATUM, np.array([5, 5, 5])) == draw(words[:1], 3, STRATUM, 5)).all()
