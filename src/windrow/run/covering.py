"""Whether a plan covers a query: every pair of rows is met once at every node, and every condition is decided once.

A node, and the results themselves, are the join of some inputs. Each input drives there and nowhere else, each of its
paths visits every other input once, and each step decides the conditions whose last streams it brings.
"""

from __future__ import annotations

from windrow.errors import PlanError
from windrow.plan.drivers import known_policy
from windrow.plan.methods import checkable_at, known_methods
from windrow.plan.nodes import Node, nodes_of
from windrow.plan.plan import Path, Plan
from windrow.query.spec import QuerySpec


def check_plan(spec: QuerySpec, plan: Plan) -> None:
    """Refuse a plan that does not cover the query."""
    known_policy(plan.policy)
    nodes = nodes_of(plan.paths)
    names = sorted((*(stream.name for stream in spec.streams), *nodes))
    drivers = sorted(path.driver for path in plan.firsts)
    if drivers != names:
        shown = ", ".join(path.driver for path in plan.firsts) or "nobody"
        raise PlanError(f"the plan is driven by {shown}", hint=f"a path for each of {', '.join(names)}")
    for path in plan.paths:
        _check_path(spec, plan, path, nodes)


def _check_path(spec: QuerySpec, plan: Plan, path: Path, nodes: dict[str, Node]) -> None:
    inputs = sorted(other.driver for other in plan.firsts if other.into == path.into)
    visited = [path.driver, *path.targets]
    if sorted(visited) != inputs:
        message = f"the path of '{path.driver}' visits {', '.join(visited)}"
        raise PlanError(message, hint="a path visits each stream once, or each other input of its node")
    known_methods({step.method for step in path.steps})
    joined = {*_streams(path.driver, nodes)}
    for step in path.steps:
        covered = frozenset(_streams(step.stream, nodes))
        decided = set(checkable_at(spec, joined, covered))
        if set(step.conjuncts) != decided or not {*step.leading, *step.narrowing} <= decided:
            message = f"the step to '{step.stream}' on the path of '{path.driver}' decides conditions {step.conjuncts}"
            raise PlanError(message, hint=f"those of this query are {tuple(sorted(decided))}: plan it again")
        joined |= covered


def _streams(name: str, nodes: dict[str, Node]) -> tuple[str, ...]:
    return nodes[name].streams if name in nodes else (name,)
