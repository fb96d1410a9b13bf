"""Table 2 and Figure 4: path productivities, and what the knapsacks and GrePP make of 30 tuples a second (section 4.1).

A tree of two joins: 11 tuples of a find 4 of (a b), 11 of b find 5, one of (a b) finds 1, 10 of c find 1. The paper
truncates .2667 and .3125 to .266 and .312, and rounds GrePP's 20.625 and 9.375.
"""

from __future__ import annotations

from math import floor

from windrow.papers.experiment import Claim, Experiment, Outcome
from windrow.papers.tables import Table
from windrow.plan.directions import Join, Model, State, allocate, best_multiples, greedy_multiples, stream

RESOURCES = 30
USES, YIELDS = (15, 16, 10), (4, 5, 1)
PRINTED = (0.266, 0.312, 0.1)
TREE = Join(Join(stream("a", 1000, 1, 5 / 11), stream("b", 1000, 1, 4 / 11), State(1, 0.1)), stream("c", 1000, 1, 1))


def run(quick: bool, seed: int) -> Outcome:  # noqa: ARG001 - a worked example has one size and nothing random
    """The worked example."""
    model = Model.of(TREE)
    rows = [
        (name, use, use * path.productivity, path.productivity, printed)
        for name, path, use, printed in zip("ABC", model.paths, USES, PRINTED, strict=True)
    ]
    table = Table.of(("path", "resources_used", "output_rate", "path_productivity", "printed"), rows)
    greedy, best = greedy_multiples(USES, YIELDS, RESOURCES), best_multiples(USES, YIELDS, RESOURCES)
    continuous = allocate(TREE, RESOURCES, method="grepp")
    probing = f"{continuous.probing_hz['b']:g}, {continuous.probing_hz['(a b)']:g}, {continuous.output_hz:g}"
    seen = ", ".join(f"{path.productivity:.4f}" for path in model.paths)
    cut = all(
        floor(path.productivity * 1000 + 1e-9) / 1000 == told for path, told in zip(model.paths, PRINTED, strict=True)
    )
    claims = (
        Claim("path productivities, cut after three digits", ", ".join(f"{value:g}" for value in PRINTED), seen, cut),
        Claim("the greedy knapsack takes B and C", "output 6", _told(greedy), greedy == (0, 1, 1)),
        Claim("dynamic programming takes A twice", "output 8", _told(best), best == (2, 0, 0)),
        Claim(
            "GrePP: b, (a b), output",
            "20.62, 9.38, 9.38",
            probing,
            abs(continuous.probing_hz["b"] - 20.62) < 0.006 and abs(continuous.output_hz - 9.38) < 0.006,
        ),
    )
    return Outcome(table, claims)


def _told(multiples: tuple[int, ...]) -> str:
    output = sum(multiple * found for multiple, found in zip(multiples, YIELDS, strict=True))
    return f"{', '.join(map(str, multiples))} times A, B, C: output {output}"


EXPERIMENT = Experiment("jaqpot/table2", "Path productivities, and three ways to spend 30 tuples a second", run)
