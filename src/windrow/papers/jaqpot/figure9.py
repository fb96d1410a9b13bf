"""Figure 9: results that are stale when freshness is not looked at, and what looking at it takes (section 5.3).

(a) linear, (b) bushy, (c) the tree (((a b) (c d)) e) of the sensor data: the share of results that violate a freshness
of 1.5, 3 and 5 windows, for GrePP without a cover and for the four heuristics, with 300 tuples a second. Simulated:
states hold a number of rows and are purged by insertion, which is where the paper's staleness comes from (`purging`).
(d): the share of the resources that JAQPOT's cover takes.

Ours: parameters drawn from Table 3, for (c) with 1000 rows in every state and drawn rates and selectivities, as the
paper's join attribute and rates are not known. In that range, 300 tuples a second are below 1 % of saturation, so that
freshness can rarely be kept; (d) draws resources of 1 to 100 % of saturation, and takes the median of those trees whose
freshness can be kept. The slack of a freshness is shared equally over states, which the paper does not say.
"""

from __future__ import annotations

import statistics
from dataclasses import replace
from itertools import pairwise

import numpy as np

from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.jaqpot.purging import Clock, stale_shares
from windrow.papers.tables import Table
from windrow.plan.directions import (
    HEURISTICS,
    Join,
    Model,
    State,
    Stream,
    allocate,
    greedy_cover,
    least_resources,
    refresh_rates,
)
from windrow.plan.directions.instances import FRESHNESS, random_tree, times_window
from windrow.plan.directions.shapes import Shape, bushy, linear, read
from windrow.plan.directions.tree import Node

SENSORS = "sensors"
SHAPES: dict[str, Shape] = {"linear": linear("abcd"), "bushy": bushy("abcd"), SENSORS: read("(((a b) (c d)) e)")}
SENSOR_ROWS = 1000.0
RESOURCES = 300.0
GREPP = "GrePP"
METHODS = (GREPP, *(heuristic.name for heuristic in HEURISTICS))
TREES, QUICK_TREES = 12, 3
COVERS, QUICK_COVERS = 400, 60
CLOCK, QUICK_CLOCK = Clock(0.1, 120, 30), Clock(0.1, 60, 10)
STALE, SHARE, REFUSED = "stale share", "share for freshness", "share infeasible"


def run(quick: bool, seed: int) -> Outcome:
    """Stale results of every method, and resources for freshness."""
    random, again = np.random.default_rng((seed, 0)), np.random.default_rng((seed, 1))
    rows: list[tuple[object, ...]] = []
    for plan in SHAPES:
        trees = [_drawn(random, plan) for _ in range(QUICK_TREES if quick else TREES)]
        for method in METHODS:
            shares = [_stale(tree, method, QUICK_CLOCK if quick else CLOCK, random) for tree in trees]
            for factor, column in zip(FRESHNESS, zip(*shares, strict=True), strict=True):
                rows.append((STALE, plan, method, factor, statistics.fmean(column)))
        for factor in FRESHNESS:
            taken = [_taken(again, plan, factor) for _ in range(QUICK_COVERS if quick else COVERS)]
            kept = [share for share in taken if share is not None]
            rows.append((SHARE, plan, "JAQPOT", factor, statistics.median(kept)))
            rows.append((REFUSED, plan, "any", factor, 1 - len(kept) / len(taken)))
    table = Table.of(("figure", "plan", "method", "freshness", "value"), rows)
    return Outcome(table, _claims(table), _charts(table))


def _drawn(random: np.random.Generator, plan: str) -> Join:
    tree = random_tree(random, SHAPES[plan])
    return Join(_resized(tree.left), _resized(tree.right)) if plan == SENSORS else tree


def _resized(node: Node) -> Node:
    """The same with states of one size."""
    state = State(SENSOR_ROWS, node.state.selectivity)
    if isinstance(node, Stream):
        return replace(node, state=state)
    return Join(_resized(node.left), _resized(node.right), state)


def _stale(tree: Join, method: str, clock: Clock, random: np.random.Generator) -> tuple[float, ...]:
    """The share of stale results for each freshness."""
    if method == GREPP:
        probing_hz = allocate(tree, RESOURCES, method="grepp").probing_hz
    else:
        (heuristic,) = (heuristic for heuristic in HEURISTICS if heuristic.name == method)
        probing_hz = heuristic.flow(tree, RESOURCES).probing_hz
    model = Model.of(tree)
    return stale_shares(tree, probing_hz, [times_window(model, factor) for factor in FRESHNESS], clock, random)


