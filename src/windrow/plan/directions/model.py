"""A join tree as numbers: what a driver row costs, yields and refreshes, one column a route.

A *route* is a path, or the beginning of one: with `stops`, rows may end at any state of their path, stored there
without probing further. That refreshes a state for less where the rest of the path is long or finds little.

    streams   rate_hz, leaf_rows                                 k
    routes    stream, cost, output                               the k paths first, in the order of the streams
    states    state_rows, inflow[state, route]                   the k - 2 that are filled by probing alone

All of a route is per driver row a second: with `x` driver rows on each route, `cost @ x` is spent, `output @ x` found,
`inflow @ x` rows a second enter each state.

>>> from windrow.plan.directions.tree import Join, State, stream
>>> tree = Join(Join(stream("a", 500, 5000, 0.001), stream("b", 700, 500, 0.001), State(200, 0.005)),
...             stream("c", 300, 1000, 0.005))
>>> model = Model.of(tree)
>>> model.cost.tolist(), model.output.tolist(), model.inflow.tolist()
([1.5, 6.0, 1.0], [2.5, 25.0, 1.0], [[0.5, 5.0, 0.0]])
>>> model.saturation, model.full_output
(5250.0, 19050.0)
>>> Model.of(tree, stops=True).cost.tolist()
[1.5, 6.0, 1.0, 1.0, 1.0]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from windrow.errors import PlanError
from windrow.plan.directions.tree import InputPath, Join, paths, susceptible

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """The numbers of a tree; `own_states[i]` are those states that hold rows of stream i, from the leaf on."""

    tree: Join
    paths: tuple[InputPath, ...]
    states: tuple[Join, ...]
    rate_hz: Floats
    leaf_rows: Floats
    state_rows: Floats
    own_states: tuple[tuple[int, ...], ...]
    stream: Numbers
    stop: Numbers
    cost: Floats
    output: Floats
    inflow: Floats

    @classmethod
    def of(cls, tree: Join, *, stops: bool = False) -> Model:
        """The numbers of a tree; with `stops`, rows may end at any state of their path."""
        ways, states = paths(tree), susceptible(tree)
        place = {id(state): number for number, state in enumerate(states)}
        own = tuple(tuple(place[id(step.node)] for step in way.steps[1:]) for way in ways)
        lengths = [(number, len(way.steps)) for number, way in enumerate(ways)]
        if stops:
            lengths += [(number, length) for number, full in lengths for length in range(1, full)]
        cost, output = np.zeros(len(lengths)), np.zeros(len(lengths))
        inflow = np.zeros((len(states), len(lengths)))
        spent = [tuple(accumulate(way.costs)) for way in ways]
        rows = [way.cardinalities for way in ways]
        for route, (number, length) in enumerate(lengths):
            cost[route] = spent[number][length - 1]
            if length == len(ways[number].steps):
                output[route] = rows[number][length]
            for level, state in enumerate(own[number][:length], start=1):
                inflow[state, route] = rows[number][level]
        return cls(
            tree=tree,
            paths=ways,
            states=states,
            rate_hz=np.array([way.driver.rate_hz for way in ways]),
            leaf_rows=np.array([way.driver.state.rows for way in ways]),
            state_rows=np.array([state.state.rows for state in states]),
            own_states=own,
            stream=np.array([number for number, _ in lengths], np.int64),
            stop=np.array([length for _, length in lengths], np.int64),
            cost=cost,
            output=output,
            inflow=inflow,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The streams."""
        return tuple(path.driver.name for path in self.paths)

    @property
    def route_rate_hz(self) -> Floats:
        """How many driver rows there are for each route."""
        return np.asarray(self.rate_hz[self.stream])

    @property
    def saturation(self) -> float:
        """The resources with which all rows may probe."""
        streams = len(self.rate_hz)
        return float(self.cost[:streams] @ self.rate_hz)

    @property
    def full_output(self) -> float:
        """Results a second when all rows may probe."""
        return float(self.output[: len(self.rate_hz)] @ self.rate_hz)

    @property
    def window_s(self) -> Floats:
        """How long a row stays in its stream's own window, of as many rows at its rate."""
        return np.asarray(self.leaf_rows / self.rate_hz)

    def per_stream(self, values: Mapping[str, float]) -> Floats:
        """Values by stream in the order of the streams, infinite where there is none."""
        unknown = [name for name in values if name not in self.names]
        if unknown:
            raise PlanError(f"there is no stream '{unknown[0]}'", hint=f"the streams are {', '.join(self.names)}")
        found = np.array([values.get(name, np.inf) for name in self.names], np.float64)
        if not (found > 0).all():
            raise PlanError(f"a freshness is a span above 0, not {found.min()}", hint="give seconds")
        return found
