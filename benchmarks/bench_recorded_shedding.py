"""Recorded streams at three tenths of the work: what Windrow's harvest finds, what the best harvest in hindsight would
have found, and what random dropping finds. Skipped where there are no recordings ($WINDOW_DATA names their folder).

Quotes keep the clock skew of their raw feeds, five hours, so that rows match others that are hours older. Quotes are
thinned out: with all of them the exact join has some hundred million results.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import windrow
from benchmarks.measure import ROOT, Row, in_child, main
from benchmarks.shedding import DEARER, METHODS
from windrow.control.controller import ControlSettings
from windrow.plan.bins import lag_bins
from windrow.plan.order import plan_query
from windrow.plan.shedding import Shedding
from windrow.plan.work import REFERENCE
from windrow.query.builder import Join
from windrow.run.simulate import Machine, Simulated, simulate
from windrow.store.operand import Array

DESCRIPTION = "Recorded streams at 0.3 of the work: recall beside the best harvest in hindsight and random dropping"
THROTTLE = 0.3
SKEW_US = 5 * 3600 * 10**6
DAY_US = 86400 * 10**6
MACHINE = Machine(REFERENCE.scaled(DEARER), speed=1e6)

Tables = dict[str, pa.Table]


@dataclass(frozen=True, slots=True)
class Case:
    """A query over recorded streams; `goal` is the least share of the hindsight harvest's recall."""

    name: str
    read: Callable[[Path, int], Tables]
    where: str
    window_s: float
    bins: int
    goal: float


@dataclass(frozen=True, slots=True)
class Sizes:
    """Which queries, which part of the rows (one of so many), and how many seeds."""

    cases: tuple[Case, ...]
    thinner: int
    seeds: int


def quotes(symbol: str) -> Callable[[Path, int], Tables]:
    """Mids of two venues, the one with its clock set back."""

    def read(folder: Path, thinner: int) -> Tables:
        rows = pq.read_table(folder / "fx_quotes.parquet")
        rows = rows.filter(pc.equal(rows["symbol"], symbol))
        tables = {}
        for name, venue, skew_us in (("a", "fxcm", SKEW_US), ("b", "oanda", 0)):
            held = rows.filter(pc.equal(rows["venue"], venue))
            held = held.take(pa.array(np.arange(0, len(held), 8 * thinner)))
            times = pa.array(np.asarray(held["ts"].cast(pa.int64())) - skew_us, pa.timestamp("us"))
            mids = np.round((np.asarray(held["bid"]) + np.asarray(held["ask"])) / 2, 6)
            tables[name] = pa.table({"ts": times, "x": mids})
        return tables

    return read


