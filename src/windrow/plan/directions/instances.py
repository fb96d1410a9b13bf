"""Random join trees in the ranges of the paper's Table 3 (JAQPOT, section 5), to compare allocations and to time them.

    rates 300 … 1200 rows a second, states of 200 … 5000 rows, selectivities .01 … .1, all uniform;
    freshness of every stream 1.5, 3 or 5 times its window

A state's selectivity holds for those who probe it, so that the two directions of a join have one each.

>>> model = random_model(np.random.default_rng(3), 3, "linear")
>>> print(model.tree, model.rate_hz.round().tolist())
((a b) c) [377.0, 824.0, 731.0]
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from windrow.plan.directions.model import Model
from windrow.plan.directions.shapes import Shape, bushy, linear, mixed, names_of, plant
from windrow.plan.directions.tree import Join, State, Stream

RATES_HZ = (300.0, 1200.0)
ROWS = (200.0, 5000.0)
SELECTIVITIES = (0.01, 0.1)
FRESHNESS = (1.5, 3.0, 5.0)

SHAPES: dict[str, Callable[[np.random.Generator, str], Shape]] = {
    "linear": lambda _random, names: linear(names),
    "bushy": lambda _random, names: bushy(names),
    "mixed": mixed,
}


def random_tree(random: np.random.Generator, shape: Shape) -> Join:
    """A tree of a shape, everything about it drawn."""

    def state(_name: str) -> State:
        return State(float(random.uniform(*ROWS)), float(random.uniform(*SELECTIVITIES)))

    streams = {name: Stream(name, float(random.uniform(*RATES_HZ)), state(name)) for name in names_of(shape)}
    return plant(shape, streams, state)


def random_model(random: np.random.Generator, streams: int, shape: str, *, stops: bool = False) -> Model:
    """The numbers of a random tree over so many streams, of a kind of shape."""
    return Model.of(random_tree(random, SHAPES[shape](random, "abcdefghijkl"[:streams])), stops=stops)


def times_window(model: Model, factor: float) -> dict[str, float]:
    """A freshness of so many windows for every stream."""
    return {name: factor * float(span_s) for name, span_s in zip(model.names, model.window_s, strict=True)}
