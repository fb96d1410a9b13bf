"""The master test: whatever the query, the batch cut, the policy and the methods, the rows are DuckDB's.

Random queries run interpreted (a compiled predicate costs a second); a fixed list, one query a kind, runs compiled.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import windrow
from tests.oracle.arrivals import BATCH_SIZES, POLICIES, in_time, run, shuffled
from tests.oracle.duck import answer, difference, question, rows_of, type_names
from tests.oracle.queries import Case, cases
from tests.oracle.tables import table_of
from windrow.query.spec import UserFunction
from windrow.query.types import BOOLEAN, DOUBLE

METHODS: tuple[tuple[str, ...] | None, ...] = (None, ("loop",), ("loop", "sorted"), ("loop", "hashed"))

LEAST_BATCHES = 20

ALWAYS = "LATENESS 4000000 DAYS"
"""Nothing is ever late."""


def asked(case: Case) -> Any:
    return windrow.sql(case.question.text, streams=case.schemas, time=dict.fromkeys(case.tables, "ts"))


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("streams", [2, 3, 4, 6])
def test_random_queries_give_duckdbs_rows_and_types(streams: int) -> None:
    totals: list[int] = []
    steps: list[int] = []
    seen: set[object] = set()

    @settings(max_examples=150, suppress_health_check=list(HealthCheck))
    @given(
        cases(streams=streams),
        st.sampled_from(BATCH_SIZES),
        st.sampled_from(POLICIES),
        st.sampled_from(METHODS),
        st.integers(0, 99),
    )
    def check(case: Case, size: int | None, policy: str, methods: tuple[str, ...] | None, seed: int) -> None:
        expected = answer(case.question, case.tables)
        found = run(asked(case), case.tables, shuffled(case.tables, seed), size=size, policy=policy, methods=methods)
        assert difference(found.rows, expected.rows) == "", case.question.text
        assert type_names(found.schema) == type_names(expected.schema), case.question.text
        totals.append(expected.rows.total())
        steps.append(found.steps)
        seen.update((size, policy, methods))

    check()
    assert sum(1 for total in totals if total) >= len(totals) // 8
    assert sum(1 for count in steps if count >= LEAST_BATCHES) >= len(steps) // 8
    assert seen == {*BATCH_SIZES, *POLICIES, *METHODS}


COMPILED = {
    "band": "SELECT a.id AS i, b.id AS j FROM s AS a, t AS b WHERE ABS(a.f64 - b.f64) <= 0.3 WINDOW 5 SECONDS",
    "band of mixed kinds": """
        SELECT a.id AS i, b.id AS j, a.f32 - b.d52 AS gap FROM s AS a, t AS b
        WHERE ABS(a.f32 - b.d52) <= 0.2 WINDOW a 20 SECONDS, b 3 SECONDS""",
    "equality of text": """
        SELECT a.id AS i, b.id AS j, c.id AS k, result_ts() AS at FROM s AS a, t AS b, u AS c
        WHERE a.s = b.s AND b.k = c.k WINDOW 4 SECONDS""",
    "inequality, BETWEEN, filter": """
        SELECT a.id AS i, b.id AS j FROM s AS a, t AS b
        WHERE a.d18 < b.i32 AND a.i64 BETWEEN b.i64 - 1 AND b.i64 + 2 AND b.f64 IS NOT NULL WINDOW 6 SECONDS""",
    "OR, IN, LIKE, CASE, COALESCE": """
        SELECT a.id AS i, b.id AS j, CASE WHEN a.flag THEN a.i32 ELSE b.u8 END AS chosen FROM s AS a, t AS b
        WHERE (a.s LIKE '%b%' OR a.k IN (b.k, 'x') OR NOT a.flag) AND COALESCE(a.i32, 0) <= b.i32 WINDOW 2 SECONDS""",
    "three streams in one condition": """
        SELECT a.id AS i, b.id AS j, c.id AS k FROM s AS a, t AS b, u AS c
        WHERE a.i32 + b.i64 <= c.s16 AND a.k = c.k WINDOW a 3 SECONDS, b 2 SECONDS, c 0 SECONDS""",
    "vectors": """
        SELECT a.id AS i, b.id AS j, dot(a.w, b.w) AS d FROM s AS a, t AS b
        WHERE cosine(a.v, b.v) >= 0.8 AND l2(a.w, b.w) <= 5 WINDOW 20 SECONDS""",
    "text alike": """
        SELECT a.id AS i, b.id AS j FROM s AS a, t AS b
        WHERE (jaccard(a.s, b.s) >= 0.5 OR levenshtein(a.s, b.s) <= 1) AND jaro_winkler(a.k, b.k) > 0.9
        WINDOW 20 SECONDS""",
    "times and dates": """
        SELECT a.id AS i, b.id AS j FROM s AS a, t AS b
        WHERE a.at - b.at <= INTERVAL 3 SECONDS AND a.at >= b.at AND ABS(a.day - b.day) <= 1 WINDOW 20 SECONDS""",
    "self-join without condition": "SELECT a.id AS i, b.id AS j FROM s AS a, s AS b WINDOW a 0 SECONDS, b 1 SECONDS",
}


def three_tables() -> dict[str, pa.Table]:
    return {
        name: table_of(rows, seed, span=60, null_times=True)
        for name, rows, seed in (("s", 60, 1), ("t", 50, 2), ("u", 40, 3))
    }


@pytest.mark.parametrize("kind", COMPILED)
def test_compiled_queries_in_every_batch_cut_and_policy(kind: str) -> None:
    tables = {name: table for name, table in three_tables().items() if f" {name} AS " in COMPILED[kind]}
    asking = question(f"{COMPILED[kind]} {ALWAYS}")
    expected = answer(asking, tables)
    assert expected.rows.total() > 5
    query = windrow.sql(asking.text, streams=tables, time=dict.fromkeys(tables, "ts"))
    most = 0
    for place, size in enumerate(BATCH_SIZES):
        arrivals = shuffled(tables, place)
        found = run(query, tables, arrivals, size=size, policy=POLICIES[place % len(POLICIES)])
        assert difference(found.rows, expected.rows) == "", size
        assert type_names(found.schema) == type_names(expected.schema)
        most = max(most, found.steps)
    assert most >= LEAST_BATCHES


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("streams", [5, 8])
def test_a_chain_of_many_streams(streams: int) -> None:
    names = [f"s{place}" for place in range(streams)]
    tables = {name: table_of(25, place, span=30) for place, name in enumerate(names)}
    where = " AND ".join(f"ABS({left}.i64 - {right}.i64) <= 1" for left, right in pairwise(names))
    text = (
        f"SELECT {', '.join(f'{name}.id AS i_{name}' for name in names)} FROM {', '.join(f'{n} AS {n}' for n in names)}"
        f" WHERE {where} WINDOW 3 SECONDS {ALWAYS}"
    )
    expected = answer(question(text), tables).rows
    assert expected
    query = windrow.sql(text, streams=tables, time=dict.fromkeys(tables, "ts"))
    for policy in POLICIES:
        found = run(query, tables, shuffled(tables, 5), size=7, policy=policy)
        assert difference(found.rows, expected) == ""
        assert found.steps >= LEAST_BATCHES or streams * 25 < LEAST_BATCHES * 7


FUNCTIONS = {
    "auto": UserFunction("near", lambda x, y: abs(x - y) <= 1.0, BOOLEAN, "auto"),
    "vectorised": UserFunction("near", lambda x, y: abs(x - y) <= 1.0, BOOLEAN, "vectorised"),
    "pair": UserFunction("near", lambda x, y: abs(x - y) <= 1.0, BOOLEAN, "pair"),
}


@pytest.mark.parametrize("mode", FUNCTIONS)
def test_user_functions_in_each_mode(mode: str) -> None:
    tables = {"s": table_of(40, 1), "t": table_of(40, 2)}
    text = f"""
        SELECT a.id AS i, b.id AS j, half(a.i64) AS halved FROM s AS a, t AS b
        WHERE near(a.i64, b.i64) AND a.i32 <= b.i32 WINDOW 9 SECONDS {ALWAYS}"""
    half = UserFunction("half", lambda x: x / 2.0, DOUBLE, FUNCTIONS[mode].mode)
    asking = question(text, macros=("near(x, y) AS ABS(x - y) <= 1.0", "half(x) AS x / 2.0"))
    expected = answer(asking, tables).rows
    assert expected
    query = windrow.sql(text, streams=tables, time={"s": "ts", "t": "ts"}, functions=(FUNCTIONS[mode], half))
    found = run(query, tables, shuffled(tables, 0), size=2)
    assert found.steps >= LEAST_BATCHES
    assert difference(found.rows, expected) == ""


@pytest.mark.usefixtures("interpreted")
def test_event_times_in_every_unit_and_zone() -> None:
    text = f"SELECT a.id AS i, b.id AS j FROM s AS a, t AS b WINDOW a 2 SECONDS, b 0 SECONDS {ALWAYS}"
    plain = {"s": table_of(30, 1, base_us=-10_000_000), "t": table_of(30, 2, base_us=-10_000_000)}
    expected = answer(question(text), plain).rows
    assert expected
    for kind in (
        pa.timestamp("s"),
        pa.timestamp("ms"),
        pa.timestamp("ns"),
        pa.timestamp("us", "UTC"),
        pa.timestamp("ms", "Asia/Tokyo"),
    ):
        tables = {name: table.set_column(0, "ts", table["ts"].cast(kind)) for name, table in plain.items()}
        query = windrow.sql(text, streams=tables, time={"s": "ts", "t": "ts"})
        assert difference(run(query, tables, shuffled(tables, 3), size=7).rows, expected) == "", kind


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("empty", [("s",), ("t",), ("s", "t")])
def test_empty_streams_give_no_rows(empty: tuple[str, ...]) -> None:
    tables = {name: table_of(0 if name in empty else 30, seed) for seed, name in enumerate(("s", "t"))}
    query = windrow.sql(
        f"SELECT a.id AS i FROM s AS a, t AS b WINDOW 1 DAYS {ALWAYS}", streams=tables, time=dict.fromkeys(tables, "ts")
    )
    found = run(query, tables, in_time(tables), size=7)
    assert found.rows.total() == 0
    assert found.schema.names == ["i"]


@pytest.mark.usefixtures("interpreted")
def test_windows_at_the_ends_of_time_saturate() -> None:
    """Sums of event times and windows near 2^63 do not wrap around."""
    ends = [-(2**63) + 2, -(2**63) + 10_000_000, -1, 0, 1, 2**63 - 20_000_000, 2**63 - 3]
    table = pa.table({"ts": pa.array(ends * 4, pa.timestamp("us")), "id": list(range(len(ends) * 4))})
    tables = {"s": table, "t": table.slice(5)}
    for window in ("a 0 SECONDS, b 15 SECONDS", "10 SECONDS", "100000000 DAYS"):
        text = f"SELECT a.id AS i, b.id AS j FROM s AS a, t AS b WINDOW {window} {ALWAYS}"
        expected = answer(question(text), tables).rows
        assert expected.total() > 20
        query = windrow.sql(text, streams=tables, time={"s": "ts", "t": "ts"})
        for policy in POLICIES:
            found = run(query, tables, in_time(tables), size=2, policy=policy)
            assert found.steps >= LEAST_BATCHES
            assert difference(found.rows, expected) == "", (window, policy)
        assert difference(run(query, tables, shuffled(tables, 3), size=None).rows, expected) == ""


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("width", [1, 7, 50])
def test_slices_chunks_and_other_layouts_of_the_same_rows(width: int) -> None:
    """What counts is the values, not how Arrow lays them out: offsets, chunks, dictionaries, wide offsets, views."""
    tables = {"s": table_of(60, 1), "t": table_of(60, 2)}
    text = f"""
        SELECT a.s AS s, a.k AS k, a.v AS v, a.d52 AS d, a.flag AS f, b.w AS w, b.day AS day, b.f32 AS f32, b.u8 AS u8
        FROM s AS a, t AS b
        WHERE (a.s = b.s OR a.flag = b.flag OR a.d52 = b.d52) AND (a.k = b.k OR dot(a.v, b.v) > 1 OR a.f32 < b.f32)
        WINDOW 20 SECONDS {ALWAYS}"""
    expected = answer(question(text), tables).rows
    assert expected
    for layout in (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())):
        laid = {name: table.set_column(14, "s", table["s"].cast(layout)) for name, table in tables.items()}
        assert {table["s"].type for table in laid.values()} == {layout}
        query = windrow.sql(text, streams=laid, time={"s": "ts", "t": "ts"})
        rows: Counter[tuple[Any, ...]] = Counter()
        with windrow.local(query) as join:
            for start in range(0, 60, width):
                for name, table in laid.items():
                    part = table.slice(start, width)
                    join.push(name, pa.concat_tables([part.slice(0, 3), part.slice(3, 1), part.slice(4)]))
                rows += rows_of(join.step())
            rows += rows_of(join.finish())
        assert difference(rows, expected) == "", layout


@pytest.mark.usefixtures("interpreted")
def test_result_ids_name_results_and_not_the_way_they_were_found() -> None:
    tables = {name: table_of(40, seed) for seed, name in enumerate(("s", "t"))}
    text = f"""
        SELECT result_id() AS name, a.id AS i, b.id AS j, a.ts AS a_ts, b.ts AS b_ts, a.i32 AS x, b.i32 AS y
        FROM s AS a, t AS b WHERE a.i32 <= b.i32 WINDOW 5 SECONDS {ALWAYS}"""
    query = windrow.sql(text, streams=tables, time={"s": "ts", "t": "ts"})
    first = run(query, tables, shuffled(tables, 0), size=None).rows
    assert first.total() > 50
    assert len({row[0] for row in first}) == len({row[1:] for row in first}) == len(first)
    for policy in POLICIES:
        assert difference(run(query, tables, shuffled(tables, 8), size=2, policy=policy).rows, first) == ""
