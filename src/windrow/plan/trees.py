"""Plans that are trees of binary joins: each pair of inputs probes the other's store, what it finds is stored above.

    shape           ((a b) c)                                   the plan
    linear          (((a b) c) d): one stream more a join       a     probes b      into (a b)
    bushy           ((a b) (c d)): neighbours, then pairs       b     probes a      into (a b)
    mway            no tree: each path visits all stores        (a b) probes c      results
    ((a c) (b d))   as it is written                            c     probes (a b)  results

A condition is decided at the lowest node that has all its streams. In a linear or bushy shape streams that a condition
connects meet first, in the order of the FROM clause otherwise: a node without a condition is a cross product, stored.

>>> shape_named("linear", "abc"), shape_named("((a c) b)", "abc"), shape_named("mway", "abc")
((('a', 'b'), 'c'), (('a', 'c'), 'b'), None)
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from windrow.errors import PlanError
from windrow.plan.directions.shapes import Shape, bushy, linear, names_of, read, written
from windrow.plan.drivers import known_policy
from windrow.plan.methods import choose, known_methods
from windrow.plan.nodes import Node, nodes_of
from windrow.plan.plan import Path, Plan
from windrow.query.expression import streams_of
from windrow.query.spec import QuerySpec

MWAY = "mway"
SHAPES = {"linear": linear, "bushy": bushy}


def shape_named(text: str, names: Sequence[str]) -> Shape | None:
    """The shape that a name or a text of brackets stands for; None is the m-way form."""
    if text == MWAY or (text in SHAPES and len(names) < 3):
        return None
    if text in SHAPES:
        return SHAPES[text](names)
    if "(" not in text:
        hint = f"choose of {MWAY}, {', '.join(SHAPES)}, or write pairs in brackets, like ((a b) (c d))"
        raise PlanError(f"there is no shape '{text}'", hint=hint)
    shape = read(text)
    found = names_of(shape)
    if sorted(found) != sorted(names):
        message = f"the shape {written(shape)} is not of the streams {', '.join(names)}"
        raise PlanError(message, hint="name each stream of the query once")
    return None if len(names) < 3 else shape


def tree_plan(
    spec: QuerySpec, shape: Shape, *, policy: str = "timestamp", methods: Collection[str] | None = None
) -> Plan:
    """The exact plan of a query as a tree of that shape."""
    known_policy(policy)
    allowed = known_methods(methods)
    paths: list[Path] = []

    def plant(part: Shape, is_root: bool) -> tuple[str, ...]:
        if isinstance(part, str):
            return (part,)
        streams = [plant(side, False) for side in part]
        into = None if is_root else written(part)
        for mine, other in ((0, 1), (1, 0)):
            step = choose(spec, streams[mine], written(part[other]), allowed, frozenset(streams[other])).step
            paths.append(Path(written(part[mine]), (step,), into=into))
        return (*streams[0], *streams[1])

    plant(shape, True)
    return Plan(policy, tuple(paths))


def connected(spec: QuerySpec) -> tuple[str, ...]:
    """The streams of a query in an order in which, as far as there is one, each is connected to one before it."""
    edges = [streams_of(conjunct) for conjunct in spec.conjuncts if len(streams_of(conjunct)) > 1]
    waiting = [stream.name for stream in spec.streams]
    order = [waiting.pop(0)]
    while waiting:
        reached = (name for name in waiting if any(name in edge and edge & {*order} for edge in edges))
        order.append(next(reached, waiting[0]))
        waiting.remove(order[-1])
    return tuple(order)


def shape_of(plan: Plan) -> Shape | None:
    """The shape of a plan of binary joins; None for the m-way form."""
    nodes = nodes_of(plan.paths)
    if not nodes:
        return None

    def part(name: str) -> Shape:
        node = nodes.get(name)
        return name if node is None else (part(node.inputs[0]), part(node.inputs[1]))

    top = dict.fromkeys(path.driver for path in plan.paths if path.into is None)
    left, right = top
    return (part(left), part(right))


def drawn(plan: Plan) -> tuple[str, ...]:
    """A plan's tree, a line a node: the root, with what it joins beneath it.

    >>> from windrow.plan.plan import Step
    >>> def path(driver, target, into=None):
    ...     return Path(driver, (Step(target, "hashed", (), (), (), ""),), into=into)
    >>> tree = Plan("timestamp", (path("a", "b", "(a b)"), path("b", "a", "(a b)"), path("(a b)", "c"),
    ...                           path("c", "(a b)")))
    >>> print("\\n".join(drawn(tree)))
    results
    ├─ (a b), stored
    │  ├─ a
    │  └─ b
    └─ c
    """
    nodes = nodes_of(plan.paths)
    top = tuple(dict.fromkeys(path.driver for path in plan.paths if path.into is None))
    return ("results", *_branches(top, nodes, ""))


def _branches(inputs: Sequence[str], nodes: dict[str, Node], indent: str) -> list[str]:
    lines: list[str] = []
    for place, name in enumerate(inputs):
        last = place == len(inputs) - 1
        node = nodes.get(name)
        lines.append(f"{indent}{'└' if last else '├'}─ {name}{'' if node is None else ', stored'}")
        if node is not None:
            lines.extend(_branches(node.inputs, nodes, f"{indent}{' ' if last else '│'}  "))
    return lines
