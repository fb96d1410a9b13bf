"""Every throttled run: nothing outside of the exact one, nothing twice, the same again from the same plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windrow
from tests.oracle.arrivals import POLICIES, batches, in_time, run, shuffled
from tests.oracle.duck import rows_of
from tests.oracle.tables import table_of
from tests.run.sheddings import alternatives, drawn_shedding
from windrow.control.controller import ControlSettings
from windrow.control.observation import Joined, Observation
from windrow.plan.shedding import Shedding
from windrow.query.builder import Join
from windrow.query.spec import UserFunction
from windrow.query.types import BOOLEAN
from windrow.run.local import LocalJoin

pytestmark = pytest.mark.usefixtures("interpreted")

ALWAYS = "LATENESS 4000000 DAYS"
QUERIES = {
    "equality": f"WHERE a.i32 = b.i32 AND a.k = c.k AND b.f64 <= c.f64 WINDOW 4 SECONDS {ALWAYS}",
    "band": f"WHERE ABS(a.f64 - b.f64) <= 0.2 AND b.i64 BETWEEN c.i64 - 1 AND c.i64 WINDOW 9 SECONDS {ALWAYS}",
    "vectors": f"WHERE cosine(a.v, b.v) >= 0.9 AND l2(b.v, c.w) < 1 WINDOW 5 SECONDS {ALWAYS}",
    "function": f"WHERE (a.i32 < b.i64 OR a.s = b.s) AND touches(a.i64, c.i64) WINDOW 3 SECONDS {ALWAYS}",
    "row windows": "WHERE a.i32 <= b.i32 AND ABS(b.i64 - c.i64) <= 2 WINDOW a ROWS 12, b 6 SECONDS, c ROWS 20",
}
METHODS: dict[str, tuple[tuple[str, ...] | None, ...]] = {
    "equality": (("hashed",), ("loop",)),
    "band": (("sorted",), ("loop",)),
    "vectors": (("matrix",), None),
    "function": (("opaque",), None),
    "row windows": (None, ("loop",)),
}
TOUCHES = UserFunction("touches", lambda x, y: abs(x - y) <= 2, BOOLEAN, "pair")

SOME = [*((kind, "timestamp") for kind in QUERIES), *(("equality", policy) for policy in POLICIES[1:])]
"""Every kind of query, and every policy."""

Rows = Counter[tuple[Any, ...]]


def tables() -> dict[str, pa.Table]:
    return {name: table_of(45, seed, span=25) for seed, name in enumerate(("s", "t", "u"))}


def query_of(kind: str) -> Join:
    text = f"SELECT a.id AS i, b.id AS j, c.id AS k, a.i64 + c.i64 AS total FROM s AS a, t AS b, u AS c {QUERIES[kind]}"
    return windrow.sql(text, streams=tables(), time=dict.fromkeys(tables(), "ts"), functions=[TOUCHES])


def exact_of(kind: str) -> Rows:
    found = run(query_of(kind), tables(), in_time(tables()), size=None).rows
    assert found.total() > 20
    return found


def told(done: Observation) -> Observation:
    """A batch as it would be told by a machine on which all of them take the same: too long."""
    sampled, others = (
        {
            path: replace(tally, steps=tuple(replace(step, seconds=1e-3 * step.candidates) for step in tally.steps))
            for path, tally in held.items()
        }
        for held in (done.joined.sampled, done.joined.others)
    )
    return replace(done, busy_s=4.0, joined=Joined(sampled, others))


def driven(
    join: LocalJoin, pushed: Sequence[dict[str, pa.Table]], log: Sequence[Shedding] | None = None
) -> Iterator[tuple[Rows, Shedding]]:
    """The results of each batch, and what was left out of it; `log` says the latter beforehand."""
    for number, batch in enumerate((*pushed, None)):
        if log is not None:
            join.plan = replace(join.plan, shedding=log[number])
        for name, table in (batch or {}).items():
            join.push(name, table)
        found = rows_of(join.step() if batch is not None else join.finish())
        yield found, join.plan.shedding


def total(found: Sequence[tuple[Rows, Shedding]]) -> Rows:
    rows: Rows = Counter()
    for part, _ in found:
        rows += part
    return rows


@pytest.mark.parametrize(("kind", "policy"), SOME)
def test_whatever_is_left_out_nothing_is_added(kind: str, policy: str) -> None:
    exact, query, less = exact_of(kind), query_of(kind), 0
    for seed, methods in enumerate(METHODS[kind]):
        plan = alternatives(query.spec(), policy, methods)
        plan = replace(plan, shedding=drawn_shedding(query.spec(), plan, seed))
        arrivals = in_time(tables()) if "row" in kind else shuffled(tables(), seed)
        found = run(query, tables(), arrivals, size=(7, 50)[seed], plan=plan).rows
        assert found <= exact, (methods, found - exact)
        less += exact.total() - found.total()
    assert less > 0


@pytest.mark.parametrize(
    ("kind", "control"), [*product(("equality", "row windows"), ("harvest", "drop")), ("band", "auto")]
)
def test_a_controlled_run_gives_part_of_the_exact_one(kind: str, control: str) -> None:
    settings = ControlSettings(
        interval_s=1.0,
        policy="drop" if control == "drop" else "harvest",
        optimiser="mixture" if control in ("harvest", "drop") else control,
        bins=4,
        sample=0.3,
    )
    found = run(
        query_of(kind), tables(), in_time(tables()), size=9, throttle="auto", control=settings, charge=told,
        clock=count().__next__,
    )  # fmt: skip
    exact = exact_of(kind)
    assert found.rows < exact


@pytest.mark.parametrize(("kind", "policy"), SOME)
def test_a_throttle_of_one_is_the_exact_join(kind: str, policy: str) -> None:
    control = ControlSettings(interval_s=1.0, sample=0.3)
    found = run(
        query_of(kind), tables(), in_time(tables()), size=9, policy=policy, throttle=1.0, control=control,
        clock=count().__next__,
    )  # fmt: skip
    assert found.rows == exact_of(kind)


@pytest.mark.parametrize(("kind", "policy"), [pair for pair in SOME if not pair[1].startswith("auto")])
def test_the_same_plans_give_the_same_whatever_the_order_in_a_batch(kind: str, policy: str) -> None:
    query, random = query_of(kind), np.random.default_rng(3)
    pushed = list(batches(tables(), in_time(tables(), jitter_us=2_000_000), 20))
    control = ControlSettings(interval_s=1.0, sample=0.3, bins=5)
    settings: dict[str, Any] = {"policy": policy, "throttle": "auto", "control": control, "charge": told}
    with windrow.local(query, clock=count().__next__, **settings) as join:
        first = list(driven(join, pushed))
        plan = join.plan
    log = [shedding for _, shedding in first]
    assert len(set(log)) > 2
    assert any(shedding.restricts for shedding in log)
    mixed = [{name: table.take(random.permutation(len(table))) for name, table in batch.items()} for batch in pushed]
    with windrow.local(query, plan=replace(plan, shedding=log[-1]), clock=count().__next__) as join:
        assert [rows for rows, _ in driven(join, mixed, log)] == [rows for rows, _ in first]
    with windrow.local(query, clock=count().__next__, **settings) as join:
        assert list(driven(join, pushed)) == first


@pytest.mark.parametrize(("kind", "seed"), [("equality", 0), ("band", 1), ("row windows", 2), ("vectors", 3)])
def test_in_order_of_time_cuts_do_not_matter(kind: str, seed: int) -> None:
    """Every draw follows from content, every lag from times: where a batch ends is not among them."""
    query = query_of(kind)
    plan = alternatives(query.spec())
    plan = replace(plan, shedding=drawn_shedding(query.spec(), plan, seed, behind=False))
    found = [run(query, tables(), in_time(tables()), size=size, plan=plan).rows for size in (4, 13, None)]
    assert all(rows == found[0] for rows in found)
    assert 0 < found[0].total() < exact_of(kind).total()


@pytest.mark.parametrize("kind", ["equality", "row windows"])
def test_seeds_leave_different_rows_out(kind: str) -> None:
    query = query_of(kind)
    plan = alternatives(query.spec())
    shedding = drawn_shedding(query.spec(), plan, 1)
    found = [
        run(query, tables(), in_time(tables()), size=20, plan=replace(plan, shedding=replace(shedding, seed=k))).rows
        for k in range(4)
    ]
    assert len({tuple(sorted(rows.items())) for rows in found}) > 1


def test_what_is_dropped_is_counted_and_found_again_nowhere() -> None:
    query = query_of("equality")
    spec = query.spec()
    plan = replace(alternatives(spec), shedding=Shedding(keep=(("a", 0.5), ("c", 0.0))))
    found = run(query, tables(), in_time(tables()), size=20, plan=plan)
    assert found.rows.total() == 0
    with windrow.local(query, plan=plan) as join:
        list(driven(join, list(batches(tables(), in_time(tables()), 20))))
        dropped = {name: gate.counts.dropped for name, gate in join.entry.gates.items()}
    assert dropped["b"] == 0
    assert dropped["c"] == 45
    assert 10 < dropped["a"] < 35
