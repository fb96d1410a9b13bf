"""What is learned of where matches lie: for each direction, how many results a row gives, and at which lags.

    sampled rows    everything, thinly     what the other rows miss      missed / z      a row, by lag bin
    other rows      what the plan says     what they find                found           a row, by lag bin
                                                                         ------
                                                                         expected results a row, by lag bin

The two add up to what a row would find without any restriction: what the plan lets rows find is counted on nearly all
rows, so it is known well, and only the rest is estimated from the sampled ones (window shredding, section V-B). What is
believed of bins that little is known of is said in `windrow.control.belief`.

Histograms are kept for each direction and store, not for each stream: a result belongs to one direction and is counted
once a step, which is no more work than the paper's m histograms, and it needs no assumption that lags are independent
(docs/design/0003). Old counts fade with a half-life; they fade at once when what is found is not what was expected.

A direction may have several paths, which visit the stores in different orders. Lags belong to the store, whatever the
order; how many rows pass the steps depends on which stores were visited, and is kept path by path.

>>> learned = Learned.empty({"a": ("b",)}, {"b": 4})
>>> sample = PathTally(10, 6, (StepTally(10, 400, 400, 6),), ((0.0, 6.0, 0.0, 0.0),), 6.0, ((0.0, 6.0, 0.0, 0.0),))
>>> learned = learned.after({"a": sample}, {}, throttle=0.5, keep=1.0)
>>> round(learned.results_a_row, 3), int(np.argmax(learned.scores()["b"])), learned.passing("a")
(1.2, 1, 0.015)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.control.belief import believed, clustered
from windrow.control.observation import PathTally, StepTally

Floats = NDArray[np.float64]

PRIOR_RESULTS = 0.25
"""Sampled results that every direction is taken to have missed before any were seen, spread over all bins: so that one
that was never seen to give results is not given up for good."""
FAR = 2.0
AVERAGED = 0.25
"""Of an average bin's results, how many every bin is taken to have besides, where it is asked how they were found."""
LEAST = 1e-300
_NUMBERS = ("probes", "searched", "candidates", "matches")


