"""When a join runs, and when its results leave: streamed steps, periods, and the busy share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windrow
from windrow.errors import UsageError
from windrow.plan.drivers import POLICIES
from windrow.run.local import LocalJoin
from windrow.streams.replay import Replay

pytestmark = pytest.mark.usefixtures("interpreted")

TEXT = "SELECT a.id AS a, b.id AS b, c.id AS c FROM a, b, c WHERE a.k = b.k AND b.k = c.k WINDOW 10 SECONDS"


def rows(count: int, seed: int, first_s: float = 0.0, span_s: float = 5.0) -> pa.Table:
    random = np.random.default_rng(seed)
    times_us = np.sort(random.integers(0, int(span_s * 1e6), count)) + int(first_s * 1e6)
    stamps, keys = pa.array(times_us, pa.timestamp("us")), random.integers(0, 3, count)
    return pa.table({"ts": stamps, "id": np.arange(count) + seed * 1000, "k": keys})


def joined(policy: str = "timestamp", **options: Any) -> LocalJoin:
    return windrow.local(windrow.sql(TEXT, streams=dict.fromkeys("abc", rows(0, 0))), policy=policy, **options)


def push_both(join: LocalJoin, first_s: float) -> None:
    for number, name in enumerate("abc"):
        join.push(name, rows(12, 10 * number + int(first_s), first_s))


def counted(*tables: pa.Table) -> Counter[tuple[int, ...]]:
    return Counter(tuple(row.values()) for table in tables for row in table.to_pylist())


@pytest.mark.parametrize("policy", POLICIES)
def test_what_leaves_early_is_what_a_step_gives(policy: str) -> None:
    whole, streamed = joined(policy), joined(policy)
    pieces = 0
    for first_s in (0.0, 3.0, 6.0):
        push_both(whole, first_s)
        push_both(streamed, first_s)
        tables = list(streamed.stream_step(now_s=first_s))
        assert counted(*tables) == counted(whole.step(now_s=first_s))
        pieces += len(tables)
        assert all(table.schema == whole.schema for table in tables)
    assert pieces > 3
    assert streamed.report.results == whole.report.results > 100
    assert streamed.report.streams == whole.report.streams


def test_the_first_drivers_results_leave_first() -> None:
    join = joined("output_rate")
    push_both(join, 0.0)
    join.step(now_s=0.0)
    join.push("a", rows(5, 91, 5.0))
    join.push("b", rows(9, 92, 5.0))
    leaving = join.stream_step(now_s=5.0)
    first = next(leaving)
    newest = [set(first.column(name).to_pylist()) & set(range(91_000, 93_000)) for name in "ab"]
    assert sorted(map(bool, newest)) == [False, True]
    assert join.report.batches == 1
    rest = counted(*leaving)
    assert join.report.batches == 2
    assert join.report.results > sum(rest.values()) > 0


def test_a_batch_is_read_to_its_end_before_the_next() -> None:
    join = joined()
    push_both(join, 0.0)
    leaving = join.stream_step(now_s=0.0)
    for refused in (join.step, join.stream_step, join.finish):
        with pytest.raises(UsageError, match="a batch is still being read"):
            refused()
    join.push("a", rows(12, 7, 3.0))
    found = counted(*leaving)
    assert found
    assert sum(counted(join.step(now_s=3.0)).values()) + sum(found.values()) == join.report.results


def test_a_period_collects_batches() -> None:
    """Replayed in tenths of a second, activated once a second: the same results in a tenth of the batches."""
    tables = {name: rows(60, number) for number, name in enumerate("abc")}
    replay = Replay({name: (table, "ts", None) for name, table in tables.items()}, batch_us=100_000)
    query = windrow.sql(TEXT, streams=tables)
    each, by_period = windrow.local(query, replay), windrow.local(query, replay, period="1 second")
    assert counted(*each) == counted(*by_period)
    assert each.report.batches > 40
    assert 5 <= by_period.report.batches <= 6


def test_a_period_of_the_clock() -> None:
    now = iter([0.0, 0.4, 1.1, 1.9, 2.2, 9.0])

    def coming() -> Iterator[dict[str, pa.Table]]:
        for number in range(5):
            yield {"a": rows(1, number)}

    join = joined(inputs=coming(), period="1 second", clock=lambda: next(now))
    assert list(join) == []
    assert join.report.batches == 3
    with pytest.raises(UsageError, match="a period needs inputs"):
        joined(period="1 second")


def test_the_busy_share() -> None:
    """Of the time on the batch clock since the first batch, which the last, closing batch is no part of."""
    join = joined(clock=lambda: 5e9)
    before = join.report
    assert before.busy_share is None
    for now_s in (0.0, 100.0, 200.0):
        push_both(join, now_s)
        join.step(now_s=now_s)
    join.finish()
    after = join.report
    assert after.busy_share is not None
    assert 0 < after.busy_share <= after.seconds / 200
    assert " of the time" in str(after)
