"""What a batch's probing did, counted while it runs: a clerk takes notes, the controller reads them.

For each path there are two pages: sampled rows, and all others. Results are looked at for where their members lay;
of many in one block only some are, each standing for several, so that counting stays a small part of the work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from windrow.control.observation import Joined, PathTally, StepTally
from windrow.plan.bins import Bins
from windrow.plan.plan import Path, path_name
from windrow.plan.shedding import ALL, Portion, Shedding
from windrow.probe.gather import gather
from windrow.run.partial import Partial
from windrow.run.reach import driver_clock
from windrow.store.operand import Array

MOST_SAMPLED, MOST_OTHERS = 1 << 16, 1 << 12


@dataclass
class StepCount:
    """One step's numbers so far."""

    probes: int = 0
    searched: int = 0
    candidates: int = 0
    matches: int = 0
    seconds: float = 0.0

    def tally(self) -> StepTally:
        return StepTally(self.probes, self.searched, self.candidates, self.matches, self.seconds)


@dataclass
class Page:
    """The notes on some rows of a driver; `bins` are those of each step's store. `escapes` are the portions of the
    driver's other rows: where sampled rows find what those would miss.
    """

    driver: str
    targets: tuple[str, ...]
    bins: tuple[Bins, ...]
    most: int
    escapes: tuple[tuple[Portion, tuple[str, ...]], ...] = ()
    drivers: int = 0
    results: int = 0
    missed: float = 0.0

    def __post_init__(self) -> None:
        self.steps = tuple(StepCount() for _ in self.targets)
        self.lags = [np.zeros(bins.size) for bins in self.bins]
        self.missed_lags = [np.zeros(bins.size) for bins in self.bins]
        self.behind = [0] * len(self.targets)

    @property
    def is_used(self) -> bool:
        """Whether anything was noted."""
        return bool(self.drivers or self.results or any(step.probes for step in self.steps))

    def drove(self, first: Partial) -> None:
        """Take notes on rows that set out."""
        self.drivers += len(first)
        for step, target in enumerate(self.targets if self.bins else ()):
            self.behind[step] += _newer(first, self.driver, target)

    def found(self, partial: Partial) -> None:
        """Take notes on complete results."""
        count = len(partial)
        self.results += count
        if not self.bins or not count:
            return
        if count > self.most:
            partial = partial.pick(np.arange(0, count, -(-count // self.most)))
        weight = count / len(partial)
        lags = [member_lags(partial, self.driver, target) for target in self.targets]
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
        )


class Clerk:
    """Keeps the pages of a batch; `bins` says for each path the lag bins of its steps' stores (none: not noted)."""

    def __init__(self, paths: Iterable[Path], bins: Mapping[str, tuple[Bins, ...]], shedding: Shedding = ALL) -> None:
        self.sampled: dict[str, Page] = {}
        self.others: dict[str, Page] = {}
        by_path = {path.name: path for path in paths}
        for name, path in by_path.items():
            escapes = tuple(
                (portion, by_path[path_name(path.driver, portion.alternative)].targets)
                for portion in shedding.of(path.driver)
                if not portion.sampled
            )
            held = bins.get(name, ())
            self.sampled[name] = Page(path.driver, path.targets, held, MOST_SAMPLED, escapes)
            self.others[name] = Page(path.driver, path.targets, held, MOST_OTHERS)

    def page(self, path: str, sampled: bool) -> Page:
        return (self.sampled if sampled else self.others)[path]

    def joined(self) -> Joined:
        """The notes, as values."""
        return Joined(
            {path: page.tally() for path, page in self.sampled.items() if page.is_used},
            {path: page.tally() for path, page in self.others.items() if page.is_used},
        )


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
                within = np.zeros(len(found), np.bool_)
                for low, high in ranges:
                    within |= (lags[target] >= low) & (lags[target] < high)
                inside &= within
        found += portion.share * inside
    return np.asarray(1.0 - found / total)


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


def member_lags(partial: Partial, driver: str, target: str) -> Array:
    """How much older the member of `target` is than the driver's row: in microseconds, or in rows of a row window."""
    view = partial.views[target]
    if view.stream.window.rows is not None:
        held = gather([segment.clocks[target] for segment in view.segments], partial.handles[target])
        return np.asarray(driver_clock(partial, driver, target) - held)
    held = gather([segment.time_us for segment in view.segments], partial.handles[target])
    return np.asarray(partial.turn_us - held)
