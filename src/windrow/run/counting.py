"""What a batch's probing did, counted while it runs: a clerk takes notes, the controller reads them.

For each path there are two pages: sampled rows, and all others. Results are looked at for where their members lay;
of many in one block only some are, each standing for several, so that counting stays a small part of the work. Where
rows were let go for memory, it is noted how much of what the drivers looked for was still there; where results are left
out, a driver's `Scale` weighs what its rows find.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from windrow.control.observation import Joined, PathTally, StepTally
from windrow.control.sample import Weights
from windrow.control.sift import Sift
from windrow.plan.bins import Bins
from windrow.plan.plan import Path, path_name
from windrow.plan.shedding import ALL, Portion, Shedding
from windrow.run.partial import Partial
from windrow.run.reach import driver_clock
from windrow.run.sifting import Sifter, Sifters
from windrow.run.tally import Tallying
from windrow.run.weighing import Scale, member_clock, member_lags, within
from windrow.store.operand import Array

MOST_SAMPLED, MOST_OTHERS = 1 << 16, 1 << 12

POINTS = 4


class Retained(Protocol):
    """What memory holds of rows, by their place on their stream's clock."""

    @property
    def lets_go(self) -> bool:
        """Whether any row that is still needed was let go."""

    def share(self, stream: str, clock: Array) -> Array:
        """The share of the rows at some places that is held."""

    def chance(self, clocks: Mapping[str, Array]) -> Array:
        """How likely rows of several streams, at these places, were all to be held."""


@dataclass
class StepCount:
    """One step's numbers so far."""

    probes: int = 0
    searched: int = 0
    candidates: int = 0
    matches: int = 0
    seconds: float = 0.0
    index_s: float = 0.0
    sifter: Sifter | None = None

    def tally(self) -> StepTally:
        return StepTally(self.probes, self.searched, self.candidates, self.matches, self.seconds, self.index_s)


