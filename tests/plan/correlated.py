"""What GrubJoin's generated streams (section VI-B) look like to the cost model.

    X_i(t) = slope * (t + tau_i) + kappa_i * N(0, 1)        a result: all values within 1 of each other

A pair of tuples with ages A apart matches with the chance that two values that differ by slope * (A + tau difference)
come within 1 of each other; a step's selectivity is the mean of that over the window, its scores are the parts of it.
The window is shorter than the period, so that values do not wrap around.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from windrow.plan.cost import Statistics, StepStatistics, StreamStatistics

SLOPE = 20.0
WINDOW_S, BIN_S = 20.0, 2.0
PARTS_A_BIN = 200
THIRD_AGREES = 0.75
"""Of values that are within 1 of a first one, those within 1 of a second one too."""

ALIGNED = (0.0, 0.0, 0.0)
NONALIGNED = (0.0, 5.0, 15.0)
KAPPAS = (2.0, 2.0, 50.0)


def correlated(rate_hz: float, taus: Sequence[float], kappas: Sequence[float]) -> Statistics:
    """Statistics of the join, each direction in the order low selectivity first."""
    streams = range(len(taus))
    directions = []
    for i in streams:
        steps = sorted((_step(i, other, taus, kappas) for other in streams if other != i), key=lambda s: s.selectivity)
        directions.append(
            tuple(
                StepStatistics(step.stream, step.selectivity * THIRD_AGREES**place, step.scores)
                for place, step in enumerate(steps)
            )
        )
    return Statistics(tuple(StreamStatistics(rate_hz, WINDOW_S) for _ in streams), tuple(directions))


def _step(i: int, other: int, taus: Sequence[float], kappas: Sequence[float]) -> StepStatistics:
    deviation = math.hypot(kappas[i], kappas[other])
    parts = round(WINDOW_S / BIN_S) * PARTS_A_BIN
    ages = [(part + 0.5) * WINDOW_S / parts for part in range(parts)]
    chances = [_chance(SLOPE * (age + taus[i] - taus[other]), deviation) for age in ages]
    bounds = range(0, parts + 1, PARTS_A_BIN)
    scores = tuple(sum(chances[low:high]) for low, high in pairwise(bounds))
    return StepStatistics(other, sum(chances) / parts, scores)


def _chance(difference: float, deviation: float) -> float:
    high, low = ((difference + end) / (deviation * math.sqrt(2)) for end in (1.0, -1.0))
    return (math.erf(high) - math.erf(low)) / 2
