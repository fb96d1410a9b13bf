"""Figure 2: the cost of the four joins over the rate of B, at a selectivity of .1 (section 3.3).

T = 60 s for both windows, A brings 10 rows a second, C_n = .5, C_h = .65. Hash tables on both sides cost least until B
is about seven times as fast as A; from then on a loop over B's window does, because B's rows need not be sought in
their buckets when they leave. A loop over A's window never pays while A is the slower stream.
"""

from __future__ import annotations

from windrow.papers.experiment import Experiment, Outcome
from windrow.papers.window_joins import curves

SIGMA, CROSSING_HZ = 0.1, 70.0
RATES_HZ = tuple(float(rate) for rate in range(10, 201, 10))


def run(quick: bool, seed: int) -> Outcome:  # noqa: ARG001 - quick as it is, and nothing in it is random
    """The model's curves."""
    return curves.outcome(SIGMA, RATES_HZ, CROSSING_HZ)


EXPERIMENT = Experiment("window_joins/figure2", "Model costs of four joins, selectivity .1", run)
