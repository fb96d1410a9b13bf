"""A tree of joins whose states are purged by insertion, played in small steps of time: where staleness comes from.

    a step of time:   rows arrive ── some may probe ──▶ pairs with rows of the partner's state ── some may go on ──▶ …
                      all are stored                    the results of the root are looked at: how old are their parts?

A state holds a fixed number of rows; a new one pushes out the oldest. A state into which few rows go keeps rows for
long, and results made of them are stale. Which rows match is drawn: a probe finds as many rows of the partner's state
as its productivity says, any of them. Rows that may go on are drawn from those found. Results are sampled, and weighted
by their number.

At the start the windows of the streams are full; inner states hold rows that are infinitely old, as of a plan that has
been starved for long: what is looked at, after `warm_up_s`, are states that were refilled since, or never are.

>>> from windrow.plan.directions import Join, State, stream
>>> tree = Join(Join(stream("a", 50, 100, 0.1), stream("b", 50, 100, 0.1), State(100, 0.1)), stream("c", 50, 100, 0.1))
>>> clock = Clock(step_s=0.1, warm_up_s=10, measured_s=5)
>>> starved = stale_shares(tree, {"c": 50.0}, [{"a": 3.0, "b": 3.0}], clock, np.random.default_rng(1))
>>> refreshed = stale_shares(tree, {"c": 50.0, "a": 20.0, "(a b)": 150.0}, [{"a": 3.0, "b": 3.0}], clock,
...                          np.random.default_rng(1))
>>> starved[0], round(refreshed[0], 2)
(1.0, 0.0)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from windrow.plan.directions import Join, Step, Stream, joins, paths

Floats = NDArray[np.float64]
SAMPLED = 64
"""Results looked at, for each direction of the root and step of time."""
KEPT_S = 1.0
"""How long an allowance that was not used may still be: inner joins find many rows at once, or none."""


@dataclass(frozen=True, slots=True)
class Clock:
    """How finely and for how long time is played."""

    step_s: float
    warm_up_s: float
    measured_s: float


@dataclass(slots=True)
class Ring:
    """The rows of a state: when each of its parts happened, one column a stream; the oldest is overwritten first."""

    happened_s: Floats
    next: int = 0

    def insert(self, rows: Floats) -> None:
        """Put rows in place of the oldest."""
        size = len(self.happened_s)
        places = (self.next + np.arange(len(rows))) % size if size else np.zeros(0, np.int64)
        if size:
            self.happened_s[places[-size:]] = rows[-size:]
            self.next = (self.next + len(rows)) % size


@dataclass(slots=True)
class _Player:
    """All states and what may still be done: allowances that were not a whole row are kept for later."""

    streams: tuple[Stream, ...]
    joins: tuple[Join, ...]
    allowed_hz: Mapping[str, float]
    random: np.random.Generator
    states: dict[str, Ring]
    credit: dict[str, float] = field(default_factory=dict)

    def step(self, begin_s: float, step_s: float) -> tuple[list[Floats], list[float]]:
        """Play a step of time; the sampled results of both directions of the root, and how many they stand for."""
        offered = {stream.name: self._arrivals(number, begin_s, step_s) for number, stream in enumerate(self.streams)}
        counts = {name: float(len(rows)) for name, rows in offered.items()}
        for join in self.joins:
            sides = (Step(join.left, join.right), Step(join.right, join.left))
            probing = [self._probing(step, offered, counts, step_s) for step in sides]
            found = [rows * step.productivity for (_, rows), step in zip(probing, sides, strict=True)]
            if join is self.joins[-1]:
                samples = [self._pairs(rows, step, SAMPLED) for (rows, _), step in zip(probing, sides, strict=True)]
                self._store(sides, offered, probing)
                return samples, found
            wanted = int(min(sum(found), self._credit(str(join), step_s) + 1, join.state.rows + 1))
            split = self.random.binomial(wanted, found[0] / sum(found)) if sum(found) > 0 else 0
            sizes = (split, wanted - split)
            made = [self._pairs(rows, step, size) for (rows, _), step, size in zip(probing, sides, sizes, strict=True)]
            offered[str(join)] = self.random.permutation(np.concatenate(made))
            counts[str(join)] = sum(found)
            self._store(sides, offered, probing)
        return [], []

    def _arrivals(self, number: int, begin_s: float, step_s: float) -> Floats:
        stream = self.streams[number]
        rows = np.full((int(self.random.poisson(stream.rate_hz * step_s)), len(self.streams)), np.nan)
        rows[:, number] = np.sort(self.random.uniform(begin_s, begin_s + step_s, len(rows)))
        return rows

    def _probing(
        self, step: Step, offered: Mapping[str, Floats], counts: Mapping[str, float], step_s: float
    ) -> tuple[Floats, float]:
        """The rows of a node that may probe now, or as many of them as are looked at, and how many there are."""
        name = str(step.node)
        credit = self._credit(name, step_s)
        rows = float(int(min(credit, counts[name])))
        self.credit[name] = min(credit - rows, 1.0 + self.allowed_hz.get(name, 0.0) * KEPT_S)
        return offered[name][: int(rows)], rows

    def _credit(self, name: str, step_s: float) -> float:
        """How many rows of a node may probe by the end of this step."""
        return self.credit.get(name, 0.0) + self.allowed_hz.get(name, 0.0) * step_s

    def _pairs(self, rows: Floats, step: Step, size: int) -> Floats:
        """Random pairs of probing rows and rows of the partner's state."""
        stored = self.states[str(step.partner)].happened_s
        if not len(rows) or not len(stored):
            return np.zeros((0, len(self.streams)))
        here = rows[self.random.integers(len(rows), size=size)]
        there = stored[self.random.integers(len(stored), size=size)]
        return np.where(np.isnan(here), there, here)

    def _store(
        self, sides: tuple[Step, Step], offered: Mapping[str, Floats], probing: Sequence[tuple[Floats, float]]
    ) -> None:
        """All rows of streams, and of joins those that may probe."""
        for step, (rows, _) in zip(sides, probing, strict=True):
            self.states[str(step.node)].insert(offered[str(step.node)] if isinstance(step.node, Stream) else rows)


