"""One stream with a column of every kind, in Windrow and in DuckDB, and short ways to bind text over it."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from windrow.query.bind import Binder
from windrow.query.expression import Expression
from windrow.query.grammar import parse_condition
from windrow.query.scope import Scope, declare_stream
from windrow.query.spec import UserFunction, Window

SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us")),
        ("id", pa.int64()),
        ("i8", pa.int8()),
        ("i16", pa.int16()),
        ("i32", pa.int32()),
        ("u8", pa.uint8()),
        ("u16", pa.uint16()),
        ("u32", pa.uint32()),
        ("f32", pa.float32()),
        ("f64", pa.float64()),
        ("d52", pa.decimal128(5, 2)),
        ("d184", pa.decimal128(18, 4)),
        ("d30", pa.decimal128(30, 4)),
        ("flag", pa.bool_()),
        ("name", pa.string()),
        ("day", pa.date32()),
        ("zoned", pa.timestamp("us", tz="UTC")),
        ("span", pa.duration("us")),
        ("v3", pa.list_(pa.float32(), 3)),
        ("w3", pa.list_(pa.float64(), 3)),
        ("v2", pa.list_(pa.float32(), 2)),
        ("big", pa.uint64()),
        ("none", pa.null()),
    ]
)
"""A column of every kind a query knows, and two it does not compute with."""

DUCKDB_TYPES = {
    "i8": "TINYINT",
    "i16": "SMALLINT",
    "i32": "INTEGER",
    "id": "BIGINT",
    "u8": "UTINYINT",
    "u16": "USMALLINT",
    "u32": "UINTEGER",
    "f32": "FLOAT",
    "f64": "DOUBLE",
    "d52": "DECIMAL(5,2)",
    "d184": "DECIMAL(18,4)",
    "d30": "DECIMAL(30,4)",
    "flag": "BOOLEAN",
    "name": "VARCHAR",
    "day": "DATE",
    "ts": "TIMESTAMP",
    "zoned": "TIMESTAMP WITH TIME ZONE",
    "span": "INTERVAL",
}
"""The columns DuckDB has too."""

NUMBERS = ("i8", "i16", "i32", "id", "u8", "u16", "u32", "f32", "f64", "d52", "d184", "d30")


def binder_over(*names: str, functions: tuple[UserFunction, ...] = ()) -> Binder:
    """A binder over streams of these names that all have the columns of SCHEMA."""
    streams = tuple(declare_stream(name, name, SCHEMA, window=Window(span_us=1)) for name in names)
    return Binder(Scope(streams), functions)


def bound(text: str, *, functions: tuple[UserFunction, ...] = ()) -> Expression:
    """An expression over stream `a`."""
    return binder_over("a", functions=functions).bind(parse_condition(text))


class Duck:
    """DuckDB with an empty row of the same columns in table `a`."""

    def __init__(self) -> None:
        self.connection = duckdb.connect()
        self.connection.execute("SET TimeZone = 'UTC'")
        columns = ", ".join(f"{name} {type_}" for name, type_ in DUCKDB_TYPES.items())
        self.connection.execute(f"CREATE TABLE a ({columns})")
        self.connection.execute(f"INSERT INTO a VALUES ({', '.join(['NULL'] * len(DUCKDB_TYPES))})")

    def type_of(self, text: str) -> str | None:
        """The type of an expression, None where DuckDB has none."""
        try:
            return str(self.value(f"typeof({text})", table="a"))
        except duckdb.Error:
            return None

    def value(self, text: str, table: str = "") -> object:
        """The value of an expression."""
        row = self.connection.execute(f"SELECT {text}" + (f" FROM {table}" if table else "")).fetchone()
        assert row is not None
        return row[0]
