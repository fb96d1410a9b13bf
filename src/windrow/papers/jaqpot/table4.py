"""Table 4 and Figure 10: what the four half-way heuristics make of 300 tuples a second (Appendix B).

The half-way productivities, .5, 5, 5 and 1, are those that the table's own rows imply. The row of SBestHJP contradicts
them: 50 tuples of b at 5 each find 250, all of which (a b) may probe with, so that it finds 1250, as GrePP does. The
row of GlobalHJPR comes of rounded allowances (13, 130, 130, 27).
"""

from __future__ import annotations

from windrow.papers.experiment import Claim, Experiment, Outcome
from windrow.papers.tables import Table
from windrow.plan.directions import HEURISTICS, Join, State, allocate, stream

RESOURCES = 300
TREE = Join(
    Join(stream("a", 500, 5000, 0.001), stream("b", 700, 500, 0.001), State(200, 0.005)), stream("c", 300, 1000, 0.005)
)
PRINTED = {
    "EqualHJ": (412.5, 450.0),
    "GlobalHJPR": (656.5, 677.0),
    "EBestHJP": (750.0, 750.0),
    "SBestHJP": (150.0, 750.0),
}
NODES = ("a", "b", "(a b)", "c")
ROUNDED = 0.01


def run(quick: bool, seed: int) -> Outcome:  # noqa: ARG001 - a worked example has one size and nothing random
    """The worked example."""
    rows: list[tuple[object, ...]] = []
    claims = []
    for heuristic in HEURISTICS:
        flow = heuristic.flow(TREE, RESOURCES)
        found = flow.found_hz["(a b)"], flow.output_hz
        rows.append((heuristic.name, *(flow.probing_hz[node] for node in NODES), *found, flow.wasted_hz))
        printed = PRINTED[heuristic.name]
        near = all(abs(ours - told) <= ROUNDED * told for ours, told in zip(found, printed, strict=True))
        claims.append(Claim(f"{heuristic.name}: (a b), output", _told(printed), _told(found), near))
    best = allocate(TREE, RESOURCES, method="grepp")
    rows.append(("GrePP", *(best.probing_hz[node] for node in NODES), best.probing_hz["(a b)"], best.output_hz, 0.0))
    table = Table.of(("method", *NODES, "found_ab", "output", "wasted"), rows)
    highest = max(table.numbers("output")[:-1])
    better = Claim(
        "GrePP finds more than each",
        "yes",
        f"{best.output_hz:g}, the best of them {highest:g}",
        best.output_hz > highest + 1e-6,
    )
    return Outcome(table, (*claims, better))


def _told(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:.5g}" for value in values)


EXPERIMENT = Experiment("jaqpot/table4", "The half-way heuristics on a tree of two joins", run)
