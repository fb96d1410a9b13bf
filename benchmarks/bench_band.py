"""A band join: deltas of a stream against a large window, beside DuckDB and Polars."""

from __future__ import annotations

import statistics
from dataclasses import replace
from functools import partial

from benchmarks.deltas import DeltaJoin, Sizes, check_same
from benchmarks.measure import Row, Timing, faster, in_child, main, timed
from benchmarks.peers import DuckTables, polars_band

DESCRIPTION = (
    "Band join of 10,000 rows with a window of 1,000,000: insertion, merging and indexing included on our side"
)
QUICK = Sizes(delta_rows=10_000, window_deltas=100, batches=32, peer_rounds=5)
FULL = replace(QUICK, batches=96, peer_rounds=9)
BAND = "SELECT a.id AS a_id, b.id AS b_id FROM a, b WHERE b.x BETWEEN a.x - 0.5 AND a.x + 0.5"


def run(quick: bool) -> list[Row]:
    """The rows of this bench."""
    return in_child("benchmarks.bench_band", quick)


def measure(sizes: Sizes) -> list[Row]:
    """Measure in this process; the mean of our batches is compared, because merging makes some dearer than others."""
    ours, duck = DeltaJoin("band", sizes), DuckTables()
    peers: dict[str, list[float]] = {"DuckDB": [], "Polars": []}
    ours.fill()
    for number in range(sizes.batches):
        results = ours.advance()
        if number % max(1, sizes.batches // sizes.peer_rounds) == 0:
            probing, window = ours.probing, ours.window
            duck.load(a=probing, b=window)
            for name, work in (("DuckDB", partial(duck.answer, BAND)), ("Polars", polars_band(probing, window, 0.5))):
                spent, theirs = timed(work)
                peers[name].append(spent)
                check_same(results, theirs, name)
    note = (
        f"our mean of {sizes.batches} batches, median {statistics.median(ours.seconds) * 1e3:.3g} ms; the peer's median"
    )
    return [
        faster(
            f"band join beside {name}",
            Timing(statistics.mean(ours.seconds), statistics.median(peers[name]), name),
            goal,
            note,
        )
        for name, goal in (("DuckDB", 5.0), ("Polars", 3.0))
    ]


if __name__ == "__main__":
    main(DESCRIPTION, run)
