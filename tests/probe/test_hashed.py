"""The hash index against a look at every pair, with hot keys and odd chunk sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.probe import naive
from windrow.errors import UsageError
from windrow.probe.hashed import build, combine, float_bits, mix, prepare, propose

SMALLEST, LARGEST = -(2**63), 2**63 - 1
keys = st.sampled_from([SMALLEST, -1, 0, 1, 2, 3, 2**32, 2**63 - 2, LARGEST])
stored_keys = st.lists(keys, max_size=60) | st.lists(st.sampled_from([7, 7, 7, 7, 8]), min_size=40, max_size=60)
capacities = st.sampled_from([1, 2, 7, 1000])


@given(stored_keys, st.lists(keys | st.just(7), max_size=9), capacities, st.data())
def test_same_pairs_as_looking_at_each(stored: list[int], probe: list[int], capacity: int, data: st.DataObject) -> None:
    ends = st.integers(0, len(stored))
    ranges = data.draw(st.none() | st.lists(st.tuples(ends, ends), min_size=len(probe), max_size=len(probe)))
    row_low, row_high = (None, None) if ranges is None else np.array(ranges, np.int32).reshape(-1, 2).T
    expected = naive.pairs_where(len(probe), len(stored), lambda at, row: probe[at] == stored[row], ranges)
    index, prepared = build(np.array(stored, np.int64)), prepare(np.array(probe, np.int64))
    assert naive.collected(propose(index, prepared, row_low, row_high, capacity), capacity) == expected


def test_long_index_and_batch() -> None:
    chance = np.random.default_rng(8)
    stored, probe = chance.integers(0, 20_000, 30_000), chance.integers(0, 20_000, 3_000)
    found = naive.collected(propose(build(stored), prepare(probe), capacity=999), 999)
    ordered = np.sort(stored)
    assert found.total() == (np.searchsorted(ordered, probe, "right") - np.searchsorted(ordered, probe)).sum() > 1000
    assert all(probe[at] == stored[row] for at, row in found)
    assert max(found.values()) == 1


def test_a_bucket_keeps_its_rows_in_order() -> None:
    index = build(np.random.default_rng(1).integers(0, 5, 3000))
    assert index.starts[-1] == 3000
    for start, stop in zip(index.starts[:-1], index.starts[1:], strict=True):
        assert (np.diff(index.rows[start:stop]) > 0).all()


def test_rows_without_a_key_are_left_out_on_both_sides() -> None:
    index = build(np.array([4, 4, 5]), np.array([False, True, True]))
    probe = prepare(np.array([4, 4]), np.array([True, False]))
    assert naive.collected(propose(index, probe, capacity=9), 9) == {(0, 1): 1}
    assert probe.probes == 2


def test_row_ranges_go_by_the_probe_rows_before_any_was_left_out() -> None:
    probe = prepare(np.array([9, 4, 4]), np.array([False, True, True]))
    low, high = np.array([0, 1, 0], np.int32), np.array([2, 2, 1], np.int32)
    found = naive.collected(propose(build(np.array([4, 4])), probe, low, high), 9)
    assert found == {(1, 1): 1, (2, 0): 1}


def test_float_keys_are_equal_where_floats_are() -> None:
    values = [0.0, -0.0, 1.5, np.inf, -np.inf, 5e-324]
    bits = float_bits(np.array(values)).tolist()
    assert [[a == b for b in bits] for a in bits] == [[a == b for b in values] for a in values]
    assert float_bits(np.array([0.1], np.float32)).tolist() == float_bits(np.array([float(np.float32(0.1))])).tolist()


def test_combined_keys_tell_columns_and_their_order_apart() -> None:
    grid = np.array([(a, b) for a in range(-20, 20) for b in range(-20, 20)], np.int64)
    together = combine([grid[:, 0], grid[:, 1]])
    assert len(set(together.tolist())) == len(grid)
    assert combine([grid[:, 0]]).tolist() != combine([grid[:, 0], grid[:, 0]]).tolist()
    with pytest.raises(UsageError, match="no column"):
        combine([])


def test_hash_spreads_neighbours_over_high_and_low_bits() -> None:
    hashes = [int(mix(key)) for key in range(4096)]
    for shift in (0, 52):
        counts = np.bincount([hashed >> shift & 15 for hashed in hashes], minlength=16)
        assert counts.min() > 180
        assert counts.max() < 340
