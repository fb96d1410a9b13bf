"""Lags of known distribution: the scores that window harvesting would learn if it saw everything.

A_{i,l} is the difference T(t_i) - T(t_l) of the timestamps in a result (section IV-B). Each stream's lag to the first
one is normal here, and the others follow from the identities the paper uses in section V-B:

    A_{1,1} = 0        A_{i,l} = A_{i,1} - A_{l,1}        p^k_{i,l} = P(b (k - 1) <= A_{i,l} <= b k),  k = 1 … n

the last two lags taken as independent. (In the paper's equations 1 and 2 the index of L_1 and A_{1,1} is misprinted:
it is l, as here.)

>>> second = Lag(-5.0, 0.14)                                  # A_21: rows of S2 come five seconds before those of S1
>>> [round(score, 2) for score in (FIRST - second).scores(bins=5, bin_s=2.0)]
[0.0, 0.0, 1.0, 0.0, 0.0]
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from windrow.plan.cost import Statistics, StepStatistics, StreamStatistics


@dataclass(frozen=True, slots=True)
class Lag:
    """A normal lag, in seconds."""

    mean_s: float
    deviation_s: float

    def __sub__(self, other: Lag) -> Lag:
        return Lag(self.mean_s - other.mean_s, math.hypot(self.deviation_s, other.deviation_s))

    def __neg__(self) -> Lag:
        return Lag(-self.mean_s, self.deviation_s)

    def scores(self, bins: int, bin_s: float) -> tuple[float, ...]:
        """The chance that the lag falls into each of the basic windows, the youngest first."""
        below = [self._below(bin_s * k) for k in range(bins + 1)]
        return tuple(high - low for low, high in pairwise(below))

    def _below(self, lag_s: float) -> float:
        if self.deviation_s == 0:
            return 0.5 if lag_s == self.mean_s else float(lag_s > self.mean_s)
        return 0.5 * (1 + math.erf((lag_s - self.mean_s) / (self.deviation_s * math.sqrt(2))))


FIRST = Lag(0.0, 0.0)
"""A_{1,1}."""


@dataclass(frozen=True, slots=True)
class Lagged:
    """A join whose streams lag behind the first one: a rate and a lag a stream, and windows of one length."""

    rates_hz: tuple[float, ...]
    lags: tuple[Lag, ...]
    window_s: float
    bins: int

    def statistics(
        self,
        orders: Sequence[Sequence[int]],
        selectivity: Mapping[frozenset[int], float],
        *,
        per_direction: bool,
    ) -> Statistics:
        """What an optimiser is told.

        The selectivity of a pair of streams is the same in both directions, as the paper writes it, or divided among
        them by where its matches fall: of all results, a direction finds those whose lags lie in the other's window.
        """
        directions = []
        for driver, order in enumerate(orders):
            steps = []
            for other in order:
                scores = (self.lags[driver] - self.lags[other]).scores(self.bins, self.window_s / self.bins)
                share = 2 * sum(scores) if per_direction else 1.0
                steps.append(StepStatistics(other, share * selectivity[frozenset((driver, other))], scores))
            directions.append(tuple(steps))
        return Statistics(tuple(StreamStatistics(hz, self.window_s) for hz in self.rates_hz), tuple(directions))
