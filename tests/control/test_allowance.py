"""Allowances in a throttled tree of joins: what they find, what they never find, and how they follow a change."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windrow
from windrow.control.allowance import ALLOWED, LEAST_SHARE, Allowances
from windrow.control.controller import ControlSettings
from windrow.errors import PlanError, UsageError
from windrow.plan.order import plan_query
from windrow.run.local import LocalJoin
from windrow.run.simulate import Machine, Simulated, simulate

pytestmark = pytest.mark.usefixtures("interpreted")

TEXT = """SELECT a.id AS i, b.id AS j, c.id AS k FROM a, b, c WHERE a.p = b.p AND b.q = c.q WINDOW 4 SECONDS"""
DURATION_S = 40


def streams(values: tuple[int, int], later: tuple[int, int] | None = None, seed: int = 0) -> dict[str, pa.Table]:
    """Three streams, a ten times as fast as c; the numbers of values of the keys may change half-way."""
    draw, made = np.random.default_rng(seed), {}
    for name, rate in zip("abc", (80, 30, 20), strict=True):
        count = rate * DURATION_S
        times = np.sort(draw.integers(0, DURATION_S * 1_000_000, count))
        after = times > DURATION_S * 500_000
        keys = {}
        for key, few, other in zip("pq", values, later or values, strict=True):
            keys[key] = pa.array(np.where(after, draw.integers(0, other, count), draw.integers(0, few, count)))
        made[name] = pa.table({"ts": pa.array(times, pa.timestamp("us")), "id": pa.array(np.arange(count)), **keys})
    return made


def played(rows: dict[str, pa.Table], level: float, allowance: str, **more: Any) -> Simulated:
    control = ControlSettings(interval_s=3.0, fixed=level)
    return simulate(windrow.sql(TEXT, rows), rows, shape="linear", control=control, allowance=allowance, **more)


@pytest.mark.parametrize("method", ALLOWED)
def test_what_is_found_is_part_of_all_results(method: str) -> None:
    rows = streams((30, 40))
    exact = simulate(windrow.sql(TEXT, rows), rows, keep_results=True)
    part = played(rows, 0.4, method, keep_results=True)
    every, some = (
        Counter(tuple(row.values()) for table in run.tables for row in table.to_pylist()) for run in (exact, part)
    )
    assert some <= every
    assert 0 < some.total() < every.total()


def test_auto_finds_at_least_what_others_do() -> None:
    rows = streams((30, 40))
    for level in (0.2, 0.5):
        found = {name: played(rows, level, name).found(15) for name in ALLOWED}
        assert found["auto"] >= 0.97 * max(found.values()), (level, found)


def test_shares_follow_a_change() -> None:
    joins: list[LocalJoin] = []
    changed = played(streams((10, 200), (200, 10)), 0.3, "auto", before=lambda join, _now_s: joins.append(join))
    shares = {} if joins[-1].allowances is None else joins[-1].allowances.shares
    settled = played(streams((200, 10)), 0.3, "auto")
    assert changed.found(32) > 0.8 * settled.found(32) > 0
    assert shares["b"] > shares["c"]
    assert all(share >= LEAST_SHARE for share in shares.values())


def test_a_join_that_cannot_keep_up_lets_fewer_rows_probe() -> None:
    rows = streams((30, 40))
    query = windrow.sql(TEXT, rows)
    slow = Machine().overloaded(simulate(query, rows, shape="linear"), 2.0, after_s=5)
    control = ControlSettings(interval_s=3.0)
    shed = simulate(query, rows, slow, shape="linear", control=control, throttle="auto")
    assert 0.7 < shed.load(15) < 1.05
    assert shed.steps[-1].shedding.throttle < 0.9


def test_what_makes_no_sense_is_refused() -> None:
    rows = streams((30, 40))
    query = windrow.sql(TEXT, rows)
    with pytest.raises(UsageError, match="an allowance is of a tree of joins that is throttled"):
        windrow.local(query, allowance="auto")
    with pytest.raises(PlanError, match="there is no allocation 'fair'"):
        windrow.local(query, shape="linear", throttle=0.5, allowance="fair")
    with pytest.raises(PlanError, match="there are no allowances without a tree"):
        Allowances(query.spec(), plan_query(query.spec()))
    with windrow.local(query, shape="linear", throttle=0.5) as join, pytest.raises(UsageError, match="throttle"):
        join.reshape("bushy")
