"""Figures 8(a) and 8(b): PSP's response time and state size over the number of nodes (section 8.2).

Three streams, selectivities of .05, .1 and .5, 4 to 19 nodes. Latency grows with selectivity; over the nodes it falls
and then rises, from 14 nodes on for a selectivity of .5; memory stays as it is. The paper expects shorter rings to be
best for larger selectivities, "consistent with Section 5"; equation 5 says the opposite, and so does the simulation:
what has to be compared grows faster with the selectivity than what has to be sent.

`latency_s` is the mean latency of results, as the paper measures it; `finished_s` is when a node is done with a row, on
average, which is what equation 5 is about. That is predicted with the M - 1 rounds a cycle takes, and as printed, with
M. The prediction knows no waiting for what has not arrived yet, so it is below what long rings with much work take; and
it adds the head start of each node to the hops, so it is above where hops are all that counts.
"""

from __future__ import annotations

import statistics

from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.psp.scenario import (
    MOST,
    NODES,
    QUICK_NODES,
    SELECTIVITIES,
    SWEPT,
    Scenario,
    falls_then_rises,
    lowest,
    milliseconds,
    swept,
)
from windrow.papers.tables import Table

PAPERS_BEST, PAPERS_SELECTIVITY = 14, 0.5
NEAR_NODES, FLAT, NEAR = 3, 0.05, 0.35


def run(quick: bool, seed: int) -> Outcome:
    """Every selectivity on every ring."""
    rows = [
        (selectivity, *row)
        for selectivity in SELECTIVITIES
        for row in swept(Scenario(selectivity=selectivity), QUICK_NODES if quick else NODES, quick, seed)
    ]
    table = Table.of(("selectivity", *SWEPT), rows)
    of = {selectivity: table.where(selectivity=selectivity) for selectivity in SELECTIVITIES}
    time = [Series.of(each, f"S = {share}", x="nodes", y="latency_s") for share, each in of.items()]
    done = [Series.of(each, f"S = {share}, simulated", x="nodes", y="finished_s") for share, each in of.items()]
    told = [Series.of(each, f"S = {share}, predicted", x="nodes", y="predicted_s") for share, each in of.items()]
    state = [Series.of(each, f"S = {share}", x="nodes", y="stored_rows") for share, each in of.items()]
    charts = (
        Chart("nodes", "latency of a result (s)", tuple(time), "8(a), simulated"),
        Chart("nodes", "a node is done with a row after (s)", (*done, *told), "predicted by equation 5"),
        Chart("nodes", "rows in all states", tuple(state), "8(b), simulated"),
    )
    return Outcome(table, _claims(of), charts)


def _claims(of: dict[float, Table]) -> tuple[Claim, ...]:
    latencies = {share: table.numbers("latency_s") for share, table in of.items()}
    nodes = next(iter(of.values())).numbers("nodes")
    best = {share: lowest(nodes, each) for share, each in latencies.items()}
    predicted = {share: Scenario(selectivity=share).best_length(MOST) for share in of}
    growing = all(list(each) == sorted(each) for each in zip(*latencies.values(), strict=True))
    falling = [share for share, each in latencies.items() if falls_then_rises(each)]
    stored = [rows for table in of.values() for rows in table.numbers("stored_rows")]
    spread = max(stored) / min(stored) - 1
    here, there = best[PAPERS_SELECTIVITY], predicted[PAPERS_SELECTIVITY]
    ratios = [
        predicted_s / done_s
        for table in of.values()
        for predicted_s, done_s in zip(table.numbers("predicted_s"), table.numbers("finished_s"), strict=True)
    ]
    middle = statistics.median(ratios)
    at_best = ", ".join(f"{milliseconds(min(each))} (S = {share})" for share, each in latencies.items())
    lengths = f"simulated {_listed(best)}, predicted {_listed(predicted)} nodes for S = {_listed(dict.fromkeys(of))}"
    return (
        Claim("latency grows with selectivity, at every number of nodes", "yes", f"at best {at_best}", growing),
        Claim(
            "latency falls and then rises with nodes", "yes", f"S = {', '.join(map(str, falling))}", len(falling) >= 2
        ),
        Claim(
            "it rises beyond 14 nodes for S = .5",
            str(PAPERS_BEST),
            f"{here} simulated, {there} by equation 5 (which the hop is chosen for)",
            abs(here - PAPERS_BEST) <= NEAR_NODES,
        ),
        Claim(
            "the smaller the selectivity, the longer the best ring",
            "yes",
            lengths,
            list(best.values()) == sorted(best.values(), reverse=True),
        ),
        Claim("memory does not depend on nodes or selectivity", "stable", f"within {spread:.1%}", spread <= FLAT),
        Claim(
            "equation 5 (with M - 1 rounds) says when nodes are done",
            "not in the paper",
            f"{min(ratios):.2f} to {max(ratios):.2f} of the simulated time, median {middle:.2f}",
            abs(middle - 1) <= NEAR,
        ),
    )


def _listed(values: dict[float, int] | dict[float, None]) -> str:
    return ", ".join(str(share if value is None else value) for share, value in values.items())


EXPERIMENT = Experiment("psp/figure8ab", "PSP: response time and state size over nodes and selectivity", run)
