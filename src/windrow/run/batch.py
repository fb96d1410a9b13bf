"""One batch: the new rows of every stream, driven along their paths through the stores.

    for each driver i, in the policy's order
        new rows of i ──step 1──▶ partial rows ──step 2──▶ … ──▶ results      probe.step proposes and decides
                        store of l₁              store of l₂                  run.partial holds members by reference

A stored row is visible to a driver's row iff its position is smaller. What was stored before this batch always is. Of
the batch's own rows: under the timestamp policy those with a smaller (event time, stream), which only moves the upper
end of the time range; under a buffer policy those of streams that drove before. Rows of one stream are never
compared. So each result has one member with the largest position, and is found exactly once, on that member's path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from windrow.plan.drivers import Order
from windrow.probe.gather import handles_of
from windrow.probe.ranges import intersect, row_ranges
from windrow.probe.step import StepProbe
from windrow.query.spec import Stream
from windrow.run.partial import Partial, View, first_partial, saturating_add
from windrow.run.program import Program
from windrow.store.operand import Array
from windrow.store.segment import Segment

BLOCK_ROWS = 1 << 20


@dataclass(frozen=True, slots=True)
class Position:
    """Which of the batch's own rows a driver sees: `order` is None under the timestamp policy."""

    driver: str
    order: Order | None
    streams: tuple[str, ...]

    def upper_us(self, target: str, turn_us: Array) -> Array | None:
        """The latest event time of a visible new row of `target`, for each driver row; None where it is not limited."""
        if self.order is not None:
            return None
        later = self.streams.index(target) > self.streams.index(self.driver)
        return saturating_add(turn_us, -1) if later else turn_us

    def sees(self, target: str) -> bool:
        """Whether any new row of `target` can be visible."""
        return self.order is None or self.order.index(target) < self.order.index(self.driver)


def run_batch(
    program: Program, stored: Mapping[str, Sequence[Segment]], fresh: Mapping[str, Segment], order: Order | None
) -> Iterator[Partial]:
    """The results of a batch, in blocks; `fresh` holds the new rows of each stream, `order` the order of buffers (None:
    by time).
    """
    views = {
        stream.name: View(
            stream, tuple(stored[stream.name]), fresh.get(stream.name) if len(fresh.get(stream.name, ())) else None
        )
        for stream in program.spec.streams
    }
    if any(not view.segments for view in views.values()):
        return
    names = tuple(views)
    for driver in order or names:
        new_rows = views[driver].fresh
        if new_rows is not None:
            position = Position(driver, order, names)
            yield from _follow(program.steps[driver], first_partial(views, driver, new_rows), position)


def _follow(steps: Sequence[StepProbe], partial: Partial, position: Position) -> Iterator[Partial]:
    """Take the remaining steps, depth first, in blocks that bound the memory of intermediate rows."""
    if not steps:
        yield partial
        return
    for block in probe_step(steps[0], partial, position):
        yield from _follow(steps[1:], block, position)


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


def probe_step(step: StepProbe, partial: Partial, position: Position) -> Iterator[Partial]:
    """One step: partial rows extended by each matching row of the step's store."""
    if len(partial) == 0:
        return
    view = partial.views[step.target]
    in_time, by_clock = time_reach(step, partial, view.stream), _clock_reaches(partial, view.stream)
    probing = step.begin(partial)
    found: list[tuple[Array, Array, Array, Mapping[str, Array]]] = []
    count = 0
    for number, segment in enumerate(view.segments):
        reach = in_time
        if segment is view.fresh:
            if not position.sees(step.target):
                continue
            reach = _up_to(in_time, position.upper_us(step.target, partial.turn_us))
        clocks = [(segment.time_us, reach), *((segment.clocks[name], by_clock[name]) for name in by_clock)]
        if any(part.excludes(clock) for clock, part in clocks):
            continue
        for pairs in probing.matches(segment, *_rows_in_reach(clocks)):
            members = {name: clock[pairs.row] for name, clock in segment.clocks.items()}
            found.append((pairs.probe, handles_of(number, pairs.row), segment.time_us[pairs.row], members))
            count += len(pairs.probe)
            if count >= BLOCK_ROWS:
                yield _extended(partial, view, found)
                found, count = [], 0
    if found:
        yield _extended(partial, view, found)


def time_reach(step: StepProbe, partial: Partial, stream: Stream) -> Reach:
    """Event times that fit: newest_p - w <= ts <= dies_p, and what conditions on the time column say."""
    low_us = np.full(len(partial), np.iinfo(np.int64).min)
    if stream.window.span_us is not None:
        low_us = saturating_add(partial.newest_us, -stream.window.span_us)
    high_us = partial.dies_us
    narrowed = step.narrow(partial)
    if narrowed is not None:
        low_us, high_us = np.maximum(low_us, narrowed[0]), np.minimum(high_us, narrowed[1])
    return Reach.of(low_us, high_us)


def _clock_reaches(partial: Partial, stream: Stream) -> dict[str, Reach]:
    """Row numbers that fit, for each row-windowed stream: newest_p - rows < count <= dies_p."""
    reaches = {}
    for name, high in partial.dies_clock.items():
        low = np.full(len(partial), np.iinfo(np.int64).min)
        if name == stream.name and stream.window.rows is not None:
            low = saturating_add(partial.newest_clock[name], 1 - stream.window.rows)
        reaches[name] = Reach.of(low, high)
    return reaches


def _up_to(reach: Reach, upper_us: Array | None) -> Reach:
    return reach if upper_us is None else Reach.of(reach.low, np.minimum(reach.high, upper_us))


def _rows_in_reach(clocks: Sequence[tuple[Array, Reach]]) -> tuple[Array, Array] | tuple[None, None]:
    """The row range of each partial row in a segment; (None, None) where it is the whole segment for all."""
    ranges: tuple[Array, Array] | None = None
    for clock, reach in clocks:
        if not reach.covers(clock):
            rows = row_ranges(clock, reach.low, reach.high)
            ranges = rows if ranges is None else intersect(ranges, rows)
    return (None, None) if ranges is None else ranges


def _extended(
    partial: Partial, view: View, found: Sequence[tuple[Array, Array, Array, Mapping[str, Array]]]
) -> Partial:
    probes, handles, times_us = (np.concatenate([part[k] for part in found]) for k in range(3))
    clocks = {name: np.concatenate([part[3][name] for part in found]) for name in found[0][3]}
    return partial.extend(view, probes, handles, times_us, clocks)
