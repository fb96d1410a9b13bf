"""What a driver's rows find in a batch, weighed while it is found: the sketch that estimates of what was left out need.

    rows that set out    sampled: one bucket each       others: counted
    results              sampled rows': which portions of the others would find it too ─▶ weight ─▶ bucket of its row,
                         bucket of its row's stratum    others': counted

Only results of sampled rows are looked at, which are few; `windrow.control.sample` says what the sums mean.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from windrow.control.sample import BUCKETS, Sample, Sketch, Weights
from windrow.errors import PlanError
from windrow.plan.bins import Lags
from windrow.plan.shedding import Portion
from windrow.probe.gather import gather
from windrow.query.spec import Stream
from windrow.run.draw import ROW_BUCKET, STRATUM_BUCKET, draw
from windrow.run.partial import Partial
from windrow.run.program import row_id
from windrow.run.reach import driver_clock, stratum_length
from windrow.store.operand import Array

Floats = NDArray[np.float64]
Reaches = Sequence[tuple[Portion, tuple[str, ...]]]
"""Portions, each with the stores that its path visits, in order."""


class Scale:
    """Weighs what one driver's rows find in a batch; `reaches` are the portions of rows that are not sampled."""

    def __init__(self, driver: str, weights: Weights, reaches: Reaches, seed: int, strata: int) -> None:
        self.driver = driver
        self.weights = weights
        self.reaches = reaches
        self.seed = seed
        self.strata = strata
        self.rows = self.sampled = self.emitted = self.matches = 0
        self.held = 0.0
        self.by_row = np.zeros((3, BUCKETS))
        several = len(reaches) > 1
        self.by_row_and_portion = np.zeros((len(reaches) if several else 0, BUCKETS))
        self.by_stratum = np.zeros((1 + len(reaches), BUCKETS))

    def drove(self, first: Partial, sampled: bool) -> None:
        """Rows set out."""
        self.rows += len(first)
        if sampled:
            self.sampled += len(first)
            self.by_row[0] += _in_buckets(*self._row_buckets(first), np.ones(len(first)))

    def found(self, partial: Partial, sampled: bool, target: str) -> None:
        """Complete results, of rows that looked into strata of the store `target`."""
        self.emitted += len(partial)
        if not sampled or not len(partial) or not self.weights.tells:
            return
        self.matches += len(partial)
        weights = self.weights
        full = 1.0 / weights.throttle
        held = self.held_of(partial)
        held_mean = np.array(weights.shares) @ held if len(held) else np.zeros(len(partial))
        self.held += float(held_mean.sum())
        buckets, signs = self._row_buckets(partial)
        self.by_row[1] += full * _in_buckets(buckets, signs, np.ones(len(partial)))
        self.by_row[2] += _in_buckets(buckets, signs, held_mean)
        for number in range(len(self.by_row_and_portion)):
            self.by_row_and_portion[number] += _in_buckets(buckets, signs, held[number])
        if weights.throttle < 1:
            buckets, signs = self._stratum_buckets(partial, target)
            self.by_stratum[0] += full * _in_buckets(buckets, signs, np.ones(len(partial)))
            for number, each in enumerate(held, start=1):
                self.by_stratum[number] += _in_buckets(buckets, signs, each)

    def held_of(self, partial: Partial) -> Floats:
        """What each portion would find of sampled rows' results: v of each."""
        scaled = self.weights.others / self.weights.throttle
        return scaled * reached(self.reaches, partial, self.driver)

    def sketch(self) -> Sketch:
        """All that was found, as a value."""
        weights = self.weights
        if not weights.tells:
            return Sketch(Sample(rows=self.rows, emitted=self.emitted))
        full = self.matches / weights.throttle
        sums = Sample(
            rows=self.rows,
            sampled=self.sampled,
            due=weights.share * self.rows,
            emitted=self.emitted,
            matches=self.matches,
            kept=weights.others * (self.emitted - self.matches),
            full=full,
            held=self.held,
            heaviest=weights.heaviest * self.matches,
        )
        by_portion = self.by_row_and_portion
        root = np.sqrt(np.array(weights.shares))[:, None]
        thin = np.sqrt(1 - weights.throttle)
        strata = thin * np.vstack([self.by_stratum[:1], root * self.by_stratum[1:]])
        # Which portion a row is in is drawn as well: the spread of what portions find is a variance of its own.
        less = root * by_portion if len(by_portion) else by_portion
        strata = np.vstack([strata, self.by_row[2:]]) if len(by_portion) else strata
        return Sketch(sums, _lines(self.by_row), _lines(strata), _lines(less))

    def _row_buckets(self, partial: Partial) -> tuple[Array, Floats]:
        return _buckets(draw(self.content(partial), self.seed, ROW_BUCKET))

    def _stratum_buckets(self, partial: Partial, target: str) -> tuple[Array, Floats]:
        numbers = member_clock(partial, target) // stratum_length(partial.views[target].stream, self.strata)
        return _buckets(draw(self.content(partial), self.seed, STRATUM_BUCKET, numbers))

    def content(self, partial: Partial) -> Array:
        """What tells the driver's rows apart."""
        stream = partial.views[self.driver].stream
        operand = partial.find(row_id(stream.column(stream.time))) if isinstance(stream, Stream) else None
        if operand is None:
            raise PlanError("rows have no hash to draw by", place=self.driver, hint="make the program with sheds=True")
        return operand.values


def reached(reaches: Reaches, partial: Partial, driver: str) -> Floats:
    """For each portion 1 where its rows would find a result, else 0."""
    found = np.ones((len(reaches), len(partial)))
    lags: dict[str, Array] = {}
    for number, (portion, targets) in enumerate(reaches):
        for target, ranges in zip(targets, portion.lags, strict=True):
            if ranges is not None:
                if target not in lags:
                    lags[target] = member_lags(partial, driver, target)
                found[number] *= within(lags[target], ranges)
    return found


def within(lags: Array, ranges: Lags) -> Array:
    """Which lags lie in some of the ranges."""
    inside = np.zeros(len(lags), np.bool_)
    for low, high in ranges:
        inside |= (lags >= low) & (lags < high)
    return inside


def member_clock(partial: Partial, target: str) -> Array:
    """The event time of the member of `target`; of a row window its row number."""
    view = partial.views[target]
    in_rows = view.stream.window.rows is not None
    clocks = [segment.clocks[target] if in_rows else segment.time_us for segment in view.segments]
    return gather(clocks, partial.handles[target])


def member_lags(partial: Partial, driver: str, target: str) -> Array:
    """How much older the member of `target` is than the driver's row: in microseconds, or in rows of a row window."""
    in_rows = partial.views[target].stream.window.rows is not None
    own = driver_clock(partial, driver, target) if in_rows else partial.turn_us
    return np.asarray(own - member_clock(partial, target))


def _buckets(drawn: Floats) -> tuple[Array, Floats]:
    """A bucket and a sign from each draw."""
    numbers = (drawn * (2 * BUCKETS)).astype(np.int64)
    return numbers >> 1, np.asarray(1.0 - 2.0 * (numbers & 1), np.float64)


def _in_buckets(buckets: Array, signs: Floats, values: Floats) -> Floats:
    return np.asarray(np.bincount(buckets, signs * values, minlength=BUCKETS), np.float64)


def _lines(rows: Sequence[Floats] | Floats) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row.tolist()) for row in rows)
