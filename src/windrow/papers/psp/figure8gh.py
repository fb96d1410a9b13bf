"""Figures 8(g) and 8(h): PSP with and without adaptation when the rate doubles (section 8.4).

In the middle of the run rates go from 50 to 100 rows a second and stream. Without adaptation the ring keeps its length,
and, as slices are cut by age, the head is the first to hold twice as many rows; with it, every 2 s the length with the
lowest latency is chosen anew, of at most 19 nodes, and slices are cut by count.

Ours: selectivity .1; the ring begins with the length that equation 5 finds best for 50 rows a second. At once: rows
move to where they belong while the ring stands still. Passively: slices get other ends and rows follow as they age,
which takes a window. Twice as many stored rows are four times as many pairs to compare, so that even the best ring
takes longer after the change; stable is judged by how much.
"""

from __future__ import annotations

from collections.abc import Callable

from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.psp.scenario import MOST, WARM_UP_S, Scenario, milliseconds
from windrow.papers.tables import Table
from windrow.run.cluster.adapting import Adapting
from windrow.run.cluster.feed import Feed
from windrow.run.cluster.outcome import ClusterRun, Cycle
from windrow.streams.arrivals import SECOND_US, Poisson

LOW_HZ, HIGH_HZ = 50.0, 100.0
RUN_S, QUICK_RUN_S = 600.0, 80.0
INTERVAL_S, BIN_S, ROWS_A_BIN = 2.0, 2.0, 8
WINDOW_S, LESS = 10.0, 0.8
ADAPTING, PASSIVE, STATIC = "at once", "passive", "without"


def run(quick: bool, seed: int) -> Outcome:
    """The same rows, with and without adaptation."""
    scenario, run_s = Scenario(), QUICK_RUN_S if quick else RUN_S
    feed = _doubling(seed, run_s)
    bins = int((run_s - WARM_UP_S) / BIN_S)
    drivers = feed.sample(WARM_UP_S, run_s, bins * ROWS_A_BIN)
    shares = (scenario.selectivity,) * scenario.streams
    followers = {
        ADAPTING: Adapting(scenario.windows_us, shares, scenario.costs, MOST, INTERVAL_S),
        PASSIVE: Adapting(scenario.windows_us, shares, scenario.costs, MOST, INTERVAL_S, at_once=False),
        STATIC: None,
    }
    runs = {
        name: scenario.simulate(feed, drivers, scenario.ring(scenario.best_length(MOST)), seed, follower)
        for name, follower in followers.items()
    }
    rows = []
    for number in range(bins):
        begin_s = WARM_UP_S + number * BIN_S
        for name, done in runs.items():
            part = done.within(_during(feed, begin_s, begin_s + BIN_S))
            if part.cycles:
                length = _length(followers[name], begin_s, scenario.best_length(MOST))
                rows.append((name, begin_s, part.latency_s, part.finished_s, length, part.stored_rows))
    table = Table.of(("adaptation", "time_s", "latency_s", "finished_s", "nodes", "stored_rows"), rows)
    return Outcome(table, _claims(feed, runs, table, run_s), _charts(table))


def _doubling(seed: int, run_s: float) -> Feed:
    """Poisson arrivals whose rate doubles half-way."""
    low, high = (
        Feed.drawn([Poisson(rate)] * 3, run_s / 2, seed + place) for place, rate in enumerate((LOW_HZ, HIGH_HZ))
    )
    half_us = int(run_s / 2 * SECOND_US)
    both = zip(low.times_us, high.times_us, strict=True)
    return Feed.of([[*early, *(time + half_us for time in late)] for early, late in both])


def _during(feed: Feed, from_s: float, to_s: float) -> Callable[[Cycle], bool]:
    return lambda cycle: from_s <= feed.time_us(cycle.position) / SECOND_US < to_s


def _length(follower: Adapting | None, time_s: float, first: int) -> int:
    """The nodes in use at some time."""
    chosen = [] if follower is None else [nodes for since_s, nodes in follower.lengths if since_s <= time_s]
    return chosen[-1] if chosen else first


def _claims(feed: Feed, runs: dict[str, ClusterRun], table: Table, run_s: float) -> tuple[Claim, ...]:
    half_s = run_s / 2
    before = {name: done.within(_during(feed, 0, half_s)).latency_s for name, done in runs.items()}
    after = {name: done.within(_during(feed, half_s + WINDOW_S, run_s)).latency_s for name, done in runs.items()}
    grown = {name: after[name] / before[name] for name in runs}
    finished = {name: done.within(_during(feed, half_s, run_s)).finished_s for name, done in runs.items()}
    lengths = table.where(adaptation=ADAPTING).numbers("nodes")
    return (
        Claim(
            "after the change, latency is lower with adaptation than without",
            "stable against growing",
            f"{milliseconds(after[ADAPTING])} at once, {milliseconds(after[PASSIVE])} passively, "
            f"{milliseconds(after[STATIC])} without",
            max(after[ADAPTING], after[PASSIVE]) < after[STATIC],
        ),
        Claim(
            "adaptation makes the system more stable: latency grows less",
            "much more stable",
            ", ".join(f"{name} x {ratio:.2f}" for name, ratio in grown.items()),
            grown[ADAPTING] < LESS * grown[STATIC],
        ),
        Claim(
            "nodes are done with a row sooner, from the change on",
            "not in the paper",
            ", ".join(f"{milliseconds(seconds)} {name}" for name, seconds in finished.items()),
            finished[ADAPTING] < finished[STATIC],
        ),
        Claim(
            "the ring grows with the rate",
            "nodes are added",
            f"{lengths[0]:.0f} to {lengths[-1]:.0f} nodes",
            lengths[-1] > lengths[0],
        ),
    )


def _charts(table: Table) -> tuple[Chart, ...]:
    names = (ADAPTING, PASSIVE, STATIC)
    of = {name: table.where(adaptation=name) for name in names}
    latency = tuple(Series.of(of[name], name, x="time_s", y="latency_s") for name in names)
    nodes = tuple(Series.of(of[name], name, x="time_s", y="nodes") for name in names)
    return (
        Chart("event time (s)", "latency of a result (s)", latency, "8(g) and 8(h)"),
        Chart("event time (s)", "nodes", nodes),
    )


EXPERIMENT = Experiment("psp/figure8gh", "PSP with and without adaptation when the rate doubles", run)
