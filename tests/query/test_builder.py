"""The builder gives the specification that SQL gives."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from windrow.errors import QueryError
from windrow.query.builder import join, schema_of, sql
from windrow.query.expression import Call, Column
from windrow.query.spec import Window
from windrow.query.sql import parse
from windrow.query.types import BIGINT, BOOLEAN, DOUBLE
from windrow.query.user_functions import function

SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("id", pa.int64()), ("x", pa.float64())])


def two() -> Any:
    """A join of two streams; Any, so that it can also be called wrongly."""
    return (
        join()
        .stream("a", SCHEMA, window="20 seconds", lateness="2 s", freshness=timedelta(minutes=1))
        .stream("b", SCHEMA, "ts", window="rows 100", idle="1 minute")
    )


def test_builder_and_sql_end_in_one_specification() -> None:
    built = (
        two().where("abs(a.x - b.x) <= 1").where("a.id = b.id AND TRUE").select("a.id as a_id", "b.x", "result_ts()")
    )
    written = """
        SELECT a.id AS a_id, b.x, result_ts() FROM a, b WHERE abs(a.x - b.x) <= 1 AND a.id = b.id
        WINDOW a 20 SECONDS, b ROWS 100 LATENESS a 2 SECONDS FRESHNESS a 1 MINUTE IDLE b 1 MINUTE
    """
    assert built.spec() == parse(written, {"a": SCHEMA, "b": SCHEMA})
    assert sql(written, {"a": SCHEMA, "b": SCHEMA, "c": SCHEMA}).spec() == built.spec()


def test_every_step_gives_a_new_join() -> None:
    base = two()
    narrowed = base.where("a.x = b.x")
    assert (len(base.conditions), len(narrowed.conditions)) == (0, 1)
    assert repr(narrowed) == "<Join of a, b: 1 condition>"
    assert [output.name for output in base.spec().outputs] == ["a_ts", "a_id", "a_x", "b_ts", "b_id", "b_x"]


def test_a_query_in_sql_can_be_refined() -> None:
    table = pa.table({"ts": pa.array([0], pa.timestamp("us")), "x": [1.0]})
    query = sql("SELECT a.x AS ax FROM t a, t b WHERE a.x = b.x WINDOW 1 S", {"t": table, "u": table})
    assert list(query.sources) == ["t"]
    assert query.sources["t"] is table
    refined = query.where("a.x > 3").select("b.x").spec()
    assert [str(conjunct) for conjunct in refined.conjuncts] == ["a.x = b.x", "a.x > 3"]
    assert [output.name for output in refined.outputs] == ["ax", "x"]
    with pytest.raises(QueryError, match="two result columns are named 'ax'"):
        query.select("b.x AS ax").spec()


def test_a_function_is_a_condition_on_columns() -> None:
    def near(x: float, y: float) -> bool:
        return abs(x - y) < 1

    spec = two().where(near, on=("a.x", "b.x")).where(lambda x: x > 0, on="a.x", mode="vectorised").spec()
    assert [declared.name for declared in spec.functions] == ["condition_1", "condition_2"]
    assert [declared.mode for declared in spec.functions] == ["auto", "vectorised"]
    assert spec.functions[0].function is near
    assert spec.conjuncts[0] == Call("udf:condition_1", (Column("a", "x", DOUBLE), Column("b", "x", DOUBLE)), BOOLEAN)


def test_functions_are_called_by_name() -> None:
    @function(returns="BIGINT", mode="pair")
    def bucket(x: float) -> int:
        return int(x)

    spec = two().function("bucket", bucket).function("twice", lambda x: 2 * x).where("bucket(a.x) = twice(b.x)").spec()
    assert [(declared.name, declared.result, declared.mode) for declared in spec.functions] == [
        ("bucket", BIGINT, "pair"),
        ("twice", DOUBLE, "auto"),
    ]
    assert bucket(2.5) == 2


def test_windows_are_text_timedeltas_or_windows() -> None:
    windows: list[Any] = ["1 s", timedelta(seconds=1), Window(span_us=1_000_000)]
    assert {join().stream("a", SCHEMA, window=window).streams[0].window for window in windows} == {
        Window(span_us=10**6)
    }


@pytest.mark.parametrize(
    "source",
    [
        SCHEMA,
        SCHEMA.empty_table(),
        pa.RecordBatch.from_pylist([], SCHEMA),
        SCHEMA.empty_table().to_reader(),
        ds.dataset(SCHEMA.empty_table()),
        dict(zip(SCHEMA.names, SCHEMA.types, strict=True)),
    ],
)
def test_anything_with_an_arrow_schema_is_a_source(source: Any) -> None:
    assert schema_of(source, "a") == SCHEMA


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: join().spec(), "no stream|nothing is selected"),
        (lambda: join().stream("a", SCHEMA, window="1 s").spec(), "a join needs at least two streams"),
        (lambda: two().stream("A", SCHEMA, window="1 s"), "two streams are named 'A'"),
        (lambda: two().stream("c", [1], window="1 s"), "the source of stream 'c' is list"),
        (lambda: two().stream("c", SCHEMA, window="-1 s"), "cannot be negative"),
        (lambda: two().stream("c", SCHEMA, window=timedelta(seconds=-1)), "cannot be negative"),
        (lambda: two().stream("c", SCHEMA, window=5), "5 is not a span of time"),
        (
            lambda: two().stream("c", SCHEMA, window="1 s", lateness=timedelta(-1)),
            "the lateness of stream 'c' cannot be",
        ),
        (lambda: two().stream("c", SCHEMA, window="1 min", freshness="1 s"), "below its window"),
        (lambda: two().stream("c", SCHEMA, "when", window="1 s"), "no column 'when' for its event time"),
        (lambda: two().where("a.x = c.x").spec(), "there is no stream 'c'"),
        (lambda: two().where("a.x =").spec(), "breaks off after '='"),
        (lambda: two().where("").spec(), "the expression is empty"),
        (lambda: two().where("a.x, b.x").spec(), "cannot read the query as SQL at ','"),
        (lambda: two().where("a.x = 1", on="a.x"), "names its columns itself"),
        (lambda: two().where(max), "needs the columns"),
        (lambda: two().where(5, on="a.x"), "int, which cannot be called"),
        (lambda: two().where(lambda x: x, on=("a.x", "b.x")).spec(), "does not take 2 arguments"),
        (lambda: two().where(lambda x: x, on=("a.y",)).spec(), "has no column 'y'"),
        (lambda: two().where(lambda x: x, on=("a.x",), mode="fast"), "'fast' is not a way to call"),
        (lambda: two().select("a.x b.x c").spec(), "cannot read the query as SQL"),
        (lambda: two().function("abs", abs), "there already is a function 'abs'"),
        (lambda: two().function("near", max).function("NEAR", max), "there already is a function 'NEAR'"),
        (lambda: two().function("near by", max), "'near by' cannot be the name"),
        (lambda: two().function("near", max, returns="DATE"), "function 'near' cannot return DATE"),
        (lambda: two().function("near", max, returns="ROW"), "there is no type 'ROW'"),
        (lambda: two().function("near", max, returns=list), "function 'near' cannot return list"),
    ],
)
def test_wrong_joins_are_refused_in_one_line(make: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
