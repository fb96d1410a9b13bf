"""The ordered index against a look at every pair, at odd chunk sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.probe import naive
from windrow.errors import UsageError
from windrow.probe.sorted import build, order_of, prepare, propose

SMALLEST, LARGEST = -(2**63), 2**63 - 1
integers = st.sampled_from([SMALLEST, SMALLEST + 1, -1, 0, 1, 2, 3, 4, 2**53, 2**53 + 1, LARGEST - 1, LARGEST])
floats = st.sampled_from([-np.inf, -1e308, -1.5, -0.0, 0.0, 5e-324, 0.1, 0.1 + 2**-56, 0.3, 1.0, 1e308, np.inf, np.nan])
capacities = st.sampled_from([1, 2, 7, 1000])


@st.composite
def searches(draw: st.DrawFn) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], list[tuple[int, int]] | None]:
    """Stored keys, low and high ends, and maybe row ranges."""
    values, dtype = draw(st.sampled_from([(integers, np.int64), (floats, np.float64)]))
    keys = draw(st.lists(values, max_size=40))
    low, high = (np.array(draw(st.lists(values, min_size=9, max_size=9)), dtype) for _ in range(2))
    probes = draw(st.integers(0, 9))
    ends = st.integers(0, len(keys))
    ranges = draw(st.none() | st.lists(st.tuples(ends, ends), min_size=probes, max_size=probes))
    return np.array(keys, dtype), low[:probes], high[:probes], ranges


@given(searches(), capacities, st.booleans())
def test_same_pairs_as_looking_at_each(search: Any, capacity: int, scan_rows: bool) -> None:
    keys, low, high, ranges = search
    row_low, row_high = (None, None) if ranges is None else np.array(ranges, np.int32).reshape(-1, 2).T
    expected = naive.pairs_where(len(low), len(keys), lambda probe, row: low[probe] <= keys[row] <= high[probe], ranges)
    by_row = keys if scan_rows else None
    chunks = propose(build(keys), prepare(low, high), row_low, row_high, capacity, by_row)
    assert naive.collected(chunks, capacity) == expected


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_long_index_and_batch(dtype: type[Any]) -> None:
    chance = np.random.default_rng(5)
    keys = (chance.normal(0, 1000, 30_000)).astype(dtype)
    low = (chance.normal(0, 1000, 3_000)).astype(dtype)
    high = low + dtype(2)
    found = naive.collected(propose(build(keys), prepare(low, high), capacity=999), 999)
    ordered = np.sort(keys)
    assert found.total() == (np.searchsorted(ordered, high, "right") - np.searchsorted(ordered, low)).sum() > 1000
    assert all(low[probe] <= keys[row] <= high[probe] for probe, row in found)
    assert max(found.values()) == 1


def test_one_index_serves_many_calls() -> None:
    index, probe = build(np.array([1, 2, 3])), prepare(np.array([2, 0]), np.array([3, 1]))
    first, second = (naive.collected(propose(index, probe, capacity=2), 2) for _ in range(2))
    assert first == second == {(0, 1): 1, (0, 2): 1, (1, 0): 1}


def test_invalid_rows_and_empty_ranges_are_left_out() -> None:
    index = build(np.array([3, 1, 2]), np.array([True, False, True]))
    assert index.keys.tolist() == [2, 3]
    assert index.rows.tolist() == [2, 0]
    probe = prepare(np.array([1.0, np.nan, 2.0, 0.0]), np.array([0.0, 1.0, np.nan, 0.0]))
    assert probe.rows.tolist() == [3]
    assert probe.probes == 4


@pytest.mark.parametrize("size", [0, 1, 1023, 1024, 5000])
@pytest.mark.parametrize("spread", ["one value", "small", "extremes", "floats"])
def test_order(size: int, spread: str) -> None:
    chance = np.random.default_rng(size)
    kinds: dict[str, NDArray[Any]] = {
        "one value": np.full(size, -7),
        "small": chance.integers(-50, 50, size),
        "extremes": chance.choice([SMALLEST, -1, 0, 1, LARGEST], size),
        "floats": chance.choice([-np.inf, -1.5, -5e-324, 0.0, 5e-324, 1e300, np.inf], size),
    }
    keys = kinds[spread]
    order = order_of(keys)
    assert order.dtype == np.int32
    assert sorted(order.tolist()) == list(range(size))
    assert keys[order].tolist() == sorted(keys.tolist())


def test_narrow_types_become_wide_and_strides_go() -> None:
    keys = np.array([[3, 0], [1, 0]], np.int16)[:, 0]
    assert build(keys).keys.dtype == np.int64
    assert build(keys.astype(np.float32)).keys.dtype == np.float64


def test_mixed_types_are_refused() -> None:
    with pytest.raises(UsageError, match="int64 keys searched by float64"):
        next(propose(build(np.array([1])), prepare(np.array([1.0]), np.array([1.0]))))
    with pytest.raises(UsageError, match="key ranges from"):
        prepare(np.array([1.0]), np.array([1.0, 2.0]))
