"""Joins over Spark's streaming DataFrames: the builder of the in-process join, plus `start`.

    query = (windrow.join(spark)
             .stream("a", frame_a, time="ts", window="20 seconds", lateness="2 seconds")
             .stream("b", frame_b, time="ts", window="5 minutes")
             .where("abs(a.x - b.x) <= 1")
             .select("a.id as a_id", "b.id as b_id")
             .start("results", checkpoint="checkpoint", trigger="1 second"))

A sink is a path (Parquet, one folder a batch), or a function of a DataFrame and the batch's number. A batch that is run
again after a failure has the same number and the same rows, so a path holds each result once, and a function does too
if it writes by number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as columns_of_spark
from pyspark.sql.pandas.types import to_arrow_schema

from windrow.errors import UsageError
from windrow.plan.order import plan_query
from windrow.query.builder import Join
from windrow.query.clauses import span_us
from windrow.query.expression import Column
from windrow.query.spec import QuerySpec
from windrow.run.spark import worker
from windrow.run.spark.handle import RunningJoin
from windrow.run.spark.query import CLOCK, BatchRunner, Setting, Sink
from windrow.run.spark.sources import register
from windrow.store.storage import open_storage

AVAILABLE_NOW = "available now"


@dataclass(frozen=True)
class StreamingFrame:
    """A streaming DataFrame as a source of a join."""

    frame: DataFrame

    @property
    def schema(self) -> pa.Schema:
        """The schema its rows have as Arrow data."""
        return to_arrow_schema(self.frame.schema, timezone="UTC")


@dataclass(frozen=True)
class SparkJoin(Join):
    """A join over streaming DataFrames, being put together."""

    def stream(self, name: str, source: Any, time: str | None = None, **options: Any) -> Self:
        """The join with one more stream; `source` is a streaming DataFrame, the rest as in process."""
        return super().stream(name, as_source(source, name), time, **options)

    def start(
        self,
        sink: str | Path | Callable[[DataFrame, int], None],
        *,
        checkpoint: str | Path,
        trigger: str = "1 second",
        slices: int | None = None,
        policy: str = "timestamp",
        max_ahead: str | None = "1 day",
    ) -> RunningJoin:
        """Start the join. `trigger` is a span or "available now"; `slices` the number of parts probed side by side (by
        default Spark's parallelism); `max_ahead` how far ahead of the clock a row may be (None: any).
        """
        spec = self.spec()
        frames = {name: source.frame for name, source in self.sources.items() if isinstance(source, StreamingFrame)}
        first = next(iter(frames.values()), None)
        if first is None:
            raise UsageError("this join has no streaming DataFrames", hint="run it with windrow.local(query)")
        spark = first.sparkSession
        setting = Setting(
            spec=spec,
            plan=plan_query(spec, policy=policy),
            arrow_types=_arrow_types(self.sources, spec),
            storage=open_storage(f"{checkpoint}/windrow"),
            sink=_path_sink(str(sink)) if isinstance(sink, (str, Path)) else sink,
            slices=slices or spark.sparkContext.defaultParallelism,
            max_ahead_us=None if max_ahead is None else span_us(max_ahead),
        )
        runner = BatchRunner(setting)
        writer = packed(spark, spec, frames).writeStream.foreachBatch(runner.run)
        writer = writer.option("checkpointLocation", f"{checkpoint}/spark").queryName("windrow")
        timed = (
            writer.trigger(availableNow=True) if trigger == AVAILABLE_NOW else writer.trigger(processingTime=trigger)
        )
        return RunningJoin(timed.start(), runner)


def packed(spark: SparkSession, spec: QuerySpec, frames: Mapping[str, DataFrame]) -> DataFrame:
    """All streams as one: rows of each packed into blobs, and the clock."""
    register(spark)
    now = spark.readStream.format("windrow-clock").load()
    literal = columns_of_spark.lit
    clock = now.select(
        literal(CLOCK).cast("int").alias("stream"), now.now_us.alias("rows"), literal(None).cast("binary").alias("blob")
    )
    blobs = []
    for number, stream in enumerate(spec.streams):
        used = tuple(column.name for column in spec.used_columns(stream.name))
        blobs.append(frames[stream.source].select(*used).mapInArrow(worker.pack(used, number), worker.BLOB_SCHEMA))
    return reduce(DataFrame.union, [*blobs, clock])


def as_source(source: Any, name: str) -> StreamingFrame:
    """The source of a stream on Spark."""
    if isinstance(source, StreamingFrame):
        return source
    if not isinstance(source, DataFrame) or not source.isStreaming:
        kind = "a DataFrame that does not stream" if isinstance(source, DataFrame) else type(source).__name__
        raise UsageError(f"stream '{name}' is {kind}", hint="read it with spark.readStream")
    return StreamingFrame(source)


def _path_sink(path: str) -> Sink:
    def write(frame: DataFrame, batch: int) -> None:
        frame.write.mode("overwrite").parquet(f"{path}/batch={batch}")

    return write


def _arrow_types(sources: Mapping[str, Any], spec: QuerySpec) -> dict[Column, pa.DataType]:
    found = {}
    for stream in spec.streams:
        schema = sources[stream.source].schema
        found.update({column: schema.field(column.name).type for column in stream.columns})
    return found
