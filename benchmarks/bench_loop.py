"""A condition no index serves: every pair is tried, beside a loop written by hand and DuckDB's nested loop."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numba
import numpy as np
import pyarrow as pa

import windrow
from benchmarks.deltas import check_same
from benchmarks.measure import Row, Timing, faster, in_child, main, timed
from benchmarks.peers import DuckTables

DESCRIPTION = "Nested loop of 2,000 rows (quick: 1,000) with 100,000 stored, arbitrary predicates, few matches"
SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("id", pa.int64()), ("x", pa.float64()), ("y", pa.float64())])


@dataclass(frozen=True, slots=True)
class Sizes:
    """Rows of a that probe in a round, rows of b that are stored, rounds."""

    probes: int
    stored: int
    rounds: int


QUICK = Sizes(probes=1_000, stored=100_000, rounds=5)
FULL = Sizes(probes=2_000, stored=100_000, rounds=11)


def run(quick: bool) -> list[Row]:
    """The rows of this bench."""
    return in_child("benchmarks.bench_loop", quick)


def by_hand(predicate: Callable[[float, float, float, float], bool]) -> Callable[..., int]:
    """What one would write for this predicate alone: pairs of row numbers, no values, no windows, no NULL."""
    decide = cast(Callable[..., bool], numba.njit(predicate))

    def collect(probe: tuple[Any, Any], stored: tuple[Any, Any], probe_out: Any, row_out: Any) -> int:
        (a_x, a_y), (b_x, b_y) = probe, stored
        count = 0
        for i in range(len(a_x)):
            for j in range(len(b_x)):
                if decide(a_x[i], a_y[i], b_x[j], b_y[j]):
                    probe_out[count] = i
                    row_out[count] = j
                    count += 1
        return count

    return cast(Callable[..., int], numba.njit(collect))


@dataclass(frozen=True, slots=True)
class Predicate:
    """The same condition twice: as SQL, and as the code that goes into the loop by hand."""

    sql: str
    python: Callable[[float, float, float, float], bool]


PREDICATES = {
    "square root": Predicate(
        "a.x * b.y + SQRT(ABS(a.y - b.x)) < -0.9e0",
        lambda a_x, a_y, b_x, b_y: a_x * b_y + math.sqrt(abs(a_y - b_x)) < -0.9,
    ),
    "products": Predicate("a.x * b.y - a.y * b.x < -1.9e0", lambda a_x, a_y, b_x, b_y: a_x * b_y - a_y * b_x < -1.9),
}


def rows_of(seed: int, second: int, count: int) -> pa.Table:
    """Rows of one second of event time."""
    random = np.random.default_rng([3, seed])
    times_us = second * 1_000_000 + np.arange(count)
    columns = [times_us, np.arange(count), random.uniform(-1, 1, count), random.uniform(-1, 1, count)]
    return pa.table([pa.array(values, kind) for values, kind in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA)


def measure(sizes: Sizes) -> list[Row]:
    """Measure in this process: both predicates, one after the other."""
    return [row for name in PREDICATES for row in _compare(name, PREDICATES[name], sizes)]


def _compare(name: str, predicate: Predicate, sizes: Sizes) -> list[Row]:
    """A round probes with new rows; each of the three gets the same ones. The first round compiles and is left out."""
    query = f"SELECT a.id AS a_id, b.id AS b_id FROM a, b WHERE {predicate.sql}"
    duck, stored, collect = DuckTables(), rows_of(0, 0, sizes.stored), by_hand(predicate.python)
    bound = windrow.sql(f"{query} WINDOW a 0 SECONDS, b 1000 DAYS", streams={"a": SCHEMA, "b": SCHEMA})
    join = windrow.local(bound, methods=("loop",))
    join.push("b", stored)
    join.step()
    held, pairs = coordinates(stored), np.empty((2, max(1 << 20, sizes.probes * sizes.stored // 100)), np.int32)
    seconds: list[tuple[float, float, float]] = []
    for number in range(sizes.rounds + 1):
        probing = rows_of(number + 1, number + 2, sizes.probes)
        wanted = coordinates(probing)
        join.push("a", probing)
        ours_s, results = timed(join.step)
        hand_s, count = timed(partial(collect, wanted, held, pairs[0], pairs[1]))
        collected = {
            column: side[:count].astype(np.int64) for column, side in zip(("a_id", "b_id"), pairs, strict=True)
        }
        check_same(results, pa.table(collected), "the loop by hand")
        duck.load(a=probing, b=stored)
        duck_s, theirs = timed(partial(duck.answer, query))
        check_same(results, theirs, "DuckDB")
        seconds.append((ours_s, hand_s, duck_s))
    ours, hand, nested = (statistics.median(spent) for spent in zip(*seconds[1:], strict=True))
    note = f"{len(results):,} matches of {sizes.probes * sizes.stored:,} pairs in the last round"
    return [
        faster(f"nested loop, {name}, beside one by hand", Timing(ours, hand, "Numba by hand"), 0.6, note),
        faster(f"nested loop, {name}, beside DuckDB", Timing(ours, nested, "DuckDB"), 4.0, note),
    ]


def coordinates(table: pa.Table) -> tuple[Any, Any]:
    """The two columns predicates read, as arrays."""
    return table.column("x").to_numpy(), table.column("y").to_numpy()


if __name__ == "__main__":
    main(DESCRIPTION, run)
