"""Figure 8: the time to find a setting, over the number of basic windows n and of streams m (section VI-A).

z = .25. The exhaustive search for m = 3, the greedy one for m = 3, 4, 5, on a logarithmic axis; ours stands beside
both. The paper's times are those of Java on a Pentium 4 of 2.4 GHz: only orders of magnitude and the order of the
curves can be compared. It reports ten times the time for twice the basic windows of the exhaustive search; the number
of settings grows by 64.

Ours: n = 5, 10, 15, 20; the joins of `searches`; medians.
"""

from __future__ import annotations

import numpy as np

from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.grubjoin.searches import random_models, settings_considered, time_ms
from windrow.papers.tables import Table
from windrow.plan.harvest.bounded import auto
from windrow.plan.harvest.exhaustive import exhaustive, number_of_settings
from windrow.plan.harvest.greedy import forward

THROTTLE = 0.25
BINS = (5, 10, 15, 20)
STREAMS = (3, 4, 5)
EXHAUSTIVE, GREEDY, AUTO = "exhaustive", "greedy", "auto"
JOINS, QUICK_JOINS = 50, 10
EXHAUSTIVE_JOINS = 3
COLUMNS = ("method", "m", "n", "median_ms", "settings")


def run(quick: bool, seed: int) -> Outcome:
    """All searches at all sizes."""
    random = np.random.default_rng(seed)
    rows: list[tuple[object, ...]] = []
    for streams in STREAMS:
        for bins in BINS:
            models = random_models(random, streams, bins, QUICK_JOINS if quick else JOINS)
            if streams == STREAMS[0]:
                spent_ms = time_ms(models[:EXHAUSTIVE_JOINS], THROTTLE, exhaustive)
                rows.append((EXHAUSTIVE, streams, bins, spent_ms, number_of_settings(models[0])))
            looked_at = settings_considered(models, THROTTLE)
            rows.append((GREEDY, streams, bins, time_ms(models, THROTTLE, forward), looked_at))
            rows.append((AUTO, streams, bins, time_ms(models, THROTTLE, auto), None))
    table = Table.of(COLUMNS, rows)
    return Outcome(table, _claims(table), (_chart(table),))


def _claims(table: Table) -> tuple[Claim, ...]:
    exhaustive_10, exhaustive_20 = (_ms(table, EXHAUSTIVE, 3, bins) for bins in (10, 20))
    all_settings, few = (table.where(method=m, m=3, n=10).numbers("settings")[0] for m in (EXHAUSTIVE, GREEDY))
    longer = exhaustive_10 / _ms(table, GREEDY, 3, 10)
    largest_ms = _ms(table, GREEDY, 5, 20)
    looked_at = [table.where(method=GREEDY, m=streams).numbers("settings") for streams in STREAMS]
    with_bins = all(list(counts) == sorted(counts) for counts in looked_at)
    with_streams = all(list(counts) == sorted(counts) for counts in zip(*looked_at, strict=True))
    ours_ms = _ms(table, AUTO, 5, 20)
    return (
        Claim(
            "exhaustive takes orders of magnitude more than greedy (m = 3, n = 10)",
            "about 3 s against well below 10 ms",
            f"{all_settings:,.0f} settings against {few:.0f}, {exhaustive_10:.3g} ms, {longer:,.0f} times as long",
            all_settings >= 1000 * few and longer >= 10,
        ),
        Claim(
            "exhaustive grows steeply from n = 10 to n = 20",
            "3 s to 30 s",
            f"{exhaustive_10:.3g} ms to {exhaustive_20:.3g} ms",
            exhaustive_20 >= 10 * exhaustive_10,
        ),
        Claim(
            "greedy looks at more settings with more basic windows and with more streams",
            "time grows with n and m",
            f"{looked_at[0][0]:.0f} (m = 3, n = 5) to {looked_at[-1][-1]:.0f} (m = 5, n = 20)",
            with_bins and with_streams,
        ),
        Claim("greedy, m = 5, n = 20", "within 10 ms", f"{largest_ms:.3g} ms", largest_ms <= 10),
        Claim("Windrow's optimiser, m = 5, n = 20", "not in the paper", f"{ours_ms:.3g} ms", ours_ms <= 10),
    )


def _ms(table: Table, method: str, streams: int, bins: int) -> float:
    return table.where(method=method, m=streams, n=bins).numbers("median_ms")[0]


def _chart(table: Table) -> Chart:
    lines = ((EXHAUSTIVE, STREAMS[0]), *((method, streams) for method in (GREEDY, AUTO) for streams in STREAMS))
    series = tuple(
        Series.of(table.where(method=method, m=streams), f"{method}, m = {streams}", x="n", y="median_ms")
        for method, streams in lines
    )
    return Chart("basic windows a window (n)", "time (ms)", series, log_y=True)


EXPERIMENT = Experiment("grubjoin/figure8", "Time to find a setting, by basic windows and streams", run)
