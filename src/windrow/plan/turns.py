"""Whose turn it is, by prediction: the order of buffers with the least work, or with the earliest results.

    what steps found and took so far ─▶ for each order: seconds and results of each driver ─▶ total work, mean wait

    order c, a, b      c ▓▓▓▓ 900 results         a ▓▓ 40        b ▓▓▓▓▓ 60
                       └──────── they leave at the end of the driver's turn: wait = Σ results · end / Σ results

A driver sees what is stored, and of the batch's own rows those of the drivers before it; in order of event time it sees
about half of each, and looks into all of them. `total` takes the order with the least predicted seconds, `early` the
one whose results wait least among those that cost at most a twentieth more than order of event time. Up to three
streams all orders are looked at, beyond that those of the simple policies.

>>> cheap = StepCost(per_probe=1e-7, per_candidate=0.0, per_result=1e-7)
>>> loads = {"a": Load(buffered=1000, stored=10, seen=1000), "b": Load(buffered=10, stored=1000, seen=1000)}
>>> prospects = {"a": (Prospect("b", 0.01, 0.01, cheap),), "b": (Prospect("a", 0.01, 0.01, cheap),)}
>>> [forecast(order, loads, prospects).results for order in (("a", "b"), ("b", "a"))]
[10101.0, 10101.0]
>>> favoured("early", loads, prospects)
('a', 'b')
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import permutations

from windrow.errors import PlanError
from windrow.plan.cost import StepCost

Order = tuple[str, ...]

MOST_PERMUTED = 3
MOST_SLOWER = 1.05
LEAST_GAIN = 0.99


@dataclass(frozen=True, slots=True)
class Load:
    """What is known of a stream when a batch starts: rows in its buffer, rows in its window, rows seen so far, and in
    how many segments the window lies.
    """

    buffered: int
    stored: int
    seen: int
    segments: int = 1


@dataclass(frozen=True, slots=True)
class Prospect:
    """What to expect of a step: matches, and rows looked at, for each row of the target's that a probe can see."""

    target: str
    found: float
    looked_at: float
    cost: StepCost


Prospects = Mapping[str, tuple[Prospect, ...]]
"""The steps of each driver's path."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a batch is predicted to take, how long a result waits on average, and how many there are."""

    total_s: float
    wait_s: float
    results: float


def forecast(order: Order | None, loads: Mapping[str, Load], prospects: Prospects) -> Forecast:
    """The prediction for an order of buffers; None: in order of event time, which runs driver by driver as well."""
    now_s = results = waited = 0.0
    before: set[str] = set()
    for driver in order or tuple(loads):
        probes = float(loads[driver].buffered)
        for step in prospects[driver]:
            load = loads[step.target]
            seen = 0.5 if order is None else float(step.target in before)
            rows = load.stored + seen * load.buffered
            looks = (load.segments + (seen > 0)) / (load.segments + 1)
            matches = probes * rows * step.found
            now_s += step.cost.seconds(probes * looks, probes * rows * step.looked_at, matches)
            probes = matches
        results += probes
        waited += probes * now_s
        before.add(driver)
    return Forecast(now_s, waited / results if results else now_s, results)


def favoured(
    favour: str, loads: Mapping[str, Load], prospects: Prospects, simple: Iterable[Order] = ()
) -> Order | None:
    """The best order; `simple` are the ones to choose among where there are too many."""
    orders = tuple(permutations(loads)) if len(loads) <= MOST_PERMUTED else tuple(simple)
    by_time = forecast(None, loads, prospects)
    found = {order: forecast(order, loads, prospects) for order in orders}
    if favour == "early":
        allowed = [order for order in found if found[order].total_s <= MOST_SLOWER * by_time.total_s]
        best = min(allowed, key=lambda order: found[order].wait_s, default=None)
        return best if best is not None and found[best].wait_s < by_time.wait_s else None
    if favour == "total":
        best = min(found, key=lambda order: found[order].total_s, default=None)
        return best if best is not None and found[best].total_s < LEAST_GAIN * by_time.total_s else None
    raise PlanError(f"nothing is favoured by '{favour}'", hint="favour early or total")


def guessed(loads: Mapping[str, Load], results: int, cost: StepCost) -> Prospects:
    """Prospects where steps were not looked at: all alike, so that they give the results there have been so far.

    >>> cost = StepCost(1e-7, 0.0, 1e-7)
    >>> guessed({"a": Load(1, 5, 10), "b": Load(1, 5, 20)}, 2, cost)["a"] == (Prospect("b", 0.01, 0.01, cost),)
    True
    """
    pairs = 1.0
    for load in loads.values():
        pairs *= max(1, load.seen)
    found = (results / pairs) ** (1 / max(1, len(loads) - 1))
    return {
        driver: tuple(Prospect(target, found, found, cost) for target in loads if target != driver) for driver in loads
    }
