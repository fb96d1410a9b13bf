"""An equality join: deltas of a stream against a large window, beside DuckDB."""

from __future__ import annotations

import statistics
from dataclasses import replace
from functools import partial

from benchmarks.deltas import DeltaJoin, Sizes, check_same
from benchmarks.measure import Row, Timing, faster, in_child, main, timed
from benchmarks.peers import DuckTables

DESCRIPTION = (
    "Equality join of 10,000 rows with a window of 1,000,000: insertion, merging and indexing included on our side"
)
QUICK = Sizes(delta_rows=10_000, window_deltas=100, batches=64, peer_rounds=8)
FULL = replace(QUICK, batches=160, peer_rounds=20)
EQUALITY = "SELECT a.id AS a_id, b.id AS b_id FROM a, b WHERE a.k = b.k"


def run(quick: bool) -> list[Row]:
    """The rows of this bench."""
    return in_child("benchmarks.bench_equality", quick)


def measure(sizes: Sizes) -> list[Row]:
    """Measure in this process; the mean of our batches is compared, because merging makes some dearer than others."""
    ours, duck = DeltaJoin("equality", sizes), DuckTables()
    seconds: list[float] = []
    ours.fill()
    for number in range(sizes.batches):
        results = ours.advance()
        if number % max(1, sizes.batches // sizes.peer_rounds) == 0:
            duck.load(a=ours.probing, b=ours.window)
            spent, theirs = timed(partial(duck.answer, EQUALITY))
            seconds.append(spent)
            check_same(results, theirs, "DuckDB")
    note = (
        f"our mean of {sizes.batches} batches, median {statistics.median(ours.seconds) * 1e3:.3g} ms; the peer's median"
    )
    timing = Timing(statistics.mean(ours.seconds), statistics.median(seconds), "DuckDB")
    return [faster("equality join beside DuckDB", timing, 1.0, note)]


if __name__ == "__main__":
    main(DESCRIPTION, run)
