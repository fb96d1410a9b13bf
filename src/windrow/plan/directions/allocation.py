"""Who may probe: an allocation of resources to the paths of a join tree, and what it keeps of what was promised.

    tree, budget, freshness ─▶ allocate ─▶ Allocation: driver rows a second, output, ages, and what is infeasible

    method    throughput                       freshness
    auto      joint optimum (`.joint`)         the same program
    jaqpot    GrePP on what is left            greedy cover of refresh rates with equal shares of the slack
    grepp     the most productive path first   not looked at

What cannot be promised is said: the least freshness that could be with this budget, and the budget that would be
enough, if any is. The allocation is then the one that comes nearest. JAQPOT's cover may not fit into a budget where
another one would; the joint optimum stands in for it there.

With `stops`, rows may also end in a state, stored without probing on (`.model`): the paper's paths always go to the
root.

>>> from windrow.plan.directions.tree import Join, State, stream
>>> tree = Join(Join(stream("a", 500, 5000, 0.001), stream("b", 700, 500, 0.001), State(200, 0.005)),
...             stream("c", 300, 1000, 0.005))
>>> kept = allocate(tree, budget=1200, freshness_s={"b": 1.0})
>>> dict(kept.driver_hz), kept.infeasible, round(kept.output_hz, 1)
({'a': 0.0, 'b': 200.0, 'c': 0.0}, None, 5000.0)
>>> dict(kept.probing_hz)
{'a': 0.0, 'b': 200.0, '(a b)': 1000.0, 'c': 0.0}
>>> short = allocate(tree, budget=600, freshness_s={"b": 1.0})
>>> print(short.infeasible)
freshness cannot be kept with resources of 600: 'b' needs 1.114 s instead of 1 s, or resources of 840
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from windrow.errors import PlanError
from windrow.plan.directions.cover import greedy_cover
from windrow.plan.directions.flow import Flow
from windrow.plan.directions.freshness import TOLERANCE, ages_s, refresh_rates
from windrow.plan.directions.joint import freshest_output, least_freshness, least_resources
from windrow.plan.directions.knapsack import grepp
from windrow.plan.directions.model import Floats, Model
from windrow.plan.directions.tree import Join, half_ways

Method = Callable[[Model, float, Floats], Floats | None]


@dataclass(frozen=True, slots=True)
class Infeasible:
    """What cannot be promised: the least freshness that can, if any, and the budget that would do, if any does."""

    budget: float
    asked_s: Mapping[str, float]
    least_s: Mapping[str, float]
    needed: float | None

    def __str__(self) -> str:
        short = {name: span_s for name, span_s in self.least_s.items() if span_s > self.asked_s[name] * (1 + TOLERANCE)}
        told = ", ".join(
            f"'{name}' needs {span_s:.4g} s instead of {self.asked_s[name]:.4g} s" for name, span_s in short.items()
        )
        enough = "no resources are enough" if self.needed is None else f"resources of {self.needed:.4g}"
        start = f"freshness cannot be kept with resources of {self.budget:.4g}"
        if not told:
            return f"{start}: {enough} would do" if self.needed is not None else f"{start}: {enough}"
        return f"{start}: {told}, or {enough}" if self.needed is not None else f"{start}: {told}; {enough} for less"


@dataclass(frozen=True, slots=True)
class Allocation:
    """Rows a second that may probe, by driver and by node, and what comes of it."""

    method: str
    driver_hz: Mapping[str, float]
    probing_hz: Mapping[str, float]
    stored_hz: Mapping[str, float]
    output_hz: float
    spent: float
    age_s: Mapping[str, float]
    infeasible: Infeasible | None = None


def jaqpot(model: Model, budget: float, freshness_s: Floats) -> Floats | None:
    """Algorithm 1: the greedy cover, then GrePP on what is left; None if the cover does not fit the budget."""
    covering_hz = greedy_cover(model, refresh_rates(model, freshness_s))
    if covering_hz is None or (freshness_s < model.window_s * (1 - TOLERANCE)).any():
        return None
    if float(model.cost @ covering_hz) > budget * (1 + TOLERANCE):
        return None
    return grepp(model, budget, covering_hz)


def _grepp(model: Model, budget: float, _freshness_s: Floats) -> Floats | None:
    return grepp(model, budget)


METHODS: dict[str, Method] = {"auto": freshest_output, "jaqpot": jaqpot, "grepp": _grepp}


def allocate(
    tree: Join | Model,
    budget: float,
    freshness_s: Mapping[str, float] | None = None,
    method: str = "auto",
    *,
    stops: bool = False,
) -> Allocation:
    """Who may probe with this budget, so that most is found and the rows of results are as fresh as asked."""
    if method not in METHODS:
        raise PlanError(f"there is no allocation '{method}'", hint=f"choose one of {', '.join(METHODS)}")
    if not budget >= 0:
        raise PlanError(f"resources of {budget} cannot be given", hint="give 0 or more")
    model = tree if isinstance(tree, Model) else Model.of(tree, stops=stops)
    asked_s = model.per_stream(freshness_s or {})
    drivers_hz = METHODS[method](model, budget, asked_s)
    if drivers_hz is None and method != "auto":
        drivers_hz = freshest_output(model, budget, asked_s)
    if drivers_hz is not None:
        return _allocation(model, method, drivers_hz, None)
    nearest = least_freshness(model, budget, asked_s)
    drivers_hz, least_s = (grepp(model, budget), np.full(len(asked_s), np.inf)) if nearest is None else nearest
    spans = dict(freshness_s or {})
    least = {name: float(span_s) for name, span_s in zip(model.names, least_s, strict=True) if name in spans}
    infeasible = Infeasible(budget, spans, least, least_resources(model, asked_s))
    return _allocation(model, method, drivers_hz, infeasible)


def stored_by(model: Model, flow: Flow) -> Floats:
    """The rows a second that enter each state if those that may probe are stored, as half-way heuristics have it."""
    return np.array([flow.probing_hz[str(state)] for state in model.states])


def _allocation(model: Model, method: str, drivers_hz: Floats, infeasible: Infeasible | None) -> Allocation:
    stored_hz = model.inflow @ drivers_hz
    probing_hz = {str(step.node): 0.0 for step in half_ways(model.tree)}
    for route, rows_hz in enumerate(drivers_hz.tolist()):
        path = model.paths[model.stream[route]]
        for step, rows in zip(path.steps[: model.stop[route]], path.cardinalities, strict=False):
            probing_hz[str(step.node)] += rows_hz * rows
    driver_hz = np.bincount(model.stream, drivers_hz, len(model.paths))
    return Allocation(
        method,
        driver_hz=dict(zip(model.names, driver_hz.tolist(), strict=True)),
        probing_hz=probing_hz,
        stored_hz={str(state): rows for state, rows in zip(model.states, stored_hz.tolist(), strict=True)},
        output_hz=float(model.output @ drivers_hz),
        spent=float(model.cost @ drivers_hz),
        age_s=dict(zip(model.names, ages_s(model, stored_hz).tolist(), strict=True)),
        infeasible=infeasible,
    )
