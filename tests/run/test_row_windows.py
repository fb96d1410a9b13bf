"""Row windows against row clocks counted one by one in Python (`tests.oracle.naive`), also with streams out of step."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import windrow
from tests.oracle.arrivals import BATCH_SIZES, POLICIES, Arrivals, in_time, run, shuffled
from tests.oracle.duck import Answer, Question, answer, difference, question
from tests.oracle.naive import row_counts
from tests.oracle.queries import Case, cases
from tests.oracle.tables import table_of

LEAST_BATCHES = 20


pytestmark = pytest.mark.usefixtures("interpreted")  # these tests are about windows, not about speed


def reference(asked: Question, tables: dict[str, pa.Table], query: Any) -> Answer:
    """DuckDB's answer over counts made in Python."""
    by_alias = {source.alias: tables[source.reads] for source in asked.sources}
    spec = query.spec()
    used = {alias: [column.name for column in spec.used_columns(alias)] for alias in by_alias}
    windowed = [source.alias for source in asked.sources if source.rows is not None]
    return answer(asked, tables, counts=row_counts(by_alias, used, windowed))


def bound(text: str, tables: dict[str, pa.Table]) -> Any:
    schemas = {name: table.schema for name, table in tables.items()}
    return windrow.sql(text, streams=schemas, time=dict.fromkeys(tables, "ts"))


@pytest.mark.parametrize("streams", [2, 3, 4])
def test_random_queries_with_row_windows(streams: int) -> None:
    totals: list[int] = []
    steps: list[int] = []

    @settings(max_examples=100, suppress_health_check=list(HealthCheck))
    @given(
        cases(streams=streams, row_windows=True),
        st.sampled_from(BATCH_SIZES),
        st.sampled_from(POLICIES),
        st.integers(0, 99),
    )
    def check(case: Case, size: int | None, policy: str, seed: int) -> None:
        query = bound(case.question.text, case.tables)
        expected = reference(case.question, case.tables, query).rows
        found = run(query, case.tables, shuffled(case.tables, seed), size=size, policy=policy)
        assert difference(found.rows, expected) == "", case.question.text
        totals.append(expected.total())
        steps.append(found.steps)

    check()
    assert sum(1 for total in totals if total) >= len(totals) // 8
    assert sum(1 for count in steps if count >= LEAST_BATCHES) >= len(steps) // 8


QUERIES = {
    "one row window": "a ROWS 5, b 10 SECONDS",
    "both": "a ROWS 3, b ROWS 7",
    "the newest row alone": "ROWS 1",
}


def behind(tables: dict[str, pa.Table], name: str, delay_us: int) -> Arrivals:
    """In event-time order, stream `name` arriving `delay_us` after its time."""
    stamps = {other: table["ts"].cast(pa.int64()).to_pylist() for other, table in tables.items()}
    order = [
        (stamp + (delay_us if other == name else 0), other, row)
        for other, listed in stamps.items()
        for row, stamp in enumerate(listed)
    ]
    return [(other, row) for _, other, row in sorted(order)]


@pytest.mark.parametrize("windows", QUERIES.values(), ids=QUERIES.keys())
@pytest.mark.parametrize("size", BATCH_SIZES)
def test_streams_out_of_step(windows: str, size: int | None) -> None:
    """One stream is far behind the other: rows wait for it, and results are those of the row clocks, not of arrival."""
    tables = {"s": table_of(80, 1, span=100), "t": table_of(80, 2, span=100)}
    text = f"""
        SELECT a.id AS i, a.ts AS a_ts, b.id AS j, b.ts AS b_ts FROM s AS a, t AS b
        WHERE a.i32 <= b.i64 AND a.flag WINDOW {windows} LATENESS 3 SECONDS"""
    query = bound(text, tables)
    expected = reference(question(text), tables, query).rows
    assert expected.total() > 10
    for delay_us in (0, 40_000_000, 1_000_000_000):
        found = run(query, tables, behind(tables, "t", delay_us), size=size)
        assert difference(found.rows, expected) == ""
        assert found.steps >= LEAST_BATCHES or size not in (1, 2, 7)


def test_results_come_before_the_end_where_watermarks_allow() -> None:
    """Rows are admitted as the smallest watermark passes them, not only when the input ends."""
    tables = {"s": table_of(80, 1, span=100), "t": table_of(80, 2, span=100)}
    text = "SELECT a.id AS i, b.id AS j FROM s AS a, t AS b WINDOW ROWS 4 LATENESS 2 SECONDS"
    query = bound(text, tables)
    arrivals = in_time(tables, jitter_us=2_000_000, seed=4)
    early = 0
    with windrow.local(query) as join:
        for name, row in arrivals:
            join.push(name, tables[name].slice(row, 1))
            early += join.step().num_rows
        late = join.finish().num_rows
        assert early > 10 * late > 0
        assert early + late == reference(question(text), tables, query).rows.total()


def test_rows_with_one_event_time_stand_in_order_of_content() -> None:
    """Whatever order they arrive in, the same rows are the newest."""
    table = pa.table({"ts": pa.array([0] * 9 + [1], pa.timestamp("s")), "x": [4, 2, 9, None, 7, 1, 8, 3, 6, 0]})
    tables = {"s": table, "t": table.slice(9)}
    text = "SELECT a.x AS x FROM s AS a, t AS b WINDOW a ROWS 4, b 1 DAYS LATENESS 1 DAYS"
    query = bound(text, tables)
    expected = reference(question(text), tables, query).rows
    assert expected == {(0,): 1, (None,): 1, (9,): 1, (8,): 1}
    for seed in range(5):
        for size in (1, 2, 7, None):
            assert run(query, tables, shuffled(tables, seed), size=size).rows == expected


def test_nan_and_null_are_one_value_in_the_order_of_content() -> None:
    """NaN is read as NULL, so what stands behind it in a row decides."""
    values = [float("nan"), None, 1.0, None, float("nan"), 1.0]
    table = pa.table({"ts": pa.array([0] * 6, pa.timestamp("s")), "x": values, "y": [2, 1, 5, 3, 4, 6]})
    tables = {"s": table, "t": pa.table({"ts": pa.array([1], pa.timestamp("s")), "x": [0.0], "y": [0]})}
    text = "SELECT a.x AS x, a.y AS y FROM s AS a, t AS b WINDOW a ROWS 3, b 1 DAYS LATENESS 1 DAYS"
    query = bound(text, tables)
    expected = reference(question(text), tables, query).rows
    assert expected == {(None, 2): 1, (None, 3): 1, (None, 4): 1}
    for size in (1, 2, None):
        assert run(query, tables, shuffled(tables, 1), size=size).rows == expected


def test_filtered_rows_count() -> None:
    """A row that a filter leaves out still moves the row clock."""
    table = pa.table({"ts": pa.array(range(40), pa.timestamp("s")), "x": list(range(40))})
    tables = {"s": table, "t": table}
    text = "SELECT a.x AS i, b.x AS j FROM s AS a, t AS b WHERE a.x % 4 = 0 AND b.x % 4 = 3 WINDOW a ROWS 6, b ROWS 1"
    query = bound(text, tables)
    expected = reference(question(text), tables, query).rows
    assert expected == {(i, j): 1 for j in range(3, 40, 4) for i in (j - 3, j + 1) if i < 40}
    for size in (1, 2, 7):
        found = run(query, tables, in_time(tables), size=size)
        assert difference(found.rows, expected) == ""
        assert found.steps >= 12
