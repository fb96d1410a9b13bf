"""Section VI-B's streams, query and settings: what the experiments on output rates have in common.

    X_i(t) = (D / η) (t + τ_i) + κ_i N(0, 1)  mod D        results: all values within ε of each other

The defaults are the paper's: m = 3, windows of 20 s in basic windows of 2 s, ω = .1, Δ = 5 s, D = 1000, η = 50 s,
ε = 1, input buffers of 10 rows, runs of 60 s of which the first 20 s do not count; lags τ of 0, 5, 15 s and deviations
κ of 2, 2, 50 (section VI-B.1, nonaligned). Arrivals are not described; ours are Poisson.

>>> scenario = Scenario(rate_hz=15)
>>> scenario.bins, scenario.aligned().lags_s
(10, (0.0, 0.0, 0.0))
>>> print(Scenario(rate_hz=15, lags_s=(0, 5), noise=(2, 2)).query())
SELECT s1.id AS s1_id, s2.id AS s2_id FROM cam1 AS s1, cam2 AS s2
WHERE abs(s1.x - s2.x) <= 1
WINDOW 20 SECONDS
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import pyarrow as pa

from windrow.errors import UsageError
from windrow.papers.grubjoin.lags import Lag
from windrow.plan.cost import bins_of
from windrow.streams.arrivals import Arrivals, Poisson
from windrow.streams.synthetic import NONALIGNED_LAGS_S, NONALIGNED_NOISE, GrubJoinStream, generate

DOMAIN, PERIOD_S = 1000.0, 50.0


@dataclass(frozen=True, slots=True)
class Scenario:
    """One setting of section VI-B; `lags_s` and `noise` are τ and κ, one a stream."""

    rate_hz: float
    lags_s: Sequence[float] = NONALIGNED_LAGS_S
    noise: Sequence[float] = NONALIGNED_NOISE
    window_s: float = 20.0
    bin_s: float = 2.0
    epsilon: float = 1.0
    shredded: float = 0.1
    interval_s: float = 5.0
    buffer_rows: int = 10
    run_s: float = 60.0
    warm_up_s: float = 20.0

    def __post_init__(self) -> None:
        if len(self.lags_s) != len(self.noise) or len(self.lags_s) < 2:
            message = f"{len(self.lags_s)} lags for {len(self.noise)} deviations"
            raise UsageError(message, hint="give one of each a stream, two streams or more")

    @property
    def bins(self) -> int:
        """Basic windows a window: n."""
        return bins_of(self.window_s, self.bin_s)

    @property
    def aliases(self) -> tuple[str, ...]:
        """What the query calls its streams: s1, s2 …"""
        return tuple(f"s{number}" for number in range(1, len(self.lags_s) + 1))

    def aligned(self) -> Scenario:
        """The same without lags between the streams."""
        return replace(self, lags_s=(0.0,) * len(self.lags_s))

    def query(self) -> str:
        """The ε-join of all streams."""
        selected = ", ".join(f"{alias}.id AS {alias}_id" for alias in self.aliases)
        sources = ", ".join(f"cam{number} AS {alias}" for number, alias in enumerate(self.aliases, start=1))
        pairs = combinations(self.aliases, 2)
        condition = " AND ".join(f"abs({one}.x - {other}.x) <= {self.epsilon:g}" for one, other in pairs)
        return f"SELECT {selected} FROM {sources}\nWHERE {condition}\nWINDOW {self.window_s:g} SECONDS"

    def agreeing(self, driver: int, other: int) -> float:
        """The chance that the row of stream `other` a row of stream `driver` would agree with is within its window.

        Values climb by D / η a second, so rows agree at the lag τ_other - τ_driver, and at those whole periods off,
        give or take the noise of both.
        """
        mean_s = self.lags_s[other] - self.lags_s[driver]
        deviation_s = math.hypot(self.noise[driver], self.noise[other]) * PERIOD_S / DOMAIN
        periods = math.ceil((abs(mean_s) + self.window_s + 4 * deviation_s) / PERIOD_S)
        lags = (Lag(mean_s + k * PERIOD_S, deviation_s) for k in range(-periods, periods + 1))
        return sum(lag.scores(bins=1, bin_s=self.window_s)[0] for lag in lags)

    def orders(self) -> dict[str, tuple[str, ...]]:
        """Whom each stream's rows visit: low selectivity first (section V-C), as known from how rows are made.

        >>> Scenario(rate_hz=15).orders()
        {'s1': ('s3', 's2'), 's2': ('s1', 's3'), 's3': ('s1', 's2')}
        """
        numbers = range(len(self.aliases))
        return {
            self.aliases[driver]: tuple(
                self.aliases[other]
                for other in sorted(set(numbers) - {driver}, key=lambda other: self.agreeing(driver, other))
            )
            for driver in numbers
        }

    def streams(self, arrivals: Arrivals | None = None) -> tuple[GrubJoinStream, ...]:
        """The streams cam1, cam2 …, with these arrivals instead of a steady rate where given."""
        pattern = Poisson(self.rate_hz) if arrivals is None else arrivals
        return tuple(
            GrubJoinStream(f"cam{number}", pattern, lag_s, noise, DOMAIN, PERIOD_S)
            for number, (lag_s, noise) in enumerate(zip(self.lags_s, self.noise, strict=True), start=1)
        )

    def tables(self, seed: int, arrivals: Arrivals | None = None) -> dict[str, pa.Table]:
        """The rows of one run, by the names in the query's FROM."""
        return generate(self.streams(arrivals), self.run_s, seed)