@dataclass(frozen=True, slots=True)
class Learned:
    """What is known of one direction. All numbers are sums over driver rows, faded.

    `found` and `missed` hold results by store and lag bin; `drivers` is the rows they stand for, `sampled` how much of
    them was sampled (rows times throttle). `steps` are the tallies of sampled rows, for each of the `paths`; `newer`
    counts rows of each store that were newer than the driver's.
    """

    paths: Mapping[str, tuple[str, ...]]
    drivers: float
    sampled: float
    found: Mapping[str, tuple[float, ...]]
    missed: Mapping[str, tuple[float, ...]]
    steps: Mapping[str, tuple[tuple[float, ...], ...]]
    newer: Mapping[str, float]

    @staticmethod
    def empty(paths: Mapping[str, tuple[str, ...]], bins: Mapping[str, int]) -> Learned:
        """Nothing known of a direction with these paths, to stores with so many bins."""
        nothing = {target: (0.0,) * count for target, count in bins.items()}
        steps = {path: ((0.0,) * len(_NUMBERS),) * len(targets) for path, targets in paths.items()}
        return Learned(dict(paths), 0.0, 0.0, nothing, nothing, steps, dict.fromkeys(bins, 0.0))

    def after(
        self,
        sampled: Mapping[str, PathTally],
        others: Mapping[str, PathTally],
        throttle: float,
        keep: float,
        held: float = 1.0,
    ) -> Learned:
        """With what an interval added, path by path; `keep` is the share of what was known that stays, `held` the share
        of results whose members were let in: each that is seen stands for 1 / `held` of them.
        """
        drove, thin = _drivers(others), _drivers(sampled)
        rows, share = drove + thin, thin * throttle
        if not rows:
            return self
        alone = not drove
        found, missed = _faded(self.found, keep), _faded(self.missed, keep)
        for name, tally in others.items():
            _add(found, self.paths[name], tally.lags, rows / drove / held)
        for name, tally in sampled.items() if share else ():
            _add(missed, self.paths[name], tally.lags if alone else tally.missed_lags, rows / share / held)
        newer = {target: keep * count for target, count in self.newer.items()}
        for name, tally in (*sampled.items(), *others.items()):
            for target, count in zip(self.paths[name], tally.behind, strict=False):
                newer[target] += count
        steps = {
            name: tuple(
                tuple(keep * old + getattr(step, number) for old, number in zip(line, _NUMBERS, strict=True))
                for line, step in zip(lines, _steps(sampled.get(name), len(lines)), strict=True)
            )
            for name, lines in self.steps.items()
        }
        return Learned(
            self.paths,
            keep * self.drivers + rows,
            keep * self.sampled + share,
            {target: tuple(line.tolist()) for target, line in found.items()},
            {target: tuple(line.tolist()) for target, line in missed.items()},
            steps,
            newer,
        )

    @property
    def results_a_row(self) -> float:
        """How many results a driver row gives when it may look everywhere."""
        target = next(iter(self.found))
        return (sum(self.found[target]) + sum(self.missed[target])) / self.drivers if self.drivers else 0.0

    def counted(self) -> dict[str, Floats]:
        """For each store, the results a driver row gives by lag bin, as far as they were counted."""
        return {
            target: (np.array(found) + self.missed[target]) / max(self.drivers, LEAST)
            for target, found in self.found.items()
        }

    def scores(self, widths: Mapping[str, Sequence[float]] | None = None) -> dict[str, Floats]:
        """For each store, the results a driver row is believed to give by lag bin; `widths` are the shares of the
        store's rows in each bin (None: all alike).
        """
        prior = PRIOR_RESULTS / self.sampled if self.sampled else 0.0
        clusters = clustered(self.results_a_row, len(self.found))
        scores = {}
        for target, counted in self.counted().items():
            width = np.ones(len(counted)) if widths is None else np.asarray(widths[target], np.float64)
            scores[target] = believed(counted, self._information(target), width, clusters) + prior * width / width.sum()
        return scores

    def _information(self, target: str) -> Floats:
        """How many rows' worth of looking went into each bin of a store: all rows where results were found by any row,
        only the sampled ones where they alone found them, and an average where nothing was found.
        """
        found, missed = np.array(self.found[target]), np.array(self.missed[target])
        heavy = missed * (self.drivers / max(self.sampled, LEAST))
        total = float((found + missed).sum())
        if total <= 0:
            return np.full(len(found), self.sampled)
        usual = AVERAGED * total / len(found)
        weights = (found + heavy + usual * float((found + heavy).sum()) / total) / (found + missed + usual)
        return np.asarray(self.drivers / weights)

    def passing(self, path: str, step: int = 0) -> float | None:
        """The share of stored rows in reach that match at a step of a path; None where nothing was looked at."""
        _, searched, _, matches = self.steps[path][step]
        return matches / searched if searched else None

    def false_share(self, path: str, step: int = 0) -> float:
        """The share of stored rows in reach that are looked at one by one and do not match."""
        _, searched, candidates, matches = self.steps[path][step]
        return max(0.0, candidates - matches) / searched if searched else 1.0

    def newer_a_row(self, target: str) -> float:
        """How many rows of a store are newer than a driver row, on average."""
        return self.newer[target] / self.drivers if self.drivers else 0.0

    def to_values(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return {name: getattr(self, name) for name in self.__slots__}

    @staticmethod
    def from_values(values: Mapping[str, Any]) -> Learned:
        """What `to_values` gave, after a way through JSON or not."""
        found, missed = ({t: tuple(line) for t, line in values[name].items()} for name in ("found", "missed"))
        return Learned(
            {path: tuple(targets) for path, targets in values["paths"].items()},
            float(values["drivers"]),
            float(values["sampled"]),
            found,
            missed,
            {path: tuple(map(tuple, held)) for path, held in values["steps"].items()},
            dict(values["newer"]),
        )


def surprise(others: Mapping[str, PathTally], expected_a_row: float) -> float:
    """How unlikely what an interval's unsampled rows found is, if they had to find `expected_a_row` each: in
    deviations of a sum over rows that find very different numbers, as in a geometric distribution. What is neither
    twice nor half of the expected is no surprise: so far off is the model where lags depend on each other.

    >>> round(surprise({"a": PathTally(drivers=100, results=10)}, 0.4), 2)
    -4.01
    """
    drivers = _drivers(others)
    if expected_a_row <= 0 or not drivers:
        return 0.0
    results = sum(tally.results for tally in others.values())
    if expected_a_row * drivers / FAR < results < FAR * expected_a_row * drivers:
        return 0.0
    deviation = np.sqrt(drivers * (expected_a_row + expected_a_row**2))
    return float((results - expected_a_row * drivers) / deviation)


def _drivers(tallies: Mapping[str, PathTally]) -> int:
    return sum(tally.drivers for tally in tallies.values())


def _steps(tally: PathTally | None, count: int) -> tuple[StepTally, ...]:
    return tally.steps if tally is not None and tally.steps else (StepTally(),) * count


def _faded(held: Mapping[str, Sequence[float]], keep: float) -> dict[str, Floats]:
    return {target: keep * np.array(line) for target, line in held.items()}


def _add(into: dict[str, Floats], targets: Sequence[str], lags: Sequence[Sequence[float]], weight: float) -> None:
    for target, line in zip(targets, lags, strict=True):
        into[target] += weight * np.array(line)
