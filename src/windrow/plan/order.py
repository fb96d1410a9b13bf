"""In which order a path visits the stores: greedily over the join graph, the most selective step first.

Before anything is measured, `plan_query` goes by the kind of search: from the driver on, the next store is the one
whose step ranks lowest (see `windrow.plan.methods`), so connected streams come before cross products and equalities
before ranges; ties go by the order of the FROM clause.

Once selectivities are measured, `low_selectivity_first` goes by these (MJoin's heuristic, GrubJoin V-C), and
`plan_query` makes a plan in the orders it gives. The *join graph* has an edge for each set of streams that a condition
relates; an edge is decided by the step that brings the last of its streams. Of the streams that an edge connects with
what is joined already, the next one is the one whose edges together let the smallest share of pairs pass. A stream that
nothing connects waits until all others are in. What is measured wavers, and a new order costs new statistics: a stream
keeps its place unless another one is better by more than `hysteresis`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import permutations

from windrow.errors import PlanError
from windrow.plan.drivers import known_policy
from windrow.plan.methods import choices, choose, known_methods
from windrow.plan.plan import Path, Plan, Step
from windrow.plan.shuffle import choose_slices
from windrow.plan.trees import MWAY, connected, shape_named, tree_plan
from windrow.query.expression import streams_of
from windrow.query.spec import QuerySpec

HYSTERESIS = 0.25
MOST_ALTERNATIVES = 6

Edge = frozenset[str]


def plan_query(
    spec: QuerySpec,
    *,
    policy: str = "timestamp",
    methods: Collection[str] | None = None,
    slices: int = 1,
    slice_by: str = "time",
    orders: Mapping[str, Sequence[str]] | None = None,
    shape: str = MWAY,
) -> Plan:
    """The exact plan of a query; `methods` restricts what its steps may use, `slices` shares it out over that many
    parts, by `time`, `hash` or `range` where the query has such a condition (`auto`: what ships the fewest copies);
    `orders` says whom each driver visits, in which order; `shape` is that of a tree of joins (`windrow.plan.trees`).
    """
    tree = shape_named(shape, connected(spec))
    if tree is not None:
        return tree_plan(spec, tree, policy=policy, methods=methods)
    known_policy(policy)
    allowed = known_methods(methods)
    given = {} if orders is None else orders
    paths = tuple(_path(spec, stream.name, allowed, given.get(stream.name)) for stream in spec.streams)
    return Plan(policy, paths, choose_slices(spec, paths, slices, slice_by))


def with_alternatives(
    spec: QuerySpec, plan: Plan, methods: Collection[str] | None = None, most: int = MOST_ALTERNATIVES
) -> Plan:
    """The plan with other orders for each driver, to choose from while running: all that the join graph connects, if
    they are at most `most`; else those that turn the first order around, so that each store comes first once.
    """
    allowed = known_methods(methods)
    paths: list[Path] = []
    for first in plan.firsts:
        orders = [order for order in permutations(first.targets) if order != first.targets]
        if len(orders) >= most:
            orders = [first.targets[k:] + first.targets[:k] for k in range(1, len(first.targets))]
        connected = [order for order in orders if _is_connected(spec, first.driver, order)]
        paths.append(first)
        paths.extend(
            replace(_path(spec, first.driver, allowed, order), alternative=number)
            for number, order in enumerate(connected, start=1)
        )
    return replace(plan, paths=tuple(paths))


def methods_of(
    spec: QuerySpec, plan: Plan, among: Collection[str], methods: Collection[str] | None = None
) -> dict[tuple[str, int], dict[str, Step]]:
    """The steps there could be at each place of a plan, by method, where there are several `among` some methods: the
    place is the path's name and the step's number.
    """
    allowed = known_methods(methods)
    found = {}
    for path in plan.paths:
        members = [path.driver]
        for number, step in enumerate(path.steps):
            steps = {choice.step.method: choice.step for choice in choices(spec, members, step.stream, allowed)}
            options = {method: steps[method] for method in among if method in steps}
            if step.method in options and len(options) > 1:
                found[path.name, number] = options
            members.append(step.stream)
    return found


def with_method(plan: Plan, options: Mapping[tuple[str, int], Mapping[str, Step]], method: str) -> Plan:
    """A plan with one method wherever it is among the options."""
    paths = (
        replace(
            path,
            steps=tuple(options.get((path.name, k), {}).get(method, step) for k, step in enumerate(path.steps)),
        )
        for path in plan.paths
    )
    return replace(plan, paths=tuple(paths))


def _is_connected(spec: QuerySpec, driver: str, order: Sequence[str]) -> bool:
    """Whether each step of an order has a condition to go by."""
    joined = {driver}
    for target in order:
        joined.add(target)
        if not any(target in edge and edge <= joined for edge in join_graph(spec)):
            return False
    return True


def join_graph(spec: QuerySpec) -> tuple[Edge, ...]:
    """The edges of a query's join graph, in the order of its conditions."""
    found = (frozenset(streams_of(conjunct)) for conjunct in spec.conjuncts)
    return tuple(dict.fromkeys(edge for edge in found if len(edge) > 1))


