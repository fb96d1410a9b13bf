"""In which order a path visits the stores: greedily over the join graph, the most selective kind of search first.

From the driver on, the next store is the one whose step ranks lowest (see `windrow.plan.methods`), so connected
streams come before cross products and equalities before ranges; ties go by the order of the FROM clause.
"""

from __future__ import annotations

from collections.abc import Collection

from windrow.plan.drivers import known_policy
from windrow.plan.methods import choose, known_methods
from windrow.plan.plan import Path, Plan, Step
from windrow.plan.shuffle import AUTO, choose_slices
from windrow.query.spec import QuerySpec


def plan_query(
    spec: QuerySpec,
    *,
    policy: str = "timestamp",
    methods: Collection[str] | None = None,
    slices: int = 1,
    slice_by: str = AUTO,
) -> Plan:
    """The exact plan of a query; `methods` restricts what its steps may use, `slices` shares it out over that many
    parts, by `time`, `hash` or `range` where the query has such a condition (`auto`: what ships the fewest copies).
    """
    known_policy(policy)
    allowed = known_methods(methods)
    paths = tuple(_path(spec, stream.name, allowed) for stream in spec.streams)
    return Plan(policy, paths, choose_slices(spec, paths, slices, slice_by))


def _path(spec: QuerySpec, driver: str, allowed: frozenset[str]) -> Path:
    members = [driver]
    steps: list[Step] = []
    waiting = [stream.name for stream in spec.streams if stream.name != driver]
    while waiting:
        best = min((choose(spec, members, target, allowed) for target in waiting), key=lambda choice: choice.rank)
        steps.append(best.step)
        members.append(best.step.stream)
        waiting.remove(best.step.stream)
    return Path(driver, tuple(steps))
