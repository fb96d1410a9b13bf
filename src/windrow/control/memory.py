"""What to keep in memory, from what was learned: results by lag of each direction, the rates, what a harvest searches.

    learned lags, rates ──▶ directions ──▶ split of the memory    once an interval
    stock of each store ──▶ kept spans                            whenever the limit is reached      (plan.holding)

Until enough results were seen, half of the memory holds the youngest rows of all stores, and half a thin share of all
others; with more results less and less is spent on looking around.

The paper's strategies (`windrow.plan.memory`) can be chosen in its place, to compare with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.control.lags import Learned
from windrow.control.observation import Joined
from windrow.errors import PlanError
from windrow.plan.bins import Bins, Lags
from windrow.plan.holding import Curve, Direction, Steps, Stock, best_split_of, hold, hold_cautiously, hold_youngest
from windrow.plan.kept import KeptSpan
from windrow.plan.memory import STRATEGIES
from windrow.plan.plan import path_name
from windrow.plan.shedding import Portion

Floats = NDArray[np.float64]

EXPECTED = "expected"
POLICIES = (EXPECTED, *STRATEGIES)
ENOUGH_RESULTS = 30.0
MOST_EXPLORED, LEAST_EXPLORED = 0.5, 0.003
PRIOR_RESULTS = 0.05
"""Results that were seen in every bin, before any were: as if it gave what bins give on average, but hardly sure."""
DOUBT = 4.0
"""What is guessed of a bin counts as much as so many results of an average one."""
FALLING = 0.8
"""How much less a bin is guessed to give than the one before."""
HEADROOM = 0.9
"""The split is looked for in so much of the memory: stores grow and shrink until the next one."""


@dataclass(eq=False)
class Holding:
    """What is kept until the next interval; `results` were seen, faded. The `split` of the memory is found when it is
    first needed, half way from the one `before`: what is learned from few results jumps.
    """

    policy: str
    rates_hz: Mapping[str, float]
    directions: tuple[Direction, ...]
    results: float
    before: Mapping[str, float] | None = None
    split: dict[str, float] | None = field(default=None)

    def spans(self, stocks: Mapping[str, Stock], budget: float) -> tuple[KeptSpan, ...]:
        """What to keep of each store, in so many bytes."""
        return tuple(KeptSpan(name, steps) for name, steps in self._steps(stocks, budget).items())

    def _steps(self, stocks: Mapping[str, Stock], budget: float) -> dict[str, Steps]:
        if self.policy != EXPECTED:
            return hold_youngest(stocks, self.policy, self.rates_hz, budget)
        if self.results < ENOUGH_RESULTS:
            return hold_cautiously(stocks, self.rates_hz, budget, MOST_EXPLORED)
        explored = min(MOST_EXPLORED, max(LEAST_EXPLORED, MOST_EXPLORED * ENOUGH_RESULTS / self.results))
        if self.split is None:
            best = best_split_of(stocks, self.directions, HEADROOM * budget * (1 - explored))
            before = self.before or best
            self.split = {name: (share + before[name]) / 2 for name, share in best.items()}
        return hold(stocks, self.directions, budget, explored, self.split)


def check_policy(policy: str) -> None:
    """A policy that exists."""
    if policy not in POLICIES:
        raise PlanError(f"there is no memory policy '{policy}'", hint=f"choose one of {', '.join(POLICIES)}")


@dataclass(frozen=True, slots=True)
class Exposure:
    """How much of what drivers looked for was still there: for each driver and store, by lag bin, the sum over its rows
    of the share that was held, faded; `drivers` counts these rows.
    """

    drivers: Mapping[str, float] = field(default_factory=dict)
    held: Mapping[str, Mapping[str, tuple[float, ...]]] = field(default_factory=dict)

    def after(
        self,
        joined: Joined,
        paths: Mapping[str, Sequence[str]],
        by_driver: Mapping[str, Sequence[str]],
        keep: Mapping[str, float],
    ) -> Exposure:
        """With what an interval added; `keep` says of each driver what share of what was known stays."""
        drivers, held = {}, {}
        for driver, names in by_driver.items():
            tallies = [
                (paths[name], found[name])
                for found in (joined.sampled, joined.others)
                for name in names
                if name in found
            ]
            rows = sum(tally.drivers for _, tally in tallies)
            drivers[driver] = keep[driver] * self.drivers.get(driver, 0.0) + rows
            sums = {target: keep[driver] * np.array(line) for target, line in self.held.get(driver, {}).items()}
            for targets, tally in tallies:
                for target, line in zip(targets, tally.exposed, strict=False):
                    sums[target] = sums.get(target, 0.0) + np.array(line)
            held[driver] = {target: tuple(line.tolist()) for target, line in sums.items()}
        return Exposure(drivers, held)

    def share(self, driver: str, target: str, bins: int) -> Floats:
        """The share of a store's rows that a driver could find in each lag bin."""
        drivers, held = self.drivers.get(driver, 0.0), self.held.get(driver, {}).get(target)
        return np.ones(bins) if held is None or drivers <= 0 else np.array(held) / drivers

    def to_values(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return asdict(self)

    @staticmethod
    def from_values(values: Mapping[str, Any]) -> Exposure:
        """What `to_values` gave, after a way through JSON or not."""
        held = {
            driver: {target: tuple(line) for target, line in lines.items()} for driver, lines in values["held"].items()
        }
        return Exposure(dict(values["drivers"]), held)


def directions_of(
    learned: Mapping[str, Learned],
    exposure: Exposure,
    paths: Mapping[str, Sequence[str]],
    bins: Mapping[str, Sequence[Bins]],
    rates_hz: Mapping[str, float],
    portions: Mapping[str, Sequence[Portion]],
) -> tuple[Direction, ...]:
    """What each driver would find in a second if nothing were let go, and at which lags, where it looks; `paths` are
    the targets of all paths, `bins` those of each driver's first one.
    """
    directions = []
    for driver, held in learned.items():
        drivers, scores, lags = max(held.drivers, 1.0), held.counted(), {}
        results = rates_hz[driver] * max(held.results_a_row, PRIOR_RESULTS / drivers)
        for target, cut in zip(paths[driver], bins[driver], strict=True):
            looks = [
                (part.share, part.lags[list(paths[path_name(driver, part.alternative)]).index(target)])
                for part in portions.get(driver, ())
                if not part.sampled
            ]
            whole = _whole(
                scores[target] * drivers, drivers * exposure.share(driver, target, cut.size), cut.first_ahead
            )
            looked = whole * searched(looks, cut)
            results *= float(looked.sum() / max(scores[target].sum(), PRIOR_RESULTS / drivers))
            lags[target] = Curve(tuple(cut.edges.tolist()), tuple(looked.tolist()))
        directions.append(Direction(results, lags))
    return tuple(directions)


def _whole(found: Floats, exposed: Floats, first: int = 0) -> Floats:
    """Results a driver row by bin, if nothing were let go, from those found by rows that were so much exposed. Where
    little was seen, a bin is taken to give a little less than the one before it, counted from the bin of lag 0, the
    `first`; a few results weigh more than that.

    >>> _whole(np.array([30.0, 20.0, 0.0, 0.0]), np.array([100.0, 100.0, 1.0, 0.0])).round(2).tolist()
    [0.29, 0.2, 0.15, 0.12]
    >>> _whole(np.array([0.0, 0.0, 9.0, 0.0]), np.array([100.0, 100.0, 10.0, 10.0])).round(2).tolist()
    [0.02, 0.01, 0.09, 0.07]
    """
    average = max((found.sum() + PRIOR_RESULTS) / max(exposed.sum(), 1e-9), 1e-9)
    weight = DOUBT / average
    whole = np.empty(len(found))
    for places in (range(first, len(found)), range(first - 1, -1, -1)):
        guess = average
        for k in places:
            whole[k] = (found[k] + guess * weight) / (exposed[k] + weight)
            guess = FALLING * whole[k]
    return whole


def searched(looks: Sequence[tuple[float, Lags | None]], bins: Bins) -> Floats:
    """Which share of some rows looks into each bin; a share of them looks at each of some lags (None: at all).

    >>> searched([(0.5, ((25, 75),)), (0.5, ())], Bins(window=100, count=4)).tolist()
    [0.0, 0.5, 0.5, 0.0]
    """
    low, high = bins.edges[:-1], bins.edges[1:]
    found = np.zeros(bins.size)
    for share, ranges in looks:
        looked = np.ones(bins.size) if ranges is None else np.zeros(bins.size)
        for begin, end in ranges or ():
            looked += np.clip((np.minimum(high, end) - np.maximum(low, begin)) / (high - low), 0.0, 1.0)
        found += share * looked
    return found / sum(share for share, _ in looks) if looks else np.ones(bins.size)
