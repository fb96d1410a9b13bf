"""Late rows are left out exactly as the watermark says, and what is kept stays bounded.

The twin is `tests.oracle.naive.Watermarks`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import windrow
from tests.oracle.arrivals import BATCH_SIZES, POLICIES, Arrivals, batches, in_time
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
            report = join.report
        assert difference(found, expected) == ""
        assert steps >= LEAST_BATCHES or size not in (1, 2, 7)
        assert report_counts(report) == (
            {"a": twin.late["s"], "b": twin.late["t"]},
            {"a": twin.bad["s"], "b": twin.bad["t"]},
        )
