"""Lag bins: a window divided into basic windows by lag, the parts a harvest chooses from.

The lag of a stored row is the driver's time less its own: how much older it is. For row windows it is counted in rows.

    lag      -w_i          -b      0      b      2b               w_l
    bins      | behind … |  behind  |  1   |  2   |      …    |  n   |        the last one holds w_l itself
              rows that came late, or that          the n basic windows of the probed store l
              a buffer policy shows early

Bins are numbered in order of their lags, from the one furthest behind. In the paper (section IV-A) bin k of the n is
B_{l,k}, ages b (k - 1) to b k.

>>> bins = Bins(window=100, count=4, behind=50, behind_count=1)
>>> bins.edges.tolist()
[-50, 0, 25, 50, 75, 101]
>>> bins.place(np.array([-1, 0, 24, 25, 100])).tolist()
[0, 1, 1, 2, 4]
>>> bins.ranges((1, 2, 4)), bins.ranges(range(5))
(((0, 50), (75, 101)), ((-50, 101),))
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from windrow.errors import PlanError
from windrow.query.spec import QuerySpec

Lags = tuple[tuple[int, int], ...]
"""Ranges of lags, ascending and apart from each other; each from its first up to, not including, its second number."""

FAR = 2**62
"""A negative lag further than any."""

END = 2**63 - 1
"""A lag, of either sign, that no lag lies beyond."""

MOST_BINS = 20
"""More basic windows cost more to choose from than they gain (the paper's section VI-B.4)."""


@dataclass(frozen=True)
class Bins:
    """The lag bins of a store of `window` ticks (microseconds, or rows) for one driver: `count` basic windows, and
    `behind_count` bins of the same width for negative lags, down to `behind` ticks, the driver's own window.
    """

    window: int
    count: int
    behind: int = 0
    behind_count: int = 0

    def __post_init__(self) -> None:
        if self.window < 0 or self.behind < 0 or self.count < 1 or not 0 <= self.behind_count <= self.count:
            raise PlanError(
                f"a window cannot be divided as {self}", hint="give 1 or more bins of a window of 0 or more"
            )

    @cached_property
    def edges(self) -> NDArray[np.int64]:
        """Where bins begin, and last where the last one ends."""
        count = max(1, min(self.count, self.window))
        ahead = [self.window * k // count for k in range(count)]
        width = max(1, self.window // count)
        behind = [] if self.behind_count == 0 or self.behind == 0 else [-self.behind]
        behind.extend(-k * width for k in range(self.behind_count - 1, 0, -1) if k * width < self.behind)
        return np.array([*behind, *ahead, self.window + 1], np.int64)

    @property
    def size(self) -> int:
        """How many bins there are."""
        return len(self.edges) - 1

    @property
    def first_ahead(self) -> int:
        """The number of the bin that begins with lag 0."""
        return int(np.searchsorted(self.edges, 0))

    @property
    def widths(self) -> NDArray[np.float64]:
        """The width of each bin, as a share of the window."""
        return np.diff(np.minimum(self.edges, self.window)) / max(1, self.window)

    def place(self, lags: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of the bin each lag lies in; what lies outside goes to the nearest."""
        found = np.searchsorted(self.edges, lags, side="right") - 1
        return np.clip(found, 0, self.size - 1)

    def ranges(self, chosen: Iterable[int]) -> Lags:
        """The ranges of lags that some bins cover together; neighbours become one range."""
        found: list[tuple[int, int]] = []
        for k in sorted(set(chosen)):
            low, high = int(self.edges[k]), int(self.edges[k + 1])
            if found and found[-1][1] == low:
                found[-1] = (found[-1][0], high)
            else:
                found.append((low, high))
        return tuple(found)

    def within(self, lags: Lags) -> tuple[int, ...]:
        """The numbers of the bins that some ranges of lags cover.

        >>> Bins(window=100, count=4).within(((0, 50), (75, 101)))
        (0, 1, 3)
        """
        first = self.edges[:-1]
        return tuple(int(k) for low, high in lags for k in np.flatnonzero((first >= low) & (first < high)))


def lag_bins(
    spec: QuerySpec, driver: str, targets: Iterable[str], count: int, behind: bool = False
) -> tuple[Bins, ...]:
    """The bins of the stores on a driver's path: `count` basic windows each, and one of negative lags if `behind`."""
    own = spec.stream(driver).window.span_us
    windows = (spec.stream(target).window for target in targets)
    return tuple(
        Bins(window.span_us or 0, count, FAR if own is None else own, int(behind))
        if window.rows is None
        else Bins(window.rows, count, FAR, int(behind))
        for window in windows
    )


def complement(lags: Lags) -> Lags:
    """The lags outside some ranges.

    >>> complement(((0, 50), (75, 101))) == ((-END, 0), (50, 75), (101, END)), complement(()) == ((-END, END),)
    (True, True)
    """
    lows = (-END, *(high for _, high in lags))
    highs = (*(low for low, _ in lags), END)
    return tuple((low, high) for low, high in zip(lows, highs, strict=True) if low < high)


def lies_in(lag: int, lags: Lags) -> bool:
    """Whether one of the ranges holds a lag."""
    return any(low <= lag < high for low, high in lags)
