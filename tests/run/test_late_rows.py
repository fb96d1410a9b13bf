"""Late rows are left out exactly as the watermark says, and what is kept stays bounded.

The twin is `tests.oracle.naive.Watermarks`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import windrow
from tests.oracle.arrivals import BATCH_SIZES, POLICIES, Arrivals, batches, in_time, run
from tests.oracle.duck import answer, difference, question, rows_of
from tests.oracle.naive import Watermarks
from tests.oracle.tables import table_of

pytestmark = pytest.mark.usefixtures("interpreted")

LEAST_BATCHES = 20


def admitted(
    tables: dict[str, pa.Table], arrivals: Arrivals, size: int | None, twin: Watermarks
) -> dict[str, pa.Table]:
    """The rows that are input under these batches."""
    kept: dict[str, list[pa.Table]] = {name: [table.slice(0, 0)] for name, table in tables.items()}
    for batch in batches(tables, arrivals, size):
        for name, table in twin.admit(batch).items():
            kept[name].append(table.cast(tables[name].schema))
    return {name: pa.concat_tables(parts) for name, parts in kept.items()}


@pytest.mark.parametrize("size", BATCH_SIZES)
def test_rows_later_than_the_lateness_are_left_out(size: int | None) -> None:
    tables = {"s": table_of(120, 1, span=200, null_times=True), "t": table_of(120, 2, span=200)}
    text = """
        SELECT a.id AS i, a.ts AS a_ts, b.id AS j, b.ts AS b_ts FROM s AS a, t AS b
        WHERE a.i32 <= b.i64 WINDOW a 30 SECONDS, b 5 SECONDS LATENESS a 3 SECONDS, b 10 SECONDS"""
    arrivals = in_time(tables, jitter_us=20_000_000, seed=1)
    twin = Watermarks({"s": 3_000_000, "t": 10_000_000})
    kept = admitted(tables, arrivals, size, twin)
    expected = answer(question(text), kept).rows
    assert expected.total() > 20
    assert size is None or twin.late.total() > 0
    query = windrow.sql(text, streams=tables, time={"s": "ts", "t": "ts"})
    for policy in POLICIES:
        found: Counter[tuple[Any, ...]] = Counter()
        steps = 0
        with windrow.local(query, policy=policy) as join:
            for batch in batches(tables, arrivals, size):
                for name, table in batch.items():
                    join.push(name, table)
                found += rows_of(join.step())
                steps += 1
            found += rows_of(join.finish())
            streams = join.report.streams
        assert difference(found, expected) == ""
        assert steps >= LEAST_BATCHES or size not in (1, 2, 7)
        assert {"s": streams["a"].late, "t": streams["b"].late} == dict(twin.late)
        assert {"s": streams["a"].bad, "t": streams["b"].bad} == dict(twin.bad)


def ticking(rows: int, seed: int, *, distance_us: int = 1_000_000) -> pa.Table:
    """One row a tick, in order."""
    table = table_of(rows, seed)
    return table.set_column(0, "ts", pa.array(range(0, rows * distance_us, distance_us), pa.timestamp("us")))


TICKS = """
    SELECT a.id AS i, a.ts AS a_ts, b.id AS j, b.ts AS b_ts FROM s AS a, t AS b WHERE a.flag OR b.flag
    WINDOW 10 SECONDS LATENESS 5 SECONDS"""


def test_what_is_stored_is_bounded_by_window_lateness_and_skew() -> None:
    """After many windows' worth of rows, a store holds one window and one lateness, not what came before."""
    tables = {"s": ticking(2_000, 1), "t": ticking(2_000, 2)}
    query = windrow.sql(TICKS, streams=tables, time={"s": "ts", "t": "ts"})
    largest: dict[str, int] = {"a": 0, "b": 0}
    steps = 0
    found: Counter[tuple[Any, ...]] = Counter()
    with windrow.local(query) as join:
        for batch in batches(tables, in_time(tables), 50):
            for name, table in batch.items():
                join.push(name, table)
            found += rows_of(join.step())
            steps += 1
            for name, stream in join.report.streams.items():
                largest[name] = max(largest[name], stream.stored)
    assert steps >= LEAST_BATCHES
    # 10 s of window, 5 s of lateness, a batch of 25 s; leaving may lag by whole segments, of which 16 merge into one.
    assert 0 < max(largest.values()) <= 500
    assert difference(found, answer(question(TICKS), tables).rows) == ""


