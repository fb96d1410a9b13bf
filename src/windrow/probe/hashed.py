"""Equality through a hash index: the rows of a segment sorted into buckets by their key's hash.

    hash ── high bits: the bucket ──►  marks   ..1.  1...  .1.1  ....     low bits of the hashes in it, two bits each
                                       starts  0     1     2     4     …
                                                     │     └──────────┐
                                       keys    17    40    8    91    …   rows of a bucket side by side, ascending
                                       rows    3     0     5     9    …

A bucket holds one or two rows, and most probes meet no match in most segments, so the marks come first: sixteen bits
a bucket, small enough to stay near, turn most probes away without touching anything else. The probing batch is hashed
and ordered by hash once (`prepare`); all its visits to a segment then go forward through memory. What the next visits
will read is asked for ahead, so that the waits for memory overlap.

Keys are int64: integers themselves, floats as `float_bits`, texts and several columns as a hash (see `combine`),
whose pairs the predicate has to check. Pairs come in the order of the hashes, not by probe row.

>>> import numpy as np
>>> index = build(np.array([7, 9, 7]))
>>> pairs, = propose(index, prepare(np.array([1, 7])))
>>> pairs.probe.tolist(), pairs.row.tolist()
([1, 1], [0, 2])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windrow.errors import UsageError
from windrow.probe.jit import compiled, frozen
from windrow.probe.pairs import CAPACITY, Pairs, Rows, pour, row_bounds
from windrow.probe.prefetch import prefetch
from windrow.probe.sorted import order_of

Keys = NDArray[np.int64]
Truths = NDArray[np.bool_]

_LONG = 16
_ORDERED_BITS = 22
_AHEAD = 12
_FIRST, _SECOND = 0xA24BAED4963EE407, 0x9FB21C651E98DF25


class HashedIndex(NamedTuple):
    """Rows in buckets: `starts` (one more than buckets) delimits them, `marks` tells what cannot be in them."""

    starts: Rows
    marks: NDArray[np.uint16]
    keys: Keys
    rows: Rows


class HashedProbe(NamedTuple):
    """Keys of a probing batch, ordered by hash. Rows without a key are left out."""

    rows: Rows
    keys: Keys
    hashes: NDArray[np.uint64]
    probes: int


def build(keys: Keys, valid: Truths | None = None) -> HashedIndex:
    """Sort the rows of a segment into buckets; `valid` marks the rows that have a key."""
    places = _places(valid)
    held = frozen(keys[places], np.int64)
    buckets = 1 << max(1, (len(held) - 1).bit_length() - 1)
    starts, marks = np.zeros(buckets + 1, np.int32), np.zeros(buckets, np.uint16)
    keys_out, rows_out = np.empty(len(held), np.int64), np.empty(len(held), np.int32)
    _fill_buckets(held, starts, marks, keys_out, rows_out)
    if len(held) < len(keys):
        rows_out = np.arange(len(keys), dtype=np.int32)[places][rows_out]
    return HashedIndex(
        frozen(starts, np.int32), frozen(marks, np.uint16), frozen(keys_out, np.int64), frozen(rows_out, np.int32)
    )


def prepare(keys: Keys, valid: Truths | None = None) -> HashedProbe:
    """Hash and order the keys of a probing batch, once for all segments; `valid` marks the rows that have a key."""
    places = _places(valid)
    held = frozen(keys[places], np.int64)
    hashes = np.empty(len(held), np.uint64)
    _fill_hashes(held, hashes)
    order = order_of((hashes >> np.uint64(64 - _ORDERED_BITS)).view(np.int64))
    rows = order if len(held) == len(keys) else np.arange(len(keys), dtype=np.int32)[places][order]
    return HashedProbe(
        frozen(rows, np.int32), frozen(held[order], np.int64), frozen(hashes[order], np.uint64), len(keys)
    )


def propose(
    index: HashedIndex,
    probe: HashedProbe,
    row_low: Rows | None = None,
    row_high: Rows | None = None,
    capacity: int = CAPACITY,
) -> Iterator[Pairs]:
    """All pairs whose keys are equal and whose stored row lies in the probe row's row range."""
    bounds = row_bounds(row_low, row_high, probe.probes)
    survivors = np.empty(len(probe.rows), np.int32)
    count = _survivors(index.marks, probe.hashes, survivors)
    passed = frozen(survivors[:count], np.int32)
    state = np.array([0, -1], np.int64)
    held = (index.starts, index.marks, index.keys, index.rows)
    wanted = (probe.rows, probe.keys, probe.hashes)
    return pour(lambda probes, rows: _fill(held, wanted, passed, *bounds, state, probes, rows), capacity)


def float_bits(values: NDArray[np.floating]) -> Keys:
    """Floats as integer keys that are equal where the floats are: zero has one sign. NaN has to be marked not valid.

    >>> import numpy as np
    >>> float_bits(np.array([0.0, -0.0])).tolist()
    [0, 0]
    """
    return (np.asarray(values, np.float64) + 0.0).view(np.int64)


def combine(columns: Sequence[Keys]) -> Keys:
    """One hash for the keys of several columns; the order of the columns matters.

    >>> import numpy as np
    >>> one, two = np.array([1, 2]), np.array([2, 1])
    >>> len({*combine([one, two]).tolist(), *combine([two, one]).tolist()})
    2
    """
    if not columns:
        raise UsageError("there is no column to combine", hint="give at least one")
    total = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        _fold(frozen(column, np.int64), total)
    return total.view(np.int64)


