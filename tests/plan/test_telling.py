"""A query and its plan in words."""

from __future__ import annotations

import pyarrow as pa

import windrow
from windrow.plan.methods import METHODS
from windrow.plan.order import plan_query
from windrow.plan.telling import METHOD_MEANS, method_lines, query_lines, tree_lines

SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("x", pa.float64()), ("k", pa.int64())])
TEXT = """
SELECT a.x AS ax FROM a, b, c
WHERE a.k = b.k AND a.x < b.x AND ABS(b.x - c.x) <= 0.5
WINDOW a 90 SECONDS, b 5 MINUTES, c ROWS 100
"""


def test_the_question_names_conditions_and_windows() -> None:
    spec = windrow.sql(TEXT, dict.fromkeys("abc", SCHEMA)).spec()
    windows = "a for 90 seconds, b for 5 minutes, c its newest 100 rows"
    assert query_lines(spec) == [
        "one result for each combination of a row of a, b and of c for which",
        "  a.k = b.k",
        "  a.x < b.x",
        "  abs(b.x - c.x) <= 0.5",
        f"  and the newest of them came while the others were in their windows: {windows}",
        "an inner join: a row that meets nothing gives nothing",
    ]
    without = windrow.sql("SELECT a.x AS x FROM a, b WINDOW 1 SECOND", dict.fromkeys("ab", SCHEMA)).spec()
    assert query_lines(without)[0] == "one result for each combination of a row of a and of b whatever they hold, if"


def test_a_path_is_a_tree_whose_steps_say_what_they_search_by() -> None:
    spec = windrow.sql(TEXT, dict.fromkeys("abc", SCHEMA)).spec()
    plan = plan_query(spec)
    conjuncts = [str(conjunct) for conjunct in spec.conjuncts]
    assert tree_lines(conjuncts, plan.path("a"), ["seldom"]) == [
        "a",
        "└─ b  hashed  a.k = b.k; then a.x < b.x  (seldom)",
        "   └─ c  sorted  abs(b.x - c.x) <= 0.5",
    ]
    assert [line.partition(":")[0] for line in method_lines(plan)] == ["hashed", "sorted"]


def test_every_method_is_explained() -> None:
    assert set(METHOD_MEANS) == set(METHODS)
