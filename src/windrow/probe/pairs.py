"""Candidate pairs, and how a proposer hands them over: in chunks, so that no explosion of results can fill the
memory.

    probe rows ──┐
                 ├─ proposer ── Pairs ── Pairs ── …      at most `capacity` pairs each, none lost, none twice
    a segment  ──┘

A proposer's kernel fills two arrays and remembers in a small `state` array where it stopped, also in the middle of
the matches of one probe row. It returns how many pairs it wrote: fewer than fit means that it is done. `pour` turns
that into an iterator.

A probe row may be restricted to a range of stored rows, half-open. No restriction is written as `None` by callers and
as the empty array `WHOLE` inside kernels, so that both cases share one compiled kernel.

>>> import numpy as np
>>> left = [5]
>>> def fill(probe, row):
...     count = min(left[0], len(probe))
...     probe[:count], row[:count] = 0, np.arange(left[0], left[0] - count, -1)
...     left[0] -= count
...     return count
>>> [chunk.row.tolist() for chunk in pour(fill, capacity=2)]
[[5, 4], [3, 2], [1]]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from windrow.errors import UsageError
from windrow.probe.jit import frozen

Rows = NDArray[np.int32]
Item = TypeVar("Item", bound=np.generic)

CAPACITY = 1 << 18
WHOLE: Rows = frozen((), np.int32)

_SPARSE = 4


class Pairs(NamedTuple):
    """Pairs of row numbers: `probe[i]` of the probing batch may match `row[i]` of the stored segment."""

    probe: Rows
    row: Rows


def pour(fill: Callable[[Rows, Rows], int], capacity: int) -> Iterator[Pairs]:
    """Call `fill` with fresh arrays until it writes fewer pairs than fit; yield what it wrote."""
    if capacity < 1:
        raise UsageError(f"a chunk cannot hold {capacity} pairs", hint="give a capacity of at least 1")
    while True:
        probe, row = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
        count = fill(probe, row)
        if count:
            yield Pairs(kept(probe, count), kept(row, count))
        if count < capacity:
            return


def kept(buffer: NDArray[Item], count: int) -> NDArray[Item]:
    """The filled part of a buffer, copied if it is small, so that few pairs do not hold a large buffer alive."""
    filled = buffer[:count]
    return filled.copy() if count * _SPARSE < len(buffer) else filled


def row_bounds(row_low: Rows | None, row_high: Rows | None, probes: int) -> tuple[Rows, Rows]:
    """Row ranges as kernels take them: two arrays with one entry a probe row, or `WHOLE` twice."""
    if row_low is None or row_high is None:
        if row_low is not row_high:
            raise UsageError("a row range has only one end", hint="give both row_low and row_high, or neither")
        return WHOLE, WHOLE
    if len(row_low) != probes or len(row_high) != probes:
        raise UsageError(
            f"{len(row_low)} and {len(row_high)} row bounds for {probes} probe rows", hint="give one a row"
        )
    return frozen(row_low, np.int32), frozen(row_high, np.int32)
