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
from windrow.probe.ranges import intersect, row_ranges
from windrow.probe.step import StepProbe
from windrow.query.spec import Stream
from windrow.run.partial import Partial, View, first_partial, references, saturating_add
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
        """The latest event time of a visible new row of `target`, for each driver row; None where all are visible."""
        if self.order is not None:
            return (
                None
                if self.order.index(target) < self.order.index(self.driver)
                else np.full(len(turn_us), np.iinfo(np.int64).min)
            )
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
    for block in _probe(steps[0], partial, position):
        yield from _follow(steps[1:], block, position)


def _probe(step: StepProbe, partial: Partial, position: Position) -> Iterator[Partial]:
    """One step: partial rows extended by each matching row of the step's store."""
    view = partial.views[step.target]
    low_us, high_us = _time_range(step, partial, view.stream)
    probing = step.begin(partial)
    found: list[tuple[Array, Array, Array, Mapping[str, Array]]] = []
    count = 0
    for number, segment in enumerate(view.segments):
        own = segment is view.fresh
        if own and not position.sees(step.target):
            continue
        upper = position.upper_us(step.target, partial.turn_us) if own else None
        window = _rows_in_reach(
            segment, partial, view.stream, low_us, high_us if upper is None else np.minimum(high_us, upper)
        )
        if window is None:
            continue
        for pairs in probing.matches(segment, *window):
            clocks = {name: clock[pairs.row] for name, clock in segment.clocks.items()}
            found.append((pairs.probe, references(number, pairs.row), segment.time_us[pairs.row], clocks))
            count += len(pairs.probe)
            if count >= BLOCK_ROWS:
                yield _extended(partial, view, found)
                found, count = [], 0
    if found:
        yield _extended(partial, view, found)


def _time_range(step: StepProbe, partial: Partial, stream: Stream) -> tuple[Array, Array]:
    """The event times of the step's store that fit each partial row: newest_p - w <= ts <= dies_p, and what conditions
    on time say.
    """
    low_us = np.full(len(partial), np.iinfo(np.int64).min)
    if stream.window.span_us is not None:
        low_us = saturating_add(partial.newest_us, -stream.window.span_us)
    high_us = partial.dies_us
    narrowed = step.narrow(partial)
    if narrowed is not None:
        low_us, high_us = np.maximum(low_us, narrowed[0]), np.minimum(high_us, narrowed[1])
    return low_us, high_us


def _rows_in_reach(
    segment: Segment, partial: Partial, stream: Stream, low_us: Array, high_us: Array
) -> tuple[Array | None, Array | None] | None:
    """The row range of each partial row in a segment; (None, None) where it is the whole segment for all, None where it
    is empty.
    """
    if len(partial) == 0 or segment.last_us < low_us.min() or segment.first_us > high_us.max():
        return None
    bounds = (
        []
        if segment.first_us >= low_us.max() and segment.last_us <= high_us.min()
        else [(segment.time_us, low_us, high_us)]
    )
    for name, clock in segment.clocks.items():
        low, high = np.full(len(partial), np.iinfo(np.int64).min), partial.dies_clock[name]
        if name == stream.name and stream.window.rows is not None:
            low = saturating_add(partial.newest_clock[name], 1 - stream.window.rows)
        if clock[0] < low.max() or clock[-1] > high.min():
            bounds.append((clock, low, high))
    ranges: tuple[Array, Array] | None = None
    for clock, low, high in bounds:
        more = row_ranges(clock, low, high)
        ranges = more if ranges is None else intersect(ranges, more)
    return (None, None) if ranges is None else ranges


def _extended(
    partial: Partial, view: View, found: Sequence[tuple[Array, Array, Array, Mapping[str, Array]]]
) -> Partial:
    probes, handles, times_us = (np.concatenate([part[k] for part in found]) for k in range(3))
    clocks = {name: np.concatenate([part[3][name] for part in found]) for name in found[0][3]}
    return partial.extend(view, probes, handles, times_us, clocks)
