"""Knapsacks in whole numbers against trying everything."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import PlanError
from windrow.plan.directions import best_multiples, greedy_multiples

ITEMS = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9), st.integers(0, 4)), min_size=1, max_size=4)


@given(ITEMS, st.integers(0, 24), st.booleans())
def test_the_best_multiples_are_those_found_by_trying_all(
    items: list[tuple[int, int, int]], resources: int, limited: bool
) -> None:
    uses, yields, most = zip(*items, strict=True)
    best = best_multiples(uses, yields, resources, most if limited else None)
    limits = most if limited else [resources // use for use in uses]
    all_of_them = product(*(range(limit + 1) for limit in limits))
    fitting = [np.dot(taken, yields) for taken in all_of_them if np.dot(taken, uses) <= resources]
    assert np.dot(best, uses) <= resources
    assert all(taken <= limit for taken, limit in zip(best, limits, strict=True))
    assert np.dot(best, yields) == max(fitting)


@given(ITEMS, st.integers(0, 24))
def test_greedy_fits_and_is_never_better(items: list[tuple[int, int, int]], resources: int) -> None:
    uses, yields, _ = zip(*items, strict=True)
    greedy, best = greedy_multiples(uses, yields, resources), best_multiples(uses, yields, resources)
    assert np.dot(greedy, uses) <= resources
    assert np.dot(greedy, yields) <= np.dot(best, yields)


@pytest.mark.parametrize(("uses", "yields", "resources"), [((0,), (1,), 3), ((1, 2), (1,), 3), ((1,), (1,), -1)])
def test_what_is_no_knapsack_is_refused(uses: tuple[int, ...], yields: tuple[int, ...], resources: int) -> None:
    for solve in (greedy_multiples, best_multiples):
        with pytest.raises(PlanError, match="make no knapsack"):
            solve(uses, yields, resources)
