"""What holds for every policy, every choice of methods and every cut into batches: the same multiset."""

from __future__ import annotations

from itertools import product
from typing import Any

import pyarrow as pa
import pytest

import windrow
from tests.oracle.arrivals import POLICIES, in_time, run, shuffled
from tests.oracle.duck import Answer, answer, difference, question
from tests.oracle.tables import table_of
from windrow.plan import drivers
from windrow.plan.methods import METHODS
from windrow.query.spec import UserFunction
from windrow.query.types import BOOLEAN

pytestmark = pytest.mark.usefixtures("interpreted")

ALWAYS = "LATENESS 4000000 DAYS"

QUERIES = {
    "equality": "WHERE a.i32 = b.i32 AND a.k = c.k AND b.f64 <= c.f64 WINDOW 4 SECONDS",
    "band": """WHERE ABS(a.f64 - b.f64) <= 0.2 AND b.i64 BETWEEN c.i64 - 1 AND c.i64
        WINDOW a 9 SECONDS, b 2 SECONDS, c 5 SECONDS""",
    "vectors": "WHERE cosine(a.v, b.v) >= 0.9 AND l2(b.v, c.w) < 1 WINDOW 5 SECONDS",
    "anything": """WHERE (a.i32 < b.i64 OR a.s = b.s) AND levenshtein(b.s, c.s) <= 1 AND touches(a.i64, c.i64)
        WINDOW 2 SECONDS""",
    "event time": """WHERE a.ts <= b.ts AND b.ts - c.ts <= INTERVAL 1 SECONDS AND a.k = b.k WINDOW 5 SECONDS""",
    "sum of all": "WHERE a.i64 + b.i64 = c.i64 AND a.d52 <= b.d18 WINDOW 4 SECONDS",
}
EVERY_METHODS: tuple[tuple[str, ...] | None, ...] = (
    None,
    ("loop",),
    ("sorted",),
    ("hashed",),
    ("matrix",),
    ("opaque",),
)
USED = {
    "equality": {"hashed", "loop"},
    "band": {"sorted", "loop"},
    "vectors": {"matrix", "loop"},
    "anything": {"opaque"},
}
TOUCHES = UserFunction("touches", lambda x, y: abs(x - y) <= 2, BOOLEAN, "pair")

_answers: dict[str, Answer] = {}


def tables() -> dict[str, pa.Table]:
    return {name: table_of(45, seed, span=25) for seed, name in enumerate(("s", "t", "u"))}


def text_of(kind: str) -> str:
    select = "a.id AS i, b.id AS j, c.id AS k, a.i64 + c.i64 AS total, result_ts() AS at"
    return f"SELECT {select} FROM s AS a, t AS b, u AS c {QUERIES[kind]} {ALWAYS}"


def expected_of(kind: str) -> Answer:
    if kind not in _answers:
        asked = question(text_of(kind), macros=("touches(x, y) AS ABS(x - y) <= 2",))
        _answers[kind] = answer(asked, tables())
        assert _answers[kind].rows.total() > 20, kind
    return _answers[kind]


def test_every_policy_and_method_is_among_them() -> None:
    assert set(POLICIES) == set(drivers.POLICIES)
    assert {method for methods in EVERY_METHODS if methods for method in methods} == set(METHODS)


@pytest.mark.parametrize(("kind", "policy"), list(product(QUERIES, POLICIES)))
def test_the_multiset_depends_on_nothing_but_the_query(kind: str, policy: str) -> None:
    expected = expected_of(kind).rows
    query = windrow.sql(text_of(kind), streams=tables(), time=dict.fromkeys(tables(), "ts"), functions=[TOUCHES])
    used: set[str] = set()
    for place, methods in enumerate(EVERY_METHODS):
        size = (7, 50, None, 13, 100, 29)[place]
        arrivals = shuffled(tables(), place) if place % 2 else in_time(tables(), jitter_us=3_000_000, seed=place)
        found = run(query, tables(), arrivals, size=size, policy=policy, methods=methods)
        assert difference(found.rows, expected) == "", (methods, size)
        used |= {step.method for step in found.report.steps}
        assert sum(step.matched for step in found.report.steps) >= expected.total()
        assert found.report.results == expected.total()
    assert used >= USED.get(kind, {"loop"})


@pytest.mark.parametrize("policy", POLICIES)
def test_each_result_comes_as_soon_as_its_last_member_is_there(policy: str) -> None:
    rows = {name: table_of(30, seed, span=10) for seed, name in enumerate(("s", "t"))}
    text = f"SELECT a.id AS i, b.id AS j FROM s AS a, t AS b WHERE a.i32 <= b.i32 WINDOW 4 SECONDS {ALWAYS}"
    query = windrow.sql(text, streams=rows, time=dict.fromkeys(rows, "ts"))
    expected = run(query, rows, in_time(rows), size=None).rows
    seen: dict[str, set[Any]] = {"s": set(), "t": set()}
    total = 0
    with windrow.local(query, policy=policy) as join:
        for name, row in shuffled(rows, 4):
            one = rows[name].slice(row, 1)
            join.push(name, one)
            (number,) = one["id"].to_pylist()
            known = seen["t" if name == "s" else "s"]
            place = 0 if name == "s" else 1
            possible = sum(n for key, n in expected.items() if key[place] == number and key[1 - place] in known)
            results = join.step()
            assert {r["i" if name == "s" else "j"] for r in results.to_pylist()} <= {number}
            assert results.num_rows <= possible
            seen[name].add(number)
            total += results.num_rows
        assert join.finish().num_rows == 0
    assert total == expected.total()


@pytest.mark.parametrize("policy", POLICIES)
def test_ties_within_and_between_streams_give_each_result_once(policy: str) -> None:
    rows = pa.table({"ts": pa.array([5] * 6, pa.timestamp("us")), "x": pa.array(range(6), pa.int64())})
    for window in ("WINDOW 0 SECONDS", "WINDOW 1 SECONDS", "WINDOW a ROWS 100, b 0 SECONDS, c ROWS 18"):
        text = f"SELECT a.x AS i, b.x AS j, c.x AS k FROM s AS a, s AS b, s AS c {window}"
        query = windrow.sql(text, streams={"s": rows})
        expected = dict.fromkeys(product(range(6), repeat=3), 1)
        for size in (1, 2, 7, None):
            assert run(query, {"s": rows}, [("s", k) for k in range(6)], size=size, policy=policy).rows == expected


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", ["equality", "vectors", "anything"])
def test_streams_without_rows_give_no_results(kind: str, policy: str) -> None:
    for empty in ("s", "t", "u"):
        some = {name: table.slice(0, 0) if name == empty else table for name, table in tables().items()}
        query = windrow.sql(text_of(kind), streams=some, time=dict.fromkeys(some, "ts"), functions=[TOUCHES])
        found = run(query, some, in_time(some), size=20, policy=policy)
        assert found.rows.total() == 0
        assert found.schema.names == ["i", "j", "k", "total", "at"]
