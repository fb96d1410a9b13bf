"""Lanes: streams of different schemas as one DataFrame, without a task more than the streams have.

    stream   timestamp 1   bigint 1   double 1   string 1
    0        a.ts          a.id       a.x        -               every stream puts its columns
    1        b.at          b.key      b.x        b.name          into lanes of their types
    2        c.time        -          c.x        -

The union is Spark's own, so it can be counted and kept before any Python runs. Tasks get the rows of a stream back
as a table of its own columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as spark_functions
from pyspark.sql.types import DataType, DateType, NumericType, TimestampNTZType, TimestampType

STREAM = "stream"
CLOCK = -1


class Counted(NamedTuple):
    """The rows of each stream in a batch; where the input says so, its time, and whether it is the last."""

    rows: dict[str, int]
    now_us: int | None = None
    is_last: bool = False


class Streams(Protocol):
    """How the streams of a batch are told apart in its one DataFrame."""

    @property
    def names(self) -> tuple[str, ...]:
        """The streams, by number."""

    def tables(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, pa.Table]]:
        """The rows of a task's input, stream by stream."""

    def counted(self, frame: DataFrame) -> Counted:
        """The rows of each stream in a batch."""

    def cuts(self, frame: DataFrame, times: Mapping[str, str], parts: int) -> tuple[int, ...]:
        """Event times, of the columns `times` names, that cut a batch in parts of about the same size."""


@dataclass(frozen=True)
class Lanes:
    """Which lane holds each column of each stream; streams are known by their place in the query."""

    names: tuple[str, ...]
    columns: tuple[Mapping[str, str], ...]

    def tables(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, pa.Table]]:
        """The rows of a task's input, stream by stream."""
        for batch in batches:
            numbers = batch.column(0)
            for number in pc.unique(numbers).to_pylist():
                if number == CLOCK:
                    continue
                chosen = pc.equal(numbers, number)
                part = batch if pc.all(chosen).as_py() else batch.filter(chosen)
                held = {column: part.column(lane) for column, lane in self.columns[number].items()}
                yield self.names[number], pa.table(held)

    def counted(self, frame: DataFrame) -> Counted:
        """The rows of each stream in a batch."""
        counts = frame.groupBy(STREAM).count().collect()
        return Counted({self.names[number]: rows for number, rows in counts if number != CLOCK})

    def cuts(self, frame: DataFrame, times: Mapping[str, str], parts: int) -> tuple[int, ...]:
        """Event times that cut a batch in parts of about the same size."""
        shares = ", ".join(str(number / parts) for number in range(1, parts))
        found = event_times(frame, self, times).selectExpr(f"percentile_approx(at, array({shares}))").first()
        return tuple(sorted(set(found[0] or ()))) if found else ()


def in_lanes(frames: Sequence[tuple[str, DataFrame]], clock: DataFrame | None = None) -> tuple[DataFrame, Lanes]:
    """All frames as one, and how to tell them apart; `clock` has no rows, it only makes batches come."""
    kinds: dict[str, DataType] = {}
    columns: list[dict[str, str]] = []
    for _, frame in frames:
        taken: dict[str, int] = {}
        held: dict[str, str] = {}
        for field in frame.schema.fields:
            kind = field.dataType.simpleString()
            taken[kind] = taken.get(kind, 0) + 1
            lane = f"{kind} {taken[kind]}"
            kinds.setdefault(lane, field.dataType)
            held[field.name] = lane
        columns.append(held)
    selected = [
        _spread(frame, number, {lane: column for column, lane in held.items()}, kinds)
        for number, ((_, frame), held) in enumerate(zip(frames, columns, strict=True))
    ]
    if clock is not None:
        selected.append(_spread(clock, CLOCK, {}, kinds))
    names = tuple(name for name, _ in frames)
    return reduce(DataFrame.union, selected), Lanes(names, tuple(columns))


def _spread(frame: DataFrame, number: int, held: Mapping[str, str], kinds: Mapping[str, DataType]) -> DataFrame:
    nothing = spark_functions.lit(None)
    lanes = [
        (frame[f"`{held[lane]}`"] if lane in held else nothing.cast(kind)).alias(lane) for lane, kind in kinds.items()
    ]
    return frame.select(spark_functions.lit(number).alias(STREAM), *lanes)


def event_times(frame: DataFrame, lanes: Lanes, times: Mapping[str, str]) -> DataFrame:
    """The event times of all rows, in microseconds, as column `at`."""
    at = spark_functions.lit(None).cast("bigint")
    for number, name in enumerate(lanes.names):
        lane = lanes.columns[number][times[name]]
        at = spark_functions.when(frame[STREAM] == number, _micros(lane, frame.schema[lane].dataType)).otherwise(at)
    return frame.select(at.alias("at"))


def _micros(lane: str, kind: DataType) -> Column:
    column = f"`{lane}`"
    if isinstance(kind, TimestampType):
        return spark_functions.expr(f"unix_micros({column})")
    if isinstance(kind, TimestampNTZType):
        return spark_functions.expr(f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ '1970-01-01', {column})")
    if isinstance(kind, DateType):
        return spark_functions.expr(f"unix_date({column}) * 86400000000")
    if isinstance(kind, NumericType):
        return spark_functions.expr(f"CAST({column} AS BIGINT)")
    return spark_functions.lit(None).cast("bigint")