@dataclass
class Page:
    """The notes on some rows of a driver; `bins` are those of each step's store. `escapes` are the portions of the
    driver's other rows: where sampled rows find what those would miss. `lost` estimates the results that rows let go
    for memory would have given. `scale` weighs results where some are left out. One that `learns` also notes what only
    a controller asks for.
    """

    driver: str
    targets: tuple[str, ...]
    bins: tuple[Bins, ...]
    most: int
    escapes: tuple[tuple[Portion, tuple[str, ...]], ...] = ()
    retained: Retained | None = None
    scale: Scale | None = None
    sampled: bool = False
    tallying: Tallying | None = None
    learns: bool = True
    drivers: int = 0
    results: int = 0
    missed: float = 0.0
    lost: float = 0.0

    def __post_init__(self) -> None:
        self.steps = tuple(StepCount() for _ in self.targets)
        self.lags = [np.zeros(bins.size) for bins in self.bins]
        self.missed_lags = [np.zeros(bins.size) for bins in self.bins]
        self.behind = [0] * len(self.targets)
        self.exposed = [] if self.retained is None else [np.zeros(bins.size) for bins in self.bins]

    @property
    def is_used(self) -> bool:
        """Whether anything was noted."""
        return bool(self.drivers or self.results or any(step.probes for step in self.steps))

    def set_out(self, first: Partial) -> None:
        """Count rows that set out."""
        self.drivers += len(first)
        if self.scale is not None:
            self.scale.drove(first, self.sampled)

    def drove(self, first: Partial) -> None:
        """Take notes on rows that set out, where the windows they look into are at hand."""
        self.set_out(first)
        self.exposes(first, {name: first.views[name].stream.window.rows is not None for name in self.targets})
        for step, target in enumerate(self.targets if self.bins and self.learns else ()):
            self.behind[step] += _newer(first, self.driver, target)

    def exposes(self, first: Partial, in_rows: Mapping[str, bool]) -> None:
        """Take notes on how much of what these rows look for is held; `in_rows` says which targets have row windows."""
        if self.retained is not None:
            for step, bins in enumerate(self.bins):
                target = self.targets[step]
                held = _held(self.retained, first, self.driver, target, bins, in_rows[target])
                self.exposed[step] += len(first) * held

    def found(self, partial: Partial) -> None:
        """Take notes on complete results."""
        count = len(partial)
        self.results += count
        if self.scale is not None:
            self.scale.found(partial, self.sampled, self.targets[0])
        if self.tallying is not None:
            self.tallying.found(partial, self.scale, self.sampled, self.targets[0])
        if not self.bins or not count:
            return
        if count > self.most:
            partial = partial.pick(np.arange(0, count, -(-count // self.most)))
        weight = count / len(partial)
        lags = [member_lags(partial, self.driver, target) for target in self.targets]
        if self.retained is not None and self.retained.lets_go:
            chance = self.retained.chance({target: member_clock(partial, target) for target in self.targets})
            self.lost += weight * float((1.0 / chance - 1.0).sum())
        by_target = dict(zip(self.targets, lags, strict=True))
        missed = weight * escaping(self.escapes, by_target) if self.escapes else None
        for step, bins in enumerate(self.bins):
            places = bins.place(lags[step])
            self.lags[step] += weight * np.bincount(places, minlength=bins.size)
            if missed is not None:
                self.missed_lags[step] += np.bincount(places, missed, minlength=bins.size)
        self.missed += 0.0 if missed is None else float(missed.sum())

    def tally(self) -> PathTally:
        return PathTally(
            self.drivers,
            self.results,
            tuple(step.tally() for step in self.steps),
            tuple(tuple(found.tolist()) for found in self.lags),
            self.missed,
            tuple(tuple(found.tolist()) for found in self.missed_lags),
            tuple(self.behind),
            tuple(tuple(held.tolist()) for held in self.exposed),
            self.lost,
        )


class Clerk:
    """Keeps the pages of a batch; `bins` says for each path the lag bins of its steps' stores (none: not noted).
    Results go on to `tallying`, if aggregates of them are asked for; `sifters` look at a few pairs, if anyone watches.
    """

    def __init__(
        self,
        paths: Iterable[Path],
        bins: Mapping[str, tuple[Bins, ...]],
        shedding: Shedding = ALL,
        retained: Retained | None = None,
        tallying: Tallying | None = None,
        sifters: Sifters | None = None,
        learns: bool = True,
    ) -> None:
        self.tallying = tallying
        self.sampled: dict[str, Page] = {}
        self.others: dict[str, Page] = {}
        self.scales: dict[str, Scale] = {}
        by_path = {path.name: path for path in paths}
        is_tree = any(path.into is not None for path in by_path.values())
        for name, path in by_path.items():
            escapes = tuple(
                (portion, by_path[path_name(path.driver, portion.alternative)].targets)
                for portion in shedding.of(path.driver)
                if not portion.sampled
            )
            # In a tree of joins nothing is sampled, so that there is nothing to weigh by.
            weights = None if is_tree else Weights.of(shedding, path.driver)
            if weights is not None and path.driver not in self.scales:
                self.scales[path.driver] = Scale(path.driver, weights, escapes, shedding.seed, shedding.strata)
            held, scale = bins.get(name, ()), self.scales.get(path.driver)
            self.sampled[name] = Page(
                path.driver, path.targets, held, MOST_SAMPLED, escapes, retained, scale, True, tallying, learns
            )
            self.others[name] = Page(
                path.driver, path.targets, held, MOST_OTHERS, (), retained, scale, False, tallying, learns
            )
            if sifters is not None:
                for number, step in enumerate(self.others[name].steps):
                    step.sifter = sifters.of(name, number)

    def page(self, path: str, sampled: bool) -> Page:
        return (self.sampled if sampled else self.others)[path]

    def joined(self) -> Joined:
        """The notes, as values."""
        return Joined(
            {path: page.tally() for path, page in self.sampled.items() if page.is_used},
            {path: page.tally() for path, page in self.others.items() if page.is_used},
            {driver: scale.sketch() for driver, scale in self.scales.items() if scale.rows or scale.emitted},
            sifts={path: found for path, page in self.others.items() if (found := _sifts(page))},
        )


def _sifts(page: Page) -> tuple[Sift, ...]:
    """What the sifters of a path's steps found; empty where nothing was within reach."""
    found = tuple(Sift() if step.sifter is None else step.sifter.sift for step in page.steps)
    return found if any(sift.met for sift in found) else ()


def escaping(portions: Sequence[tuple[Portion, tuple[str, ...]]], lags: Mapping[str, Array]) -> Array:
    """The share of rows in some portions, each with the targets of its path, that would not have found results with
    these lags.
    """
    total = sum(portion.share for portion, _ in portions)
    found = np.zeros(len(next(iter(lags.values()))))
    for portion, targets in portions:
        inside = np.ones(len(found), np.bool_)
        for target, ranges in zip(targets, portion.lags, strict=True):
            if ranges is not None:
                inside &= within(lags[target], ranges)
        found += portion.share * inside
    return np.asarray(1.0 - found / total)


def _held(retained: Retained, first: Partial, driver: str, target: str, bins: Bins, in_rows: bool) -> Array:
    """Which share of the rows in each lag bin of a store is held, as seen from about the middle of a driver's rows."""
    if not retained.lets_go or not len(first):
        return np.ones(bins.size)
    own = int(np.median(driver_clock(first, driver, target) if in_rows else first.turn_us))
    edges = np.maximum(bins.edges, -bins.window)
    parts = (np.arange(POINTS) + 0.5) / POINTS
    lags = (edges[:-1, None] + parts * np.diff(edges)[:, None]).astype(np.int64)
    return np.asarray(retained.share(target, own - lags.ravel()).reshape(lags.shape).mean(axis=1))


def _newer(first: Partial, driver: str, target: str) -> int:
    """How many rows of a store are newer than each of a driver's new rows, all together."""
    view = first.views[target]
    in_rows = view.stream.window.rows is not None
    own = driver_clock(first, driver, target) if in_rows else first.turn_us
    oldest = int(own.min())
    newer = 0
    for segment in view.stored:
        clock = segment.clocks[target] if in_rows else segment.time_us
        if int(clock[-1]) > oldest:
            newer += int((len(clock) - np.searchsorted(clock, own, side="right")).sum())
    return newer
