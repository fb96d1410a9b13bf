"""Ranges of a key through an ordered index: bands, inequalities, equality.

    probe ranges, ordered by their low end      [2.0 … 2.5]   [4.1 … 4.4]          [9.0 … 9.9]
                                                     │             │                    │
    ladder: most ranges hold no key                  ▼             ✗                    ▼
    keys, ascending                             1.1  2.2  2.4  …   4.0  4.5  5.0   7.9  9.3
    rows                                        7    0    3        1    …

The probing batch is ordered once (`prepare`). Its ranges then go forward through the index of each segment, along a
ladder (`windrow.probe.search`) that turns most of those away that hold no key. All bounds are closed; an open end is an
infinity, or the smallest or largest integer. Where a probe row is restricted to fewer stored rows than its key range
holds, those rows are compared one by one instead, if the keys are also given in row order.

Pairs come ordered by the low ends of the probe rows, not by probe row.

>>> import numpy as np
>>> index = build(np.array([1.5, 0.5, np.nan, 1.0]))
>>> index.keys.tolist(), index.rows.tolist()
([0.5, 1.0, 1.5], [1, 3, 0])
>>> probe = prepare(np.array([0.9, -np.inf]), np.array([1.5, 0.7]))
>>> [(pairs.probe.tolist(), pairs.row.tolist()) for pairs in propose(index, probe)]
[([1, 0, 0], [1, 3, 0])]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windrow.errors import UsageError
from windrow.probe.jit import compiled, frozen
from windrow.probe.pairs import CAPACITY, Pairs, Rows, pour, row_bounds
from windrow.probe.search import Keys, Ladder, first_places, ladder

Truths = NDArray[np.bool_]

_DIGIT_BITS = 11
_DIGITS = 6
_FEW = 1024
_BY_KEY, _BY_ROW = 0, 1


class SortedIndex(NamedTuple):
    """The keys of a segment, ascending, the row each came from, and what leads to them. Rows without a key are left
    out.
    """

    keys: Keys
    rows: Rows
    ladder: Ladder


class SortedProbe(NamedTuple):
    """Key ranges of a probing batch, ordered by their low ends. Rows with an empty range are left out."""

    rows: Rows
    low: Keys
    high: Keys
    probes: int


def build(keys: Keys, valid: Truths | None = None) -> SortedIndex:
    """Order the keys of a segment; `valid` marks the rows that have one, NaN never counts as one."""
    keys = _sixty_four_bit(keys)
    valid = _without_nan(keys, valid)
    if valid is None:
        rows = order_of(keys)
    else:
        places = np.flatnonzero(valid).astype(np.int32)
        rows = places[order_of(keys[places])]
    ascending = frozen(keys[rows], keys.dtype.type)
    return SortedIndex(ascending, frozen(rows, np.int32), ladder(ascending))


def prepare(low: Keys, high: Keys) -> SortedProbe:
    """Order the closed key ranges [low, high] of a probing batch, once for all segments."""
    low, high = _sixty_four_bit(low), _sixty_four_bit(high)
    if low.dtype != high.dtype or low.shape != high.shape:
        raise UsageError(
            f"key ranges from {low.dtype}{list(low.shape)} to {high.dtype}{list(high.shape)}",
            hint="give both ends the same type and length",
        )
    sound = low <= high
    if sound.all():
        rows = order_of(low)
    else:
        places = np.flatnonzero(sound).astype(np.int32)
        rows = places[order_of(low[places])]
    kind = low.dtype.type
    return SortedProbe(frozen(rows, np.int32), frozen(low[rows], kind), frozen(high[rows], kind), len(low))


def propose(
    index: SortedIndex,
    probe: SortedProbe,
    row_low: Rows | None = None,
    row_high: Rows | None = None,
    capacity: int = CAPACITY,
    keys_by_row: Keys | None = None,
) -> Iterator[Pairs]:
    """All pairs whose stored key lies in the probe row's key range and whose row lies in its row range.

    Give `keys_by_row`, the keys in row order, only where every row of the segment has a key.
    """
    if index.keys.dtype != probe.low.dtype:
        raise UsageError(f"{index.keys.dtype} keys searched by {probe.low.dtype} ranges", hint="use one type for both")
    kind = index.keys.dtype.type
    bounds = row_bounds(row_low, row_high, probe.probes)
    by_row = frozen(() if keys_by_row is None else keys_by_row, kind)
    passed, starts = np.empty(len(probe.rows), np.int32), np.empty(len(probe.rows), np.int32)
    held = (index.keys, index.rows)
    count = first_places(*held, index.ladder, probe.low, probe.high, passed, starts)
    state = np.array([0, -1, 0], np.int64)
    ranges = (frozen(passed[:count], np.int32), probe.rows, probe.low, probe.high, frozen(starts[:count], np.int32))
    return pour(lambda probes, rows: _fill(held, ranges, by_row, *bounds, state, probes, rows), capacity)


def order_of(keys: Keys) -> Rows:
    """The rows in ascending order of their keys (no NaN among them); equal keys in any order.

    A radix sort: eleven bits a pass, and passes in which all keys agree are skipped: small integers take two or three.
    """
    if len(keys) < _FEW:
        return np.argsort(keys, kind="stable").astype(np.int32)
    bits = np.ascontiguousarray(keys).view(np.uint64)
    return _radix_order(frozen(bits, np.uint64), keys.dtype.kind == "f")


def _sixty_four_bit(keys: Keys) -> Keys:
    return np.ascontiguousarray(keys, np.float64 if keys.dtype.kind == "f" else np.int64)


def _without_nan(keys: Keys, valid: Truths | None) -> Truths | None:
    if keys.dtype.kind == "f":
        numbers = keys == keys
        valid = numbers if valid is None else valid & numbers
    return None if valid is None or valid.all() else valid


@compiled
def _radix_order(bits: NDArray[np.uint64], floating: bool) -> Rows:
    """Row order of 64-bit numbers. Bits are first changed so that they order as unsigned integers do."""
    size = len(bits)
    sign = np.uint64(1) << np.uint64(63)
    mask = np.uint64((1 << _DIGIT_BITS) - 1)
    keys, keys_next = np.empty(size, np.uint64), np.empty(size, np.uint64)
    rows, rows_next = np.empty(size, np.int32), np.empty(size, np.int32)
    counts = np.zeros((_DIGITS, 1 << _DIGIT_BITS), np.int32)
    for row in range(size):
        key = bits[row]
        key = ~key if floating and key & sign else key ^ sign
        keys[row] = key
        rows[row] = row
        for digit in range(_DIGITS):
            counts[digit, (key >> np.uint64(digit * _DIGIT_BITS)) & mask] += 1
    for digit in range(_DIGITS):
        places = counts[digit]
        shift = np.uint64(digit * _DIGIT_BITS)
        if places[(keys[0] >> shift) & mask] == size:
            continue
        total = 0
        for value in range(1 << _DIGIT_BITS):
            held = places[value]
            places[value] = total
            total += held
        for position in range(size):
            value = (keys[position] >> shift) & mask
            place = places[value]
            places[value] = place + 1
            keys_next[place] = keys[position]
            rows_next[place] = rows[position]
        keys, keys_next = keys_next, keys
        rows, rows_next = rows_next, rows
    return rows


@compiled
def _fill(
    index: tuple[Keys, Rows],
    ranges: tuple[Rows, Rows, Keys, Keys, Rows],
    keys_by_row: Keys,
    row_low: Rows,
    row_high: Rows,
    state: NDArray[np.int64],
    probe_out: Rows,
    row_out: Rows,
) -> int:
    """Write pairs until the arrays are full; `state`: place in the list, in its range, search mode."""
    (keys, rows), (passed, rows_probe, lows, highs, starts) = index, ranges
    size, room, count = len(keys), len(probe_out), 0
    limited, scannable = len(row_low) > 0, len(keys_by_row) > 0
    turn, place, mode = int(state[0]), int(state[1]), int(state[2])
    while turn < len(passed):
        at = passed[turn]
        low, high, row_probe = lows[at], highs[at], rows_probe[at]
        first, last = 0, np.iinfo(np.int32).max
        if limited:
            first, last = int(row_low[row_probe]), int(row_high[row_probe])
        if place < 0:
            place, mode = int(starts[turn]), _BY_KEY
            if scannable and limited:
                reach = place + max(0, last - first)
                if reach < size and keys[reach] <= high:
                    place, mode = first, _BY_ROW
        if mode == _BY_KEY:
            while place < size and keys[place] <= high and count < room:
                row = rows[place]
                probe_out[count] = row_probe
                row_out[count] = row
                count += first <= row < last
                place += 1
            unfinished = place < size and keys[place] <= high
        else:
            while place < last and count < room:
                probe_out[count] = row_probe
                row_out[count] = place
                count += low <= keys_by_row[place] <= high
                place += 1
            unfinished = place < last
        if unfinished:
            break
        turn, place = turn + 1, -1
        if count == room:
            break
    state[0], state[1], state[2] = turn, place, mode
    return count
