"""Freshness: what is delivered is what the same join finds without it, less what is too old by the batch clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow
from windrow.errors import FreshnessError, QueryError, UsageError
from windrow.plan.work import REFERENCE
from windrow.run.simulate import Machine, simulate
from windrow.streams.synthetic import cameras, generate

pytestmark = pytest.mark.usefixtures("interpreted")

JOIN = """SELECT a.ts AS a, b.ts AS b, c.ts AS c FROM s AS a, t AS b, u AS c
    WHERE a.k = b.k AND ABS(b.k - c.k) <= 1 WINDOW {windows} LATENESS 60 SECONDS"""
WINDOWS = ("a 4 SECONDS, b 2 SECONDS, c 3 SECONDS", "a ROWS 5, b 2 SECONDS, c 3 SECONDS")
POLICIES = ("timestamp", "output_rate")


def rows(seed: int, count: int = 30) -> dict[str, pa.Table]:
    random = np.random.default_rng(seed)
    made = {}
    for name in "stu":
        times = np.sort(random.integers(0, 20_000_000, count))
        made[name] = pa.table({"ts": pa.array(times, pa.timestamp("us")), "k": pa.array(random.integers(0, 3, count))})
    return made


def batches(tables: dict[str, pa.Table], seed: int) -> Iterator[tuple[float, dict[str, pa.Table]]]:
    """Rows at random some seconds late, and the clock of each batch."""
    random = np.random.default_rng(seed)
    due = {
        name: np.asarray(t["ts"].cast(pa.int64())) / 1e6 + random.uniform(0, 4, len(t)) for name, t in tables.items()
    }
    before = -1.0
    for now_s in np.cumsum(random.uniform(0.2, 3, 18)):
        yield (
            now_s,
            {name: t.filter(pa.array((due[name] > before) & (due[name] <= now_s))) for name, t in tables.items()},
        )
        before = now_s


def played(
    text: str, tables: dict[str, pa.Table], seed: int, **options: Any
) -> tuple[list[tuple[float, pa.Table]], Any]:
    found = []
    with windrow.local(windrow.sql(text, tables), **options) as join:
        for now_s, pushed in batches(tables, seed):
            for name, table in pushed.items():
                join.push(name, table)
            found.append((now_s, join.step(now_s=now_s)))
        found.append((found[-1][0], join.finish()))
        return found, join.report


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.sampled_from(WINDOWS), st.sampled_from(POLICIES), st.integers(4, 12))
def test_stale_results_are_suppressed_and_counted(seed: int, windows: str, policy: str, limit_s: int) -> None:
    tables, text = rows(seed), JOIN.format(windows=windows)
    whole, _ = played(text, tables, seed, policy=policy)
    kept, report = played(f"{text} FRESHNESS a {limit_s} SECONDS, c 3500 MILLISECONDS", tables, seed, policy=policy)
    expected: Counter[Any] = Counter()
    stale = 0
    for now_s, table in whole:
        for row in table.to_pylist():
            ages_s = {name: now_s - time.timestamp() for name, time in row.items() if name in "ac"}
            if ages_s["a"] <= limit_s + 1e-6 and ages_s["c"] <= 3.5 + 1e-6:
                expected[tuple(row.values())] += 1
            else:
                stale += 1
    assert Counter(tuple(row.values()) for _, table in kept for row in table.to_pylist()) == expected
    assert report.freshness.suppressed == stale
    if stale:
        assert report.freshness.infeasible
        assert report.freshness.infeasible_since is not None


def overloaded(limit: str, **options: Any) -> Any:
    """A join on a machine that has two thirds of the time it needs."""
    made = generate(cameras(60, (0, 1), (2, 2)), duration_s=40, seed=3)
    text = "SELECT a.id AS i, b.id AS j FROM cam1 AS a, cam2 AS b WHERE ABS(a.x - b.x) <= 1 WINDOW 5 SECONDS"
    fast = Machine(REFERENCE.scaled(5000), speed=1000)
    slow = fast.overloaded(simulate(windrow.sql(text, made), made, fast, methods=["loop"]), 1.5, after_s=10)
    reports: list[Any] = []
    joins: list[Any] = []

    def note(join: Any, _now_s: float) -> None:
        reports.append(join.report)
        joins.append(join)

    query = windrow.sql(f"{text} {limit}", made)
    run = simulate(query, made, slow, methods=["loop"], trigger="1 second", before=note, **options)
    return run, [*reports, joins[-1].report]


def test_a_growing_backlog_is_infeasible_before_the_first_stale_row() -> None:
    run, reports = overloaded("FRESHNESS 20 SECONDS")
    said = next(k for k, report in enumerate(reports) if report.freshness.infeasible)
    stale = next((k for k, report in enumerate(reports) if report.freshness.suppressed), len(reports))
    assert 0 < said < stale
    assert "the backlog grows" in reports[said].freshness.infeasible[0]
    assert 1.2 < reports[-1].freshness.streams["a"].workers < 1.8
    assert run.results > 0


def test_a_throttled_join_keeps_what_a_full_one_cannot() -> None:
    _, full = overloaded("FRESHNESS 7 SECONDS")
    _, throttled = overloaded("FRESHNESS 7 SECONDS", throttle="auto")
    assert full[-1].freshness.suppressed > 0
    assert throttled[-1].freshness.suppressed < full[-1].freshness.suppressed / 10
    assert throttled[-1].results > full[-1].results


def test_a_promise_is_refused_before_the_start_or_before_it_breaks() -> None:
    tables = rows(1)
    text = JOIN.format(windows=WINDOWS[0]).replace("60 SECONDS", "2 SECONDS")
    with pytest.raises(FreshnessError, match="cannot be promised for 'a': the least is 7 s, and with any number"):
        windrow.local(windrow.sql(f"{text} FRESHNESS 6 SECONDS", tables), stale="refuse", trigger="1 second")
    join = windrow.local(windrow.sql(f"{text} FRESHNESS 8 SECONDS", tables), stale="refuse", trigger="1 second")
    for name, table in tables.items():
        join.push(name, table)
    with pytest.raises(FreshnessError, match="'a'"):
        join.step(now_s=30.0)
    with pytest.raises(UsageError, match="stale results cannot be treated as 'maybe'"):
        windrow.local(windrow.sql(text, tables), stale="maybe")


def test_aggregates_have_no_freshness() -> None:
    text = "SELECT COUNT(*) AS n FROM s AS a, t AS b WHERE a.k = b.k WINDOW 2 SECONDS FRESHNESS 9 SECONDS"
    with pytest.raises(QueryError, match="aggregates leave when their span is over"):
        windrow.local(windrow.sql(text, rows(1)))