def stale_shares(
    tree: Join,
    allowed_hz: Mapping[str, float],
    freshness_s: Sequence[Mapping[str, float]],
    clock: Clock,
    random: np.random.Generator,
) -> tuple[float, ...]:
    """The share of results with a part older than allowed, for each of several freshness; 0 where there are none."""
    streams = tuple(path.driver for path in paths(tree))
    names = tuple(stream.name for stream in streams)
    player = _Player(streams, joins(tree), allowed_hz, random, _states(tree, names))
    limits_s = np.array([[asked.get(name, np.inf) for name in names] for asked in freshness_s])
    stale, results = np.zeros(len(limits_s)), 0.0
    for number in range(round((clock.warm_up_s + clock.measured_s) / clock.step_s)):
        samples, found = player.step(number * clock.step_s, clock.step_s)
        if number * clock.step_s < clock.warm_up_s:
            continue
        for sample, count in zip(samples, found, strict=True):
            if len(sample) and count > 0:
                ages_s = sample.max(axis=1, keepdims=True) - sample
                stale += count * (ages_s > limits_s[:, None, :]).any(axis=2).mean(axis=1)
                results += count
    return tuple((stale / results).tolist()) if results > 0 else (0.0,) * len(limits_s)


def _states(tree: Join, names: tuple[str, ...]) -> dict[str, Ring]:
    """Full windows of streams, and inner states that hold rows as old as can be."""
    states = {}
    for number, path in enumerate(paths(tree)):
        rows = np.full((max(1, round(path.driver.state.rows)), len(names)), np.nan)
        rows[:, number] = -np.arange(len(rows), 0, -1) / path.driver.rate_hz
        states[path.driver.name] = Ring(rows)
    beneath: dict[str, set[int]] = {name: {number} for number, name in enumerate(names)}
    for join in joins(tree):
        beneath[str(join)] = beneath[str(join.left)] | beneath[str(join.right)]
        rows = np.full((round(join.state.rows), len(names)), np.nan)
        rows[:, sorted(beneath[str(join)])] = -np.inf
        states[str(join)] = Ring(rows)
    return states
