"""Every setting: the yardstick of the others, for joins small enough.

Each direction is off, or searches 1 … n bins in each of its steps; all combinations of all directions are looked at,
and nothing is ruled out by a bound. The paper counts n ** (m (m - 1)) of them (section IV-D), leaving out those with a
direction off, which are the best ones when little can be done.

>>> from windrow.plan.cost import CostModel, Statistics, StepStatistics, StreamStatistics
>>> step = StepStatistics(stream=0, selectivity=0.01, scores=(0.2, 0.8))
>>> streams = (StreamStatistics(1, 10), StreamStatistics(1, 10))
>>> model = CostModel.of(Statistics(streams, ((StepStatistics(1, 0.01, (0.2, 0.8)),), (step,))))
>>> number_of_settings(model), exhaustive(model, budget=10.0).tolist()
(4, [[1], [1]])
"""

from __future__ import annotations

import math

import numpy as np

from windrow.errors import PlanError
from windrow.plan.cost import CostModel, Counts, Floats, tally_direction
from windrow.probe.jit import compiled

MOST_SETTINGS = 10**10


def number_of_settings(model: CostModel) -> int:
    """How many settings there are with all directions on: the product of n over all steps."""
    return math.prod(int(count) for count in model.bins.flat)


def exhaustive(model: CostModel, budget: float) -> Counts:
    """The best setting of all."""
    settings = number_of_settings(model)
    if settings > MOST_SETTINGS:
        raise PlanError(
            f"{settings:.1e} settings are too many to try", hint="use 'exact', which rules most of them out"
        )
    streams = len(model.driver_hz)
    each = [_settings(model.bins[i], model.seconds[i], model.results[i]) for i in range(streams)]
    lengths = np.array([len(codes) for _, _, codes in each])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    cost = np.concatenate([model.driver_hz[i] * each[i][0] for i in range(streams)])
    output = np.concatenate([model.driver_hz[i] * each[i][1] for i in range(streams)])
    best = _best_of_all(starts, cost, output, budget)
    return np.stack([each[i][2][best[i]] for i in range(streams)])


@compiled
def _settings(bins: Counts, seconds: Floats, results: Floats) -> tuple[Floats, Floats, Counts]:
    """Cost and output of every setting of a direction; the first is off."""
    steps = len(bins)
    total = 1 + bins.prod()
    cost, output, counts = np.zeros(total), np.zeros(total), np.zeros((total, steps), np.int64)
    counts[1] = 1
    for number in range(1, total):
        if number > 1:
            counts[number] = counts[number - 1]
            j = steps - 1
            while counts[number, j] == bins[j]:
                counts[number, j] = 1
                j -= 1
            counts[number, j] += 1
        cost[number], output[number] = tally_direction(seconds, results, counts[number])
    return cost, output, counts


@compiled
def _best_of_all(starts: Counts, cost: Floats, output: Floats, budget: float) -> Counts:
    """The places, one a direction, of the settings whose outputs add up to most within the budget."""
    directions = len(starts) - 1
    place = np.zeros(directions, np.int64)
    best = np.zeros(directions, np.int64)
    best_output = 0.0
    last = directions - 1
    while True:
        cost_before = output_before = 0.0
        for i in range(last):
            cost_before += cost[starts[i] + place[i]]
            output_before += output[starts[i] + place[i]]
        for p in range(starts[last], starts[last + 1]):
            if cost_before + cost[p] <= budget and output_before + output[p] > best_output:
                best_output = output_before + output[p]
                place[last] = p - starts[last]
                best[:] = place
        i = last - 1
        while i >= 0 and place[i] == starts[i + 1] - starts[i] - 1:
            place[i] = 0
            i -= 1
        if i < 0:
            return best
        place[i] += 1
