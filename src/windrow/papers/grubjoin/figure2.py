"""Figure 2: the throttle fraction z and the rates of the input streams, over time (section III-A).

Δ = 4 s, γ = 1.2, bursty streams; nothing else is given. z goes against the rates, and follows them by about Δ.

Ours: the aligned streams of section VI-B, whose rate changes every 24 s as in `PHASES`, on the machine of `capacity`,
with windows of 5 s in basic windows of .5 s, so that windows follow the rate about as soon as z does, and conditions
`DEARER` times as dear. Windrow's throttle falls at once, as far as it has to, and rises by at most γ a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean

import numpy as np

from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.grubjoin.capacity import Workload, machine
from windrow.papers.grubjoin.scenario import Scenario
from windrow.papers.tables import Table
from windrow.streams.arrivals import Step

INTERVAL_S, BOOST = 4.0, 1.2
WINDOW_S, BIN_S, DEARER = 5.0, 0.5, 16
PHASE_S = 24.0
PHASES = (100, 160, 110, 200, 90, 150, 80)
QUICK_PHASES = (100, 160, 90, 200, 80)
DELAY = 2 * INTERVAL_S
ROUNDING = 1e-9


def run(quick: bool, seed: int) -> Outcome:
    """One run through all phases."""
    return adaptation(QUICK_PHASES if quick else PHASES, PHASE_S, seed)


def adaptation(rates_hz: Sequence[float], phase_s: float, seed: int) -> Outcome:
    """The same through these phases."""
    run_s = phase_s * len(rates_hz)
    scenario = Scenario(max(rates_hz), window_s=WINDOW_S, bin_s=BIN_S, run_s=run_s, interval_s=INTERVAL_S).aligned()
    work = Workload.of(scenario, seed, arrivals=Step(tuple((phase_s, rate_hz) for rate_hz in rates_hz)))
    ran = work.grubjoin(machine(DEARER), control=replace(work.control(), boost=BOOST))
    rows = [
        (begin_s, rates_hz[min(int(begin_s / phase_s), len(rates_hz) - 1)], throttle)
        for begin_s, throttle in ran.throttles()
        if begin_s <= scenario.run_s
    ]
    table = Table.of(("time_s", "rate_hz", "z"), rows)
    chart = Chart(
        "time (s)",
        "rows a second, each stream",
        (Series.of(table, "input rate", x="time_s", y="rate_hz"),),
        right=(Series.of(table, "throttle fraction z", x="time_s", y="z"),),
        right_title="z",
    )
    return Outcome(table, _claims(table, rates_hz, phase_s), (chart,))


def _claims(table: Table, rates_hz: Sequence[float], phase_s: float) -> tuple[Claim, ...]:
    times_s, throttles = table.numbers("time_s"), table.numbers("z")
    found = list(zip(times_s, throttles, strict=True))
    right = changes = 0
    for number, (before_hz, after_hz) in enumerate(pairwise(rates_hz), start=1):
        change_s = number * phase_s
        before = [z for time_s, z in found if time_s <= change_s][-1]
        soon = [z for time_s, z in found if change_s < time_s <= change_s + DELAY + 1]
        changes += 1
        right += min(soon) < before if after_hz > before_hz else max(soon) > before or before >= 1
    rises = [after / before for before, after in pairwise(throttles)]
    levels = [
        fmean(z for time_s, z in found if number * phase_s < time_s <= (number + 1) * phase_s)
        for number in range(len(rates_hz))
    ]
    correlation = float(np.corrcoef(rates_hz[1:], levels[1:])[0, 1])
    return (
        Claim(
            "z goes against the rate",
            "inversely proportional",
            f"correlation of their means, phase by phase, {correlation:.2f}",
            correlation < -0.5,
        ),
        Claim(
            f"z moves the right way within {DELAY:g} s of a change",
            f"a delay of about Δ = {INTERVAL_S:g} s",
            f"after {right} of {changes} changes",
            right == changes,
        ),
        Claim(
            "z rises by at most γ a step",
            f"{BOOST:g}",
            f"{max(rises):.3g}",
            max(rises) <= BOOST + ROUNDING,
        ),
    )


EXPERIMENT = Experiment("grubjoin/figure2", "The throttle follows the rates of the streams", run)
