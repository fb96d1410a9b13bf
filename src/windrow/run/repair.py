"""Repair: pieces that batches left out, run later, as if it had been then.

    piece (batch k, driver i, portion p, step j)
      driver's rows   those stored rows of i that came in batch k and whose draw falls into p (into a part of p)
      steps           before j as the portion took them, j outside of what it looked at, then everything
      visible         a stored row whose position is smaller: of an earlier batch, or of batch k and of a smaller turn,
                      which is (event time, stream), or under a buffer policy the place in that batch's order

So stored rows know the batch they came in, and windows keep what open pieces may need: the drivers' rows, and all that
reaches back from them. What came later is probed with the rest and left out by its position.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from windrow.control.ledger import Driven, Ledger, Piece, Written
from windrow.control.observation import Joined, PathTally
from windrow.control.pieces import Outlook, forecast, price, restricted_steps
from windrow.plan.bins import Lags, complement
from windrow.plan.cost import StepCost
from windrow.plan.plan import path_name
from windrow.plan.shedding import Portion, Shedding
from windrow.probe.gather import handles_of
from windrow.probe.pairs import Pairs
from windrow.query.spec import Stream
from windrow.run.batch import Leg, Position, Way, follow, leg_of, portion_of, shares
from windrow.run.counting import StepCount
from windrow.run.draw import PART, draw
from windrow.run.partial import Partial, View, first_partial, stored_partial
from windrow.run.program import Program
from windrow.store.operand import Array
from windrow.store.segment import Segment

FIRST_US = -(2**63)


@dataclass(frozen=True, slots=True)
class Then(Position):
    """The position of rows of an earlier batch."""

    program: Program
    batch: int

    def looks_into(self, target: str, segment: Segment, _is_fresh: bool) -> bool:
        first = segment.index("first batch", lambda: int(self.program.batches_in(target, segment).min()))
        return first < self.batch or (first == self.batch and self.sees(target))

    def visible(self, target: str, segment: Segment, pairs: Pairs, partial: Partial) -> Pairs:
        came = self.program.batches_in(target, segment)[pairs.row]
        visible = came < self.batch
        if self.sees(target) and not visible.all():
            upper_us = self.upper_us(target, partial.turn_us)
            same = came == self.batch
            visible |= same if upper_us is None else same & (segment.time_us[pairs.row] <= upper_us[pairs.probe])
        return pairs if visible.all() else Pairs(pairs.probe[visible], pairs.row[visible])


def left_out(
    written: Written, rows: Mapping[str, Mapping[int, int]], outlook: Mapping[str, Sequence[Outlook]]
) -> Iterator[Piece]:
    """The pieces of a batch with so many rows of each driver's portions."""
    shedding = written.shedding
    for driver, numbers in rows.items():
        for number, count in numbers.items():
            portion = shedding.of(driver)[number]
            path = outlook[path_name(driver, portion.alternative)]
            for step in restricted_steps(portion, shedding.throttle):
                each = forecast(portion, shedding.throttle, step, path)
                yield Piece(written.batch, driver, number, step, count, 0.0, count * each.results, each.work)


def prompt_s(
    written: Written,
    rows: Mapping[str, Mapping[int, int]],
    outlook: Mapping[str, Sequence[Outlook]],
    costs: Mapping[str, Sequence[StepCost]],
) -> float:
    """What the steps of the batch itself are predicted to take."""
    total_s = 0.0
    for driver, numbers in rows.items():
        for number, count in numbers.items():
            portion = written.shedding.of(driver)[number]
            name = path_name(driver, portion.alternative)
            work = forecast(portion, written.shedding.throttle, len(outlook[name]), outlook[name]).work
            total_s += count * price(work, costs[name])
    return total_s


def rows_of_portions(program: Program, driver: str, segment: Segment, shedding: Shedding) -> dict[int, int]:
    """How many of a driver's new rows are in each of its portions, by number; none where it has none."""
    if not shedding.of(driver):
        return {}
    view = View(program.spec.stream(driver), (), segment)
    found = shares(program, driver, first_partial({driver: view}, driver, segment), shedding)
    return {number: len(part) for number, part in found}


def driven(segment: Segment) -> Driven:
    """The new rows of a driver, as the ledger knows them."""
    return Driven(segment.first_us, segment.last_us, {name: int(clock[0]) for name, clock in segment.clocks.items()})


