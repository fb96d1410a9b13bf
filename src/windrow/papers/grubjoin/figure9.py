"""Figure 9: the time of the greedy search over the throttle z, for m = 3, 4, 5 (section VI-A).

The more may be spent, the more steps it takes to spend it: the best case is z near 0, the worst z = 1, with about n m
(m - 1) steps, a basic window each (but for a direction's first ones, which come together). Basic windows put in are
counted as well as timed; claims go by the count, which no machine changes.

Ours: n = 10, as in the paper's other measurements; the joins of `searches`; medians.
"""

from __future__ import annotations

import numpy as np

from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.grubjoin.searches import random_models, settings_considered, time_ms, windows_put_in
from windrow.papers.tables import Table
from windrow.plan.harvest.greedy import forward

BINS = 10
STREAMS = (3, 4, 5)
THROTTLES = (0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
JOINS, QUICK_JOINS = 400, 100


def run(quick: bool, seed: int) -> Outcome:
    """The greedy search at every throttle."""
    random = np.random.default_rng(seed)
    rows: list[tuple[object, ...]] = []
    for streams in STREAMS:
        models = random_models(random, streams, BINS, QUICK_JOINS if quick else JOINS)
        for throttle in THROTTLES:
            counted = windows_put_in(models, throttle), settings_considered(models, throttle)
            rows.append((streams, throttle, time_ms(models, throttle, forward), *counted))
    table = Table.of(("m", "z", "median_ms", "windows", "settings"), rows)
    series = tuple(Series.of(table.where(m=streams), f"m = {streams}", x="z", y="median_ms") for streams in STREAMS)
    chart = Chart("throttle fraction z", "time (ms)", series)
    claims = (*(_grows(table, streams) for streams in STREAMS), _slower_with_streams(table))
    return Outcome(table, claims, (chart,))


def _grows(table: Table, streams: int) -> Claim:
    windows = table.where(m=streams).numbers("windows")
    times_ms = table.where(m=streams).numbers("median_ms")
    most = BINS * streams * (streams - 1)
    return Claim(
        f"m = {streams}: slower as z grows, at worst about n m (m - 1) steps",
        f"up to {most} steps",
        f"{windows[0]:.0f} to {windows[-1]:.0f} basic windows, {times_ms[0]:.2g} to {times_ms[-1]:.2g} ms",
        list(windows) == sorted(windows) and 0.8 * most <= windows[-1] <= most,
    )


def _slower_with_streams(table: Table) -> Claim:
    settings = {m: table.where(m=m).numbers("settings") for m in STREAMS}
    held = all(fewer < more for m in STREAMS[:-1] for fewer, more in zip(settings[m], settings[m + 1], strict=True))
    times_ms = [float(np.mean(table.where(m=m).numbers("median_ms"))) for m in STREAMS]
    return Claim(
        "more streams take more, at every z",
        "yes",
        " < ".join(f"{spent:.2g} ms" for spent in times_ms) + ", on average over z",
        held,
    )


EXPERIMENT = Experiment("grubjoin/figure9", "Time of the greedy search, by throttle", run)
