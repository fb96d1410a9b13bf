"""Slow, obvious twins: paths by walking up from each leaf, all settings of a grid, a linear program over nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import linprog

from windrow.plan.directions import Join, Stream
from windrow.plan.directions.tree import Node

PERCENT = np.arange(101) / 100


@dataclass
class Way:
    """A stream's path, per driver row: what it costs and yields, and the rows that enter each of its own states."""

    stream: Stream
    cost: float = 0.0
    rows: float = 1.0
    entering: dict[str, float] = field(default_factory=dict)


def all_nodes(node: Node) -> list[Node]:
    return [node] if isinstance(node, Stream) else [*all_nodes(node.left), *all_nodes(node.right), node]


def above(tree: Join, child: Node) -> Join | None:
    for node in all_nodes(tree):
        if isinstance(node, Join) and child in (node.left, node.right):
            return node
    return None


def ways(tree: Join) -> list[Way]:
    found = []
    for leaf in all_nodes(tree):
        if isinstance(leaf, Stream):
            way = Way(leaf)
            node: Node = leaf
            while (parent := above(tree, node)) is not None:
                partner = parent.right if parent.left == node else parent.left
                way.cost += way.rows * partner.state.probe_cost
                way.rows *= partner.state.selectivity * partner.state.rows
                if parent is not tree:
                    way.entering[str(parent)] = way.rows
                node = parent
            found.append(way)
    return found


def state_rows(tree: Join) -> dict[str, float]:
    return {str(node): node.state.rows for node in all_nodes(tree)}


def grid_step(tree: Join) -> float:
    """What one step of the grid costs, in all streams but the last."""
    return sum(way.cost * way.stream.rate_hz for way in ways(tree)[:-1]) / 100


def best_on_grid(tree: Join, budget: float, freshness_s: Mapping[str, float]) -> float:
    """The most output with 0, 1, … 100 % of each stream's rows, the last taking what is left; -inf if none is fresh."""
    streams = ways(tree)
    *gridded, last = streams
    shares = np.meshgrid(*[PERCENT] * len(gridded))
    drivers = np.column_stack([share.ravel() for share in shares]) * [way.stream.rate_hz for way in gridded]
    left = budget - drivers @ np.array([way.cost for way in gridded])
    drivers, left = drivers[left >= 0], left[left >= 0]
    drivers = np.column_stack((drivers, np.minimum(left / last.cost, last.stream.rate_hz)))
    sizes = state_rows(tree)
    fresh = np.full(len(drivers), True)
    with np.errstate(divide="ignore"):
        kept_s = {
            state: rows / (drivers @ np.array([way.entering.get(state, 0.0) for way in streams]))
            for state, rows in sizes.items()
            if any(state in way.entering for way in streams)
        }
        for way in streams:
            age_s = sizes[way.stream.name] / way.stream.rate_hz + sum(kept_s[state] for state in way.entering)
            fresh &= age_s <= freshness_s.get(way.stream.name, np.inf)
    output = drivers @ np.array([way.rows for way in streams])
    return float(output[fresh].max(initial=-np.inf))


def best_by_nodes(tree: Join, budget: float, refresh_hz: Mapping[str, float]) -> float | None:
    """The most output by a linear program over the rows that probe at each node; None if it cannot be.

    All an inner join finds has to go on, and enters its state. Rows are counted in what they are at most.
    """
    nodes = [node for node in all_nodes(tree) if node is not tree]
    most: dict[str, float] = {}
    for node in nodes:
        if isinstance(node, Stream):
            most[str(node)] = node.rate_hz
        else:
            most[str(node)] = sum(
                most[str(side)] * other.state.rows * other.state.selectivity
                for side, other in ((node.left, node.right), (node.right, node.left))
            )
    place = {str(node): number for number, node in enumerate(nodes)}

    def found(join: Join) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        row = np.zeros(len(nodes))
        for side, other in ((join.left, join.right), (join.right, join.left)):
            row[place[str(side)]] = other.state.rows * other.state.selectivity * most[str(side)]
        return row

    inner = [node for node in nodes if isinstance(node, Join)]
    equal = [found(node) / most[str(node)] - np.eye(len(nodes))[place[str(node)]] for node in inner]
    costs = np.array([most[str(node)] * _partner(tree, node).state.probe_cost for node in nodes])
    output = found(tree)
    low = [refresh_hz.get(str(node), 0.0) / most[str(node)] for node in nodes]
    if max(low) > 1:
        return None
    answer = linprog(
        -output / output.max(),
        A_ub=[costs / budget],
        b_ub=[1.0],
        A_eq=equal or None,
        b_eq=np.zeros(len(equal)) if equal else None,
        bounds=list(zip(low, [1.0] * len(nodes), strict=True)),
    )
    return float(-answer.fun * output.max()) if answer.status == 0 else None


def _partner(tree: Join, node: Node) -> Node:
    parent = above(tree, node)
    assert parent is not None
    return parent.right if parent.left == node else parent.left