def headlines(*sources: str) -> Callable[[Path, int], Tables]:
    """Headlines of some sources; of fewer days where they are to be thinner."""

    def read(folder: Path, thinner: int) -> Tables:
        rows = pq.read_table(folder / "news_headlines.parquet")
        times = np.asarray(rows["ts"].cast(pa.int64()))
        rows = rows.filter(pa.array(times < times.min() + (156 // thinner) * DAY_US))
        held = (rows.filter(pc.equal(rows["source"], source)) for source in sources)
        return {name: table.select(["ts", "slug"]) for name, table in zip("abc", held, strict=False)}

    return read


HALF_A_PIP = "ABS(a.x - b.x) <= 0.00005"
ALIKE = "jaccard(a.slug, b.slug) >= 0.5"
CASES = (
    Case("EURUSD of two venues", quotes("eurusd"), HALF_A_PIP, 6 * 3600.0, 50, 90.0),
    Case("NZDUSD of two venues", quotes("nzdusd"), HALF_A_PIP, 6 * 3600.0, 50, 90.0),
    Case("headlines abc-nbc", headlines("abc", "nbc"), ALIKE, 48 * 3600.0, 20, 90.0),
    Case("headlines abc-cbs", headlines("abc", "cbs"), ALIKE, 48 * 3600.0, 20, 90.0),
    Case(
        "headlines abc-nbc-cbs",
        headlines("abc", "nbc", "cbs"),
        f"{ALIKE} AND jaccard(b.slug, c.slug) >= 0.5",
        48 * 3600.0,
        20,
        80.0,
    ),
)
FULL = Sizes(CASES, thinner=1, seeds=5)
QUICK = Sizes(CASES, thinner=4, seeds=1)


def run(quick: bool) -> list[Row]:
    """The rows of this bench; none where there are no recordings."""
    return in_child("benchmarks.bench_recorded_shedding", quick) if any(_folder().glob("*.parquet")) else []


def measure(sizes: Sizes) -> list[Row]:
    """Measure in this process."""
    return [_row(case, sizes) for case in sizes.cases]


def _folder() -> Path:
    return Path(os.environ.get("WINDROW_DATA", ROOT.parent / "shared" / "data"))


def _row(case: Case, sizes: Sizes) -> Row:
    tables = case.read(_folder(), sizes.thinner)
    query = _query(case, tables)
    batch_s = case.window_s / 250
    plan = plan_query(query.spec(), methods=METHODS)
    full = simulate(query, tables, MACHINE, batch_s=batch_s, plan=plan, keep_results=True)
    visited = {path.driver: path.targets[0] for path in plan.firsts}
    best = _hindsight(case, query, tables, full, visited)
    ours, costs = [], []
    for seed in range(1, sizes.seeds + 1):
        interval_s = case.window_s / 50
        control = ControlSettings(
            interval_s=interval_s, fixed=THROTTLE, bins=case.bins, seed=seed, memory_s=case.window_s
        )
        shed = simulate(query, tables, MACHINE, batch_s=batch_s, control=control, methods=METHODS)
        ours.append(shed.results / full.results)
        costs.append(_pairs(shed) / _pairs(full))
    keep = THROTTLE**0.5
    thrown = Shedding(keep=(("a", keep), ("b", keep)))
    random = simulate(query, tables, MACHINE, batch_s=batch_s, plan=replace(plan, shedding=thrown))
    recall, ratio = statistics.median(ours), 100 * statistics.median(ours) / best
    return {
        "name": case.name,
        "peer_name": "hindsight",
        "ours": round(recall, 3),
        "peer": round(best, 3),
        "unit": "of all",
        "ratio": round(ratio, 1),
        "goal": f">= {case.goal:g} %",
        "met": ratio >= case.goal,
        "note": f"random dropping {random.results / full.results:.3f} at {_pairs(random) / _pairs(full):.2f} of the"
        f" pairs, ours at {statistics.median(costs):.2f}; {full.results} results, lowest of {sizes.seeds}"
        f" seeds {min(ours):.3f}",
    }


def _query(case: Case, tables: Tables) -> Join:
    selected = ", ".join(f"{name}.ts AS {name}_ts" for name in tables)
    text = f"SELECT {selected} FROM {', '.join(tables)} WHERE {case.where} WINDOW {case.window_s:g} SECONDS"
    return windrow.sql(text, streams=tables)


def _pairs(run: Simulated) -> int:
    """Pairs that were looked at."""
    tallies = (
        tally
        for step in run.steps
        for held in (step.observation.joined.sampled, step.observation.joined.others)
        for tally in held.values()
    )
    return sum(step.candidates for tally in tallies for step in tally.steps)


def _hindsight(case: Case, query: Join, tables: Tables, full: Simulated, visited: dict[str, str]) -> float:
    """The recall of the best bins of each direction's first store, for the same share of that step's pairs, which are
    nearly all there are.
    """
    results = pa.concat_tables(full.tables)
    members = {name: _times(results, f"{name}_ts") for name in tables}
    stored = {name: _times(table, "ts") for name, table in tables.items()}
    newest = np.stack([members[name] for name in tables])
    driver = len(tables) - 1 - np.argmax(newest[::-1], axis=0)
    found: list[tuple[float, float]] = []
    for number, name in enumerate(tables):
        target, own = visited[name], driver == number
        (bins,) = lag_bins(query.spec(), name, (target,), case.bins)
        pairs = _pairs_by_bin(stored[name], stored[target], bins.edges)
        counts = np.bincount(bins.place(members[name][own] - members[target][own]), minlength=bins.size)
        found += [(float(count), float(cost)) for count, cost in zip(counts, pairs, strict=True) if cost > 0]
    return _filled(found) / max(1, len(results))


def _times(table: pa.Table, column: str) -> Array:
    return np.asarray(table[column].cast(pa.int64()))


def _pairs_by_bin(drivers: Array, stored: Array, edges: Array) -> list[int]:
    reached = [int(np.searchsorted(stored, drivers - edge, side="right").sum()) for edge in edges]
    return [young - old for young, old in pairwise(reached)]


def _filled(found: list[tuple[float, float]]) -> float:
    """Results of the bins with the most results a pair, up to the budget; the last one in part."""
    left, total = THROTTLE * sum(cost for _, cost in found), 0.0
    for count, cost in sorted(found, key=lambda pair: pair[0] / pair[1], reverse=True):
        share = min(1.0, left / cost)
        total, left = total + share * count, left - share * cost
    return total


if __name__ == "__main__":
    main(DESCRIPTION, run)
