"""Where a join begins: the builder and SQL, for in-process sources and for Spark's streaming DataFrames alike.

A source that is a Spark DataFrame gives a join that Spark runs (`start`); anything else with an Arrow schema gives one
for `windrow.local`. Spark is imported only when it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from windrow.errors import UsageError
from windrow.query import builder
from windrow.query.builder import Join
from windrow.query.spec import UserFunction


def join(spark: Any = None) -> Join:
    """A join without streams yet; with a Spark session, one over streaming DataFrames."""
    if spark is None:
        return builder.join()
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise UsageError("a Spark Connect session cannot run a join", hint="use a classic SparkSession")
    from windrow.run.spark.join import SparkJoin

    return SparkJoin()


def sql(
    text: str,
    streams: Mapping[str, Any],
    *,
    time: Mapping[str, str] | None = None,
    functions: Iterable[UserFunction] = (),
) -> Join:
    """The join a query in SQL asks for, over `streams`: what the names in its FROM stand for.

    They are streaming DataFrames of Spark, or anything with an Arrow schema. `time` names the event-time column of a
    stream where it is not `ts` or its only timestamp.
    """
    if not any(type(source).__module__.startswith("pyspark.") for source in streams.values()):
        return builder.sql(text, streams, time=time, functions=functions)
    from windrow.run.spark.join import SparkJoin, as_source

    sources = {name: as_source(source, name) for name, source in streams.items()}
    asked = builder.sql(text, sources, time=time, functions=functions)
    return SparkJoin(asked.sources, asked.streams, asked.conditions, asked.selected, asked.functions, asked.summary)