def test_a_stream_far_behind_keeps_the_others_rows() -> None:
    """Rows are needed until every other stream has passed them: skew costs memory, never results."""
    tables = {"s": ticking(300, 1), "t": ticking(300, 2)}
    arrivals = [("s", row) for row in range(300)] + [("t", row) for row in range(300)]
    query = windrow.sql(TICKS, streams=tables, time={"s": "ts", "t": "ts"})
    found = run(query, tables, arrivals, size=25)
    assert found.steps >= LEAST_BATCHES
    assert difference(found.rows, answer(question(TICKS), tables).rows) == ""


@pytest.mark.parametrize("size", [1, 7, 50])
def test_rows_too_far_ahead_of_the_clock_move_no_watermark(size: int) -> None:
    """Without the limit, one row of the year 2500 would make all later rows late."""
    tables = {"s": ticking(120, 1), "t": ticking(120, 2)}
    future = tables["s"].slice(30, 1).set_column(0, "ts", pa.array([16_725_225_600_000_000], pa.timestamp("us")))
    tables["s"] = pa.concat_tables([tables["s"].slice(0, 60), future, tables["s"].slice(60)])
    arrivals = [(name, row) for row in range(120) for name in ("s", "t")] + [("s", 120)]
    aside: list[tuple[str, str, int]] = []
    query = windrow.sql(TICKS, streams=tables, time={"s": "ts", "t": "ts"})
    found: Counter[tuple[Any, ...]] = Counter()
    with windrow.local(
        query, max_ahead="1 day", set_aside=lambda stream, reason, rows: aside.append((stream, reason, len(rows)))
    ) as join:
        for batch in batches(tables, arrivals, size):
            for name, table in batch.items():
                join.push(name, table)
            found += rows_of(join.step(now_s=150.0))
        found += rows_of(join.finish())
        streams = join.report.streams
    kept = {"s": tables["s"].filter(pa.array([row != 60 for row in range(121)])), "t": tables["t"]}
    assert difference(found, answer(question(TICKS), kept).rows) == ""
    assert (streams["a"].too_far_ahead, streams["b"].too_far_ahead) == (1, 0)
    assert [(stream, count) for stream, _, count in aside] == [("a", 1)]


def test_late_rows_are_set_aside_when_asked() -> None:
    tables = {"s": ticking(100, 1), "t": ticking(100, 2)}
    arrivals = [*((name, row) for row in range(10, 100) for name in ("s", "t")), *(("s", row) for row in range(10))]
    aside: list[tuple[str, str, list[int]]] = []
    query = windrow.sql(TICKS, streams=tables, time={"s": "ts", "t": "ts"})
    run(
        query, tables, arrivals, size=5,
        set_aside=lambda stream, reason, rows: aside.append((stream, reason, rows["ts"].cast(pa.int64()).to_pylist())),
    )  # fmt: skip
    assert {(stream, reason) for stream, reason, _ in aside} == {("a", "late")}
    assert sorted(stamp for _, _, stamps in aside for stamp in stamps) == [row * 1_000_000 for row in range(10)]


def test_an_idle_stream_does_not_hold_what_it_will_never_need() -> None:
    """Beyond its timeout, a silent stream follows the watermark of the others; rows of its own then count as late."""
    tables = {"s": ticking(1_000, 1), "t": ticking(1_000, 2)}
    text = TICKS + " IDLE 30 SECONDS"
    query = windrow.sql(text, streams=tables, time={"s": "ts", "t": "ts"})
    with windrow.local(query) as join:
        join.push("t", tables["t"].slice(0, 10))
        for second in range(0, 1_000, 10):
            join.push("s", tables["s"].slice(second, 10))
            join.step(now_s=float(second))
        streams = join.report.streams
        assert streams["a"].stored <= 500
        assert streams["b"].watermark_us == streams["a"].watermark_us == (999 - 5) * 1_000_000
        join.push("t", tables["t"].slice(500, 10))
        join.push("t", tables["t"].slice(995, 5))
        found = join.step(now_s=1_000.0)
        assert join.report.streams["b"].late == 10
    reached = set(found["b_ts"].cast(pa.int64()).to_pylist())
    assert reached
    assert min(reached) >= 995_000_000