def needed_from(stream: Stream, cutoff_us: int, first_clock: int, ledger: Ledger) -> tuple[int, int]:
    """From when on rows of a window are needed, when open pieces need them too: by event time, and by its row clock."""
    oldest_us, window = ledger.oldest_us, stream.window
    if oldest_us is None:
        return cutoff_us, first_clock
    if window.span_us is not None:
        cutoff_us = min(cutoff_us, max(FIRST_US, oldest_us - window.span_us))
    if window.rows is not None:
        first_clock = min(first_clock, ledger.least_clocks[stream.name] - window.rows + 1)
    return cutoff_us, first_clock


@dataclass(frozen=True, slots=True)
class Errand:
    """A piece as it runs, and how the batch ran that it is of."""

    program: Program
    piece: Piece
    written: Written

    @property
    def portion(self) -> Portion:
        """The portion of the driver's rows."""
        return portion_of(self.program, self.piece.driver, self.piece.portion, self.written.shedding)

    @property
    def path(self) -> str:
        """The path that the rows take."""
        return path_name(self.piece.driver, self.portion.alternative)

    @property
    def position(self) -> Then:
        """The position of the rows, in their time."""
        names = tuple(self.program.layouts)
        return Then(self.piece.driver, self.written.order, names, self.program, self.piece.batch)

    def rows(self, views: Mapping[str, View]) -> Partial | None:
        """Those of the driver's rows that are in its window as it is seen here; None without any."""
        handles = self._came_in(views[self.piece.driver])
        if not len(handles):
            return None
        first = stored_partial(views, self.piece.driver, handles)
        portions = dict(shares(self.program, self.piece.driver, first, self.written.shedding))
        rows = portions.get(self.piece.portion)
        if rows is None or (self.piece.from_share <= 0 and self.piece.to_share >= 1):
            return rows
        drawn = draw(self.program.content_of(rows, self.piece.driver), self.written.shedding.seed, PART)
        chosen = np.flatnonzero((drawn >= self.piece.from_share) & (drawn < self.piece.to_share))
        return rows.pick(chosen) if len(chosen) else None

    def lags(self, step: int) -> Lags | None:
        """The lags that bound where a step looks, None where it may be anywhere; what is outside of lags may be."""
        return self.portion.lags[step] if step < self.piece.step else None

    def leg(self, step: int, partial: Partial, count: StepCount) -> Leg:
        """A step, as partial results of the rows take it."""
        shedding, portion = self.written.shedding, self.portion
        leg = replace(leg_of(self.program, self.piece.driver, portion, step, partial, shedding, None), count=count)
        if step < self.piece.step:
            return leg
        if step > self.piece.step:
            return replace(leg, lags=None, strata=None)
        if leg.strata is not None:
            return replace(leg, strata=replace(leg.strata, outside=True))
        return replace(leg, lags=complement(leg.lags or ()))

    def _came_in(self, view: View) -> Array:
        """Handles of the driver's rows of the batch."""
        rows = self.written.drivers[self.piece.driver]
        found = [np.zeros(0, np.int64)]
        for number, segment in enumerate(view.segments):
            first = int(np.searchsorted(segment.time_us, rows.first_us))
            after = int(np.searchsorted(segment.time_us, rows.last_us, side="right"))
            if first < after:
                came = np.flatnonzero(self._batches(segment)[first:after] == self.piece.batch)
                found.append(handles_of(number, came + first))
        return np.concatenate(found)

    def _batches(self, segment: Segment) -> Array:
        return self.program.batches_in(self.piece.driver, segment)


class Repair:
    """Pieces run over the windows as they are now; counts what that takes, path by path."""

    def __init__(
        self, program: Program, written: Mapping[int, Written], stored: Mapping[str, Sequence[Segment]]
    ) -> None:
        self.program = program
        self.written = written
        self.views = {s.name: View(s, tuple(stored[s.name]), None) for s in program.spec.streams}
        self.joined = Joined()

    def run(self, pieces: Sequence[Piece]) -> Iterator[Partial]:
        """The results of some pieces, in blocks."""
        for piece in pieces:
            yield from self._run(Errand(self.program, piece, self.written[piece.batch]))

    def _run(self, errand: Errand) -> Iterator[Partial]:
        if any(not view.segments for view in self.views.values()):
            return
        rows = errand.rows(self.views)
        if rows is None:
            return
        counts = tuple(StepCount() for _ in errand.portion.lags)
        way = Way(tuple(errand.leg(step, rows, count) for step, count in enumerate(counts)))
        results = 0
        for block in follow(way, 0, rows, errand.position):
            results += len(block)
            yield block
        tally = PathTally(len(rows), results, tuple(count.tally() for count in counts))
        self.joined += Joined(others={errand.path: tally})
