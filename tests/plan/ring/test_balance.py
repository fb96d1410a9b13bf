"""Slices of equal work, and segments that change hands."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import PlanError
from windrow.plan.ring.balance import (
    balanced_ends,
    expected_work,
    imbalance,
    reassigned,
    revised_ends,
    row_limits,
    work_of_slices,
)

amounts = st.lists(st.floats(0, 100), min_size=1, max_size=12)


@given(amounts, st.integers(1, 7))
def test_slices_have_equal_work(work: list[float], slices: int) -> None:
    edges = range(len(work) + 1)
    ends = balanced_ends(edges, work, slices)
    assert len(ends) == slices
    assert list(ends) == sorted(ends)
    assert ends[-1] == len(work)
    if sum(work) > 1e-3:
        upto = np.interp((0.0, *ends), edges, np.concatenate(([0.0], np.cumsum(work))))
        assert np.diff(upto) == pytest.approx(sum(work) / slices, abs=1e-6)


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=12), st.lists(st.floats(0, 1), max_size=6))
def test_slices_are_revised_when_it_pays(work: list[float], cuts: list[float]) -> None:
    edges = range(len(work) + 1)
    ends = (*sorted(cut * len(work) for cut in cuts), float(len(work)))
    before = work_of_slices(edges, work, ends)
    assert sum(before) == pytest.approx(sum(work))
    revised = revised_ends(ends, edges, work)
    if imbalance(before) <= 1.2:
        assert revised == ends
    else:
        assert imbalance(work_of_slices(edges, work, revised)) == pytest.approx(1.0)


def test_what_is_not_searched_is_no_work() -> None:
    stored, harvested = (10, 10, 10, 10), (0, 5, 5, 0)
    assert balanced_ends((0, 1, 2, 3, 4), expected_work(stored, harvested), 2) == (2.0, 4.0)
    assert balanced_ends((0, 1, 2, 3, 4), (0, 0, 0, 0), 2) == (2.0, 4.0)


@given(st.integers(0, 1000), st.integers(1, 20))
def test_limits_leave_little_to_the_tail(stored: int, slices: int) -> None:
    limits = row_limits(stored, slices)
    assert limits[-1] is None
    others = [limit for limit in limits if limit is not None]
    assert len(others) == slices - 1
    assert 0 <= stored - sum(others) + slices - 1 <= math.ceil(stored / slices) + slices - 1


@given(
    st.lists(st.tuples(st.integers(0, 5), st.floats(0, 10)), max_size=24),
    st.integers(1, 6),
)
def test_reassigning_evens_out(parts: list[tuple[int, float]], slices: int) -> None:
    held = {f"s{number:02}": where for number, (where, _) in enumerate(parts)}
    work = {f"s{number:02}": amount for number, (_, amount) in enumerate(parts)}
    where = reassigned(held, work, slices)
    assert where.keys() == held.keys()
    assert all(0 <= each < slices for each in where.values())
    busy = [sum(work[name] for name in where if where[name] == each) for each in range(slices)]
    largest, mean = max(work.values(), default=0.0), sum(busy) / slices
    assert max(busy) <= mean + largest + 1e-9 or max(busy) <= 1.05 * mean


def test_reassigning_leaves_alone_what_is_even() -> None:
    held = {"a": 0, "b": 1, "c": 2}
    assert reassigned(held, {"a": 1, "b": 1.02, "c": 1}, 3) == held
    assert reassigned(held, {"a": 1, "b": 1, "c": 1}, 4) == held
    assert reassigned({}, {}, 2) == {}


def test_imbalance() -> None:
    assert imbalance((1, 1, 1)) == 1.0
    assert imbalance((4, 0)) == 2.0
    assert imbalance((0, 0)) == 1.0


def test_what_cannot_be_balanced() -> None:
    with pytest.raises(PlanError, match="2 edges"):
        balanced_ends((0, 1), (1, 2), 2)
    with pytest.raises(PlanError, match="0 slices"):
        reassigned({}, {}, 0)
