"""`windrow-clock`: batches keep coming while no other source has rows.

    trigger      |      |      |      |      |
    wall time   10.02  10.51  11.03  11.50  12.01
    every_s=0   10.02  10.51  11.03  11.50  12.01      a new offset, hence a batch, at each trigger
    every_s=1   10      -     11      -     12         a new offset when a new second has begun

The offset is the time. There are no rows: the time of a batch is part of its plan, which is written before it runs.
The clock never goes back, even if the machine's does. A query that is to stop when its input is used up
(availableNow) gets one tick.

    option     default
    every_s    0          the length of a tick in seconds; 0: every trigger is one
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import LongType, StructField, StructType

from windrow.run.spark.sources.options import SourceOptions
from windrow.run.spark.sources.pace import Offset, wall_us
from windrow.streams.arrivals import SECOND_US

CLOCK_SCHEMA = StructType([StructField("now_us", LongType())])


class ClockSource(DataSource):
    """A stream without rows whose offset is the time, in microseconds since 1970."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        every_s = SourceOptions(self.name(), options, known=("every_s",)).number("every_s", 0.0)
        self._every_us = max(1, round(every_s * SECOND_US))

    @classmethod
    def name(cls) -> str:
        return "windrow-clock"

    def schema(self) -> StructType:
        return CLOCK_SCHEMA

    def streamReader(self, schema: StructType) -> ClockReader:  # noqa: ARG002, N802 - Spark's signature
        return ClockReader(self._every_us)


class ClockReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are times, with nothing between them.

    >>> reader = ClockReader(every_us=1_000_000, wall=lambda: 10_020_000)
    >>> reader.latestOffset({"now_us": 9_000_000}, ReadLimit())
    {'now_us': 10000000}
    >>> reader.partitions({"now_us": 0}, {"now_us": 10_000_000})
    []
    """

    def __init__(self, every_us: int, wall: Callable[[], int] = wall_us) -> None:
        self._every_us = every_us
        self._wall = wall
        self._last_us: int | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        return {"now_us": 0}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._last_us = self._tick_us()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: ARG002, N802 - Spark's signature
        tick_us = self._tick_us() if self._last_us is None else self._last_us
        return {"now_us": max(tick_us, start["now_us"])}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:  # noqa: ARG002 - Spark's signature
        return []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - Spark's signature
        return iter(())

    def _tick_us(self) -> int:
        return self._wall() // self._every_us * self._every_us
