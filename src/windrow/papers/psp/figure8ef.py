"""Figures 8(e) and 8(f): CTR's response time and state size over the number of nodes (section 8.3).

Selectivity .1, 2 to 9 copies of each segment, at least twice as many nodes as copies. Latency falls with nodes; it
rises with copies, because smaller covers leave the work to fewer nodes; states grow with copies and stay as nodes are
added.

Ours: segments of .2 s, 50 a window, laid on nodes drawn at random. Routing itself takes no time here.
"""

from __future__ import annotations

from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.psp.scenario import (
    FEWEST,
    MOST,
    QUICK_ROWS,
    QUICK_RUN_S,
    ROWS,
    RUN_S,
    WARM_UP_S,
    Scenario,
)
from windrow.papers.tables import Table
from windrow.run.cluster.coordinated import CoordinatedSetting, simulate_coordinated

COPIES, QUICK_COPIES = tuple(range(2, 10)), (2, 4, 9)
SEGMENT_US = 200_000
FLAT = 0.05


def run(quick: bool, seed: int) -> Outcome:
    """Every number of copies on every number of nodes that may have it."""
    scenario, run_s = Scenario(), QUICK_RUN_S if quick else RUN_S
    feed = scenario.feed(run_s, seed)
    drivers = feed.sample(WARM_UP_S, run_s, QUICK_ROWS if quick else ROWS)
    rows = []
    for copies in QUICK_COPIES if quick else COPIES:
        for nodes in range(max(FEWEST, 2 * copies), MOST + 1, 3 if quick and copies < QUICK_COPIES[-1] else 1):
            setting = CoordinatedSetting(
                scenario.windows_us, scenario.orders, scenario.costs, nodes, copies, SEGMENT_US, saturated=True
            )
            done = simulate_coordinated(feed, setting, scenario.chance(seed), drivers=drivers, seed=seed)
            rows.append((copies, nodes, done.latency_s, done.stored_rows, done.service_hz))
    table = Table.of(("copies", "nodes", "latency_s", "stored_rows", "service_hz"), rows)
    return Outcome(table, _claims(table), _charts(table))


def _claims(table: Table) -> tuple[Claim, ...]:
    every = [int(each) for each in dict.fromkeys(table.numbers("copies"))]
    of = {copies: table.where(copies=copies) for copies in every}
    falls = [of[copies].numbers("latency_s")[-1] / of[copies].numbers("latency_s")[0] for copies in every]
    last = [of[copies].numbers("latency_s")[-1] for copies in every]
    stored = [of[copies].numbers("stored_rows") for copies in every]
    spread = max(max(each) / min(each) - 1 for each in stored)
    means = [sum(each) / len(each) for each in stored]
    return (
        Claim(
            "latency falls with nodes",
            "falls",
            f"x {min(falls):.2f} to x {max(falls):.2f} from the fewest to {MOST} nodes",
            all(ratio < 1 for ratio in falls),
        ),
        Claim(
            "latency rises with copies, at a fixed number of nodes",
            "rises",
            f"{', '.join(f'{each:.3f}' for each in last)} s for {', '.join(map(str, every))} copies",
            last == sorted(last),
        ),
        Claim("states stay when nodes are added", "fairly stable", f"within {spread:.1%}", spread <= FLAT),
        Claim(
            "states grow with copies",
            "grow",
            f"{means[0]:.0f} to {means[-1]:.0f} rows",
            means == sorted(means) and means[-1] > means[0],
        ),
    )


def _charts(table: Table) -> tuple[Chart, ...]:
    every = [int(each) for each in dict.fromkeys(table.numbers("copies"))]
    return tuple(
        Chart(
            "nodes",
            title,
            tuple(Series.of(table.where(copies=each), f"{each} copies", x="nodes", y=name) for each in every),
            panel,
        )
        for name, title, panel in (
            ("latency_s", "latency of a result (s)", "8(e)"),
            ("stored_rows", "rows in all states", "8(f)"),
        )
    )


EXPERIMENT = Experiment("psp/figure8ef", "CTR: response time and state size over nodes and copies", run)
