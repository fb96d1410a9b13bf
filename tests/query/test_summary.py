"""Aggregates over results: what is understood, and what is refused."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from windrow.errors import QueryError
from windrow.query.builder import sql
from windrow.query.spec import Aggregate, QuerySpec

SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("k", pa.int64()), ("v", pa.float64()), ("g", pa.string())])


def spec(selected: str, rest: str = "") -> QuerySpec:
    text = f"SELECT {selected} FROM a, b WHERE a.k = b.k {rest} WINDOW 5 SECONDS"
    return sql(text, {"a": SCHEMA, "b": SCHEMA}).spec()


def test_what_is_asked() -> None:
    found = spec(
        "a.g AS kind, COUNT(*) AS n, sum(b.v), Avg(a.v + b.v) AS mean, count(b.v)", "GROUP BY a.g EVERY 1 MINUTE"
    )
    assert [str(output.expression) for output in found.outputs] == ["result_ts()", "a.g", "b.v", "a.v + b.v"]
    assert found.summary is not None
    assert found.summary.every_us == 60_000_000
    assert found.summary.groups == (("kind", 1),)
    assert found.summary.aggregates == (
        Aggregate("n", "count"),
        Aggregate("sum(b.v)", "sum", 2),
        Aggregate("mean", "avg", 3),
        Aggregate("count(b.v)", "count", 2),
    )
    assert found.summary.columns[:5] == ("span_start", "kind", "n", "n_low", "n_high")


def test_without_every_the_whole_run_is_one_span() -> None:
    summary = spec("COUNT(*)").summary
    assert summary is not None
    assert summary.every_us is None
    assert summary.columns == ("count", "count_low", "count_high")


def test_plain_queries_have_no_summary() -> None:
    assert spec("a.g, b.v").summary is None


@pytest.mark.parametrize(
    ("selected", "rest", "message"),
    [
        ("a.g, COUNT(*)", "", "neither an aggregate nor in GROUP BY"),
        ("a.v, COUNT(*)", "GROUP BY a.g", "neither an aggregate nor in GROUP BY"),
        ("*, COUNT(*)", "", "neither an aggregate nor in GROUP BY"),
        ("a.g", "GROUP BY a.g", "need an aggregate"),
        ("a.g", "EVERY 1 MINUTE", "neither an aggregate"),
        ("COUNT(*)", "GROUP BY a.v + 1", "GROUP BY takes plain columns"),
        ("COUNT(*)", "GROUP BY ROLLUP (a.g)", "ROLLUP is not supported"),
        ("SUM(*)", "", "SUM takes an expression"),
        ("SUM(a.v, b.v)", "", "SUM takes one argument"),
        ("COUNT()", "", "COUNT takes one argument"),
        ("SUM(a.g)", "", "SUM needs a number, not VARCHAR"),
        ("COUNT(DISTINCT a.v)", "", "DISTINCT is not supported"),
        ("SUM(COUNT(*))", "", "COUNT() is an aggregate"),
        ("SUM(a.v) + 1, COUNT(*)", "", "neither an aggregate"),
        ("COUNT(*), COUNT(*)", "", "two result columns are named 'count'"),
        ("COUNT(*) AS n, SUM(a.v) AS n_low", "", "two result columns are named 'n_low'"),
        ("COUNT(*)", "EVERY 0 SECONDS", "EVERY needs a span above zero"),
        ("COUNT(*)", "EVERY a 1 SECOND", "EVERY is of all streams"),
        ("COUNT(*)", "EVERY ROWS 5", "EVERY is a span of time"),
        ("COUNT(*)", "HAVING COUNT(*) > 1", "HAVING is not supported"),
    ],
)
def test_what_is_refused(selected: str, rest: str, message: str) -> None:
    with pytest.raises(QueryError, match=re.escape(message)):
        spec(selected, rest)


def test_columns_may_be_called_every() -> None:
    schema = pa.schema([("ts", pa.timestamp("us")), ("every", pa.int64())])
    text = "SELECT COUNT(*) AS every FROM a, b WHERE a.every = b.every WINDOW 5 SECONDS EVERY '1 minute'"
    found = sql(text, {"a": schema, "b": schema}).spec().summary
    assert found is not None
    assert found.every_us == 60_000_000


def test_nothing_is_added_to_a_query_of_aggregates() -> None:
    asked = sql("SELECT COUNT(*) FROM a, b WHERE a.k = b.k WINDOW 5 SECONDS", {"a": SCHEMA, "b": SCHEMA})
    with pytest.raises(QueryError, match="selects aggregates"):
        asked.select("a.v")
    assert asked.where("a.v > 1").spec().summary is not None
