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
from pathlib import Path
from typing import Any, Literal, Self

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from windrow.control.controller import ControlSettings
from windrow.errors import UsageError
from windrow.plan.calibration import first_guess
from windrow.plan.drivers import policy_named
from windrow.plan.order import plan_query, with_alternatives
from windrow.query.builder import Join
from windrow.query.clauses import span_us
from windrow.query.expression import Column
from windrow.query.spec import QuerySpec
from windrow.run.backlog import RepairSettings, check_repairable
from windrow.run.keeper import with_memory
from windrow.run.options import SHEDS, settings_of
from windrow.run.program import Keep, kept_columns
from windrow.run.spark.aside import Aside
from windrow.run.spark.handle import RunningJoin
from windrow.run.spark.lanes import Lanes, in_lanes
from windrow.run.spark.launch import apart_s, launch
from windrow.run.spark.publish import inside
from windrow.run.spark.results import Output
from windrow.run.spark.setting import MOST_ROWS, Setting
from windrow.run.spark.sinks import Format, Function, as_sink
from windrow.run.spark.sources import register
from windrow.run.spark.sources.follow import STATE
from windrow.store.storage import Storage, open_storage

CLASSIC = "use a classic SparkSession"


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

    def start(  # noqa: PLR0913 - all but the sink have names, most have defaults
        self,
        sink: str | Path | Storage | Format | Function | None = None,
        *,
        checkpoint: str | Path,
        state: str | Path | Storage | None = None,
        trigger: str = "1 second",
        name: str | None = None,
        slices: int | None = None,
        slice_by: str = "time",
        keep: Keep = "all",
        policy: str = "timestamp",
        favour: Literal["early", "total"] | None = None,
        max_ahead: str | None = "1 day",
        set_aside: str | Path | None = None,
        most_rows: int = MOST_ROWS,
        throttle: float | Literal["auto"] | None = None,
        shed: str = "drop",
        repair: RepairSettings | None = None,
        control: ControlSettings | None = None,
        memory: str | int | None = None,
        events: str | Path | None = None,
        stale: str = "suppress",
    ) -> RunningJoin:
        """Start the join. `state` is where windows and commits are, by default below the checkpoint; `trigger` a span
        or "available now"; `name` what Spark shows; `slices` the number of parts probed side by side (by default
        Spark's parallelism), `slice_by` what they are cut by (time, hash, range; auto: what ships least); `keep`
        whether stored rows hold all columns, so that the SELECT list may change later, or those it uses; `policy` who
        drives (`windrow.plan.drivers`), "auto" predicts that, and goes for what it is to `favour`; `max_ahead` how far
        ahead of the clock a row may be (None: any); `set_aside` a folder for rows that were late or bad; `most_rows`
        how many rows are joined at a time: a larger batch runs in parts; `throttle` the share of the full work to do,
        "auto" for as much as there is time for, None for all; `shed` what becomes of the rest ("drop": it is forgotten;
        "repair": it comes later, and results have a last column `repaired`); `repair` in which order and when
        (`windrow.run.backlog`); `control` how much is left out, in detail; `memory` how much the windows may take after
        each batch, segments and their indexes, such as "500MB": beyond it the rows that promise least are let go, and
        counted; `events` a folder for what each batch did (`windrow dashboard` shows it), by default the state's.
        """
        spec = closed_in_time(self.spec())
        frames = {name: source.frame for name, source in self.sources.items() if isinstance(source, StreamingFrame)}
        first = next(iter(frames.values()), None)
        if first is None:
            raise UsageError("this join has no streaming DataFrames", hint="run it with windrow.local(query)")
        if slices is not None and slices < 1:
            raise UsageError(f"slices is {slices}", place="start", hint="give 1 or more")
        if most_rows < 1:
            raise UsageError(f"most_rows is {most_rows}", place="start", hint="give 1 or more")
        policy = policy_named(policy, favour)
        settings = settings_of(throttle, control, spec, policy, shed, SHEDS)
        spark = first.sparkSession
        below = fixed(checkpoint)
        storage = state_storage(state, below)
        into = as_sink(sink, below, storage)
        frame, lanes = united(spark, spec, frames, keep)
        slices = slices or spark.sparkContext.defaultParallelism
        plan = plan_query(spec, policy=policy, slices=slices, slice_by=slice_by)
        repairs = shed == "repair"
        check_repairable(spec, plan, settings, repairs, repair)
        setting = Setting(
            spec=spec,
            plan=with_alternatives(spec, plan) if repairs or settings is not None else plan,
            arrow_types=_arrow_types(self.sources, spec),
            storage=storage,
            feed=lanes,
            output=Output(into.staging, into.form),
            sink=into.deliver,
            aside=None if set_aside is None else Aside(open_storage(str(set_aside))),
            events=None if events is None else open_storage(str(events)),
            keep=keep,
            control=with_memory(settings, memory, spec),
            costs=first_guess(settings is not None),
            max_ahead_us=None if max_ahead is None else span_us(max_ahead),
            most_rows=most_rows,
            trigger_s=apart_s(trigger),
            repair=(repair or RepairSettings()) if repairs else None,
            stale=stale,
        )
        return launch(frame, setting, into, checkpoint=below, trigger=trigger, name=name)


def closed_in_time(spec: QuerySpec) -> QuerySpec:
    """A specification whose aggregates, if any, are of spans that end: streams do not."""
    if spec.summary is not None and spec.summary.every_us is None:
        raise UsageError("these aggregates are of the whole run, which has no end", hint="add a span: EVERY 1 MINUTE")
    return spec


def united(
    spark: SparkSession, spec: QuerySpec, frames: Mapping[str, DataFrame], keep: Keep = "all"
) -> tuple[DataFrame, Lanes]:
    """All streams as one, and the clock, which makes batches come while nothing else does."""
    register(spark)
    clock = spark.readStream.format("windrow-clock").load()
    used = [
        (stream.name, frames[stream.source].select(*(f"`{c.name}`" for c in kept_columns(spec, stream.name, keep))))
        for stream in spec.streams
    ]
    return in_lanes(used, clock)


def fixed(checkpoint: str | Path) -> str:
    """The address of a checkpoint from the root: this program and Spark's may be in different folders.

    >>> fixed("s3://bucket/checkpoint"), fixed("/data/checkpoint")
    ('s3://bucket/checkpoint', '/data/checkpoint')
    """
    if not str(checkpoint):
        raise UsageError("the checkpoint is an empty text", place="start", hint="give a folder or a URI")
    return str(checkpoint) if ":/" in str(checkpoint) else str(Path(checkpoint).absolute())


def state_storage(state: str | Path | Storage | None, checkpoint: str) -> Storage:
    """Where windows and commits are: at an address of their own, or below the checkpoint."""
    if state is None:
        return inside(open_storage(checkpoint), STATE)
    return open_storage(str(state) if isinstance(state, Path) else state)


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
