"""Figure 13: what GrubJoin finds more than RandomDrop, over the number of streams m (section VI-B.3).

m = 3, 4, 5 at 100 rows a second, aligned and nonaligned. The gain grows about linearly with m, more where streams are
not aligned, up to 700 % for m = 5.

The machine and RandomDrop are those of `capacity`: with m = 3 there is just no need to shed at this rate, so most of
the gain has to come with the fourth and the fifth stream, which make the full join about seven times as dear each. Lags
and deviations of these are not given; ours are τ4 = 10, τ5 = 3 s and κ4 = κ5 = 2. The gain can be no larger than the
overload, which is told beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.grubjoin.capacity import COLUMNS, compared, machine, percent
from windrow.papers.grubjoin.scenario import Scenario
from windrow.papers.tables import Table

RATE_HZ = 100.0
STREAMS = (3, 4, 5)
LAGS_S, NOISE = (0.0, 5.0, 15.0, 10.0, 3.0), (2.0, 2.0, 50.0, 2.0, 2.0)
RUNS, QUICK_RUNS = 5, 1
ALIGNED, NONALIGNED = "aligned", "nonaligned"
PAPERS_MOST = 7.0


def run(quick: bool, seed: int) -> Outcome:
    """Both approaches, both scenarios, all m."""
    return joins(Scenario(RATE_HZ), STREAMS, range(seed, seed + (QUICK_RUNS if quick else RUNS)))


def joins(scenario: Scenario, streams: Sequence[int], seeds: range) -> Outcome:
    """The same for these m, as means over these seeds."""
    rows = []
    for count in streams:
        nonaligned = replace(scenario, lags_s=LAGS_S[:count], noise=NOISE[:count])
        for name, joined in ((ALIGNED, nonaligned.aligned()), (NONALIGNED, nonaligned)):
            rows.append((name, count, *compared(joined, machine(), seeds).row))
    table = Table.of(("streams", "m", *COLUMNS), rows)
    outputs = tuple(
        Series.of(table.where(streams=name), f"{approach}, {name}", x="m", y=column)
        for name in (ALIGNED, NONALIGNED)
        for approach, column in (("GrubJoin", "grubjoin_hz"), ("RandomDrop", "random_drop_hz"))
    )
    gains = tuple(
        Series(f"gain, {name}", found.column("m"), tuple(100 * gain for gain in found.numbers("gain")))
        for name, found in ((name, table.where(streams=name)) for name in (ALIGNED, NONALIGNED))
    )
    chart = Chart("streams m", "results a second", outputs, bars=True, right=gains, right_title="gain (%)")
    return Outcome(table, _claims(table), (chart,))


def _claims(table: Table) -> tuple[Claim, ...]:
    of = {name: table.where(streams=name) for name in (ALIGNED, NONALIGNED)}
    gains = {name: found.numbers("gain") for name, found in of.items()}
    loads = {name: found.numbers("load") for name, found in of.items()}
    claims = [
        Claim(
            f"{name}: the gain grows with the number of streams",
            "about linearly",
            ", ".join(f"{percent(g)} at load {load:.1f}" for g, load in zip(gains[name], loads[name], strict=True)),
            all(fewer < more for fewer, more in pairwise(gains[name])),
        )
        for name in of
    ]
    most = max(gains[NONALIGNED])
    return (
        *claims,
        Claim(
            f"m = {table.column('m')[-1]}, nonaligned: up to",
            percent(PAPERS_MOST),
            f"{percent(gains[NONALIGNED][-1])} at load {loads[NONALIGNED][-1]:.1f}",
            most >= PAPERS_MOST,
        ),
        Claim(
            "lags add to the gain: nonaligned more than aligned, on average over m",
            "yes",
            f"{percent(_mean(gains[NONALIGNED]))} against {percent(_mean(gains[ALIGNED]))}",
            _mean(gains[NONALIGNED]) > _mean(gains[ALIGNED]),
        ),
    )


def _mean(gains: Sequence[float]) -> float:
    return sum(gains) / len(gains)


EXPERIMENT = Experiment("grubjoin/figure13", "Gain over RandomDrop, by the number of streams", run)
