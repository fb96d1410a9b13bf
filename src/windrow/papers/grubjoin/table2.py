"""Table II: what GrubJoin finds more than RandomDrop, over the cost of the join condition (section VI-B.6).

Nonaligned streams at 75 rows a second, the highest rate at which both find the same; a condition is evaluated 1, 2, 4,
6, 8, 10 times. The gain grows from 6 % to 35 %. Rates have a more pronounced effect than costs, because more rows do
not only come but are in the windows, too: so we double the rate beside.

The machine and RandomDrop are those of `capacity`. The paper has a gain without any overload; ours begins with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.grubjoin.capacity import COLUMNS, compared, machine, percent
from windrow.papers.grubjoin.scenario import Scenario
from windrow.papers.tables import Table

RATE_HZ, TIMES = 75.0, 2
PAPERS = {1: 0.06, 2: 0.10, 4: 0.15, 6: 0.22, 8: 0.27, 10: 0.35}
RUNS, QUICK_RUNS = 5, 1
NOISE = 0.03


def run(quick: bool, seed: int) -> Outcome:
    """All multipliers, and one rate."""
    return costs(Scenario(RATE_HZ), tuple(PAPERS), range(seed, seed + (QUICK_RUNS if quick else RUNS)))


def costs(scenario: Scenario, multipliers: Sequence[int], seeds: range) -> Outcome:
    """The same for these multipliers, as means over these seeds."""
    rate_hz = scenario.rate_hz
    rows: list[tuple[float | None, ...]] = [
        (rate_hz, times, PAPERS.get(times), *compared(scenario, machine(times), seeds).row) for times in multipliers
    ]
    faster = compared(replace(scenario, rate_hz=TIMES * rate_hz), machine(), seeds)
    rows.append((TIMES * rate_hz, 1, None, *faster.row))
    table = Table.of(("rate_hz", "multiplier", "paper", *COLUMNS), rows)
    slower = table.where(rate_hz=rate_hz)
    gains, loads = slower.numbers("gain"), slower.numbers("load")
    dearer = dict(zip(multipliers, gains, strict=True))
    last = multipliers[-1]
    claims = (
        Claim(
            "the gain grows with the cost of the condition",
            ", ".join(percent(PAPERS[times]) for times in multipliers if times in PAPERS),
            ", ".join(map(percent, gains)),
            gains[-1] > gains[0] and all(less <= more + NOISE for less, more in pairwise(gains)),
        ),
        Claim(
            f"a condition {last} times as dear",
            percent(PAPERS[last]),
            f"{percent(gains[-1])} at load {loads[-1]:.1f}",
            gains[-1] >= PAPERS[last],
        ),
        Claim(
            f"{TIMES} times the rate has more effect than {TIMES} times the cost",
            "yes",
            f"{percent(faster.gain)} against {percent(dearer[TIMES])}",
            faster.gain > dearer[TIMES],
        ),
    )
    series = (
        Series("paper", slower.column("multiplier"), tuple(100 * gain for gain in slower.numbers("paper"))),
        Series("ours", slower.column("multiplier"), tuple(100 * gain for gain in gains)),
    )
    return Outcome(table, claims, (Chart("cost multiplier", "gain (%)", series),))


EXPERIMENT = Experiment("grubjoin/table2", "Gain over RandomDrop, by the cost of the join condition", run)
