"""Figure 15: GrubJoin's output rate over the adaptation interval Δ, for m = 3, 4, 5 (section VI-B.5).

Rates change from 100 to 150 rows a second after 8 s, and to 50 after another 8 s; Δ from .5 to 8 s. The best Δ is .5 s
for m = 3, 1 s for m = 4, 3 s for m = 5, because choosing what to harvest takes longer the more streams there are.

Ours: nonaligned streams, the fourth and fifth as in Figure 13; for each m a machine on which the full join at 100 rows
a second takes `LOAD` times as long as there is time for, otherwise that of `capacity`, where a choice takes what the
paper's did (`decision_s`); batches of half a second, 20 s at 100 rows a second before, which do not count, so that
windows are full. That a choice from few observations is a poor one weighs more than what it takes: at m = 5 it is 5 ms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean

from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.grubjoin import figure13
from windrow.papers.grubjoin.capacity import Workload, fitted, output_hz
from windrow.papers.grubjoin.scenario import Scenario
from windrow.papers.tables import Table
from windrow.streams.arrivals import Step

PHASE_S, RATES_HZ = 8.0, (100.0, 150.0, 50.0)
STREAMS = (3, 4, 5)
INTERVALS_S, QUICK_INTERVALS_S = (0.5, 1.0, 2.0, 3.0, 5.0, 8.0), (0.5, 3.0, 8.0)
PAPERS_BEST_S = {3: 0.5, 4: 1.0, 5: 3.0}
LOAD, BATCH_S, WARM_UP_S = 2.0, 0.5, 20.0
RUNS, QUICK_RUNS = 5, 1


def run(quick: bool, seed: int) -> Outcome:
    """All intervals, all m."""
    seeds = range(seed, seed + (QUICK_RUNS if quick else RUNS))
    return intervals(STREAMS, QUICK_INTERVALS_S if quick else INTERVALS_S, RATES_HZ, seeds)


def intervals(streams: Sequence[int], intervals_s: Sequence[float], rates_hz: Sequence[float], seeds: range) -> Outcome:
    """The same for these m and Δ, as means over these seeds."""
    phases = Step(((WARM_UP_S + PHASE_S, rates_hz[0]), *((PHASE_S, rate_hz) for rate_hz in rates_hz[1:])))
    run_s = WARM_UP_S + PHASE_S * len(rates_hz)
    rows = []
    for count in streams:
        scenario = Scenario(max(rates_hz), figure13.LAGS_S[:count], figure13.NOISE[:count], run_s=run_s)
        before = replace(scenario, rate_hz=rates_hz[0], run_s=2 * WARM_UP_S)
        on = fitted(Workload.of(before, seeds[0]), LOAD)
        for interval_s in intervals_s:
            adapting = replace(scenario, interval_s=interval_s)
            found = [Workload.of(adapting, seed, phases, BATCH_S).grubjoin(on) for seed in seeds]
            rows.append((count, interval_s, fmean(output_hz(adapting, ran) for ran in found)))
    table = Table.of(("m", "interval_s", "output_hz"), rows)
    of = {count: table.where(m=count) for count in streams}
    most = {count: max(found.numbers("output_hz")) for count, found in of.items()}
    series = tuple(
        Series(f"m = {count}", found.column("interval_s"), tuple(hz / most[count] for hz in found.numbers("output_hz")))
        for count, found in of.items()
    )
    chart = Chart("adaptation interval Δ (s)", "results a second, as a share of the best", series)
    return Outcome(table, _claims(of), (chart,))


def _claims(of: dict[int, Table]) -> tuple[Claim, ...]:
    best_s = {}
    for count, table in of.items():
        outputs = table.numbers("output_hz")
        best_s[count] = table.numbers("interval_s")[outputs.index(max(outputs))]
    lost = {count: _at_longest(table) / max(table.numbers("output_hz")) for count, table in of.items()}
    return (
        Claim(
            "the best Δ grows with the number of streams",
            ", ".join(f"{PAPERS_BEST_S[count]:g} s" for count in of),
            ", ".join(f"{each:g} s" for each in best_s.values()),
            all(fewer <= more for fewer, more in pairwise(best_s.values())),
        ),
        Claim(
            f"m = {min(of)}: the shortest Δ is the best",
            f"{PAPERS_BEST_S[min(of)]:g} s",
            f"{best_s[min(of)]:g} s",
            best_s[min(of)] == min(of[min(of)].numbers("interval_s")),
        ),
        Claim(
            "the longest Δ is too conservative for rates that change every 8 s",
            "yes",
            ", ".join(f"m = {count}: {share:.2f} of the best" for count, share in lost.items()),
            all(share < 1 for share in lost.values()),
        ),
    )


def _at_longest(table: Table) -> float:
    intervals_s = table.numbers("interval_s")
    return table.numbers("output_hz")[intervals_s.index(max(intervals_s))]


EXPERIMENT = Experiment("grubjoin/figure15", "Output over the adaptation interval", run)
