"""The peers, one thread each: the same two tables, the same condition, the result in memory as Arrow.

Each is given the form of the condition it is fastest with (a band as BETWEEN: as ABS it would be a nested loop), and
its tables before the clock starts.
"""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import polars as pl
import pyarrow as pa


class DuckTables:
    """DuckDB with tables of its own, in memory, on one thread."""

    def __init__(self) -> None:
        self.connection = duckdb.connect()
        self.connection.execute("SET threads = 1")

    def load(self, **tables: pa.Table) -> None:
        """Replace tables by these."""
        for name, table in tables.items():
            self.connection.register("incoming", table)
            self.connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM incoming")
            self.connection.unregister("incoming")

    def answer(self, query: str) -> pa.Table:
        """The results of a query."""
        return self.connection.sql(query).to_arrow_table()


def polars_band(probing: pa.Table, window: pa.Table, width: float) -> Callable[[], pa.Table]:
    """Polars' `join_where` for a band of `width` to both sides, ready to run."""
    x = pl.col("x")
    left = pl.DataFrame(probing).select(a_id="id", low=x - width, high=x + width)
    right = pl.DataFrame(window).select(b_id="id", b_x="x")

    def run() -> pa.Table:
        joined = left.join_where(right, pl.col("low") <= pl.col("b_x"), pl.col("b_x") <= pl.col("high"))
        return joined.select("a_id", "b_id").to_arrow()

    return run
