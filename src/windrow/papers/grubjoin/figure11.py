"""Figure 11: output rate over the rate of the input streams, GrubJoin and RandomDrop (section VI-B.1).

κ = (2, 2, 50); aligned, and nonaligned with τ = (0, 5, 15). The same output as long as nothing has to be shed, up to
about 100 rows a second; beyond, GrubJoin finds more, the more the rates rise: up to 65 % more where streams are
aligned, 150 % where they are not.

The machine and RandomDrop are those of `capacity`. The text does not give the rates; ours go to 200 rows a second, the
rate of Figure 12. On one machine the aligned streams are the more overloaded ones, so at one rate the two gains do not
compare like with like: the table has the load beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.grubjoin.capacity import COLUMNS, FITTING_HZ, FULL, compared, machine, percent
from windrow.papers.grubjoin.scenario import Scenario
from windrow.papers.tables import Table

RATES_HZ = (25.0, 50.0, 75.0, 100.0, 125.0, 150.0, 175.0, 200.0)
QUICK_RATES_HZ = (50.0, 100.0, 150.0, 200.0)
RUNS, QUICK_RUNS = 5, 1
ALIGNED, NONALIGNED = "aligned", "nonaligned"
PAPERS = {ALIGNED: 0.65, NONALIGNED: 1.5}
EQUAL = 0.1


def run(quick: bool, seed: int) -> Outcome:
    """Both approaches on both scenarios, at every rate."""
    seeds = range(seed, seed + (QUICK_RUNS if quick else RUNS))
    return rates(Scenario(FITTING_HZ), QUICK_RATES_HZ if quick else RATES_HZ, seeds)


def rates(scenario: Scenario, rates_hz: Sequence[float], seeds: range) -> Outcome:
    """The same at these rates, as means over these seeds."""
    rows = []
    for rate_hz in rates_hz:
        nonaligned = replace(scenario, rate_hz=rate_hz)
        for name, streams in ((ALIGNED, nonaligned.aligned()), (NONALIGNED, nonaligned)):
            rows.append((name, rate_hz, *compared(streams, machine(), seeds).row))
    table = Table.of(("streams", "rate_hz", *COLUMNS), rows)
    series = tuple(
        Series.of(table.where(streams=name), f"{approach}, {name}", x="rate_hz", y=column)
        for name in (ALIGNED, NONALIGNED)
        for approach, column in (("GrubJoin", "grubjoin_hz"), ("RandomDrop", "random_drop_hz"))
    )
    return Outcome(table, _claims(table), (Chart("rows a second, each stream", "results a second", series),))


def _claims(table: Table) -> tuple[Claim, ...]:
    low = [gain for load, gain in _gains(table) if load <= FULL + 0.05]
    claims = [
        Claim(
            "GrubJoin and RandomDrop find the same while nothing has to be shed",
            "up to 100 rows a second",
            f"{percent(min(low))} to {percent(max(low))}",
            max(map(abs, low)) <= EQUAL,
        )
    ]
    best = {}
    for name, papers in PAPERS.items():
        found = _gains(table.where(streams=name))
        overloaded = [gain for load, gain in found if load > 1]
        best[name] = max(overloaded)
        told = ", ".join(f"{percent(gain)} at load {load:.1f}" for load, gain in found if load > 1)
        claims.append(
            Claim(
                f"{name}: GrubJoin finds more under overload, the more the rates rise",
                "yes",
                told,
                min(overloaded) > 0 and overloaded == sorted(overloaded),
            )
        )
        claims.append(Claim(f"{name}: up to", percent(papers), percent(best[name]), best[name] >= papers))
    claims.append(
        Claim(
            "lags add to the gain: nonaligned more than aligned",
            f"{percent(PAPERS[NONALIGNED])} against {percent(PAPERS[ALIGNED])}",
            f"{percent(best[NONALIGNED])} against {percent(best[ALIGNED])}",
            best[NONALIGNED] > best[ALIGNED],
        )
    )
    return tuple(claims)


def _gains(table: Table) -> list[tuple[float, float]]:
    return list(zip(table.numbers("load"), table.numbers("gain"), strict=True))


EXPERIMENT = Experiment("grubjoin/figure11", "Output over input rates, GrubJoin and RandomDrop", run)
