"""Figure 8: which rows to let in when only ten a second can be handled (section 4.2).

A brings 80 rows a second and B 20, T_a = 9 s, T_b = 1 s, selectivities .02 and .08, of which the join has the smaller.
The rates let in are half each, in proportion to the streams' rates or windows, or inversely so. Half each is the best;
in proportion and inversely is the same; the paper draws no figures. Here rows are dropped before the join by the
shares that `windrow.plan.regulation` gives, or by those of the other strategies, and results are counted.
"""

from __future__ import annotations

from windrow.papers.experiment import Chart, Experiment, Outcome, Series
from windrow.papers.tables import Table
from windrow.papers.window_joins.played import Run, played
from windrow.papers.window_joins.strategies import COLUMNS, claims
from windrow.plan.regulation import output_hz, regulated_hz
from windrow.plan.unit_time import Side

RATES_HZ, WINDOWS_S, SERVICE_HZ, KEYS = (80.0, 20.0), (9.0, 1.0), 10.0, (50, 12.5)
SECONDS, QUICK_SECONDS = 10_000.0, 2_000.0
PRINTED = (("equal",), ("rates", "rates inverse"), ("windows", "windows inverse"))


def run(quick: bool, seed: int) -> Outcome:
    """Each strategy, in the model and in the engine."""
    pace = Run(batch_s=(QUICK_SECONDS if quick else SECONDS) / 20, warm_batches=1, batches=19, seed=seed)
    a, b = (Side(rate, keys, window_s=w) for rate, keys, w in zip(RATES_HZ, KEYS, WINDOWS_S, strict=True))
    sigma = 1 / max(KEYS)
    rows = []
    for name, (a_hz, b_hz) in splits().items():
        keep = {"a": a_hz / RATES_HZ[0], "b": b_hz / RATES_HZ[1]}
        model = output_hz(sigma, (a_hz, b_hz), WINDOWS_S)
        ours = played(a, b, "HHJ", pace, keep).results_hz
        rows.append((name, a_hz, b_hz, a_hz * WINDOWS_S[0], b_hz * WINDOWS_S[1], model, ours))
    table = Table.of(COLUMNS, rows)
    series = tuple(Series.of(table, name, x="strategy", y=name) for name in ("model", "ours"))
    return Outcome(table, claims(table, PRINTED), (Chart("rates let in", "results a second", series, bars=True),))


def splits() -> dict[str, tuple[float, float]]:
    """The rates of each strategy.

    >>> splits()["equal"], splits()["rates"], splits()["windows inverse"]
    ((5.0, 5.0), (8.0, 2.0), (1.0, 9.0))
    """
    a_hz, b_hz = regulated_hz(RATES_HZ, SERVICE_HZ)
    found = {"equal": (a_hz, b_hz)}
    for name, (of_a, of_b) in {"rates": RATES_HZ, "windows": WINDOWS_S}.items():
        share = of_a / (of_a + of_b)
        found[name] = (round(SERVICE_HZ * share, 9), round(SERVICE_HZ * (1 - share), 9))
        found[f"{name} inverse"] = (found[name][1], found[name][0])
    return found


EXPERIMENT = Experiment("window_joins/figure8", "Which rows to let in when time is short", run)