def low_selectivity_first(
    driver: str,
    streams: Sequence[str],
    selectivity: Mapping[Edge, float],
    current: Sequence[str] = (),
    hysteresis: float = HYSTERESIS,
) -> tuple[str, ...]:
    """Whom a driver visits, given what share of pairs passes each edge; `current` is the order it has now, if any.

    >>> sigma = {frozenset("ab"): 0.0045, frozenset("ac"): 0.006, frozenset("bc"): 0.003}
    >>> [low_selectivity_first(driver, "abc", sigma) for driver in "abc"]
    [('b', 'c'), ('c', 'a'), ('b', 'a')]
    >>> sigma[frozenset("ab")] = 0.007
    >>> low_selectivity_first("a", "abc", sigma), low_selectivity_first("a", "abc", sigma, current="bc")
    (('c', 'b'), ('b', 'c'))
    """
    waiting = [stream for stream in streams if stream != driver]
    if current and sorted(current) != sorted(waiting):
        message = f"the order {tuple(current)} does not visit each of {tuple(waiting)} once"
        raise PlanError(message, place=driver, hint="give the order the driver has now, or none")
    members = {driver}
    order: list[str] = []
    while waiting:
        passing = {stream: share for stream in waiting if (share := _passing(members, stream, selectivity)) is not None}
        candidates = passing or dict.fromkeys(waiting, 1.0)
        chosen = min(candidates, key=lambda stream: candidates[stream])
        held = next((stream for stream in current if stream in candidates), chosen)
        if candidates[held] <= candidates[chosen] * (1 + hysteresis):
            chosen = held
        order.append(chosen)
        members.add(chosen)
        waiting.remove(chosen)
    return tuple(order)


def _passing(members: Collection[str], target: str, selectivity: Mapping[Edge, float]) -> float | None:
    """The share of pairs of what is joined and the target that pass; None if no edge connects them."""
    reached = {*members, target}
    edges = [share for edge, share in selectivity.items() if target in edge and edge <= reached and len(edge) > 1]
    return math.prod(edges) if edges else None


def _path(spec: QuerySpec, driver: str, allowed: frozenset[str], order: Sequence[str] | None) -> Path:
    members = [driver]
    steps: list[Step] = []
    waiting = [stream.name for stream in spec.streams if stream.name != driver]
    if order is not None and sorted(order) != sorted(waiting):
        message = f"the order {tuple(order)} does not visit each of {tuple(waiting)} once"
        raise PlanError(message, place=driver, hint="name each other stream once")
    while waiting:
        targets = waiting if order is None else [order[len(steps)]]
        best = min((choose(spec, members, target, allowed) for target in targets), key=lambda choice: choice.rank)
        steps.append(best.step)
        members.append(best.step.stream)
        waiting.remove(best.step.stream)
    return Path(driver, tuple(steps))