@compiled
def mix(key: int | np.integer) -> np.uint64:
    """A hash in which every bit depends on all bits of the key: fold, multiply, twice, and fold once more."""
    bits = np.uint64(key)
    bits = (bits ^ (bits >> np.uint64(32))) * np.uint64(_FIRST)
    bits = (bits ^ (bits >> np.uint64(29))) * np.uint64(_SECOND)
    return bits ^ (bits >> np.uint64(32))


def _places(valid: Truths | None) -> slice | NDArray[np.intp]:
    return slice(None) if valid is None or valid.all() else np.flatnonzero(valid)


@compiled
def _fold(column: Keys, total: NDArray[np.uint64]) -> None:
    for row in range(len(column)):
        total[row] = mix(mix(column[row]) + np.uint64(3) * total[row])


@compiled
def _fill_hashes(keys: Keys, hashes: NDArray[np.uint64]) -> None:
    for row in range(len(keys)):
        hashes[row] = mix(keys[row])


@compiled
def _shift_of(buckets: int) -> np.uint64:
    """How far to shift a hash right so that its high bits number the buckets, a power of two."""
    shift = 64
    while buckets > 1:
        buckets >>= 1
        shift -= 1
    return np.uint64(shift)


@compiled
def _mark_of(hashed: np.uint64) -> np.uint16:
    """Two bits of sixteen, chosen by the low bits of a hash, which do not choose its bucket."""
    one, fifteen = np.uint64(1), np.uint64(15)
    return np.uint16(one << (hashed & fifteen) | one << (hashed >> np.uint64(4) & fifteen))


@compiled
def _fill_buckets(keys: Keys, starts: Rows, marks: NDArray[np.uint16], keys_out: Keys, rows_out: Rows) -> None:
    """Counting sort by bucket. Rows are placed from the last to the first, so they end up ascending inside a bucket."""
    size, buckets = len(keys), len(marks)
    shift = _shift_of(buckets)
    hashes = np.empty(size, np.uint64)
    for row in range(size):
        hashed = mix(keys[row])
        hashes[row] = hashed
        bucket = hashed >> shift
        starts[bucket] += 1
        marks[bucket] |= _mark_of(hashed)
    total = 0
    for place in range(buckets):
        total += starts[place]
        starts[place] = total
    starts[buckets] = total
    for row in range(size - 1, -1, -1):
        bucket = hashes[row] >> shift
        starts[bucket] -= 1
        keys_out[starts[bucket]] = keys[row]
        rows_out[starts[bucket]] = row


@compiled
def _survivors(marks: NDArray[np.uint16], hashes: NDArray[np.uint64], passed: Rows) -> int:
    """Positions in the probe that the marks do not turn away. Written without a branch, so that loads overlap."""
    shift = _shift_of(len(marks))
    count = 0
    for at in range(len(hashes)):
        hashed = hashes[at]
        mark = _mark_of(hashed)
        passed[count] = at
        count += (marks[hashed >> shift] & mark) == mark
    return count


@compiled
def _first_row(rows: Rows, start: int, stop: int, first: int | np.integer) -> int:
    """The first place in an ascending bucket whose row is not below `first`."""
    while start < stop:
        middle = (start + stop) >> 1
        if rows[middle] < first:
            start = middle + 1
        else:
            stop = middle
    return start


@compiled
def _fill(
    index: tuple[Rows, NDArray[np.uint16], Keys, Rows],
    wanted: tuple[Rows, Keys, NDArray[np.uint64]],
    passed: Rows,
    row_low: Rows,
    row_high: Rows,
    state: NDArray[np.int64],
    probe_out: Rows,
    row_out: Rows,
) -> int:
    """Write pairs until the arrays are full; `state` holds position among the survivors and place in its bucket."""
    (starts, marks, keys, rows), (rows_probe, keys_probe, hashes) = index, wanted
    shift = _shift_of(len(marks))
    room, count, limited = len(probe_out), 0, len(row_low) > 0
    turn, place = int(state[0]), int(state[1])
    while turn < len(passed) and count < room:
        if place < 0 and turn + 2 * _AHEAD < len(passed):
            prefetch(starts, hashes[passed[turn + 2 * _AHEAD]] >> shift)
            coming = starts[hashes[passed[turn + _AHEAD]] >> shift]
            prefetch(keys, coming)
            prefetch(rows, coming)
        at = passed[turn]
        key, row_probe = keys_probe[at], rows_probe[at]
        bucket = hashes[at] >> shift
        stop = int(starts[bucket + np.uint64(1)])
        if place < 0:
            place = int(starts[bucket])
            if limited and stop - place > _LONG:
                place = _first_row(rows, place, stop, row_low[row_probe])
                stop = _first_row(rows, place, stop, row_high[row_probe])
        elif limited and stop - place > _LONG:
            stop = _first_row(rows, place, stop, row_high[row_probe])
        while place < stop and count < room:
            row = rows[place]
            probe_out[count] = row_probe
            row_out[count] = row
            inside = not limited or row_low[row_probe] <= row < row_high[row_probe]
            count += inside and keys[place] == key
            place += 1
        if place == stop:
            turn, place = turn + 1, -1
    state[0], state[1] = turn, place
    return count
