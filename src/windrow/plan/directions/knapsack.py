"""Throughput alone: which paths get the resources. Continuous it is greedy, in whole numbers it is a knapsack.

Per path there is what it uses and what it yields for that; a path may be taken several times.

    grepp             any fraction may be given: the most productive path first, up to its rate, then the next. Optimal.
    greedy_multiples  whole multiples of (uses, yields), the most productive first: not optimal
    best_multiples    whole multiples, by dynamic programming over the resources: optimal, O(k * resources)

From the paper (JAQPOT, section 4.1, Problem 1): GrePP, and the two knapsacks of its example. `uses` X^I, `yields` r^I,
the multiples M_I; a path taken M times yields M * r, where the printed formula has M * rho_p.

>>> uses, yields = (15, 16, 10), (4, 5, 1)                                # Table 2
>>> greedy_multiples(uses, yields, 30), best_multiples(uses, yields, 30)
((0, 1, 1), (2, 0, 0))
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from windrow.errors import PlanError
from windrow.plan.directions.model import Floats, Model


def grepp(model: Model, budget: float, given_hz: Floats | None = None) -> Floats:
    """Driver rows a second for each route, on top of those already given, the most productive path first.

    >>> from windrow.plan.directions.tree import Join, State, stream
    >>> tree = Join(Join(stream("a", 500, 5000, 0.001), stream("b", 700, 500, 0.001), State(200, 0.005)),
    ...             stream("c", 300, 1000, 0.005))
    >>> grepp(Model.of(tree), 600).tolist()
    [0.0, 100.0, 0.0]
    """
    streams = len(model.rate_hz)
    drivers_hz = np.zeros(len(model.cost)) if given_hz is None else given_hz.copy()
    left = max(0.0, budget - float(model.cost @ drivers_hz))
    taken_hz = np.bincount(model.stream, drivers_hz, streams)
    for route in np.argsort(-model.output[:streams] / model.cost[:streams], kind="stable"):
        more_hz = max(0.0, min(model.rate_hz[route] - taken_hz[route], left / model.cost[route]))
        drivers_hz[route] += more_hz
        left -= more_hz * model.cost[route]
    return drivers_hz


def greedy_multiples(uses: Sequence[int], yields: Sequence[float], resources: int) -> tuple[int, ...]:
    """As many as fit of the most productive, then of the next."""
    _check(uses, yields, resources)
    taken = [0] * len(uses)
    for place in sorted(range(len(uses)), key=lambda place: -yields[place] / uses[place]):
        taken[place], resources = divmod(resources, uses[place])
    return tuple(taken)


def best_multiples(
    uses: Sequence[int], yields: Sequence[float], resources: int, most: Sequence[int] | None = None
) -> tuple[int, ...]:
    """The multiples, each at most `most`, that fit and yield most; the first paths where several are as good.

    A multiple is put together from parts of 1, 2, 4, … and a rest, each taken or not.

    >>> best_multiples((15, 16, 10), (4, 5, 1), 30, most=(1, 1, 1))
    (0, 1, 1)
    """
    _check(uses, yields, resources)
    limits = [resources // use for use in uses]
    if most is not None:
        limits = [min(limit, asked) for limit, asked in zip(limits, most, strict=True)]
    parts = [(place, size) for place, limit in enumerate(limits) for size in _parts(limit)]
    best = np.zeros(resources + 1)
    taken = np.zeros((len(parts), resources + 1), np.bool_)
    for number, (place, size) in enumerate(parts):
        use = uses[place] * size
        with_it = best[: resources + 1 - use] + yields[place] * size
        taken[number, use:] = with_it > best[use:]
        best[use:] = np.maximum(best[use:], with_it)
    multiples = [0] * len(uses)
    for number in reversed(range(len(parts))):
        if taken[number, resources]:
            place, size = parts[number]
            multiples[place] += size
            resources -= uses[place] * size
    return tuple(multiples)


def _parts(limit: int) -> list[int]:
    """Sizes whose sums are exactly the numbers from 0 to the limit.

    >>> _parts(10)
    [1, 2, 4, 3]
    """
    parts, size = [], 1
    while limit > 0:
        parts.append(min(size, limit))
        limit -= parts[-1]
        size *= 2
    return parts


def _check(uses: Sequence[int], yields: Sequence[float], resources: int) -> None:
    if len(uses) != len(yields) or min(uses, default=0) < 1 or resources < 0:
        raise PlanError(
            f"paths that use {tuple(uses)} and yield {tuple(yields)} of {resources} make no knapsack",
            hint="give each path what it uses, 1 or more, and what it yields",
        )
