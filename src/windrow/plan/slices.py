"""Where it is probed: which slice of the cluster holds a stored row, and which slices a probe has to visit.

Every stored row has exactly one slice; a partial result visits the slices that can hold a match for it. By time, the
default, event time is cut into spans dealt out to the slices in turn, so that every window lies on all of them,
whatever its age:

    span        0    1    2    3    4    5   …
    slice       0    1    2    0    1    2   …           a probe that reaches spans 4 … 5 visits slices 1 and 2

Ageing moves nothing: a row stays where it is until it leaves its window.

>>> by_time = TimeSlices(count=3, span_us=10)
>>> by_time.of(np.array([0, 10, 25, 31, -1])).tolist()
[0, 1, 2, 0, 2]
>>> by_time.visits(np.array([41, 0]), np.array([52, 100])).tolist()
[[False, True, True], [True, True, True]]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

SPANS_A_WINDOW = 4
OFF_THE_GRID = 0.618033988749895
"""Spans are this share of a round length: event times on a grid of whole seconds would all fall to a few slices."""
SHORTEST_SPAN_US = 1_000

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class TimeSlices:
    """Slices by event time: spans of `span_us` in turn over `count` slices."""

    count: int
    span_us: int

    def of(self, times_us: Array) -> Array:
        """The slice of each stored row."""
        return (times_us // self.span_us) % self.count

    def visits(self, low_us: Array, high_us: Array) -> Array:
        """Which slices hold event times of each closed range: one row a range, one column a slice."""
        visited = np.zeros((len(low_us), self.count), np.bool_)
        first, last = low_us // self.span_us, high_us // self.span_us
        further = last.view(np.uint64) - first.view(np.uint64)  # exact, however far apart two words are
        reach = np.where(high_us < low_us, 0, np.minimum(further, self.count - 1).astype(np.int64) + 1)
        for step in range(self.count):
            rows = np.flatnonzero(reach > step)
            visited[rows, (first[rows] % self.count + step) % self.count] = True
        return visited


def time_slices(count: int, span_us: int | None) -> TimeSlices:
    """Slices for a window of `span_us` (None: a row window), fine enough that the window is spread over all of them."""
    window_us = 60_000_000 if span_us is None else span_us
    even_us = min(window_us, 2**62) // (SPANS_A_WINDOW * count)
    return TimeSlices(count, max(SHORTEST_SPAN_US, int(even_us * OFF_THE_GRID)))
