"""Joins over Spark's streaming DataFrames: the builder of the in-process join, plus `start`.

    query = (windrow.join(spark)
             .stream("a", frame_a, time="ts", window="20 seconds", lateness="2 seconds")
             .stream("b", frame_b, time="ts", window="5 minutes")
             .where("abs(a.x - b.x) <= 1")
             .select("a.id as a_id", "b.id as b_id")
             .start("results", checkpoint="checkpoint", trigger="1 second"))

A sink is a path (Parquet, one folder a batch), a `windrow.Format` of Spark, a function of a DataFrame and the batch's
number, or nothing: then results are kept in the checkpoint for `query.results()`. A batch that is run again after a
failure has the same number and the same rows, so a path holds each result once, and a function does too if it writes by
number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as columns_of_spark
from pyspark.sql.pandas.types import to_arrow_schema

from windrow.errors import QueryError, UsageError
from windrow.plan.order import plan_query
from windrow.query.builder import Join
from windrow.query.clauses import span_us
from windrow.query.expression import Column
from windrow.query.spec import QuerySpec
from windrow.run.spark import worker
from windrow.run.spark.failures import brief
from windrow.run.spark.handle import RunningJoin
from windrow.run.spark.publish import FolderSink
from windrow.run.spark.query import CLOCK, BatchRunner, Setting
from windrow.run.spark.sinks import Format, FormatSink, Function, as_sink
from windrow.run.spark.sources import register
from windrow.run.spark.sources.follow import STATE, follow
from windrow.run.spark.turnstile import Turnstile
from windrow.run.spark.whereabouts import begin_span, last_commit, read_spans, span_of
from windrow.store.storage import Storage, open_storage, shown

AVAILABLE_NOW = "available now"
CLASSIC = "use a classic SparkSession"
_STARTED = "one join runs from a checkpoint at a time, and names differ"
_TRIGGERS = 'give a span such as "1 second", or "available now"'


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
        sink: str | Path | Storage | Format | Function | None = None,
        *,
        checkpoint: str | Path,
        state: str | Path | Storage | None = None,
        trigger: str = "1 second",
        name: str | None = None,
        slices: int | None = None,
        policy: str = "timestamp",
        max_ahead: str | None = "1 day",
    ) -> RunningJoin:
        """Start the join. `state` is where windows and commits are, by default below the checkpoint; `trigger` a span
        or "available now"; `name` what Spark shows; `slices` the number of parts probed side by side (by default
        Spark's parallelism); `max_ahead` how far ahead of the clock a row may be (None: any).
        """
        spec = self.spec()
        frames = {name: source.frame for name, source in self.sources.items() if isinstance(source, StreamingFrame)}
        first = next(iter(frames.values()), None)
        if first is None:
            raise UsageError("this join has no streaming DataFrames", hint="run it with windrow.local(query)")
        spark = first.sparkSession
        timing = trigger_of(trigger)
        if slices is not None and slices < 1:
            raise UsageError(f"slices is {slices}", place="start", hint="give 1 or more")
        storage = open_storage(str(state) if isinstance(state, Path) else state or f"{checkpoint}/{STATE}")
        setting = Setting(
            spec=spec,
            plan=plan_query(spec, policy=policy),
            arrow_types=_arrow_types(self.sources, spec),
            storage=storage,
            sink=as_sink(sink, str(checkpoint), storage),
            slices=slices or spark.sparkContext.defaultParallelism,
            max_ahead_us=None if max_ahead is None else span_us(max_ahead),
        )
        runner = BatchRunner(setting)
        turnstile = _turnstile(runner, spark)
        writer = packed(spark, spec, frames).writeStream.foreachBatch(turnstile)
        writer = writer.option("checkpointLocation", f"{checkpoint}/spark")
        if name is not None:
            writer = writer.queryName(name)
        try:
            spark_query = writer.trigger(**timing).start()
        except Exception as error:
            raise UsageError(f"Spark does not start the join: {brief(error).message}", hint=_STARTED) from error
        return RunningJoin(spark_query, runner, turnstile, lambda: follow(spark, storage.address))


def trigger_of(text: str) -> dict[str, Any]:
    """A trigger as Spark takes it.

    >>> trigger_of("1.5 seconds"), trigger_of("available now")
    ({'processingTime': '1500 milliseconds'}, {'availableNow': True})
    >>> trigger_of("continuous 1 second")
    Traceback (most recent call last):
        ...
    windrow.errors.UsageError: a join cannot run with the trigger 'continuous 1 second': it runs in micro-batches.
    Next: give a span such as "1 second", or "available now"
    """
    asked = str(text).lower()
    if text == AVAILABLE_NOW:
        return {"availableNow": True}
    if any(word in asked for word in ("continuous", "realtime", "real-time", "real time")):
        raise UsageError(f"a join cannot run with the trigger '{text}': it runs in micro-batches", hint=_TRIGGERS)
    if asked == "once":
        raise UsageError(
            "a join cannot run with the trigger 'once'", hint='give "available now": all there is, then end'
        )
    try:
        wait_us = span_us(text)
    except (QueryError, TypeError):
        raise UsageError(f"the trigger is {text!r}", hint=_TRIGGERS) from None
    if wait_us % 1000:
        raise UsageError(f"the trigger is {text!r}", hint="give whole milliseconds")
    return {"processingTime": f"{wait_us // 1000} milliseconds"}


def _turnstile(runner: BatchRunner, spark: SparkSession) -> Turnstile:
    """What Spark calls for each batch; refuses a sink that cannot be, and notes where the results will be."""
    sink, state, schema = runner.setting.sink, runner.setting.storage, runner.program.schema
    spans = read_spans(state)
    if isinstance(sink, FormatSink):
        sink.check(spark)
    if isinstance(sink, FolderSink) and not sink.kept:
        recorded = span_of(sink, 0, schema).address
        if all(span.address != recorded for span in spans) and not sink.is_empty():
            hint = "give a new folder, or the checkpoint of the join that wrote there"
            raise UsageError("the sink holds results of another join", place=shown(sink.folder.address), hint=hint)
    if not spans:
        # Noted now, so that results() works at once; later changes when this start turns out to be the only one.
        begin_span(state, span_of(sink, 0, schema))
    return Turnstile(runner.run, first=lambda: begin_span(state, span_of(sink, last_commit(state) + 1, schema)))


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
    if type(source).__module__.startswith("pyspark.sql.connect"):
        raise UsageError(f"stream '{name}' comes from Spark Connect, which cannot run a join", hint=CLASSIC)
    if not isinstance(source, DataFrame) or not source.isStreaming:
        kind = "a DataFrame that does not stream" if isinstance(source, DataFrame) else type(source).__name__
        raise UsageError(f"stream '{name}' is {kind}", hint="read it with spark.readStream")
    return StreamingFrame(source)


def _arrow_types(sources: Mapping[str, Any], spec: QuerySpec) -> dict[Column, pa.DataType]:
    found = {}
    for stream in spec.streams:
        schema = sources[stream.source].schema
        found.update({column: schema.field(column.name).type for column in stream.columns})
    return found
