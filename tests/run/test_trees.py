"""Trees of joins: whatever the shape, the policy, the batch cut and the changes on the way, the rows are DuckDB's."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import windrow
from tests.oracle.arrivals import BATCH_SIZES, batches, in_time, run, shuffled
from tests.oracle.duck import answer, difference, rows_of
from tests.oracle.queries import Case, cases
from tests.run.test_row_windows import bound, reference
from windrow.errors import PlanError, UsageError
from windrow.plan.directions.shapes import mixed, written
from windrow.plan.drivers import AUTO, POLICIES

pytestmark = pytest.mark.usefixtures("interpreted")

FIXED = tuple(name for name in POLICIES if name not in AUTO.values())
LEAST_BATCHES = 5


def shape_for(names: list[str], seed: int) -> str:
    """Linear, bushy, or any other shape."""
    return ("linear", "bushy", written(mixed(np.random.default_rng(seed), names)))[seed % 3]


@pytest.mark.parametrize(("streams", "row_windows"), [(3, False), (4, False), (5, False), (3, True), (4, True)])
def test_every_shape_gives_duckdbs_rows(streams: int, row_windows: bool) -> None:
    totals: list[int] = []
    steps: list[int] = []

    @settings(max_examples=24, suppress_health_check=list(HealthCheck))
    @given(
        cases(streams=streams, row_windows=row_windows),
        st.sampled_from(BATCH_SIZES),
        st.sampled_from(FIXED),
        st.integers(0, 99),
    )
    def check(case: Case, size: int | None, policy: str, seed: int) -> None:
        query = bound(case.question.text, case.tables)
        shape = shape_for([stream.name for stream in query.spec().streams], seed)
        expected = reference(case.question, case.tables, query) if row_windows else answer(case.question, case.tables)
        arrivals = shuffled(case.tables, seed)
        found = run(query, case.tables, arrivals, size=size, policy=policy, shape=shape)
        assert difference(found.rows, expected.rows) == "", (case.question.text, shape)
        totals.append(expected.rows.total())
        steps.append(found.steps)

    check()
    assert sum(totals) > 0
    assert max(steps) >= LEAST_BATCHES


FOUR = """SELECT a.id AS i, b.id AS j, c.id AS k, d.id AS l, result_ts() AS at, result_id() AS name
    FROM s AS a, t AS b, u AS c, v AS d
    WHERE a.k = b.k AND ABS(b.x - c.x) <= 1 AND c.k = d.k AND a.x + b.x <= d.x + 6
    WINDOW {windows} LATENESS {late}"""
WINDOWS = ("a 4 SECONDS, b 6 SECONDS, c 3 SECONDS, d 5 SECONDS", "a ROWS 9, b 6 SECONDS, c ROWS 7, d 5 SECONDS")
SHAPES = ("mway", "linear", "bushy", "((a c) (b d))", "(a (b (c d)))", "((a (b c)) d)")


def four(seed: int, count: int = 90) -> dict[str, pa.Table]:
    draw = np.random.default_rng(seed)
    return {
        name: pa.table({
            "ts": pa.array(np.sort(draw.integers(0, 40_000_000, count)), pa.timestamp("us")),
            "id": pa.array(np.arange(count)),
            "k": pa.array(draw.integers(0, 3, count)),
            "x": pa.array(draw.integers(0, 8, count).astype(float)),
        })
        for name in "stuv"
    }  # fmt: skip


@pytest.mark.parametrize("windows", WINDOWS)
@pytest.mark.parametrize("seed", range(3))
def test_rows_late_and_windows_that_expire(windows: str, seed: int) -> None:
    tables = four(seed)
    query = windrow.sql(FOUR.format(windows=windows, late="3 SECONDS"), tables)
    arrivals = in_time(tables, jitter_us=3_000_000, seed=seed)
    found = {shape: run(query, tables, arrivals, size=17, shape=shape) for shape in SHAPES}
    assert found["mway"].rows.total() > 100
    for shape, each in found.items():
        assert difference(each.rows, found["mway"].rows) == "", shape
        nodes = each.report.nodes
        assert len(nodes) == (0 if shape == "mway" else 2)
        assert all(held.stored < held.found / 2 for held in nodes.values())


@pytest.mark.parametrize("windows", WINDOWS)
@pytest.mark.parametrize("policy", FIXED)
def test_the_shape_may_change_before_any_batch(windows: str, policy: str) -> None:
    tables = four(7)
    query = windrow.sql(FOUR.format(windows=windows, late="3 SECONDS"), tables)
    arrivals = in_time(tables, jitter_us=3_000_000, seed=7)
    expected = run(query, tables, arrivals, size=23, policy=policy).rows
    draw, found = random.Random(policy), Counter[tuple[Any, ...]]()
    with windrow.local(query, policy=policy, shape="linear") as join:
        for number, batch in enumerate(batches(tables, arrivals, 23)):
            for name, table in batch.items():
                join.push(name, table)
            found += rows_of(join.step())
            if number % 2:
                join.reshape(draw.choice(SHAPES))
        found += rows_of(join.finish())
        assert join.plan.epoch == (number + 1) // 2
    assert difference(found, expected) == ""
    assert expected.total() > 100


def test_freshness_looks_into_intermediate_rows() -> None:
    tables = four(5)
    text = FOUR.format(windows=WINDOWS[0], late="3 SECONDS") + " FRESHNESS a 6 SECONDS, c 5 SECONDS"
    found = {}
    for shape in SHAPES:
        with windrow.local(windrow.sql(text, tables), shape=shape) as join:
            rows = Counter[tuple[Any, ...]]()
            for number, batch in enumerate(batches(tables, in_time(tables), 40), start=1):
                for name, table in batch.items():
                    join.push(name, table)
                rows += rows_of(join.step(now_s=number * 40 / 9 + 1.5))
            rows += rows_of(join.finish())
            kept = join.report.freshness
            found[shape] = rows, 0 if kept is None else kept.suppressed
    assert all(held == found["mway"] for held in found.values())
    assert found["mway"][1] > 0 < found["mway"][0].total()


@pytest.mark.parametrize(
    ("options", "says"),
    [({"memory": "1MB"}, "cannot run with memory"),
     ({"throttle": 0.5, "shed": "repair"}, "cannot run with (shed|throttle)"),
     ({"adaptive": True}, "cannot run with adaptive"), ({"policy": "auto"}, "cannot run with policy")],
)  # fmt: skip
def test_what_works_on_the_mway_form_alone_is_refused(options: dict[str, Any], says: str) -> None:
    query = windrow.sql(FOUR.format(windows=WINDOWS[0], late="0 SECONDS"), four(1))
    with pytest.raises(UsageError, match=says):
        windrow.local(query, shape="linear", **options)
    with windrow.local(query, **options) as join, pytest.raises(UsageError, match=says):
        join.reshape("bushy")


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        ("round", "there is no shape 'round'"),
        ("((a b) c)", "is not of the streams"),
        ("((a b) (c d)", "is not the shape"),
    ],
)
def test_what_is_no_shape_is_refused(shape: str, says: str) -> None:
    query = windrow.sql(FOUR.format(windows=WINDOWS[0], late="0 SECONDS"), four(1))
    with pytest.raises(PlanError, match=says):
        windrow.local(query, shape=shape)
