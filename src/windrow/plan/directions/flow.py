"""What rows do in a tree where each half-way join may let only so many of them probe.

From the leaves to the root: at each join both inputs offer rows, an allowance lets some of them probe, what they find
is what the join offers to the next one. Rows of a stream are stored whether they probe or not; rows an inner join has
found are stored if they may probe. What was found and may not go on was found for nothing: a producer-consumer
mismatch.

>>> from windrow.plan.directions.tree import Join, State, stream
>>> tree = Join(Join(stream("a", 500, 5000, 0.001), stream("b", 700, 500, 0.001), State(200, 0.005)),
...             stream("c", 300, 1000, 0.005))
>>> flow = flow_of(tree, {"a": 75, "b": 75, "(a b)": 75, "c": 75})        # the paper's Table 4, EqualHJ
>>> flow.found_hz["(a b)"], flow.output_hz, flow.spent, flow.wasted_hz
(412.5, 450.0, 300.0, 337.5)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from windrow.plan.directions.tree import Join, Node, Step, Stream, joins


@dataclass(frozen=True, slots=True)
class Flow:
    """Rows a second: those that probe, by node, and those that joins find, by join; and the resources that takes."""

    probing_hz: Mapping[str, float]
    found_hz: Mapping[str, float]
    output_hz: float
    spent: float

    @property
    def wasted_hz(self) -> float:
        """Intermediate rows found that may not go on."""
        inner = (name for name in self.found_hz if name in self.probing_hz)
        return sum(self.found_hz[name] - self.probing_hz[name] for name in inner)


Decide = Callable[[Join, tuple[Step, Step], tuple[float, float]], tuple[float, float]]
"""Of a join, its two half-way joins and the rows they are offered: the rows that may probe."""


def flow_of(tree: Join, allowed_hz: Mapping[str, float]) -> Flow:
    """What comes of allowances, by the name of the probing node; a node without one does not probe."""

    def decide(_join: Join, both: tuple[Step, Step], _offered_hz: tuple[float, float]) -> tuple[float, float]:
        left, right = both
        return allowed_hz.get(str(left.node), 0.0), allowed_hz.get(str(right.node), 0.0)

    return flowing(tree, decide)


def flowing(tree: Join, decide: Decide) -> Flow:
    """What comes of a rule that decides join by join, knowing what it is offered."""
    probing_hz: dict[str, float] = {}
    found_hz: dict[str, float] = {}
    spent = 0.0

    def offered(node: Node) -> float:
        return node.rate_hz if isinstance(node, Stream) else found_hz[str(node)]

    for join in joins(tree):
        both = Step(join.left, join.right), Step(join.right, join.left)
        available = offered(join.left), offered(join.right)
        allowed = decide(join, both, available)
        found_hz[str(join)] = 0.0
        for step, rows_hz, limit_hz in zip(both, available, allowed, strict=True):
            probing_hz[str(step.node)] = min(rows_hz, limit_hz)
            found_hz[str(join)] += step.productivity * probing_hz[str(step.node)]
            spent += step.cost * probing_hz[str(step.node)]
    return Flow(probing_hz, found_hz, found_hz[str(tree)], spent)
