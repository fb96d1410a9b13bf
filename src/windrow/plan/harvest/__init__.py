"""Window harvesting: which bins of which window each step searches when not all of the work can be done.

Given what each step costs and finds (`windrow.plan.cost`) and the share z of the full work that can be done, choose how
many of its best bins each step of each direction searches, so that the output is as large as possible:

    maximise O(counts)    so that    C(counts) <= z * C(all)

All optimisers of `METHODS` have one signature, `(model, budget) -> counts`:

    auto            ours: at least 99.8 % of the optimum, in microseconds                    .bounded, .price, .fronts
    exact           the optimum, by the same way with nothing left out                        .bounded
    exhaustive      the optimum, by trying all settings                                       .exhaustive
    best_output, best_output_per_cost, best_delta_output_per_delta_cost                       .greedy
                    the paper's greedy search from below, with its three metrics
    reverse         the same from above, with the last of these metrics                       .greedy
    double_sided    from the side that is nearer, with the last of these metrics              .greedy

Whole bins are coarse where little work can be done: a direction may not even afford one bin a step. `mixture` gets
around that with two settings, of which a driver tuple is given one by lot. The lot makes cost and output straight lines
between the two, so that the mixture yields exactly the upper bound: more than, or as much as, any single setting.

In the paper (GrubJoin, sections IV-B and V-A): a count over the bins of a step is the harvest fraction z_{i,j}.

>>> from windrow.plan.cost import CostModel, Statistics, StepStatistics, StreamStatistics
>>> streams = (StreamStatistics(rate_hz=10, window_s=4), StreamStatistics(rate_hz=20, window_s=4))
>>> to_b = StepStatistics(stream=1, selectivity=0.01, scores=(0.1, 0.6, 0.3, 0.0))
>>> to_a = StepStatistics(stream=0, selectivity=0.01, scores=(0.25, 0.25, 0.25, 0.25))
>>> model = CostModel.of(Statistics(streams, ((to_b,), (to_a,))))
>>> setting = optimise(model, throttle=0.5)
>>> setting.chosen                            # bins 1 and 2 of b for the rows of a, two bins of a for the rows of b
(((1, 2),), ((0, 1),))
>>> round(setting.cost / model.full_cost, 6), round(setting.recall, 6)
(0.5, 0.7)
>>> lots = mixture(model, throttle=0.55)
>>> [setting.counts for setting in lots.settings], round(lots.share, 6), round(lots.recall, 6)
([((2,), (0,)), ((2,), (3,))], 0.8, 0.75)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from windrow.errors import PlanError
from windrow.plan.cost import CostModel, Counts
from windrow.plan.harvest.bounded import auto, exact, upper_bound
from windrow.plan.harvest.exhaustive import exhaustive
from windrow.plan.harvest.greedy import METRICS, double_sided, forward, reverse
from windrow.plan.harvest.price import enclosed

__all__ = ["METHODS", "Mixture", "Optimiser", "Setting", "chosen_bins", "mixture", "optimise", "output_bound"]

Optimiser = Callable[[CostModel, float], Counts]

METHODS: dict[str, Optimiser] = {
    "auto": auto,
    "exact": exact,
    "exhaustive": exhaustive,
    **{metric: partial(forward, metric=metric) for metric in METRICS},
    "reverse": reverse,
    "double_sided": double_sided,
}

ROUNDING = 1e-9
"""A setting that costs z times the full work to the last bit but one is within it: rounding may not decide."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is searched: for each direction and step the chosen bins by number, and what that costs and finds.

    `cost` and `output` are a second's worth of work (in seconds) and of results; `recall` is the share of the output
    that is kept. A direction whose steps have no bins does not probe at all.
    """

    counts: tuple[tuple[int, ...], ...]
    chosen: tuple[tuple[tuple[int, ...], ...], ...]
    cost: float
    output: float
    recall: float


def optimise(model: CostModel, throttle: float, method: str = "auto") -> Setting:
    """Choose what is searched so that it costs at most `throttle` times the full work; 1 or more: everything."""
    if method not in METHODS:
        raise PlanError(f"there is no optimiser '{method}'", hint=f"choose one of {', '.join(METHODS)}")
    budget, full_cost = _budget(model, throttle)
    return _setting(model, model.bins if budget >= full_cost else METHODS[method](model, budget))


@dataclass(frozen=True, slots=True)
class Mixture:
    """Two settings: the second holds for `share` of the driver tuples, drawn at random, the first for the others."""

    settings: tuple[Setting, Setting]
    share: float

    @property
    def cost(self) -> float:
        """Seconds of work that arrive a second."""
        return _between(self.settings[0].cost, self.settings[1].cost, self.share)

    @property
    def output(self) -> float:
        """Results a second."""
        return _between(self.settings[0].output, self.settings[1].output, self.share)

    @property
    def recall(self) -> float:
        """The share of the output that is kept."""
        return _between(self.settings[0].recall, self.settings[1].recall, self.share)


def mixture(model: CostModel, throttle: float) -> Mixture:
    """The best two settings to draw from, so that the work is at most `throttle` times the full work on average."""
    budget, full_cost = _budget(model, throttle)
    if budget >= full_cost:
        everything = _setting(model, model.bins)
        return Mixture((everything, everything), 0.0)
    less, more, *_ = enclosed(model.driver_hz, model.bins, model.seconds, model.results, budget, 0.0)
    low, high = _setting(model, less), _setting(model, more)
    return Mixture((low, high), max(0.0, min(1.0, (budget - low.cost) / (high.cost - low.cost))))


def output_bound(model: CostModel, throttle: float) -> float:
    """An output that no setting of at most `throttle` times the full work exceeds."""
    budget, full_cost = _budget(model, throttle)
    return model.tally(model.bins)[1] if budget >= full_cost else upper_bound(model, budget)


def chosen_bins(model: CostModel, counts: Counts) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """The numbers of the bins each step searches, in order."""
    return tuple(
        tuple(tuple(sorted(ranked[:count])) for ranked, count in zip(rankings, row, strict=True))
        for rankings, row in zip(model.ranking.tolist(), np.asarray(counts).tolist(), strict=True)
    )


def _budget(model: CostModel, throttle: float) -> tuple[float, float]:
    """What may be spent a second, and what everything costs."""
    if not throttle >= 0:
        raise PlanError(f"the throttle is a share of the full work, not {throttle}", hint="give 0 to 1")
    full_cost = model.full_cost
    return throttle * full_cost * (1 + ROUNDING), full_cost


def _setting(model: CostModel, counts: Counts) -> Setting:
    cost, output = model.tally(counts)
    full_output = model.tally(model.bins)[1]
    recall = output / full_output if full_output > 0 else 1.0
    return Setting(tuple(map(tuple, counts.tolist())), chosen_bins(model, counts), cost, output, recall)


def _between(low: float, high: float, share: float) -> float:
    return low + share * (high - low)
