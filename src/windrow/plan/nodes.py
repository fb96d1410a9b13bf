"""The nodes of a plan: what its paths store on the way to results, so that they make up a tree of joins.

    paths                      into            nodes                        levels
    a probes b                 (a b)
    b probes a                 (a b)           (a b) of a and b             1        above a, b, c: 0
    (a b) probes c             results
    c probes (a b)             results

A node is the join of its inputs: the drivers whose paths store what they find in it. Its store is probed, and its new
rows drive, like those of a stream. The m-way plan has no nodes: its paths all lead to results.

A row can be stored, and probed, before it drives on; so what is stored by one level is driven by the next.

>>> from windrow.plan.plan import Path, Step
>>> def step(target):
...     return Step(target, "loop", (), (), (), "")
>>> paths = (Path("a", (step("b"),), into="(a b)"), Path("b", (step("a"),), into="(a b)"),
...          Path("(a b)", (step("c"),)), Path("c", (step("(a b)"),)))
>>> nodes_of(paths)
{'(a b)': Node(name='(a b)', inputs=('a', 'b'), streams=('a', 'b'), level=1)}
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from windrow.errors import PlanError
from windrow.plan.plan import Path


@dataclass(frozen=True, slots=True)
class Node:
    """An inner node: whose rows it joins, over which streams, and how many joins are beneath it at most."""

    name: str
    inputs: tuple[str, ...]
    streams: tuple[str, ...]
    level: int


def nodes_of(paths: Iterable[Path]) -> dict[str, Node]:
    """The nodes that paths store into, each after those beneath it, the lower levels first."""
    inputs: dict[str, list[str]] = {}
    for path in paths:
        if path.into is not None and path.driver not in inputs.setdefault(path.into, []):
            inputs[path.into].append(path.driver)
    found: dict[str, Node] = {}
    waiting = dict(inputs)
    while waiting:
        ready = [name for name, held in waiting.items() if not any(each in waiting for each in held)]
        if not ready:
            raise PlanError(f"the nodes {', '.join(waiting)} lie beneath each other", hint="plan the query again")
        for name in ready:
            below = [found[each] for each in waiting[name] if each in found]
            streams = tuple(
                stream for each in waiting[name] for stream in (found[each].streams if each in found else (each,))
            )
            level = 1 + max((node.level for node in below), default=0)
            found[name] = Node(name, tuple(waiting[name]), streams, level)
        waiting = {name: held for name, held in waiting.items() if name not in ready}
    return dict(sorted(found.items(), key=lambda item: item[1].level))


def root_of(paths: Iterable[Path]) -> tuple[str, ...]:
    """The inputs whose join are the results."""
    return tuple(dict.fromkeys(path.driver for path in paths if path.into is None))
