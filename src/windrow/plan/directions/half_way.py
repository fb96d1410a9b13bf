"""Allowances by half-way productivity alone: BestHJP for one join, and what it was stretched to for trees of them.

    EqualHJ      equal resources for all half-way joins
    GlobalHJPR   resources in the ratio of the half-way productivities
    EBestHJP     equal resources for all joins, within a join the more productive direction first
    SBestHJP     resources in the ratio of the joins' selectivities, within a join the more productive direction first

None knows what a join upstream will offer, so rows are found that may not go on, or allowances are not used; and none
knows of freshness. They are here to compare with.

From the paper (JAQPOT, section 2 and Appendix B). Its Table 4 misprints SBestHJP: 50 rows of b find 250, as in the
other rows of that table, and the output is 1250. A join's selectivity is the mean of its two states'.

>>> from windrow.plan.directions.tree import Join, State, stream
>>> tree = Join(Join(stream("a", 500, 5000, 0.001), stream("b", 700, 500, 0.001), State(200, 0.005)),
...             stream("c", 300, 1000, 0.005))
>>> for heuristic in HEURISTICS:
...     flow = heuristic.flow(tree, 300)
...     print(heuristic.name, round(flow.found_hz["(a b)"], 1), round(flow.output_hz, 1))
EqualHJ 412.5 450.0
GlobalHJPR 658.7 678.3
EBestHJP 750.0 750.0
SBestHJP 250.0 1250.0
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from windrow.plan.directions.flow import Flow, flow_of, flowing
from windrow.plan.directions.tree import Join, Step, half_ways, joins


@dataclass(frozen=True, slots=True)
class Heuristic:
    """A name and how it shares out resources."""

    name: str
    flow: Callable[[Join, float], Flow]


def best_first(both: tuple[Step, Step], offered_hz: tuple[float, float], resources: float) -> tuple[float, float]:
    """BestHJP: the rows that may probe in a join, those that find more first.

    >>> from windrow.plan.directions.tree import stream
    >>> a, b = stream("a", 500, 5000, 0.001), stream("b", 700, 500, 0.005)
    >>> best_first((Step(a, b), Step(b, a)), (500, 700), 900)
    (200.0, 700.0)
    """
    allowed = [0.0, 0.0]
    for side in sorted((0, 1), key=lambda side: -both[side].productivity / both[side].cost):
        allowed[side] = min(float(offered_hz[side]), resources / both[side].cost)
        resources -= allowed[side] * both[side].cost
    return allowed[0], allowed[1]


def _equal(tree: Join, budget: float) -> Flow:
    return _among_half_ways(tree, budget, lambda _step: 1.0)


def _by_productivity(tree: Join, budget: float) -> Flow:
    return _among_half_ways(tree, budget, lambda step: step.productivity)


def _equal_joins(tree: Join, budget: float) -> Flow:
    return _among_joins(tree, budget, lambda _join: 1.0)


def _by_selectivity(tree: Join, budget: float) -> Flow:
    return _among_joins(tree, budget, lambda join: (join.left.state.selectivity + join.right.state.selectivity) / 2)


HEURISTICS = (
    Heuristic("EqualHJ", _equal),
    Heuristic("GlobalHJPR", _by_productivity),
    Heuristic("EBestHJP", _equal_joins),
    Heuristic("SBestHJP", _by_selectivity),
)


def _among_half_ways(tree: Join, budget: float, weight: Callable[[Step], float]) -> Flow:
    steps = half_ways(tree)
    parts = _shares(tuple(weight(step) for step in steps), budget)
    return flow_of(tree, {str(step.node): part / step.cost for step, part in zip(steps, parts, strict=True)})


def _among_joins(tree: Join, budget: float, weight: Callable[[Join], float]) -> Flow:
    nodes = joins(tree)
    parts: Mapping[str, float] = dict(
        zip(map(str, nodes), _shares(tuple(weight(node) for node in nodes), budget), strict=True)
    )
    return flowing(tree, lambda join, both, offered_hz: best_first(both, offered_hz, parts[str(join)]))


def _shares(weights: tuple[float, ...], budget: float) -> tuple[float, ...]:
    """A budget in the ratio of weights; in equal parts if they are all 0."""
    total = sum(weights)
    return tuple(budget * (weight / total if total > 0 else 1 / len(weights)) for weight in weights)
