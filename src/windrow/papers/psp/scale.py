"""10 to 1,000 nodes: what a bigger cluster would do, predicted and simulated (sections 1, 5.1 and 5.2).

The paper's cluster ends at 20 nodes; its scheme does not, unlike trees of binary joins, which can use M - 1. Windows
are larger here, 20,000 rows each, and matches rarer, one a probe, so that 1,000 slices have rows in them and a partial
result is there to be sent round; images are large, and a hop takes half a millisecond, what 60 kB take on a gigabit
link.

Two questions, as in section 5.2. Latency: a longer ring does the work faster and goes round slower; equation 5 says
where it turns (M - 1 rounds). Beyond that it charges all rounds to every node, and is too high. Output: equation 4 says
it only grows, with nodes that are never idle, for which PSP-I has to keep several rows in the ring; its simulation
takes time, so that it ends at fewer nodes than the prediction.
"""

from __future__ import annotations

from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.psp.scenario import Scenario, lowest
from windrow.papers.tables import Table, Value
from windrow.plan.ring.model import tree_nodes
from windrow.run.cluster.outcome import ClusterRun

SIZES = (10, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000)
QUICK_SIZES = (10, 30, 50, 100, 300, 1000)
SCENARIO = Scenario(rate_hz=50.0, window_s=400.0, selectivity=1 / 20_000, image="large", hop_s=5e-4)
BEGIN_S, RUN_S = 405.0, 420.0
ROWS, QUICK_ROWS = 100, 40
FILLED, QUICK_FILLED = 200, 100
"""Up to this size PSP-I is simulated."""
ROWS_A_PLACE, FEWEST_ROWS = 10, 160
NEAR = 0.25


def run(quick: bool, seed: int) -> Outcome:
    """Every size, for latency and for output."""
    feed = SCENARIO.feed(RUN_S, seed)
    begin = feed.position_at(BEGIN_S)
    rows: list[tuple[Value, ...]] = []
    for nodes in QUICK_SIZES if quick else SIZES:
        alone = SCENARIO.simulate(
            feed, range(begin, begin + (QUICK_ROWS if quick else ROWS)), SCENARIO.ring(nodes), seed
        )
        predicted_s, predicted_hz = SCENARIO.load.latency_s(nodes, SCENARIO.rounds), SCENARIO.load.service_hz(nodes)
        service_hz: float | None = None
        if nodes <= (QUICK_FILLED if quick else FILLED):
            limit = _places(nodes)
            drivers = range(begin, begin + max(ROWS_A_PLACE * limit, FEWEST_ROWS))
            service_hz = _settled_hz(SCENARIO.simulate(feed, drivers, SCENARIO.ring(nodes, limit), seed), limit)
        rows.append(
            (nodes, alone.finished_s, predicted_s, alone.service_hz, service_hz, predicted_hz, alone.stored_rows)
        )
    columns = (
        "nodes",
        "finished_s",
        "predicted_s",
        "one_row_hz",
        "several_rows_hz",
        "predicted_hz",
        "stored_rows",
    )
    table = Table.of(columns, rows)
    return Outcome(table, _claims(table), _charts(table))


def _places(nodes: int) -> int:
    """Rows in the ring at once, so that no node is idle: three times those worked on while one goes round."""
    load = SCENARIO.load
    round_s = SCENARIO.rounds * nodes * load.costs.hop_s + load.ring_s(nodes) / nodes
    return int(3 * round_s * load.service_hz(nodes)) + 2


def _settled_hz(done: ClusterRun, places: int) -> float:
    """Rows a second while the ring is full: from when the first that were read in are done to before it empties."""
    ends_s = sorted(cycle.end_s for cycle in done.cycles)
    return (len(ends_s) - 2 * places) / (ends_s[-places - 1] - ends_s[places - 1])


def _claims(table: Table) -> tuple[Claim, ...]:
    nodes, done, predicted = (table.numbers(name) for name in ("nodes", "finished_s", "predicted_s"))
    best, expected = lowest(nodes, done), SCENARIO.best_length(int(nodes[-1]), SCENARIO.rounds)
    ratios = [said / was for said, was in zip(predicted, done, strict=True)]
    shorter = [ratio for ratio, count in zip(ratios, nodes, strict=True) if count <= expected]
    several = table.numbers("several_rows_hz")
    shares = [was / said for was, said in zip(several, table.numbers("predicted_hz"), strict=False)]
    stored = table.numbers("stored_rows")
    output = table.numbers("predicted_hz")
    return (
        Claim(
            "any number of nodes can be used, unlike in a tree of binary joins",
            "any; a tree has M - 1",
            f"{nodes[-1]:.0f} nodes against {tree_nodes(SCENARIO.streams)}, all with a slice of every window",
            max(stored) <= 1.01 * min(stored),
        ),
        Claim(
            "latency has its minimum where equation 5 says",
            f"{expected} nodes",
            f"{best} of the sizes tried",
            expected / 2 <= best <= 2 * expected,
        ),
        Claim(
            "output grows with nodes",
            f"equation 4: {output[0]:.1f} to {output[-1]:.0f} rows a second",
            f"PSP-I {several[0]:.1f} to {several[-1]:.0f} rows a second, up to {nodes[len(several) - 1]:.0f} nodes",
            list(several) == sorted(several) and list(output) == sorted(output),
        ),
        Claim(
            "equation 5 says when nodes are done, as long as work counts for more than hops",
            "not in the paper",
            f"{min(shorter):.2f} to {max(shorter):.2f} of the simulated time; then up to {max(ratios):.2f}",
            all(1 - NEAR <= ratio <= 1 + NEAR for ratio in shorter),
        ),
        Claim(
            "equation 3 (N / L_PSP) says what PSP-I serves",
            "not in the paper",
            f"simulated {min(shares):.2f} to {max(shares):.2f} of it",
            all(1 - NEAR <= share <= 1 + NEAR for share in shares),
        ),
    )


def _charts(table: Table) -> tuple[Chart, ...]:
    def series(name: str, column: str) -> Series:
        return Series.of(table, name, x="nodes", y=column)

    latency = (series("simulated", "finished_s"), series("predicted", "predicted_s"))
    output = (
        series("PSP, simulated", "one_row_hz"),
        series("PSP-I, simulated", "several_rows_hz"),
        series("predicted", "predicted_hz"),
    )
    return (
        Chart("nodes", "a node is done with a row after (s)", latency, log_y=True),
        Chart("nodes", "rows a second", output, log_y=True),
    )


EXPERIMENT = Experiment("psp/scale", "10 to 1,000 nodes: latency and output, predicted and simulated", run)
