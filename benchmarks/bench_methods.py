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
OURS = "ours"
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
    """Measure in this process, in processor time."""
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
    plans = {name: fixed(spec, *methods) for name, methods in FIXED.items()}
    seconds = _seconds(spec, batches, sizes, plans)
    ours = seconds.pop(OURS)
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
    spec: QuerySpec, batches: list[dict[str, pa.Table]], sizes: Sizes, plans: Mapping[str, Plan]
) -> dict[str, float]:
    """Of each fixed choice, and of ours, the mean of the timed batches without the slowest tenth, which something else
    on the machine slowed down. All take each batch one after the other, beginning with another one each time.
    """
    joins = {name: windrow.local(spec, plan=plan) for name, plan in plans.items()}
    joins[OURS] = windrow.local(spec, adaptive=True)
    spent: dict[str, list[float]] = {name: [] for name in joins}
    names = list(joins)
    for number, batch in enumerate(batches):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            if number < FILLING:
                _fill(joins[name], batch)
                continue
            for stream, table in batch.items():
                joins[name].push(stream, table)
            started = time.process_time()
            joins[name].step(now_s=float(number))
            spent[name].append(time.process_time() - started)
    timed = {name: sorted(taken[-sizes.batches :]) for name, taken in spent.items()}
    return {name: statistics.mean(taken[: max(1, len(taken) * 9 // 10)]) for name, taken in timed.items()}


def _fill(join: windrow.LocalJoin, rows: Mapping[str, pa.Table]) -> None:
    """Store rows that are not joined with each other."""
    for name, segment in join.entry.admit({name: [table] for name, table in rows.items()}, 0).items():
        join.stores[name].add(segment)


if __name__ == "__main__":
    main(DESCRIPTION, run)
