"""Random joins to harvest, as in the paper's Figure 7: to compare optimisers, and to time them.

Rates are uniform in 100 … 500 rows a second; selectivities are log-uniform, over two decades unless told, each
direction and step its own; orders are random. The paper says neither the range of selectivities nor the shape of its
lags:

    flat         matches have any lag of the window
    gaussian     one peak, at a random lag, with a deviation of 5 to 30 % of the window
    two-peaked   two of these, the second one with 20 to 100 % of the weight of the first
    mixed        each step one of these

>>> statistics = random_statistics(np.random.default_rng(7), streams=3, bins=4, lags="gaussian")
>>> [step.stream for step in statistics.directions[0]], round(statistics.streams[0].rate_hz)
([2, 1], 350)
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from windrow.plan.cost import COMPARISONS, Statistics, StepCost, StepStatistics, StreamStatistics

LAGS = ("flat", "gaussian", "two-peaked", "mixed")
SELECTIVITIES = (1e-4, 1e-2)
WINDOW_S = 10.0


def random_statistics(
    random: np.random.Generator,
    *,
    streams: int,
    bins: int,
    lags: str = "mixed",
    selectivities: tuple[float, float] = SELECTIVITIES,
    cost: StepCost = COMPARISONS,
) -> Statistics:
    """Statistics of one random join."""
    rates = [StreamStatistics(float(random.uniform(100, 500)), WINDOW_S) for _ in range(streams)]
    lowest, highest = selectivities
    directions = []
    for driver in range(streams):
        order = [stream for stream in range(streams) if stream != driver]
        random.shuffle(order)
        directions.append(
            tuple(
                StepStatistics(
                    stream,
                    lowest * (highest / lowest) ** float(random.uniform()),
                    _scores(random, bins, lags),
                    cost=cost,
                )
                for stream in order
            )
        )
    return Statistics(tuple(rates), tuple(directions))


def _scores(random: np.random.Generator, bins: int, lags: str) -> tuple[float, ...]:
    shape = LAGS[int(random.integers(3))] if lags == "mixed" else lags
    if shape == "flat":
        return (1.0 / bins,) * bins
    peak = _peak(random, bins)
    if shape == "two-peaked":
        weight, second = float(random.uniform(0.2, 1.0)), _peak(random, bins)
        return tuple(one + weight * other for one, other in zip(peak, second, strict=True))
    return peak


def _peak(random: np.random.Generator, bins: int) -> tuple[float, ...]:
    middle, deviation = random.uniform(0, 1), random.uniform(0.05, 0.3)
    below = [0.5 * math.erf((k / bins - middle) / (deviation * math.sqrt(2))) for k in range(bins + 1)]
    return tuple(high - low for low, high in pairwise(below))
