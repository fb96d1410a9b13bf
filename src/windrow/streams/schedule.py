"""When the batches of a replay are due in real time: as fast as their event time passes, or some times as fast.

    event time   |----a----|----b----|--c--|        ends of batches
    pace 2       |-a--|-b--|c-|                     a is due at once, b half the time between their ends later, …

Whoever is late takes all batches that are due by then, as a live stream would bring them.

>>> now, waited = iter([0.0, 0.0, 0.25, 5.0]), []
>>> ends_us = [10_000_000, 11_000_000, 12_000_000, 13_000_000]
>>> schedule = Schedule(ends_us, pace=2, clock=lambda: next(now), wait=waited.append)
>>> schedule.due(0), schedule.due(1), schedule.due(2), waited
(1, 2, 4, [0.25])
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Sequence

from windrow.errors import UsageError


class Schedule:
    """The schedule of batches that end at `ends_us`. It begins when it is first asked."""

    def __init__(
        self,
        ends_us: Sequence[int],
        pace: float,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        check_pace(pace)
        self._ends_us = ends_us
        self._pace = pace
        self._clock = clock
        self._wait = wait
        self._began: tuple[float, int] | None = None

    def due(self, given: int) -> int:
        """How many batches are due after `given` of them were given: at least one more, which is waited for, as long as
        there are any.
        """
        if given >= len(self._ends_us):
            return given
        if self._began is None:
            self._began = (self._clock(), self._ends_us[given])
        began_s, origin_us = self._began
        passed_s = self._clock() - began_s
        wait_s = (self._ends_us[given] - origin_us) / 1e6 / self._pace - passed_s
        if wait_s > 0:
            self._wait(wait_s)
        return max(given + 1, bisect_right(self._ends_us, origin_us + passed_s * self._pace * 1e6))


def check_pace(pace: float) -> float:
    """A pace that time can go at."""
    if not 0 < pace < float("inf"):
        raise UsageError(f"time cannot pass {pace:g} times as fast", place="pace", hint="give a number above 0")
    return pace
