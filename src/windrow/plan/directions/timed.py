"""Who may probe where windows are spans of time: states are never stale there, but thin where little is let in.

A row leaves a state when its time is over, so that a state holds what entered it during a life:

    rows of a state  =  rows a second let in * life          let in: over both inputs, probing rows * productivity

The path of c through (a b) finds as many more rows as a and b were allowed to probe: output is a product of allowances,
and no longer a linear program. It is linear in each of them, though. `settle` goes from point to point: two streams at
a time, it tries many allowances for the one and gives the other what the budget leaves, which is a division; it takes
the best of all pairs, and looks closer when there is none. It begins where the states at their fullest would be best
(GrePP), at equal shares, or at two streams alone, from the three of these that yield most, and keeps the best end: not
a proof, but never below a grid in tests.

Ours. The paper (JAQPOT, Appendix A) puts rate * span for the rows of time windows, and says nothing of inner states.

>>> from windrow.plan.directions.tree import Join, State, stream
>>> pair = Join(stream("a", 100, 1000, 0.001), stream("b", 100, 1000, 0.001), State(0, 0.02))
>>> tree = Join(pair, stream("c", 100, 1000, 0.0002))
>>> full = steady(tree, {"(a b)": 5.0}, {"a": 100, "b": 100, "c": 100})
>>> full.rows, full.output_hz, full.spent
({'(a b)': 1000.0}, 2040.0, 500.0)
>>> best = settle(tree, {"(a b)": 5.0}, budget=250)
>>> {name: round(rate) for name, rate in best.driver_hz.items()}, round(best.output_hz)
({'a': 75, 'b': 0, 'c': 100}, 765)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from windrow.errors import PlanError
from windrow.plan.directions.knapsack import grepp
from windrow.plan.directions.model import Floats, Model
from windrow.plan.directions.tree import Join, State, Step, Stream, joins, paths, susceptible

CLIMBS = 3
TRIED = 17
CLOSER = 4.0
CLOSEST = 1e-3
BETTER = 1 + 1e-4
MOST_ROUNDS = 100


@dataclass(frozen=True, slots=True)
class Steady:
    """Rows a second that drive, and what comes of them when states hold what they then do."""

    driver_hz: Mapping[str, float]
    rows: Mapping[str, float]
    output_hz: float
    spent: float


def steady(tree: Join, life_s: Mapping[str, float], driver_hz: Mapping[str, float]) -> Steady:
    """What comes of driver rows, all of whose intermediate rows go on."""
    missing = [str(node) for node in susceptible(tree) if not life_s.get(str(node), -1.0) >= 0]
    if missing:
        raise PlanError(
            f"it is not known how long rows of '{missing[0]}' live", hint="give a life in seconds, 0 or more"
        )
    names = tuple(path.driver.name for path in paths(tree))
    rates = np.array([[driver_hz.get(name, 0.0)] for name in names])
    rows: dict[str, Floats] = {}
    spent, output = _flows(tree, life_s, rates, rows)
    inner = {name: float(held[0]) for name, held in rows.items()}
    return Steady(dict(zip(names, rates[:, 0].tolist(), strict=True)), inner, float(output[0]), float(spent[0]))


def settle(tree: Join, life_s: Mapping[str, float], budget: float) -> Steady:
    """The driver rows that yield most within a budget."""
    if not budget >= 0:
        raise PlanError(f"resources of {budget} cannot be given", hint="give 0 or more")
    rates = np.array([path.driver.rate_hz for path in paths(tree)])
    names = tuple(path.driver.name for path in paths(tree))
    everything = steady(tree, life_s, dict(zip(names, rates.tolist(), strict=True)))
    if everything.spent <= budget:
        return everything
    starts = _starts(tree, life_s, rates, budget)
    promising = starts[:, np.argsort(-_flows(tree, life_s, starts)[1], kind="stable")[:CLIMBS]]
    ends = np.column_stack([_climbed(tree, life_s, rates, budget, start) for start in promising.T])
    best = ends[:, int(_flows(tree, life_s, ends)[1].argmax())]
    return steady(tree, life_s, dict(zip(names, best.tolist(), strict=True)))


def filled(tree: Join, rows: Mapping[str, float]) -> Join:
    """The tree with so many rows in its inner states, for everything that takes sizes as given."""

    def node(join: Join) -> Join:
        left, right = (side if isinstance(side, Stream) else node(side) for side in (join.left, join.right))
        held = join.state
        return Join(left, right, State(rows.get(str(join), held.rows), held.selectivity, held.probe_cost))

    return node(tree)


def _flows(
    tree: Join, life_s: Mapping[str, float], rates: Floats, rows: dict[str, Floats] | None = None
) -> tuple[Floats, Floats]:
    """Resources and output for many sets of driver rows at once, one a column; `rows` takes the sizes of states."""
    probing = {path.driver.name: rates[number] for number, path in enumerate(paths(tree))}
    held: dict[str, Floats] = {} if rows is None else rows
    spent = np.zeros(rates.shape[1])
    for join in joins(tree):
        found = np.zeros(rates.shape[1])
        for step in (Step(join.left, join.right), Step(join.right, join.left)):
            name, partner = str(step.node), step.partner
            size = partner.state.rows if isinstance(partner, Stream) else held[str(partner)]
            found = found + probing[name] * (partner.state.selectivity * size)
            spent = spent + probing[name] * step.cost
        probing[str(join)] = found
        if join is not tree:
            held[str(join)] = found * life_s[str(join)]
    return spent, probing[str(tree)]


def _starts(tree: Join, life_s: Mapping[str, float], rates: Floats, budget: float) -> Floats:
    """Points to begin at, as columns, each scaled until it fits the budget."""
    names = [path.driver.name for path in paths(tree)]
    full = steady(tree, life_s, dict(zip(names, rates.tolist(), strict=True)))
    points = [grepp(Model.of(filled(tree, full.rows)), budget), rates]
    pairs = combinations(range(len(rates)), 2)
    points += [np.where(np.isin(np.arange(len(rates)), pair), rates, 0.0) for pair in pairs]
    wanted = np.column_stack(points)
    low, high = np.zeros(wanted.shape[1]), np.ones(wanted.shape[1])
    for _ in range(12):
        share = (low + high) / 2
        fits = _flows(tree, life_s, share * wanted)[0] <= budget
        low, high = np.where(fits, share, low), np.where(fits, high, share)
    return np.asarray(low * wanted)


def _climbed(tree: Join, life_s: Mapping[str, float], rates: Floats, budget: float, start: Floats) -> Floats:
    """From a point to where no change of two allowances is better."""
    at, reach = start, 1.0
    best = float(_flows(tree, life_s, at[:, None])[1][0])
    for _ in range(MOST_ROUNDS):
        tried = _exchanged(tree, life_s, rates, budget, at, reach)
        spent, output = _flows(tree, life_s, tried)
        output = np.where(spent <= budget * (1 + 1e-9), output, -np.inf)
        winner = int(output.argmax())
        if output[winner] > best * BETTER:
            at, best = tried[:, winner], float(output[winner])
        elif reach <= CLOSEST:
            break
        else:
            reach /= CLOSER
    return at


def _exchanged(
    tree: Join, life_s: Mapping[str, float], rates: Floats, budget: float, at: Floats, reach: float
) -> Floats:
    """Points around one, as columns: one stream is given another allowance, a second one what the budget then leaves.

    What is spent is linear in the second one's rows: its value without them and with all of them says how many fit.
    """
    streams = len(rates)
    shares = np.linspace(-reach, reach, TRIED)
    first, second, moved = (part.ravel() for part in np.meshgrid(range(streams), range(streams), shares, indexing="ij"))
    apart = first != second
    first, second, moved = first[apart].astype(np.int64), second[apart].astype(np.int64), moved[apart]
    points = np.repeat(at[:, None], len(first), axis=1)
    column = np.arange(len(first))
    points[first, column] = np.clip(at[first] + moved * rates[first], 0.0, rates[first])
    points[second, column] = 0.0
    without, _ = _flows(tree, life_s, points)
    points[second, column] = rates[second]
    everything, _ = _flows(tree, life_s, points)
    with np.errstate(divide="ignore", invalid="ignore"):
        fitting = np.where(everything > without, (budget - without) / (everything - without), 1.0)
    points[second, column] = rates[second] * np.clip(fitting, 0.0, 1.0)
    return points
