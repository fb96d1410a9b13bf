"""Segments: merging keeps every row whole and in order, whatever the form of its operands."""

from __future__ import annotations

from collections import Counter
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.store.segments import LAYOUT, SEARCHED, rows_of, segment_of
from windrow.query import types
from windrow.query.expression import Column
from windrow.store.segment import Layout, merge

pytestmark = pytest.mark.usefixtures("interpreted")

EVER = -(2**63)

times = st.lists(st.integers(-5, 20), min_size=1, max_size=12).map(sorted)


@settings(max_examples=40)
@given(st.lists(times, min_size=1, max_size=5), st.integers(-6, 21), st.booleans())
def test_merging_keeps_rows_whole_and_leaves_old_ones_behind(lists: list[list[int]], cutoff: int, early: bool) -> None:
    keep_from_us = EVER if early else cutoff
    segments = [segment_of(each, seed) for seed, each in enumerate(lists)]
    merged = merge(segments, keep_from_us)
    expected = Counter({row: n for row, n in rows_of(*segments).items() if row[0] >= keep_from_us})
    assert rows_of(merged) == expected
    assert (np.diff(merged.time_us) >= 0).all()
    assert merged.level == 1
    assert merged.indexes == {}


def test_equal_times_stay_in_the_order_of_the_segments() -> None:
    segments = [segment_of([0, 5, 5], 1), segment_of([0, 5], 2), segment_of([-1, 5], 3)]
    merged = merge(segments, EVER)
    ids = [segment.columns[0].to_pylist() for segment in segments]
    expected = [ids[2][0], ids[0][0], ids[1][0], ids[0][1], ids[0][2], ids[1][1], ids[2][1]]
    assert merged.columns[0].to_pylist() == expected


def test_clocks_move_with_their_rows() -> None:
    merged = merge([segment_of([0, 1, 2], 1, first_clock=1), segment_of([2, 3], 2, first_clock=4)], 1)
    assert merged.time_us.tolist() == [1, 2, 2, 3]
    assert merged.clocks["a"].tolist() == [2, 3, 4, 5]


def test_levels_grow_from_the_highest() -> None:
    once = merge([segment_of([0]), segment_of([1])], EVER)
    assert merge([once, segment_of([2])], EVER).level == 2


def test_delivered_columns_and_operands_share_memory_after_a_merge() -> None:
    merged = merge([segment_of([0, 2], 1), segment_of([1, 3], 2)], EVER)
    text = merged.operands[LAYOUT.operands.index(SEARCHED[1])]
    assert text.arrow is merged.columns[2]
    number = merged.operands[LAYOUT.operands.index(SEARCHED[0])]
    column = merged.columns[1]
    assert column.null_count or number.values.ctypes.data == column.buffers()[1].address


def test_slots() -> None:
    assert [LAYOUT.slot(expression) for expression in SEARCHED] == list(range(len(SEARCHED)))
    assert LAYOUT.slot(Column("a", "id", types.BIGINT)) is None
    assert Layout((), ()).slot(SEARCHED[0]) is None


def test_spans_sizes_and_indexes() -> None:
    segment = segment_of([3, 4, 9])
    assert (segment.first_us, segment.last_us, len(segment)) == (3, 9, 3)
    assert segment.nbytes > 3 * (8 + 8 + 8 + 4)
    made = count(1)
    assert [segment.index(key, lambda: next(made)) for key in ("one", "two", "one", "two")] == [1, 2, 1, 2]
