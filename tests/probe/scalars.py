"""Scalar values at the edges of every kind, and DuckDB's word on what an expression of them is.

`Columns` is the plainest frame there is: a table whose columns are named `a.<column>` in expressions. `computed` runs
an expression over it in Windrow, `judged` in DuckDB, where overflow and NaN are turned into NULL
(`tests.oracle.duck`).
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

from tests.oracle.duck import MACROS, SETTINGS, cleaned, plain, type_names
from windrow.probe.evaluate import Evaluator
from windrow.query.expression import Column, Expression
from windrow.query.predicate import with_token_sets
from windrow.query.spec import UserFunction
from windrow.query.sql import parse
from windrow.store.operand import Operand, from_arrow, to_arrow

INF, NAN = float("inf"), float("nan")
FLOATS = (None, 0.0, -0.0, 0.1, 0.3, 0.5, -1.5, 2.5, 3.5, -7.0, 3.0, 1e9, 16777217.0, 3e38, INF, -INF, NAN)
MOMENTS = (None, 0, -1, 1_583_020_799_999_999, 1_583_020_800_000_000, -62_135_596_800_000_000, 951_782_400_000_000)

EDGES: dict[str, tuple[pa.DataType, tuple[Any, ...]]] = {
    "flag": (pa.bool_(), (None, True, False)),
    "t8": (pa.int8(), (None, -128, -7, -1, 0, 1, 3, 127)),
    "s16": (pa.int16(), (None, -(2**15), -7, 0, 2, 300, 2**15 - 1)),
    "i32": (pa.int32(), (None, -(2**31), -7, -1, 0, 1, 3, 2**31 - 1)),
    "i64": (pa.int64(), (None, -(2**63), 1 - 2**63, -7, -1, 0, 1, 3, 2**31, 2**53 + 1, 2**63 - 1)),
    "n64": (pa.int64(), (None, -(2**40) - 1, -7, 0, 1, 3, 2**31)),
    "u8": (pa.uint8(), (None, 0, 1, 3, 255)),
    "u16": (pa.uint16(), (None, 0, 2, 2**16 - 1)),
    "u32": (pa.uint32(), (None, 0, 1, 3, 2**32 - 1)),
    "f32": (pa.float32(), FLOATS),
    "f64": (pa.float64(), (*FLOATS, 1e300, 2.0**53 + 2, 0.1 + 0.2)),
    "d52": (
        pa.decimal128(5, 2),
        (None, *map(Decimal, ("0.00", "0.01", "0.30", "-0.50", "1.50", "-2.25", "999.99", "-999.99"))),
    ),
    "d183": (
        pa.decimal128(18, 3),
        (None, *map(Decimal, ("0.000", "0.300", "-1.005", "7.125", "99999999999.999", "-999999999.999"))),
    ),
    "d20": (pa.decimal128(20, 1), (None, *map(Decimal, ("0.0", "0.3", "-7.5", "30000000000.5")))),
    "day": (
        pa.date32(),
        (None, *(dt.date(*part) for part in ((1, 1, 1), (1969, 12, 31), (2020, 2, 29), (2021, 3, 1)))),
    ),
    "at": (pa.timestamp("us"), MOMENTS),
    "atz": (pa.timestamp("us", "UTC"), MOMENTS),
    "span": (pa.duration("us"), (None, 0, -1, 86_400_000_000, 3_600_000_001)),
    "s": (pa.string(), (None, "", "a", "A", "ab", "b", "é", "É", "a b", "zz%", "x_y")),
}


class Columns:
    """A table as a frame."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table.combine_chunks()

    def __len__(self) -> int:
        return len(self.table)

    def find(self, expression: Expression) -> Operand | None:
        if not isinstance(expression, Column):
            return None
        chunked = self.table.column(expression.name)
        chunk = chunked.chunk(0) if chunked.num_chunks else pa.array([], chunked.type)
        return from_arrow(chunk, expression.type)


def combinations(columns: Mapping[str, str]) -> pa.Table:
    """Every combination of the edge values of some kinds; `columns` says which kind each column has."""
    kinds = [EDGES[kind] for kind in columns.values()]
    rows = list(itertools.product(*(values for _, values in kinds)))
    arrays = [pa.array([row[k] for row in rows], kind) for k, (kind, _) in enumerate(kinds)]
    return pa.table(arrays, names=list(columns)).append_column("ts", pa.array([0] * len(rows), pa.timestamp("us")))


def bound(text: str, table: pa.Table, functions: Sequence[UserFunction] = ()) -> Expression:
    """The expression, typed."""
    query = f"SELECT {text} AS out FROM t AS a, t AS other WINDOW 1 SECOND"
    return parse(query, {"t": table.schema}, time={"t": "ts"}, functions=functions).outputs[0].expression


def computed(text: str, table: pa.Table, evaluator: Evaluator | None = None) -> pa.Array:
    """Windrow's values."""
    expression = with_token_sets(bound(text, table))
    return to_arrow((evaluator or Evaluator()).evaluate(expression, Columns(table)), expression.type)


def judged(texts: Sequence[str], table: pa.Table) -> list[pa.Array]:
    """DuckDB's values of each expression: NULL where it says NaN or fails."""
    with duckdb.connect(config={"threads": 1}) as connection:
        for statement in (*SETTINGS, *(f"CREATE MACRO {macro}" for macro in MACROS)):
            connection.execute(statement)
        connection.register("recorded", cleaned(table, "ts"))
        connection.execute("CREATE TABLE a AS SELECT * FROM recorded")
        return [_judged(text, connection) for text in texts]


def _judged(text: str, connection: duckdb.DuckDBPyConnection) -> pa.Array:
    kind = str(connection.sql(f"SELECT {text} AS out FROM a LIMIT 0").types[0])
    guarded = f"number_or_null(TRY({text}))" if kind in ("FLOAT", "DOUBLE") else f"TRY({text})"
    return connection.sql(f"SELECT {guarded} AS out FROM a").to_arrow_table().column(0)


def disagreements(texts: Sequence[str], columns: Mapping[str, str], evaluator: Evaluator | None = None) -> list[str]:
    """Where Windrow's values or types are not DuckDB's, over all combinations of edge values."""
    table = combinations(columns)
    found = []
    for text, expected in zip(texts, judged(texts, table), strict=True):
        ours = computed(text, table, evaluator)
        found += [f"{text} of {columns}: {each}" for each in alike(ours, expected, table)]
        kinds = [type_names(pa.schema([("out", each.type)])) for each in (ours, expected)]
        if kinds[0] != kinds[1]:
            found.append(f"{text} of {columns}: type {kinds[0]}, not {kinds[1]}")
    return found


def alike(found: pa.Array, expected: pa.Array, rows: pa.Table) -> list[str]:
    """The rows on which two results differ; a decimal that 64 bits do not hold is an overflow, hence NULL."""
    pairs = zip(_words(found), _words(expected), strict=True)
    return [
        f"{row}: {ours!r}, not {theirs!r}"
        for row, (ours, theirs) in zip(rows.drop_columns(["ts"]).to_pylist(), pairs, strict=True)
        if ours != (None if isinstance(theirs, Decimal) and not _fits(theirs) else theirs)
    ]


def _fits(value: Decimal) -> bool:
    exponent = value.as_tuple().exponent
    return isinstance(exponent, int) and -(2**63) <= int(value.scaleb(-exponent)) < 2**63


def _words(column: pa.Array) -> list[Any]:
    """Values to compare; dates as days, because Python's end at the year 9999."""
    return plain(column.cast(pa.int32()) if pa.types.is_date(column.type) else column)
