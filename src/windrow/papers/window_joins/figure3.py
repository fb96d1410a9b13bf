"""Figure 3: the cost of the four joins over the rate of B, at a selectivity of .05 (section 3.3).

As Figure 2, with twice as many keys: buckets are half as long, so that hash tables pay until B is about fourteen times
as fast as A. "The performance crossover point in Figure 3 is about twice as that in Figure 2."
"""

from __future__ import annotations

from dataclasses import replace

from windrow.papers.experiment import Claim, Experiment, Outcome
from windrow.papers.window_joins import curves, figure2
from windrow.papers.window_joins.machine import A_HZ, COSTS, WINDOW_S
from windrow.plan.unit_time import crossing_hz

SIGMA, CROSSING_HZ = 0.05, 140.0
RATES_HZ = tuple(float(rate) for rate in range(20, 261, 20))
NEAR = 0.1


def run(quick: bool, seed: int) -> Outcome:  # noqa: ARG001 - quick as it is, and nothing in it is random
    """The model's curves, and how the crossing moved."""
    found = curves.outcome(SIGMA, RATES_HZ, CROSSING_HZ)
    here, before = (
        crossing_hz(A_HZ, keys=1 / sigma, window_s=WINDOW_S, costs=COSTS) for sigma in (SIGMA, figure2.SIGMA)
    )
    twice = Claim("the crossing of Figure 2, times", "2", f"{here / before:.2f}", abs(here / before / 2 - 1) <= NEAR)
    return replace(found, claims=(*found.claims, twice))


EXPERIMENT = Experiment("window_joins/figure3", "Model costs of four joins, selectivity .05", run)
