"""Windows under a memory limit: never above it after a batch, nothing found that the exact join does not find, every
row let go counted; and with a limit that is never reached, the exact join.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windrow
from tests.oracle.duck import rows_of
from windrow.control.controller import ControlSettings
from windrow.control.memory import POLICIES
from windrow.errors import PlanError, UsageError
from windrow.plan.kept import KeptSpan
from windrow.plan.plan import Plan
from windrow.query.spec import Window
from windrow.run.keeper import Held
from windrow.run.local import LocalJoin

pytestmark = pytest.mark.usefixtures("interpreted")

ROWS = 300
SPAN_S = 60
BATCHES = 12


def stream(seed: int, late_s: int = 0) -> pa.Table:
    """Rows a tenth of a second apart, out of order by as much as `late_s`."""
    random = np.random.default_rng(seed)
    times_us = np.arange(ROWS) * (SPAN_S * 1_000_000 // ROWS)
    order = np.argsort(times_us + random.integers(0, late_s * 1_000_000 + 1, ROWS), kind="stable")
    rows = pa.table({
        "ts": pa.array(times_us, pa.timestamp("us")),
        "id": pa.array(np.arange(ROWS)),
        "k": pa.array(random.integers(0, 12, ROWS)),
        "s": pa.array([f"text {n % 17}" * (n % 5) for n in range(ROWS)]),
    })  # fmt: skip
    return rows.take(pa.array(order))


TWO = "SELECT a.id AS i, b.id AS j, a.s AS s FROM s AS a, t AS b WHERE a.k = b.k "
THREE = "SELECT a.id AS i, b.id AS j, c.id AS k FROM s AS a, t AS b, u AS c WHERE a.k = b.k AND b.k = c.k "
QUERIES = {
    "two streams": (TWO + "WINDOW 20 SECONDS", 0),
    "no index": (TWO.replace("a.k = b.k", "a.k + b.k = 11 AND a.id <> b.id") + "WINDOW 20 SECONDS", 0),
    "out of order": (TWO + "WINDOW a 20 SECONDS, b 7 SECONDS LATENESS 3 SECONDS", 3),
    "three streams": (THREE + "WINDOW 5 SECONDS", 0),
    "row windows": (TWO + "WINDOW a ROWS 90, b 9 SECONDS", 0),
    "windows without end": (TWO + "WINDOW 4000000 DAYS", 0),
}


def run(kind: str, **options: Any) -> tuple[Counter[tuple[Any, ...]], LocalJoin, list[int]]:
    """The results, the join, and the bytes of its windows after each batch."""
    text, late_s = QUERIES[kind]
    rows = {name: stream(seed, late_s) for seed, name in enumerate("stu")}
    sources = {name: rows[name] for name in ("stu" if kind == "three streams" else "st")}
    join = windrow.local(windrow.sql(text, streams=sources), **options)
    found: Counter[tuple[Any, ...]] = Counter()
    held = []
    for batch in range(BATCHES):
        size = ROWS // BATCHES
        for name, table in sources.items():
            join.push(name, table.slice(batch * size, size))
        found.update(rows_of(join.step(now_s=(batch + 1) * SPAN_S / BATCHES)))
        held.append(sum(store.memory_bytes for store in join.stores.values()))
    return found, join, held


@pytest.mark.parametrize("kind", QUERIES)
@pytest.mark.parametrize("share", [0.08, 0.4])
def test_the_limit_holds_after_every_batch_and_nothing_else_is_found(kind: str, share: float) -> None:
    exact, _, whole = run(kind)
    limit = int(share * max(whole))
    found, join, held = run(kind, memory=limit)
    assert max(held) <= limit
    assert not found - exact
    assert 0 < found.total() < exact.total()
    assert max(held) >= 0.7 * limit
    memory = join.report.memory
    assert memory is not None
    assert (memory.largest_bytes, memory.limit_bytes) == (max(held), limit)


@pytest.mark.parametrize("kind", QUERIES)
def test_rows_let_go_add_up(kind: str) -> None:
    _, join, _ = run(kind, memory="1.2kB")
    report = join.report
    assert report.memory is not None
    assert report.memory.let_go == sum(stream.let_go for stream in report.streams.values()) > 0
    for name, store in join.stores.items():
        counts = report.streams[name]
        entered = counts.rows - counts.late - counts.bad - counts.filtered - counts.waiting
        assert entered == counts.stored + counts.let_go + store.expired
        assert store.expired >= 0
    if join.spec.streams[0].window.span_us == 20_000_000 and kind == "two streams":
        # All but the rows of the last window have left, one way or the other.
        assert all(store.expired + store.let_go >= ROWS - 101 for store in join.stores.values())


@pytest.mark.parametrize("kind", QUERIES)
def test_a_limit_that_is_never_reached_leaves_the_join_exact(kind: str) -> None:
    exact, _, whole = run(kind)
    found, join, _ = run(kind, memory=max(whole) + 1)
    assert found == exact
    assert join.plan.kept == ()
    assert join.report.memory is not None
    assert (join.report.memory.let_go, join.report.memory.lost_results) == (0, 0)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_keeps_the_limit(policy: str) -> None:
    exact, _, whole = run("two streams")
    limit = int(0.3 * max(whole))
    settings = ControlSettings(fixed=1.0, sample=0.0, memory_bytes=limit, memory_policy=policy)
    found, _, held = run("two streams", control=settings)
    assert max(held) <= limit
    assert not found - exact


def test_with_a_throttle_both_limits_hold() -> None:
    exact, _, whole = run("three streams")
    limit = int(0.4 * max(whole))
    found, join, held = run("three streams", throttle=0.4, memory=limit)
    assert max(held) <= limit
    assert not found - exact
    assert join.plan.shedding.throttle == 0.4


def test_two_runs_are_the_same() -> None:
    one, first, held = run("out of order", memory="5kB")
    two, second, again = run("out of order", memory="5kB")
    assert (one, held, first.plan) == (two, again, second.plan)
    assert Plan.from_json(first.plan.to_json()) == first.plan
    assert {span.stream for span in first.plan.kept} == {"a", "b"}


def test_a_limit_smaller_than_a_batch_is_kept_and_told() -> None:
    exact, _, _ = run("two streams")
    found, join, held = run("two streams", memory=500)
    assert max(held) <= 500
    assert not found - exact
    memory = join.report.memory
    assert memory is not None
    assert memory.crowded == BATCHES


def test_what_was_lost_is_about_what_is_missing() -> None:
    exact, _, whole = run("two streams")
    found, join, _ = run("two streams", memory=int(0.5 * max(whole)))
    memory = join.report.memory
    assert memory is not None
    missing = exact.total() - found.total()
    assert 0.4 * missing <= memory.lost_results <= 2.5 * missing


def test_what_was_learned_survives_a_restart() -> None:
    _, join, _ = run("two streams", memory="5kB")
    controller = join.controller
    assert controller is not None
    values = controller.to_values()
    other = windrow.local(
        windrow.sql(QUERIES["two streams"][0], streams={"s": stream(0), "t": stream(1)}), memory="5kB"
    )
    assert other.controller is not None
    other.controller.restore(values)
    assert other.controller.to_values() == values
    assert other.controller.exposure.share("a", "b", 20).min() < 1


def test_matches_far_back_are_found_with_a_fraction_of_the_window() -> None:
    """Rows match only 15 s later: the youngest rows alone would find nothing."""
    numbers = np.arange(800)
    times = pa.array(numbers * 100_000, pa.timestamp("us"))
    early, late = (pa.table({"ts": times, "x": numbers - shift}) for shift in (0, 150))
    asked = windrow.sql(
        "SELECT a.x AS x FROM s AS a, t AS b WHERE a.x = b.x WINDOW 20 SECONDS", streams={"s": early, "t": late}
    )
    found = {}
    for policy in ("expected", "equal"):
        control = ControlSettings(fixed=1.0, sample=0.0, memory_bytes=4_000, memory_policy=policy)
        found[policy] = 0
        with windrow.local(asked, control=control) as join:
            for batch in range(80):
                for name, rows in (("s", early), ("t", late)):
                    join.push(name, rows.slice(batch * 10, 10))
                found[policy] += len(join.step(now_s=batch + 1.0))
    assert found["expected"] > 50 > found["equal"]


def test_stock_is_counted_by_age() -> None:
    held = Held(Window(span_us=160))
    held.came(np.array([0, 1, 1, 50, 159, 160, 170]))
    held.row_bytes = 2.0
    stock = held.stock(reference=160)
    assert stock.total == 14.0
    assert (int(stock.edges[0]), int(stock.edges[-1])) == (-11, 160)
    assert stock.age_of(2.0) <= 0 < stock.age_of(6.5) <= 110
    assert held.stock(reference=200).total == 8.0


@pytest.mark.parametrize("limit", ["lots", "-1MB", "0"])
def test_what_is_no_limit_is_refused(limit: str) -> None:
    with pytest.raises(UsageError, match="is not a memory limit"):
        run("two streams", memory=limit)


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(PlanError, match="no memory policy 'oldest'"):
        ControlSettings(memory_policy="oldest")


def test_kept_spans_are_what_the_stores_hold() -> None:
    _, join, _ = run("two streams", memory="6kB")
    for span in join.plan.kept:
        assert isinstance(span, KeptSpan)
        store = join.stores[span.stream]
        reference = int(join.entry.expiry(span.stream)[0]) + 20_000_000
        ages = np.concatenate([reference - segment.time_us for segment in store.segments])
        assert span.shares_at(ages).min() > 0
