"""Figures 8(c) and 8(d): ATR's response time and state size over the number of nodes (section 8.3).

Selectivity .1, segments of 10 to 50 s, 4 to 19 nodes. More nodes make no row faster, because each row is processed by
one of them; states grow steadily with the nodes, because more segments are worked on at once, each with the rows of the
other streams it needs.

States grow only as long as there are segments to work on: 600 s are 12 segments of 50 s, so that the thirteenth node
has none. Claims go by the numbers of nodes up to there. The first rows of a segment meet full windows of the other
streams and few rows of their own, so that a row's latency depends a little on how far nodes have got; within a tenth
counts as flat.
"""

from __future__ import annotations

from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.psp.scenario import NODES, RUN_S, Scenario, milliseconds
from windrow.papers.tables import Table
from windrow.run.cluster.aligned import AlignedSetting, simulate_aligned
from windrow.streams.arrivals import SECOND_US

SEGMENTS_S, QUICK_SEGMENTS_S = (10, 20, 30, 40, 50), (10, 15)
QUICK_NODES, QUICK_RUN_S = (4, 9, 14), 150.0
LEAST_GROWTH, FLAT = 1.5, 0.1


def run(quick: bool, seed: int) -> Outcome:
    """Every segment length on every number of nodes."""
    scenario, until_s = Scenario(), QUICK_RUN_S if quick else RUN_S
    feed = scenario.feed(until_s, seed)
    rows = []
    for segment_s in QUICK_SEGMENTS_S if quick else SEGMENTS_S:
        for nodes in QUICK_NODES if quick else NODES:
            setting = AlignedSetting(scenario.windows_us, scenario.orders, scenario.costs, nodes, segment_s * SECOND_US)
            done = simulate_aligned(feed, setting, scenario.chance(seed), until_s=until_s)
            late = done.within(lambda cycle: cycle.end_s > until_s / 2)
            used = min(nodes, int(until_s / segment_s))
            rows.append((segment_s, nodes, used, late.latency_s, late.stored_rows, done.service_hz))
    columns = ("segment_s", "nodes", "nodes_with_work", "latency_s", "stored_rows", "service_hz")
    table = Table.of(columns, rows)
    return Outcome(table, _claims(table), _charts(table))


def _claims(table: Table) -> tuple[Claim, ...]:
    segments = dict.fromkeys(table.numbers("segment_s"))
    ratios: dict[str, list[float]] = {"latency_s": [], "stored_rows": [], "service_hz": []}
    for segment_s in segments:
        part = table.where(segment_s=int(segment_s))
        working = [
            nodes == used for nodes, used in zip(part.numbers("nodes"), part.numbers("nodes_with_work"), strict=True)
        ]
        for name, found in ratios.items():
            values = [value for value, counts in zip(part.numbers(name), working, strict=True) if counts]
            found.append(values[-1] / values[0])
    latency, stored, service = (f"x {min(found):.2f} to x {max(found):.2f}" for found in ratios.values())
    lowest_s = min(table.numbers("latency_s"))
    return (
        Claim("latency does not fall when nodes are added", "flat", latency, min(ratios["latency_s"]) > 1 - FLAT),
        Claim("states grow with nodes", "increasing", stored, min(ratios["stored_rows"]) > LEAST_GROWTH),
        Claim("throughput may increase", "yes", service, min(ratios["service_hz"]) > 1),
        Claim(
            "one row takes longer than on a ring, where nodes share its work",
            "all the work is done by a single node",
            f"{milliseconds(lowest_s)} or more; PSP on 8 nodes about {milliseconds(_ring_s())}",
            lowest_s > _ring_s(),
        ),
    )


def _ring_s() -> float:
    """What equation 5 gives a ring of 8 nodes, by which a node is done; results are there earlier."""
    scenario = Scenario()
    return scenario.load.latency_s(8, scenario.rounds)


def _charts(table: Table) -> tuple[Chart, ...]:
    segments = [int(each) for each in dict.fromkeys(table.numbers("segment_s"))]
    return tuple(
        Chart(
            "nodes",
            title,
            tuple(
                Series.of(table.where(segment_s=each), f"segments of {each} s", x="nodes", y=name) for each in segments
            ),
            panel,
        )
        for name, title, panel in (
            ("latency_s", "latency of a result (s)", "8(c)"),
            ("stored_rows", "rows in all states", "8(d)"),
        )
    )


EXPERIMENT = Experiment("psp/figure8cd", "ATR: response time and state size over nodes and segment lengths", run)
