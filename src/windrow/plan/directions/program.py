"""The linear program over routes: solved by HiGHS, in numbers it can work with.

    driver rows a second x >= 0, of a stream together at most its rate
    budget      cost @ x <= budget
    demands     rows @ x (+ stretch) >= at_least             refresh rates, or tangents to ages
    objective   the most output, the least cost, or the least stretch

One more variable may stretch demands, where it is asked how much longer rows have to be let live. Each variable is
counted in what it can be at most, each row in its right side: routes differ by many orders of magnitude, and a solver
that allows errors of 1e-7 would take the small ones for nothing.

SciPy's `milp`, without integers, is its lightest way to HiGHS: half a millisecond, where `linprog` takes one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windrow.plan.directions.model import Floats, Model

OPTIONS = {"presolve": False}
LARGEST = 1e9
"""A demand that this small a part of what a route can do would meet is met by a part that the solver can see."""


@dataclass(frozen=True, slots=True, eq=False)
class Demands:
    """Rows of the program: `rows @ x + stretch * s >= at_least`, each with a right side above 0."""

    rows: Floats
    at_least: Floats
    stretch: Floats

    @classmethod
    def of(cls, rows: Floats, at_least: Floats, stretch: Floats | None = None) -> Demands:
        """Those that ask for something; the others hold anyway."""
        asking = at_least > 0
        none = np.zeros(len(at_least)) if stretch is None else stretch
        return cls(rows[asking], at_least[asking], none[asking])

    def joined(self, more: Demands) -> Demands:
        """Both."""
        return Demands(
            np.concatenate((self.rows, more.rows)),
            np.concatenate((self.at_least, more.at_least)),
            np.concatenate((self.stretch, more.stretch)),
        )


def most_output(model: Model, budget: float, demands: Demands) -> Floats | None:
    """The driver rows that yield most within the budget; None if it does not meet the demands."""
    return _solved(model, budget, demands, -model.output)


def least_cost(model: Model, demands: Demands) -> Floats | None:
    """The driver rows that meet the demands for least; None if the streams have too few."""
    return _solved(model, np.inf, demands, model.cost)


def least_stretch(model: Model, budget: float, demands: Demands) -> tuple[Floats, float] | None:
    """The driver rows within the budget that need the least stretch, and that stretch; None if none suffices."""
    found = _solved(model, budget, demands, np.append(np.zeros(len(model.cost)), 1.0))
    return None if found is None else (found[:-1], float(found[-1]))


def _solved(model: Model, budget: float, demands: Demands, objective: Floats) -> Floats | None:
    """The best values of the variables; the stretch is one if the objective has a place for it."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    routes = len(model.cost)
    stretched = len(objective) > routes
    unit = _most_hz(model, budget, demands)
    if stretched:
        unit = np.append(unit, 1.0)
    rows = np.column_stack((demands.rows, demands.stretch)) if stretched else demands.rows
    matrix = [np.minimum(rows * unit / demands.at_least[:, None], LARGEST)]
    low, high = [np.ones(len(rows))], [np.full(len(rows), np.inf)]
    if np.isfinite(budget):
        matrix.append((np.append(model.cost, np.zeros(len(unit) - routes)) * unit / max(budget, 1e-300))[None, :])
        low.append(np.full(1, -np.inf))
        high.append(np.ones(1))
    if routes > len(model.rate_hz):
        together = (model.stream == np.arange(len(model.rate_hz))[:, None]) / model.rate_hz[:, None]
        matrix.append(np.pad(together, ((0, 0), (0, len(unit) - routes))) * unit)
        low.append(np.full(len(together), -np.inf))
        high.append(np.ones(len(together)))
    all_rows = np.concatenate(matrix)
    constraints = LinearConstraint(all_rows, np.concatenate(low), np.concatenate(high)) if len(all_rows) else None
    weights = objective * unit
    weights /= max(float(np.abs(weights).max()), 1e-300)
    top = np.append(np.ones(routes), np.inf) if stretched else np.ones(routes)
    found = milp(weights, constraints=constraints, bounds=Bounds(0.0, top), options=OPTIONS)
    if found.status != 0:
        return None
    return np.asarray(np.clip(found.x, 0.0, top) * unit)


def _most_hz(model: Model, budget: float, demands: Demands) -> Floats:
    """The most driver rows a route can have: by its stream's rate, by the budget, or else by all that is demanded."""
    if np.isfinite(budget):
        return np.minimum(model.route_rate_hz, max(budget, 0.0) / model.cost)
    with np.errstate(divide="ignore", invalid="ignore"):
        alone_hz = np.where(demands.rows > 0, demands.at_least[:, None] / demands.rows, 0.0)
    return np.minimum(model.route_rate_hz, alone_hz.max(axis=0, initial=0.0))
