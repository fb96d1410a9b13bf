"""Who probes: trees of binary joins, and which share of each stream's rows may drive them when not all can.

    tree, shapes      the tree: streams, joins, states; its paths; how rows find and what that costs
    model             a tree as numbers
    knapsack          throughput alone: GrePP, and the knapsacks in whole numbers
    freshness         how old rows get, and how fast states must be refreshed
    cover             refreshing cheaply: GH-WMSCP
    program, joint    both at once: `auto`, and what is feasible at all
    allocation        all of it for one tree and one budget: `allocate`
    flow, half_way    what rows do under any allowances, and the four heuristics to compare with
    timed             who may probe where windows are spans of time, and states as full as what is let in
    delivery          what running batches can promise
    instances         random trees in the paper's ranges

The paper is JAQPOT (join adaptation at query plan-level using path-productivity for optimizing throughput).

>>> tree = Join(Join(stream("a", 500, 5000, 0.001), stream("b", 700, 500, 0.001), State(200, 0.005)),
...             stream("c", 300, 1000, 0.005))
>>> [round(allocate(tree, 300, {"b": 5.0}, method).output_hz) for method in METHODS]
[1250, 1250, 1250]
>>> [round(heuristic.flow(tree, 300).output_hz) for heuristic in HEURISTICS]
[450, 678, 750, 1250]
"""

from __future__ import annotations

from windrow.plan.directions.allocation import METHODS, Allocation, Infeasible, allocate, jaqpot, stored_by
from windrow.plan.directions.cover import greedy_cover
from windrow.plan.directions.delivery import Batches, Terms, Verdict, promises
from windrow.plan.directions.flow import Flow, flow_of
from windrow.plan.directions.freshness import ages_s, is_fresh, refresh_rates
from windrow.plan.directions.half_way import HEURISTICS, Heuristic, best_first
from windrow.plan.directions.joint import freshest_output, least_cover, least_freshness, least_resources, most_output
from windrow.plan.directions.knapsack import best_multiples, greedy_multiples, grepp
from windrow.plan.directions.model import Model
from windrow.plan.directions.timed import Steady, settle, steady
from windrow.plan.directions.tree import (
    InputPath,
    Join,
    State,
    Step,
    Stream,
    half_ways,
    joins,
    paths,
    stream,
    susceptible,
)

__all__ = [
    "HEURISTICS",
    "METHODS",
    "Allocation",
    "Batches",
    "Flow",
    "Heuristic",
    "Infeasible",
    "InputPath",
    "Join",
    "Model",
    "State",
    "Steady",
    "Step",
    "Stream",
    "Terms",
    "Verdict",
    "ages_s",
    "allocate",
    "best_first",
    "best_multiples",
    "flow_of",
    "freshest_output",
    "greedy_cover",
    "greedy_multiples",
    "grepp",
    "half_ways",
    "is_fresh",
    "jaqpot",
    "joins",
    "least_cover",
    "least_freshness",
    "least_resources",
    "most_output",
    "paths",
    "promises",
    "refresh_rates",
    "settle",
    "steady",
    "stored_by",
    "stream",
    "susceptible",
]
