"""The last batches of a run, a few numbers each: what a report draws.

>>> from windrow.control.observation import Arrival, Joined
>>> history = History(most=1)
>>> for batch in range(2):
...     came = {"a": Arrival(10, stored=30)}
...     history.add(Observation(batch, float(batch), 1.0, 0.25, came, Joined(), results=5), throttle=1.0)
>>> history.moments
(Moment(batch=1, at_s=1.0, span_s=1.0, busy_s=0.25, rows=10, stored=30, results=5, throttle=1.0),)
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from windrow.control.observation import Observation

MOST = 2_000
"""Batches that are remembered."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One batch: its clock, the time since the one before, how long it took, rows in, rows in windows after it,
    results, and the share of the full work that was done.
    """

    batch: int
    at_s: float
    span_s: float
    busy_s: float
    rows: int
    stored: int
    results: int
    throttle: float


class History:
    """Remembers the last `most` batches."""

    def __init__(self, most: int = MOST) -> None:
        self._moments: deque[Moment] = deque(maxlen=most)

    def add(self, done: Observation, throttle: float) -> None:
        """One more batch."""
        arrivals = done.arrivals.values()
        rows, stored = sum(each.rows for each in arrivals), sum(each.stored for each in arrivals)
        self._moments.append(
            Moment(done.batch, done.now_s, done.span_s, done.busy_s, rows, stored, done.results, throttle)
        )

    @property
    def moments(self) -> tuple[Moment, ...]:
        """What is remembered, the oldest first."""
        return tuple(self._moments)
