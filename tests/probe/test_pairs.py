"""Chunks of pairs: sizes, order, and what a range must look like."""

from __future__ import annotations

import numpy as np
import pytest

from windrow.errors import UsageError
from windrow.probe.pairs import WHOLE, Rows, kept, pour, row_bounds


def count_up(total: int) -> list[int]:
    return list(range(total))


@pytest.mark.parametrize("total", [0, 1, 2, 6, 7, 8, 14, 15])
@pytest.mark.parametrize("capacity", [1, 2, 7])
def test_nothing_is_lost_or_repeated(total: int, capacity: int) -> None:
    written = 0

    def fill(probe: Rows, row: Rows) -> int:
        nonlocal written
        count = min(len(probe), total - written)
        probe[:count] = row[:count] = np.arange(written, written + count)
        written += count
        return count

    chunks = list(pour(fill, capacity))
    assert [number for chunk in chunks for number in chunk.row.tolist()] == count_up(total)
    assert all(0 < len(chunk.probe) <= capacity for chunk in chunks)


def test_few_pairs_do_not_hold_a_large_buffer() -> None:
    buffer = np.zeros(1000, np.int32)
    assert kept(buffer, 10).base is None
    assert kept(buffer, 900).base is buffer


def test_no_room_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot hold 0 pairs"):
        next(pour(lambda probe, row: 0, 0))


def test_row_bounds_are_both_or_neither_and_one_a_probe() -> None:
    two = np.zeros(2, np.int64)
    assert row_bounds(None, None, 5) == (WHOLE, WHOLE)
    low, high = row_bounds(two.astype(np.int32), two.astype(np.int32), 2)
    assert low.dtype == high.dtype == np.int32
    with pytest.raises(UsageError, match="only one end"):
        row_bounds(two.astype(np.int32), None, 2)
    with pytest.raises(UsageError, match="2 and 2 row bounds for 3 probe rows"):
        row_bounds(two.astype(np.int32), two.astype(np.int32), 3)
