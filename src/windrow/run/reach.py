"""Where partial rows may look: for each of them a range of event time, and of each row clock.

    fits       newest_p - w <= ts <= dies_p, the same on row clocks, and what conditions on the time column say
    harvested  of that, what lies in ranges of lag: one search a range, over all rows                    ▁▁▂█▆▁
    sampled    of that, strata of time, each row its own: a row is repeated, once a stratum              █ █  █

A stratum is a piece of time that begins at a multiple of its length, so it is the same for all rows, segments and
workers; whether a row looks into it is drawn from the row's content and the stratum's number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from windrow.plan.bins import Lags
from windrow.probe.gather import gather
from windrow.probe.step import StepProbe
from windrow.query.spec import UNBOUNDED
from windrow.run.draw import STRATUM, draw
from windrow.run.partial import Partial, View, saturating_add
from windrow.run.sources import Source, row_windows
from windrow.store.operand import Array

MOST_STRATA = 1000
"""Of each row, on average, are searched one by one: more than there are in a window, and in another ahead of it."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The closed range of a clock (event time, or a row clock) that fits each partial row, and its extremes."""

    low: Array
    high: Array
    least: int
    most: int
    covered_from: int
    covered_to: int

    @staticmethod
    def of(low: Array, high: Array) -> Reach:
        return Reach(low, high, int(low.min()), int(high.max()), int(low.max()), int(high.min()))

    def excludes(self, clock: Array) -> bool:
        """Whether no row of a segment fits any partial row."""
        return bool(clock[-1] < self.least or clock[0] > self.most)

    def covers(self, clock: Array) -> bool:
        """Whether every row of a segment fits every partial row."""
        return bool(clock[0] >= self.covered_from and clock[-1] <= self.covered_to)

    def up_to(self, upper: Array | None) -> Reach:
        """The part of it that does not go beyond `upper`."""
        return self if upper is None else Reach.of(self.low, np.minimum(self.high, upper))

    def within(self, own: Array, low: int, high: int) -> Reach:
        """The part of it whose lag behind each row's `own` clock is at least `low` and less than `high`."""
        oldest, newest = saturating_add(own, 1 - high), saturating_add(own, -low)
        return Reach.of(np.maximum(self.low, oldest), np.minimum(self.high, newest))


@dataclass(frozen=True, slots=True)
class Strata:
    """Which strata sampled rows look into: a share `throttle` of those with `length` ticks of the probed store's clock;
    `content` is a hash of each driver row. Or, `outside`, into the others.
    """

    length: int
    throttle: float
    seed: int
    content: Array
    outside: bool = False

    def holds(self, rows: Array, clock: Array) -> Array:
        """For pairs of a row by number and a stored row's clock, whether the row looks there."""
        drawn = draw(self.content[rows], self.seed, STRATUM, clock // self.length)
        return np.asarray((drawn < self.throttle) != self.outside)


@dataclass(frozen=True, slots=True)
class Search:
    """Partial rows, and where each may look: in event time, and on each row clock."""

    partial: Partial
    in_time: Reach
    by_clock: Mapping[str, Reach]


def whole_search(step: StepProbe, partial: Partial, stream: Source) -> Search:
    """Everything that fits."""
    return Search(partial, time_reach(step, partial, stream), _clock_reaches(partial, stream))


def harvested(search: Search, driver: str, stream: Source, lags: Lags) -> list[Search]:
    """What of a search lies in some ranges of lag."""
    if stream.window.rows is None:
        own, reach = search.partial.turn_us, search.in_time
        return [replace(search, in_time=reach.within(own, low, high)) for low, high in lags]
    own, reach = driver_clock(search.partial, driver, stream.name), search.by_clock[stream.name]
    return [
        replace(search, by_clock={**search.by_clock, stream.name: reach.within(own, low, high)}) for low, high in lags
    ]


def stratified(search: Search, view: View, strata: Strata) -> Search | None:
    """What of a search lies in the strata each row has drawn: one row a stratum. None if there is nothing."""
    rows_windowed = view.stream.window.rows is not None
    low, high = _stored_reach(search, view)
    first = low // strata.length
    counts = _strata_in_reach(low, high, strata)
    rows = np.repeat(np.arange(len(low)), counts)
    if not len(rows):
        return None
    numbers = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts) + first[rows]
    chosen = strata.holds(rows, numbers * strata.length)
    rows, numbers = rows[chosen], numbers[chosen]
    if not len(rows):
        return None
    begins = numbers * strata.length
    narrowed = Reach.of(np.maximum(low[rows], begins), np.minimum(high[rows], begins + (strata.length - 1)))
    time = search.in_time if rows_windowed else None
    by_clock = {name: Reach.of(held.low[rows], held.high[rows]) for name, held in search.by_clock.items()}
    if rows_windowed:
        by_clock[view.stream.name] = narrowed
    in_time = narrowed if time is None else Reach.of(time.low[rows], time.high[rows])
    return Search(search.partial.pick(rows), in_time, by_clock)


