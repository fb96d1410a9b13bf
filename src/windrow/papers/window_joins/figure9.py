"""Figure 9: which stream gets the memory, when rates are what they are (section 4.3).

A brings 10 rows a second and B 50, M = 1000 rows, selectivities .005 and .01. All memory to the slower stream (Max A)
is the best, all to the faster (Max B) the worst: as many rows are kept either way, but more come to probe them.
The paper draws no figures; the model's are σ (A λ_b + B λ_a). Ours: the engine with windows of that many rows.
"""

from __future__ import annotations

from windrow.papers.experiment import Chart, Experiment, Outcome, Series
from windrow.papers.window_joins.strategies import Strategy, claims, compared

A_HZ, B_HZ, MEMORY_ROWS, KEYS = 10.0, 50.0, 1000.0, 200.0
SECONDS, QUICK_SECONDS = 2000.0, 400.0
PRINTED = (("Max A",), ("inverse",), ("equal",), ("proportional",), ("Max B",))


def run(quick: bool, seed: int) -> Outcome:
    """Each strategy, in the model and in the engine."""
    table = compared(strategies(), keys=KEYS, seconds=QUICK_SECONDS if quick else SECONDS, seed=seed)
    series = tuple(Series.of(table, name, x="strategy", y=name) for name in ("model", "ours"))
    return Outcome(table, claims(table, PRINTED), (Chart("memory", "results a second", series, bars=True),))


def strategies() -> tuple[Strategy, ...]:
    """The paper's five: the rows that A may keep; B keeps the rest."""
    fast = B_HZ / (A_HZ + B_HZ)
    shares = {"Max A": 1.0, "Max B": 0.0, "proportional": 1 - fast, "inverse": fast, "equal": 0.5}
    return tuple(
        Strategy(name, A_HZ, B_HZ, share * MEMORY_ROWS, (1 - share) * MEMORY_ROWS) for name, share in shares.items()
    )


EXPERIMENT = Experiment("window_joins/figure9", "Which stream gets the memory, at given rates", run)
