"""Figure 10: greedy from below, in reverse from above, and double-sided, over the throttle z (section VI-A).

m = 3. From below takes longer the more may be spent, from above the less. Double-sided takes the first where z <= .5
** ((m - 1) / 2), else the second, and "gets the best of both worlds".

Ours: n = 10, the joins of `searches`, medians. Basic windows put in or taken out are counted as well as timed; claims
go by the count where they can. By time, Windrow's reverse search is the faster one from far below the switch on:
looking at a setting takes it less than half as long as the search from below.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.grubjoin.searches import budget_of, random_models, time_ms, windows_put_in
from windrow.papers.tables import Table
from windrow.plan.cost import CostModel
from windrow.plan.harvest.greedy import double_sided, forward, reverse, switch_throttle

STREAMS, BINS = 3, 10
THROTTLES = (0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
JOINS, QUICK_JOINS = 200, 40
GREEDY, REVERSE, DOUBLE_SIDED = "greedy", "reverse", "double_sided"
SEARCHES = {GREEDY: forward, REVERSE: reverse, DOUBLE_SIDED: double_sided}
NEAR = 0.15


def run(quick: bool, seed: int) -> Outcome:
    """The three searches at every throttle."""
    models = random_models(np.random.default_rng(seed), STREAMS, BINS, QUICK_JOINS if quick else JOINS)
    rows = [
        (throttle, *(time_ms(models, throttle, search) for search in SEARCHES.values()), *_moved(models, throttle))
        for throttle in THROTTLES
    ]
    columns = ("z", *(f"{name}_ms" for name in SEARCHES), f"{GREEDY}_windows", f"{REVERSE}_windows")
    table = Table.of(columns, rows)
    series = tuple(Series.of(table, name, x="z", y=f"{name}_ms") for name in SEARCHES)
    return Outcome(table, _claims(table), (Chart("throttle fraction z", "time (ms)", series),))


def crossing(throttles: Sequence[float], rising: Sequence[float], falling: Sequence[float]) -> float:
    """Where a rising line meets a falling one, between two points in proportion; the last throttle if nowhere.

    >>> crossing((0.0, 0.5, 1.0), (0.0, 4.0, 8.0), (8.0, 6.0, 2.0))
    0.625
    """
    gaps = [up - down for up, down in zip(rising, falling, strict=True)]
    for place in range(1, len(gaps)):
        if gaps[place] >= 0:
            share = -gaps[place - 1] / (gaps[place] - gaps[place - 1])
            return throttles[place - 1] + share * (throttles[place] - throttles[place - 1])
    return throttles[-1]


def _moved(models: Sequence[CostModel], throttle: float) -> tuple[float, float]:
    """Basic windows put in by the search from below, and taken out by the one from above, on average."""
    taken_out = [int((model.bins - reverse(model, budget_of(model, throttle))).sum()) for model in models]
    return windows_put_in(models, throttle), float(np.mean(taken_out))


def _claims(table: Table) -> tuple[Claim, ...]:
    throttles, switch = table.numbers("z"), switch_throttle(STREAMS)
    up, down = table.numbers(f"{GREEDY}_windows"), table.numbers(f"{REVERSE}_windows")
    both = [above if z > switch else below for z, below, above in zip(throttles, up, down, strict=True)]
    meeting = crossing(throttles, up, down)
    moved = {GREEDY: float(np.mean(up)), REVERSE: float(np.mean(down)), DOUBLE_SIDED: float(np.mean(both))}
    mean_us = {name: 1e3 * float(np.mean(table.numbers(f"{name}_ms"))) for name in SEARCHES}
    return (
        Claim("greedy slows down as z grows", "yes", f"{up[0]:.0f} to {up[-1]:.0f} windows", list(up) == sorted(up)),
        Claim(
            "reverse slows down as z falls",
            "yes",
            f"{down[-1]:.0f} to {down[0]:.0f} windows",
            list(down) == sorted(down, reverse=True),
        ),
        Claim(
            "reverse has less to do than greedy beyond the switch",
            f"z = {switch:g}",
            f"z = {meeting:.2f}",
            abs(meeting - switch) <= NEAR,
        ),
        _best_of_both("double-sided has less to do than both, on average over z", moved, "windows"),
        _best_of_both("double-sided is faster than both, on average over z", mean_us, "µs"),
    )


def _best_of_both(text: str, found: dict[str, float], unit: str) -> Claim:
    ours = ", ".join(f"{name.replace('_', '-')} {value:.3g}" for name, value in found.items())
    return Claim(text, "yes", f"{ours} {unit}", found[DOUBLE_SIDED] < min(found[GREEDY], found[REVERSE]))


EXPERIMENT = Experiment("grubjoin/figure10", "Greedy from below, in reverse, and double-sided", run)
