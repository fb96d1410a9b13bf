"""A condition no index serves: every pair is tried, beside a loop written by hand and DuckDB's nested loop."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import pyarrow as pa

import windrow
from benchmarks.deltas import check_same
from benchmarks.measure import Row, Timing, faster, in_child, main, timed
from benchmarks.peers import DuckTables

DESCRIPTION = "Nested loop over 2,000 x 100,000 pairs with an arbitrary predicate, few matches"
PREDICATE = "a.x * b.y + SQRT(ABS(a.y - b.x)) < -0.999e0"
QUERY = f"SELECT a.id AS a_id, b.id AS b_id FROM a, b WHERE {PREDICATE}"
SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("id", pa.int64()), ("x", pa.float64()), ("y", pa.float64())])


@dataclass(frozen=True, slots=True)
class Sizes:
    """Rows of a that probe in a round, rows of b that are stored, rounds."""

    probes: int
    stored: int
    rounds: int


QUICK = Sizes(probes=2_000, stored=100_000, rounds=5)
FULL = Sizes(probes=2_000, stored=100_000, rounds=11)


def run(quick: bool) -> list[Row]:
    """The rows of this bench."""
    return in_child("benchmarks.bench_loop", quick)


@numba.njit
def by_hand(probe: tuple[Any, Any], stored: tuple[Any, Any], probe_out: Any, row_out: Any) -> int:
    """What one would write for this predicate alone: pairs of row numbers, no values, no windows, no NULL."""
    (a_x, a_y), (b_x, b_y) = probe, stored
    count = 0
    for i in range(len(a_x)):
        for j in range(len(b_x)):
            if a_x[i] * b_y[j] + math.sqrt(abs(a_y[i] - b_x[j])) < -0.999:
                probe_out[count] = i
                row_out[count] = j
                count += 1
    return count


def rows_of(seed: int, second: int, count: int) -> pa.Table:
    """Rows of one second of event time."""
    random = np.random.default_rng([3, seed])
    times_us = second * 1_000_000 + np.arange(count)
    columns = [times_us, np.arange(count), random.uniform(-1, 1, count), random.uniform(-1, 1, count)]
    return pa.table([pa.array(values, kind) for values, kind in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA)


def measure(sizes: Sizes) -> list[Row]:
    """Measure in this process. A round probes with new rows; each of the three gets the same ones."""
    duck, stored = DuckTables(), rows_of(0, 0, sizes.stored)
    join = windrow.local(windrow.sql(f"{QUERY} WINDOW a 0 SECONDS, b 1000 DAYS", streams={"a": SCHEMA, "b": SCHEMA}), methods=("loop",))
    join.push("b", stored)
    join.step()
    held = tuple(stored.column(name).to_numpy() for name in ("x", "y"))
    room = max(1 << 20, sizes.probes * sizes.stored // 100)
    pairs = np.empty(room, np.int32), np.empty(room, np.int32)
    seconds: dict[str, list[float]] = {"ours": [], "hand": [], "DuckDB": []}
    for number in range(sizes.rounds + 1):
        probing = rows_of(number + 1, number + 2, sizes.probes)
        wanted = tuple(probing.column(name).to_numpy() for name in ("x", "y"))
        join.push("a", probing)
        ours_s, results = timed(join.step)
        hand_s, count = timed(lambda given=wanted: by_hand(given, held, *pairs))  # type: ignore[misc]
        check_same(results, pa.table({"a_id": pairs[0][:count].astype(np.int64), "b_id": pairs[1][:count].astype(np.int64)}), "the loop by hand")
        duck.load(a=probing, b=stored)
        duck_s, theirs = timed(lambda: duck.answer(QUERY))
        check_same(results, theirs, "DuckDB")
        if number:  # the first round compiles
            for name, spent in (("ours", ours_s), ("hand", hand_s), ("DuckDB", duck_s)):
                seconds[name].append(spent)
    ours, hand, nested = (statistics.median(spent) for spent in seconds.values())
    return [
        faster("nested loop beside one by hand", Timing(ours, hand, "Numba by hand"), 0.6),
        faster("nested loop beside DuckDB", Timing(ours, nested, "DuckDB"), 4.0),
    ]


if __name__ == "__main__":
    main(DESCRIPTION, run)
