"""Figure 12: output rate over the deviation κ3, that is over how weakly time is correlated (section VI-B.2).

Nonaligned streams, κ1 = κ2 = 2, 200 rows a second. GrubJoin finds 250 % more than RandomDrop at κ3 = 25, 150 % at 50,
25 % at 75, and about as much where time correlations are almost gone.

The machine and RandomDrop are those of `capacity`. There, a gain cannot exceed the overload less one, and GrubJoin
finds nearly all there is at any κ3: what κ3 does shows where more has to be shed, so we add conditions that are
`DEARER` times as dear. With κ3 alone correlation does not vanish: rows of S1 and S2 still agree at one lag, whatever S3
does. So we let all deviations grow as well, which takes it away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.grubjoin.capacity import COLUMNS, Compared, compared, machine, percent
from windrow.papers.grubjoin.scenario import Scenario
from windrow.papers.tables import Table, Value

RATE_HZ = 200.0
PAPERS = {25: 2.5, 50: 1.5, 75: 0.25}
NOISE, QUICK_NOISE = (10, 25, 50, 75, 100, 200), (25, 50, 75)
RUNS, QUICK_RUNS = 5, 1
GONE = 500.0
DEARER = 2
THIRD, ALL_STREAMS = "the third", "all"
NEAR = 0.1


def run(quick: bool, seed: int) -> Outcome:
    """κ3 alone, and all deviations large."""
    seeds = range(seed, seed + (QUICK_RUNS if quick else RUNS))
    return deviations(Scenario(RATE_HZ), QUICK_NOISE if quick else NOISE, seeds)


def deviations(scenario: Scenario, noise: Sequence[float], seeds: range) -> Outcome:
    """The same at these deviations of the third stream, as means over these seeds."""
    first, second, _ = scenario.noise
    found = {
        times: {
            value: compared(replace(scenario, noise=(first, second, value)), machine(times), seeds) for value in noise
        }
        for times in (1, DEARER)
    }
    without = compared(replace(scenario, noise=(GONE,) * 3), machine(), seeds)
    rows: list[tuple[Value, ...]] = [
        (THIRD, value, times, *one.row) for times, of in found.items() for value, one in of.items()
    ]
    table = Table.of(("deviating", "noise", "multiplier", *COLUMNS), [*rows, (ALL_STREAMS, GONE, 1, *without.row)])
    charts = tuple(_chart(table, times) for times in found)
    return Outcome(table, _claims(found, without), charts)


def _chart(table: Table, times: int) -> Chart:
    of = table.where(deviating=THIRD, multiplier=times)
    series = tuple(
        Series.of(of, name, x="noise", y=column)
        for name, column in (("GrubJoin", "grubjoin_hz"), ("RandomDrop", "random_drop_hz"))
    )
    title = "" if times == 1 else f"conditions {times} times as dear"
    return Chart("deviation κ3", "results a second", series, title=title)


def _claims(found: dict[int, dict[float, Compared]], without: Compared) -> tuple[Claim, ...]:
    usual = found[1]
    claims = [
        Claim(
            f"κ3 = {value}: GrubJoin finds more",
            percent(papers),
            f"{percent(usual[value].gain)} at load {usual[value].load:.1f}",
            usual[value].gain >= papers,
        )
        for value, papers in PAPERS.items()
        if value in usual
    ]
    return (
        *claims,
        _shrinking("the gain shrinks as κ3 grows", usual),
        _shrinking(f"the same with conditions {DEARER} times as dear", found[DEARER]),
        Claim(
            f"both find about the same without correlation (all deviations {GONE:g})",
            "very close",
            f"{percent(without.gain)} at load {without.load:.1f}",
            abs(without.gain) <= NEAR,
        ),
    )


def _shrinking(text: str, found: dict[float, Compared]) -> Claim:
    gains = [each.gain for each in found.values()]
    loads = [each.load for each in found.values()]
    ours = f"{', '.join(map(percent, gains))} at loads {max(loads):.1f} to {min(loads):.1f}"
    return Claim(text, ", ".join(map(percent, PAPERS.values())), ours, gains == sorted(gains, reverse=True))


EXPERIMENT = Experiment("grubjoin/figure12", "Output over how weakly time is correlated", run)