def are_many(search: Search, view: View, strata: Strata) -> bool:
    """Whether there are too many strata in reach to search one by one, as where far newer rows than a row's own are
    stored and strata are short.
    """
    counts = _strata_in_reach(*_stored_reach(search, view), strata)
    return bool(counts.sum(dtype=np.float64) > MOST_STRATA * len(counts))


def _stored_reach(search: Search, view: View) -> tuple[Array, Array]:
    """From where to where each row may look, on the clock that strata divide, no further than what is stored."""
    rows_windowed = view.stream.window.rows is not None
    reach = search.by_clock[view.stream.name] if rows_windowed else search.in_time
    clocks = [s.clocks[view.stream.name] if rows_windowed else s.time_us for s in view.segments]
    least, most = min(int(clock[0]) for clock in clocks), max(int(clock[-1]) for clock in clocks)
    return np.maximum(reach.low, least), np.minimum(reach.high, most)


def _strata_in_reach(low: Array, high: Array, strata: Strata) -> Array:
    return np.where(high >= low, high // strata.length - low // strata.length + 1, 0)


def hull(lags: Lags) -> tuple[int, int]:
    """From the least lag to the greatest, as one range."""
    return (lags[0][0], lags[-1][1])


def time_reach(step: StepProbe, partial: Partial, stream: Source) -> Reach:
    """Event times that fit: newest_p - w <= ts <= dies_p, and what conditions on the time column say."""
    low_us = np.full(len(partial), np.iinfo(np.int64).min)
    if stream.window.span_us is not None:
        low_us = saturating_add(partial.newest_us, -stream.window.span_us)
    high_us = partial.dies_us
    narrowed = step.narrow(partial)
    if narrowed is not None:
        low_us, high_us = np.maximum(low_us, narrowed[0]), np.minimum(high_us, narrowed[1])
    return Reach.of(low_us, high_us)


def driver_clock(partial: Partial, driver: str, counted: str) -> Array:
    """For each partial row, how many rows of `counted` its driver's row has counted."""
    segments = partial.views[driver].segments
    return gather([segment.clocks[counted] for segment in segments], partial.handles[driver])


def stratum_length(stream: Source, strata: int) -> int:
    """Ticks of a stratum of a stream's window: microseconds, or rows."""
    span = stream.window.span_us if stream.window.rows is None else stream.window.rows
    return max(1, (UNBOUNDED if span is None else span) // strata)


def _clock_reaches(partial: Partial, stream: Source) -> dict[str, Reach]:
    """Row numbers that fit, for each row-windowed stream: newest_p - rows < count <= dies_p."""
    reaches, windows = {}, row_windows(stream)
    for name, high in partial.dies_clock.items():
        low = np.full(len(partial), np.iinfo(np.int64).min)
        if name in windows:
            low = saturating_add(partial.newest_clock[name], 1 - windows[name])
        reaches[name] = Reach.of(low, high)
    return reaches