def _taken(random: np.random.Generator, plan: str, factor: float) -> float | None:
    """The share of random resources that a cover takes; None if freshness cannot be kept with them in any way."""
    model = Model.of(_drawn(random, plan))
    budget = float(model.saturation * 10 ** random.uniform(-2, 0))
    wanted = model.per_stream(times_window(model, factor))
    covering_hz = greedy_cover(model, refresh_rates(model, wanted))
    if covering_hz is not None and float(model.cost @ covering_hz) <= budget:
        return float(model.cost @ covering_hz) / budget
    needed = least_resources(model, wanted)
    return None if needed is None or needed > budget else needed / budget


def _charts(table: Table) -> tuple[Chart, ...]:
    stale = [
        Chart(
            "freshness (windows)",
            "share of results that are stale",
            tuple(
                Series.of(table.where(figure=STALE, plan=plan, method=m), m, x="freshness", y="value") for m in METHODS
            ),
            title=plan,
            bars=True,
        )
        for plan in SHAPES
    ]
    taken = tuple(Series.of(table.where(figure=SHARE, plan=plan), plan, x="freshness", y="value") for plan in SHAPES)
    return (*stale, Chart("freshness (windows)", "share of resources for freshness", taken, bars=True))


def _claims(table: Table) -> tuple[Claim, ...]:
    def values(figure: str, plan: str, method: str) -> tuple[float, ...]:
        return table.where(figure=figure, plan=plan, method=method).numbers("value")

    mean = {plan: statistics.fmean(table.where(figure=STALE, plan=plan).numbers("value")) for plan in SHAPES}
    of = {m: statistics.fmean(table.where(figure=STALE, method=m).numbers("value")) for m in METHODS}
    worst_two = sorted(METHODS, key=lambda method: -of[method])[:2]
    falling = all(_falls(values(STALE, plan, method)) for plan in SHAPES for method in METHODS)
    share = {plan: values(SHARE, plan, "JAQPOT") for plan in SHAPES}
    refused = table.where(figure=REFUSED)
    strictest = sum(refused.where(freshness=FRESHNESS[0]).numbers("value")) / max(sum(refused.numbers("value")), 1e-9)
    infeasible = statistics.fmean(refused.numbers("value"))
    some = values(STALE, "linear", GREPP)[0]
    sbest = values(STALE, "bushy", "SBestHJP")[0]
    least = min(mean, key=mean.__getitem__)
    return (
        Claim(
            "the less fresh results have to be, the fewer are stale",
            "yes",
            "in all plans and methods" if falling else "not in all",
            falling,
        ),
        Claim("linear, 1.5 windows: GrePP alone has many stale results", "substantial", f"{some:.0%}", some > 0.1),
        Claim(
            "bushy trees have more stale results than linear ones", "yes", _shares(mean), mean["bushy"] > mean["linear"]
        ),
        Claim("the sensors' tree has fewest", "yes", _shares(mean), least == SENSORS),
        Claim("bushy, 1.5 windows: SBestHJP", "70 %", f"{sbest:.0%}", 0.5 <= sbest <= 0.9),
        Claim(
            "EBestHJP and SBestHJP are worst",
            "yes",
            ", ".join(f"{m} {of[m]:.0%}" for m in worst_two),
            set(worst_two) == {"EBestHJP", "SBestHJP"},
        ),
        Claim("the less fresh, the fewer resources it takes", "yes", _three(share), all(map(_falls, share.values()))),
        Claim(
            "5 windows take few resources",
            "linear 3 %, sensors 5 %",
            _three({p: v[2:] for p, v in share.items()}),
            max(v[2] for v in share.values()) <= 0.05,
        ),
        Claim(
            "1.5 windows take more on bushy than on linear trees",
            "35 % on bushy",
            _three({p: v[:1] for p, v in share.items()}),
            share["bushy"][0] > share["linear"][0],
        ),
        Claim("trees whose freshness cannot be kept", "8 %", f"{infeasible:.1%}", 0.02 <= infeasible <= 0.15),
        Claim("most infeasible trees are those for 1.5 windows", "85 %", f"{strictest:.0%}", strictest > 0.5),
    )


def _falls(values: tuple[float, ...]) -> bool:
    return all(later <= earlier + 0.02 for earlier, later in pairwise(values))


def _shares(values: dict[str, float]) -> str:
    return ", ".join(f"{plan} {value:.0%}" for plan, value in values.items())


def _three(values: dict[str, tuple[float, ...]]) -> str:
    return "; ".join(f"{plan} {', '.join(f'{value:.1%}' for value in found)}" for plan, found in values.items())


EXPERIMENT = Experiment("jaqpot/figure9", "Stale results, and the resources that freshness takes", run)
