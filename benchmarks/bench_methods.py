"""Methods chosen while running beside every fixed choice, over a grid of rates, keys and windows."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pyarrow as pa

import windrow
from benchmarks.measure import Row, in_child, main, smaller
from windrow.control.switching import COMPARED
from windrow.plan.order import methods_of, plan_query
from windrow.plan.plan import Plan
from windrow.query.spec import QuerySpec

DESCRIPTION = (
    "Methods chosen while running, beside the best fixed ones: by rates a:b, distinct keys, rows of b's window"
)
QUERY = "SELECT a.y AS ay, b.y AS by FROM a, b WHERE a.k = b.k AND a.y < b.y - 0.999 WINDOW 1000 SECONDS"
FIXED = {
    "HH": ("hashed", "hashed"), "HN": ("hashed", "loop"), "NH": ("loop", "hashed"), "NN": ("loop", "loop"),
    "SS": ("sorted", "sorted"),
}  # fmt: skip
"""By which method the window of a is searched, and that of b."""
ASYMMETRIC = ("HN", "NH")
MEAN_GOAL, WORST_GOAL = 1.15, 1.5
FILLING, SETTLING = 16, 16
WINDOW_S = 1000


@dataclass(frozen=True, slots=True)
class Sizes:
    """The grid, rows of both streams a batch, and batches that are timed."""

    rates: tuple[int, ...]
    keys: tuple[int, ...]
    windows: tuple[int, ...]
    batch_rows: int
    batches: int


FULL = Sizes((1, 3, 10, 30, 100), (2, 10, 100, 10**4, 10**6), (10**3, 10**5), batch_rows=200, batches=24)
QUICK = Sizes((1, 30), (2, 100, 10**6), (10**3, 10**5), batch_rows=200, batches=12)


def run(quick: bool) -> list[Row]:
    """The rows of this bench."""
    return in_child("benchmarks.bench_methods", quick)


def measure(sizes: Sizes) -> list[Row]:
    """Measure in this process: processor time of the median batch, of each choice in turn."""
    rows, ratios, wins = [], [], []
    for rate, keys, window in product(sizes.rates, sizes.keys, sizes.windows):
        row, ratio, best, gain = _cell(rate, keys, window, sizes)
        rows.append(row)
        ratios.append(ratio)
        if best in ASYMMETRIC and gain > 0.05:
            wins.append(f"1:{rate}, {keys:,} keys, {window:,} rows ({best}, {100 * gain:.0f} %)")
    shown = "; ".join(wins) or "nowhere"
    return [
        *rows,
        smaller("mean", ours=statistics.mean(ratios), peer=None, unit="x the best fixed", goal=MEAN_GOAL),
        smaller("worst", ours=max(ratios), peer=None, unit="x the best fixed", goal=WORST_GOAL),
        smaller(
            "cells",
            ours=len(ratios),
            peer=None,
            unit="cells",
            goal=len(ratios),
            note=f"an asymmetric choice beats the best symmetric one by more than 5 %: {shown}",
        ),
    ]


def _cell(rate: int, keys: int, window: int, sizes: Sizes) -> tuple[Row, float, str, float]:
    batches = _batches(rate, keys, window, sizes)
    spec = windrow.sql(QUERY, streams=batches[0]).spec()
    seconds = {name: _seconds(spec, batches, sizes, plan=fixed(spec, *methods)) for name, methods in FIXED.items()}
    ours = _seconds(spec, batches, sizes, adaptive=True)
    best = min(seconds, key=lambda name: seconds[name])
    symmetric = min(spent for name, spent in seconds.items() if name not in ASYMMETRIC)
    row = smaller(
        f"1:{rate}, {keys:,} keys, {window:,} rows",
        ours=1e3 * ours,
        peer=1e3 * seconds[best],
        unit="ms",
        goal=WORST_GOAL,
        note=", ".join(f"{name} {1e3 * spent:.3g}" for name, spent in seconds.items()),
        peer_name=best,
    )
    return row, ours / seconds[best], best, 1 - seconds[best] / symmetric


def fixed(spec: QuerySpec, in_a: str, in_b: str) -> Plan:
    """The plan with these methods."""
    plan = plan_query(spec)
    options, wanted = methods_of(spec, plan, COMPARED), {"a": in_b, "b": in_a}
    paths = (
        replace(path, steps=tuple(options[path.name, k][wanted[path.driver]] for k in range(len(path.steps))))
        for path in plan.paths
    )
    return replace(plan, paths=tuple(paths))


def _batches(rate: int, keys: int, window: int, sizes: Sizes) -> list[dict[str, pa.Table]]:
    """Pieces that fill b's window, then batches; a row of b stays for `window` rows of b."""
    random = np.random.default_rng([rate, keys, window])
    b_rows = max(1, sizes.batch_rows * rate // (1 + rate))
    counts = [window // FILLING] * FILLING + [b_rows] * (SETTLING + sizes.batches)
    place, batches = 0, []
    for count in counts:
        rows = {"a": max(1, count // rate), "b": count}
        first_s, span_s = WINDOW_S * place / window, WINDOW_S * count / window
        batches.append({name: _rows(random, number, keys, first_s, span_s) for name, number in rows.items()})
        place += count
    return batches


def _rows(random: np.random.Generator, count: int, keys: int, first_s: float, span_s: float) -> pa.Table:
    times_us = np.sort(random.uniform(first_s, first_s + span_s, count) * 1e6).astype(np.int64)
    columns = {"k": random.integers(0, keys, count), "y": random.uniform(0, 1, count)}
    return pa.table({"ts": pa.array(times_us, pa.timestamp("us")), **columns})


def _seconds(
    spec: QuerySpec,
    batches: list[dict[str, pa.Table]],
    sizes: Sizes,
    *,
    plan: Plan | None = None,
    adaptive: bool = False,
) -> float:
    """The mean of the timed batches without the slowest tenth, which something else on the machine slowed down."""
    join = windrow.local(spec, plan=plan, adaptive=adaptive)
    spent = []
    for number, batch in enumerate(batches):
        if number < FILLING:
            _fill(join, batch)
            continue
        for name, table in batch.items():
            join.push(name, table)
        started = time.process_time()
        join.step(now_s=float(number))
        spent.append(time.process_time() - started)
    timed = sorted(spent[-sizes.batches :])
    return statistics.mean(timed[: max(1, len(timed) * 9 // 10)])


def _fill(join: windrow.LocalJoin, rows: Mapping[str, pa.Table]) -> None:
    """Store rows that are not joined with each other."""
    for name, segment in join.entry.admit({name: [table] for name, table in rows.items()}, 0).items():
        join.stores[name].add(segment)


if __name__ == "__main__":
    main(DESCRIPTION, run)
