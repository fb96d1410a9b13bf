"""Join trees: binary joins over streams, every node but the root with a stored state, and the paths through them.

            root                    paths                                  a step
           /    \\
        (a b)    c         a:  a probes b,  (a b) probes c         a node's new rows probe the state
        /   \\              b:  b probes a,  (a b) probes c         of its sibling, its *partner*
       a     b             c:  c probes (a b)

A row of stream a probes the state of b; what it finds is stored in the state of (a b) and probes the state of c, and so
on to the root: one path a stream. Of its *own* states, those a path's rows are stored in, all but the first are filled
by probing alone. Where not all rows may probe, these get stale: k - 2 states over k streams, whatever the shape.

    productivity      results a probing row finds                    selectivity * rows of the partner's state
    cardinality       rows after j steps, per driver row             product of the productivities so far
    cost              probes per driver row, in the unit of `probe_cost`
    path productivity results per unit of cost                       last cardinality / cost

Resources given to a path are divided so that every step gets what the one before it yields (producer-consumer match):
nothing is produced that does not go on.

In the paper (JAQPOT, sections 2 and 4.1): `rate_hz` lambda_i, `rows` |S|, `selectivity` sigma, productivity rho_h,
cardinality phi, path productivity rho_p; it counts resources in probing rows, which is a `probe_cost` of 1.

>>> tree = Join(Join(stream("a", 500, 5000, 0.001), stream("b", 700, 500, 0.001), State(200, 0.005)),
...             stream("c", 300, 1000, 0.005))
>>> print(tree)
((a b) c)
>>> by_driver = {path.driver.name: path for path in paths(tree)}
>>> [round(step.productivity, 6) for step in by_driver["b"].steps]
[5.0, 5.0]
>>> by_driver["b"].divide(600)                                     # 100 rows of b find 500 rows of (a b)
(100.0, 500.0)
>>> round(by_driver["b"].productivity, 6), [str(node) for node in susceptible(tree)]
(4.166667, ['(a b)'])
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from windrow.errors import PlanError


@dataclass(frozen=True, slots=True)
class State:
    """The stored rows of a node: how many, which share of them a probe finds, and what a probe of them costs."""

    rows: float
    selectivity: float
    probe_cost: float = 1.0

    def __post_init__(self) -> None:
        if not (0 <= self.rows < math.inf and 0 <= self.selectivity < math.inf and 0 < self.probe_cost < math.inf):
            raise PlanError(f"a state cannot be like this: {self}", hint="give rows, a selectivity and a cost above 0")

    @property
    def productivity(self) -> float:
        """What a row that probes this state finds."""
        return self.selectivity * self.rows


NO_STATE = State(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Stream:
    """A leaf: a stream and its window."""

    name: str
    rate_hz: float
    state: State

    def __post_init__(self) -> None:
        if not 0 < self.rate_hz < math.inf:
            raise PlanError(
                f"stream '{self.name}' cannot have {self.rate_hz} rows a second", hint="give a rate above 0"
            )

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Join:
    """An inner node: the join of two nodes and the state that holds what it finds. The root needs none."""

    left: Node
    right: Node
    state: State = NO_STATE

    def __str__(self) -> str:
        return f"({self.left} {self.right})"


Node = Stream | Join


def stream(name: str, rate_hz: float, rows: float, selectivity: float, probe_cost: float = 1.0) -> Stream:
    """A leaf with its state."""
    return Stream(name, rate_hz, State(rows, selectivity, probe_cost))


@dataclass(frozen=True, slots=True)
class Step:
    """A half-way join: the new rows of `node` probe the state of `partner`."""

    node: Node
    partner: Node

    @property
    def productivity(self) -> float:
        """Results per probing row."""
        return self.partner.state.productivity

    @property
    def cost(self) -> float:
        """Resources per probing row."""
        return self.partner.state.probe_cost


@dataclass(frozen=True, slots=True)
class InputPath:
    """The way of a stream's rows from the leaf to the root."""

    driver: Stream
    steps: tuple[Step, ...]

    @property
    def cardinalities(self) -> tuple[float, ...]:
        """Rows per driver row: 1 before the first step, then what is left after each step, results last."""
        return tuple(
            accumulate((step.productivity for step in self.steps), lambda rows, more: rows * more, initial=1.0)
        )

    @property
    def costs(self) -> tuple[float, ...]:
        """Resources per driver row, step by step."""
        return tuple(rows * step.cost for rows, step in zip(self.cardinalities, self.steps, strict=False))

    @property
    def productivity(self) -> float:
        """Results per unit of resources (rho_p)."""
        return self.cardinalities[-1] / sum(self.costs)

    def divide(self, resources: float) -> tuple[float, ...]:
        """How many rows may probe at each step, so that each step takes what the one before it yields."""
        drivers = resources / sum(self.costs)
        return tuple(drivers * rows for rows in self.cardinalities[:-1])


def paths(tree: Join) -> tuple[InputPath, ...]:
    """One path a stream, in the order of the leaves from left to right."""
    found = tuple(InputPath(leaf, steps) for leaf, steps in _ways_up(tree, ()))
    names = [path.driver.name for path in found]
    if len(set(names)) != len(names):
        raise PlanError(f"a stream is a leaf of {tree} twice", hint="give a self-join's sides two names")
    return found


def _ways_up(node: Node, above: tuple[Step, ...]) -> Iterator[tuple[Stream, tuple[Step, ...]]]:
    if isinstance(node, Stream):
        yield node, above
        return
    yield from _ways_up(node.left, (Step(node.left, node.right), *above))
    yield from _ways_up(node.right, (Step(node.right, node.left), *above))


def joins(node: Node) -> tuple[Join, ...]:
    """The inner nodes, each after those beneath it; the root is the last."""
    if isinstance(node, Stream):
        return ()
    return (*joins(node.left), *joins(node.right), node)


def half_ways(tree: Join) -> tuple[Step, ...]:
    """All half-way joins, 2 (k - 1) of them: both of each join, each after those beneath it."""
    both = ((Step(node.left, node.right), Step(node.right, node.left)) for node in joins(tree))
    return tuple(step for pair in both for step in pair)


def susceptible(tree: Join) -> tuple[Join, ...]:
    """The nodes whose states are filled by probing alone, so that they get stale where too few rows may probe."""
    return joins(tree)[:-1]
