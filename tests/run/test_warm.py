"""After warming up a join loads no kernel that it did not have."""

from __future__ import annotations

import pytest

import windrow
from tests.oracle.tables import table_of
from windrow.plan.order import plan_query
from windrow.probe.compile import loaded_kernels
from windrow.run.program import Program
from windrow.run.warm import warm

pytestmark = pytest.mark.usefixtures("interpreted")

QUESTIONS = {
    "band": "SELECT a.id AS i FROM s AS a, t AS b WHERE ABS(a.f64 - b.f64) <= 1 AND a.i32 <> b.i64 WINDOW 4 SECONDS",
    "similar": "SELECT a.id AS i FROM s AS a, t AS b WHERE cosine(a.v, b.v) > 0.9 AND a.s < b.s WINDOW 5 SECONDS",
    "times": "SELECT a.id AS i, result_ts() AS at FROM s AS a, t AS b WHERE a.t8 = b.t8 WINDOW 4 SECONDS",
    "rows": "SELECT result_id() AS i FROM s AS a, t AS b WHERE a.t8 = b.t8 AND a.flag WINDOW a ROWS 7, b 2 SECONDS",
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_warm_program_has_all_it_needs(question: str) -> None:
    tables = {name: table_of(40, number) for number, name in enumerate("st")}
    query = windrow.sql(QUESTIONS[question], streams=tables, time=dict.fromkeys("st", "ts"))
    warm(Program(query.spec(), plan_query(query.spec()), {}))
    before = loaded_kernels()
    with windrow.local(query) as join:
        for name, table in tables.items():
            join.push(name, table)
        assert len(join.finish()) > 0
    assert loaded_kernels() == before


def test_functions_of_the_user_see_no_made_up_values() -> None:
    calls: list[object] = []

    def near(a: float, b: float) -> bool:
        calls.append((a, b))
        return True

    tables = {name: table_of(4, number) for number, name in enumerate("st")}
    join = windrow.join().stream("s", tables["s"], time="ts", window="1 second")
    query = join.stream("t", tables["t"], time="ts", window="1 second").where(near, on=("s.f64", "t.f64"))
    warm(Program(query.select("s.id as i").spec(), plan_query(query.select("s.id as i").spec()), {}))
    assert calls == []
