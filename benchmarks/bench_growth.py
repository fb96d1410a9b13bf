"""How cost grows with the window: time per tuple from 10,000 rows on, matches per tuple held constant."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from benchmarks.deltas import CONDITIONS, DeltaJoin
from benchmarks.deltas import Sizes as Window
from benchmarks.measure import Row, in_child, main, smaller

DESCRIPTION = "Time per tuple as the window grows, about one match a tuple, through an index"


@dataclass(frozen=True, slots=True)
class Sizes:
    """Rows a delta, deltas a window from the smallest to the largest; batches measured of each size in each round."""

    delta_rows: int
    window_deltas: tuple[int, ...]
    batches: int
    rounds: int


QUICK = Sizes(delta_rows=10_000, window_deltas=(1, 10, 100), batches=16, rounds=5)
FULL = Sizes(delta_rows=10_000, window_deltas=(1, 10, 100, 1000), batches=32, rounds=8)
"""In 256 batches every tier of segments is merged as often as its share is."""


def run(quick: bool) -> list[Row]:
    """The rows of this bench."""
    return in_child("benchmarks.bench_growth", quick)


def measure(sizes: Sizes) -> list[Row]:
    """Measure in this process: all sizes in turn, every round. The mean counts what merging costs now and then."""
    rows: list[Row] = []
    for condition in CONDITIONS:
        joins = [
            DeltaJoin(condition, Window(sizes.delta_rows, deltas, sizes.batches, 0)) for deltas in sizes.window_deltas
        ]
        for join in joins:
            join.fill()
        for _ in range(sizes.rounds):
            for join in joins:
                for _ in range(sizes.batches):
                    join.advance()
        per_tuple_ns = [statistics.mean(join.seconds) / (2 * sizes.delta_rows) * 1e9 for join in joins]
        rows.extend(_rows(condition, joins, per_tuple_ns))
    return rows


def _rows(condition: str, joins: list[DeltaJoin], per_tuple_ns: list[float]) -> list[Row]:
    """One row a size, each beside the smallest; the goal is the largest size's."""
    rows = []
    for join, spent_ns in zip(joins, per_tuple_ns, strict=True):
        row = smaller(
            f"{condition}, window of {join.sizes.window_rows:,} rows, time per tuple",
            ours=spent_ns,
            peer=per_tuple_ns[0],
            unit="ns",
            goal=3.0,
            peer_name="smallest window",
            note=f"mean of {len(join.seconds)} batches, median {statistics.median(join.seconds) * 1e3:.3g} ms a batch",
        )
        rows.append(row if join is joins[-1] else {**row, "goal": "", "met": None})
    return rows


if __name__ == "__main__":
    main(DESCRIPTION, run)
