"""The linear program over routes and waits: its rows, in numbers that a solver can work with; solved by HiGHS.

    variables   x   driver rows a second on each route            of a stream together at most its rate
                u   how long rows wait in each state, seconds      only in programs about ages
                t   by how much freshness is stretched             only where the least one is looked for
    rows        cost @ x <= budget
                inflow @ x >= refresh rates                        `refreshing`
                u_j * y0 / S_j + y_j / y0 >= 2                     `waiting`: the tangent of S_j / y_j at y_j = y0
                sum of u over own states <= slack                  `aging`; or - t * freshness <= - window

Each variable is counted in a unit of what it can be at most, and each row is a ratio: routes differ by many orders of
magnitude, and a solver that allows errors of 1e-7 would take the small ones for nothing.

SciPy's `milp`, without integers, is its lightest way to HiGHS: half a millisecond, where `linprog` takes one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from windrow.plan.directions.model import Floats, Model

OPTIONS = {"presolve": False}
LARGEST = 1e9
"""A demand that this small a part of what a route can do would meet is met by a part that the solver can see."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows of the program, `low <= matrix @ variables <= high`."""

    matrix: Floats
    low: Floats
    high: Floats

    @classmethod
    def at_least(cls, matrix: Floats, low: float) -> Rows:
        """Rows with one lower bound."""
        return cls(matrix, np.full(len(matrix), low), np.full(len(matrix), np.inf))

    @classmethod
    def at_most(cls, matrix: Floats, high: Floats) -> Rows:
        """Rows with an upper bound each."""
        return cls(matrix, np.full(len(matrix), -np.inf), high)


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """The variables of a program, each with its unit; the stretch is the last one, where there is one."""

    model: Model
    route_unit_hz: Floats
    wait_unit_s: Floats
    stretched: bool = False

    @property
    def width(self) -> int:
        """How many variables there are."""
        return len(self.route_unit_hz) + len(self.wait_unit_s) + self.stretched

    def limits(self, budget: float) -> Rows:
        """The budget, and a stream's rate where it has several routes."""
        model = self.model
        rows = [model.cost / budget] if budget > 0 else []
        streams = len(model.rate_hz)
        if len(model.cost) > streams:
            rows += list((model.stream == np.arange(streams)[:, None]) / model.rate_hz[:, None])
        return Rows.at_most(self._wide(np.array(rows).reshape(len(rows), len(model.cost))), np.ones(len(rows)))

    def refreshing(self, refresh_hz: Floats) -> Rows:
        """How many rows have to enter each state."""
        asked = refresh_hz > 0
        return Rows.at_least(self._wide(self.model.inflow[asked] / refresh_hz[asked, None]), 1.0)

    def waiting(self, stored_hz: Floats) -> Rows:
        """How long rows wait in each state at least: tangents where so many rows enter."""
        asked = (self.model.state_rows > 0) & (stored_hz > 0)
        wide = self._wide(self.model.inflow[asked] / stored_hz[asked, None])
        routes = len(self.route_unit_hz)
        for row, state in enumerate(np.flatnonzero(asked)):
            waited = self.wait_unit_s[state] * stored_hz[state] / self.model.state_rows[state]
            wide[row, routes + state] = min(float(waited), LARGEST)
        return Rows.at_least(wide, 2.0)

    def aging(self, freshness_s: Floats, share: float) -> Rows:
        """How long rows of each stream that asks may wait, in all their states: a share of what is asked."""
        asking = [number for number in np.flatnonzero(np.isfinite(freshness_s)) if self.model.own_states[number]]
        wide, high = np.zeros((len(asking), self.width)), np.full(len(asking), share)
        for row, number in enumerate(asking):
            window_s = float(self.model.window_s[number])
            own = list(self.model.own_states[number])
            span_s = freshness_s[number] if self.stretched else freshness_s[number] - window_s
            wide[row, [len(self.route_unit_hz) + state for state in own]] = self.wait_unit_s[own] / span_s
            if self.stretched:
                wide[row, -1], high[row] = -1.0, -window_s / span_s
        return Rows.at_most(wide, high)

    def _wide(self, over_routes: Floats) -> Floats:
        """Rows over routes, as rows over all variables in their units."""
        wide = np.zeros((len(over_routes), self.width))
        if len(over_routes):
            wide[:, : len(self.route_unit_hz)] = np.minimum(over_routes * self.route_unit_hz, LARGEST)
        return wide


def solved(frame: Frame, objective: Floats, rows: Iterable[Rows]) -> tuple[Floats, float] | None:
    """The driver rows with which the objective, over routes or else the stretch, is least; and the stretch."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    routes = len(frame.route_unit_hz)
    weights = np.zeros(frame.width)
    if frame.stretched:
        weights[-1] = 1.0
    else:
        weights[:routes] = objective * frame.route_unit_hz
        weights /= max(float(np.abs(weights).max()), 1e-300)
    top = np.full(frame.width, np.inf)
    top[:routes] = 1.0
    given = [part for part in rows if len(part.low)]
    constraints = None
    if given:
        matrix, low, high = (
            np.concatenate([getattr(part, name) for part in given]) for name in ("matrix", "low", "high")
        )
        constraints = LinearConstraint(matrix, low, high)
    found = milp(weights, constraints=constraints, bounds=Bounds(0.0, top), options=OPTIONS)
    if found.status != 0:
        return None
    return np.asarray(np.clip(found.x[:routes], 0.0, 1.0) * frame.route_unit_hz), float(found.x[-1])
