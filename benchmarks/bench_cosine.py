"""Similar vectors: a threshold on the cosine, beside the bare matrix product that any such search has to do."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

import windrow
from benchmarks.deltas import check_same
from benchmarks.measure import Row, Timing, faster, in_child, main, timed

DESCRIPTION = "Cosine of 128 dimensions against a threshold with few matches, beside the bare matrix product"
DIMENSIONS = 128
THRESHOLD = 0.4
CHECKED = 200
"""How many probes of the first round are checked against an evaluation in 64 bits."""
SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("id", pa.int64()), ("v", pa.list_(pa.float32(), DIMENSIONS))])
QUERY = (
    f"SELECT a.id AS a_id, b.id AS b_id FROM a, b WHERE cosine(a.v, b.v) >= {THRESHOLD} WINDOW a 0 SECONDS, b 1000 DAYS"
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Vectors of a that probe in a round, vectors of b that are stored, rounds.

    `block` is how many probes one bare product takes: its result has to fit in memory.
    """

    probes: int
    stored: int
    block: int
    rounds: int


QUICK = Sizes(probes=2_000, stored=100_000, block=2_000, rounds=5)
FULL = replace(QUICK, probes=10_000, rounds=7)


def run(quick: bool) -> list[Row]:
    """The rows of this bench."""
    return in_child("benchmarks.bench_cosine", quick)


def vectors(seed: int, count: int) -> NDArray[np.float32]:
    """Vectors in random directions."""
    return np.random.default_rng([4, seed]).standard_normal((count, DIMENSIONS), np.float32)


def rows_of(values: NDArray[np.float32], second: int) -> pa.Table:
    """The vectors as rows of one second of event time."""
    times = pa.array(second * 1_000_000 + np.arange(len(values)), pa.timestamp("us"))
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), DIMENSIONS)
    return pa.table([times, pa.array(np.arange(len(values))), lists], schema=SCHEMA)


def matching(probe: NDArray[np.float32], stored: NDArray[np.float32], product: NDArray[np.float32]) -> pa.Table:
    """The pairs a plain evaluation in 64 bits finds; the product only rules out what is far below the threshold."""
    lengths = [np.sqrt(np.square(side.astype(np.float64)).sum(axis=1)) for side in (probe, stored)]
    rows_a, rows_b = np.nonzero(product >= (THRESHOLD - 0.01) * np.outer(*lengths).astype(np.float32))
    dots = np.einsum("ij,ij->i", probe[rows_a].astype(np.float64), stored[rows_b].astype(np.float64))
    near = dots / (lengths[0][rows_a] * lengths[1][rows_b]) >= THRESHOLD
    return pa.table({"a_id": rows_a[near], "b_id": rows_b[near]})


def measure(sizes: Sizes) -> list[Row]:
    """Measure in this process. The product is written where an earlier one was: no new memory is counted against it."""
    stored = vectors(0, sizes.stored)
    join = windrow.local(windrow.sql(QUERY, streams={"a": SCHEMA, "b": SCHEMA}))
    join.push("b", rows_of(stored, 0))
    join.step()
    product = np.zeros((sizes.block, sizes.stored), np.float32)
    seconds: dict[str, list[float]] = {"ours": [], "bare": []}
    for number in range(sizes.rounds + 1):
        probe = vectors(number + 1, sizes.probes)
        join.push("a", rows_of(probe, number + 2))
        ours_s, results = timed(join.step)
        bare_s = 0.0
        for start in range(0, sizes.probes, sizes.block):
            block = probe[start : start + sizes.block]
            bare_s += timed(partial(np.matmul, block, stored.T, out=product[: len(block)]))[0]
        if number:  # the first round compiles
            seconds["ours"].append(ours_s)
            seconds["bare"].append(bare_s)
        else:
            checked = probe[:CHECKED]
            expected = matching(checked, stored, checked @ stored.T)
            check_same(results.filter(pc.less(results.column("a_id"), len(checked))), expected, "the product")
    timing = Timing(statistics.median(seconds["ours"]), statistics.median(seconds["bare"]), "bare product")
    return [faster(f"cosine, {sizes.probes:,} x {sizes.stored:,}", timing, 0.7)]


if __name__ == "__main__":
    main(DESCRIPTION, run)
