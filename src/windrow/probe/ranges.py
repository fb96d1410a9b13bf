"""From ranges of a clock to ranges of rows: a segment is ordered by its clock, so a window is one run of rows.

    clock  3 5 5 8 9        [5, 8]  →  rows 1 … 4 (half-open)

Neighbouring probe rows have nearly the same window. The search therefore starts at the previous answer and doubles
its stride until it has passed the target ("galloping"): a few comparisons in order, a logarithm in any order.

>>> import numpy as np
>>> low, high = row_ranges(np.array([3, 5, 5, 8, 9]), np.array([5, 0, 7]), np.array([8, 2, 6]))
>>> low.tolist(), high.tolist()
([1, 0, 3], [4, 0, 3])
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.errors import UsageError
from windrow.probe.jit import compiled, frozen
from windrow.probe.pairs import Rows

Clock = NDArray[np.int64]


def row_ranges(clock: Clock, low: Clock, high: Clock) -> tuple[Rows, Rows]:
    """The half-open row range whose clock lies in the closed range [low, high], one for each pair of bounds."""
    if len(low) != len(high):
        raise UsageError(f"{len(low)} lower and {len(high)} upper bounds", hint="give one pair a probe row")
    row_low, row_high = np.empty(len(low), np.int32), np.empty(len(low), np.int32)
    _fill_ranges(frozen(clock, np.int64), frozen(low, np.int64), frozen(high, np.int64), row_low, row_high)
    return row_low, row_high


def intersect(first: tuple[Rows, Rows], second: tuple[Rows, Rows]) -> tuple[Rows, Rows]:
    """The rows in both ranges; an empty range starts where it ends.

    >>> import numpy as np
    >>> a = np.array([0, 5], np.int32), np.array([4, 9], np.int32)
    >>> b = np.array([2, 0], np.int32), np.array([6, 3], np.int32)
    >>> [bound.tolist() for bound in intersect(a, b)]
    [[2, 5], [4, 5]]
    """
    low = np.maximum(first[0], second[0])
    return low, np.maximum(low, np.minimum(first[1], second[1]))


@compiled
def first_at_least(keys: NDArray[Any], target: float, hint: int) -> int:
    """The first position whose key is not below the target, searched outward from `hint` (0 … number of keys)."""
    size = len(keys)
    stride = 1
    if hint < size and keys[hint] < target:
        below, above = hint, hint + 1
        while above < size and keys[above] < target:
            below = above
            stride *= 2
            above = min(size, above + stride)
    else:
        below, above = hint - 1, hint
        while below >= 0 and not keys[below] < target:
            above = below
            stride *= 2
            below = max(-1, below - stride)
    while above - below > 1:
        middle = (below + above) >> 1
        if keys[middle] < target:
            below = middle
        else:
            above = middle
    return above


@compiled
def _fill_ranges(clock: Clock, low: Clock, high: Clock, row_low: Rows, row_high: Rows) -> None:
    start = stop = 0
    for probe in range(len(low)):
        start = first_at_least(clock, low[probe], start)
        row_low[probe] = row_high[probe] = start
        if low[probe] > high[probe]:
            continue
        if high[probe] == np.iinfo(np.int64).max:
            stop = len(clock)
        else:
            stop = first_at_least(clock, high[probe] + 1, stop)
        row_high[probe] = stop
