"""`windrow-replay`: recorded files (`streams.files`) as a stream, at a multiple of real time.

    file       10:00:00  10:00:01  10:00:04          speed 1 gives the rows when as much wall time has passed
                  |---------|---------|              since the query first began; speed 2 in half the time

Rows come in event-time order (or as they are in the file), cut by position: the offset holds how many have come. The
files are read by the process that plans the batches; rows go to the tasks by value, so no other machine has to see the
files. They have to stay as they are: a checkpoint of other files is refused where their rows differ in number or time.

    option               default       meaning
    path                 (needed)      PATH[?time=COL&unit=UNIT]: a file, a folder or a pattern; also `load(PATH)`
    columns              all           the columns to give, separated by commas
    as_arrived           false         the order of the files, instead of that of event time
    start                the first     event time that lies at the beginning of the replay (an ISO time): earlier rows
                                       come at once; give streams that belong together the same
    speed                1             multiples of real time, or `max`: as fast as batches come
    span_s               no limit      most event time in a batch
    max_rows_per_batch   no limit      most rows in a batch

Types Spark lacks become the next wider one; times finer than microseconds are floored. A timestamp without zone is
TIMESTAMP_NTZ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from windrow.errors import InputError
from windrow.run.spark.sources.options import SourceOptions
from windrow.run.spark.sources.pace import PACE_OPTIONS, Offset, Pace, Position, Shape, position, read_pace, wall_us
from windrow.run.spark.sources.spark_types import in_spark_types, spark_arrow_schema
from windrow.streams import files
from windrow.streams.event_time import event_time_us, time_column
from windrow.streams.replay import Replay

_SOURCE = "windrow-replay"
_OPTIONS = ("path", "columns", "as_arrived", "start", *PACE_OPTIONS)
_PARTITION_BYTES = 8 << 20
_EARLIEST_US = np.iinfo(np.int64).min


class ReplaySource(DataSource):
    """Recorded files as one stream; the options are checked, and the files' columns looked up, when it is made."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        given = SourceOptions(_SOURCE, options, known=_OPTIONS)
        source = files.parse_source(given.needed("path", "give it as load('PATH?time=COL')"))
        names = (name.strip() for name in given.text("columns", "").split(","))
        wanted = tuple(dict.fromkeys(name for name in names if name))
        self._settings = ReplaySettings(
            source,
            wanted or None,
            as_arrived=given.flag("as_arrived", False),
            start_us=given.instant_us("start"),
            pace=read_pace(given),
        )

    @classmethod
    def name(cls) -> str:
        return _SOURCE

    def schema(self) -> StructType:
        return from_arrow_schema(spark_arrow_schema(self._settings.schema(), self._settings.source.path))

    def streamReader(self, schema: StructType) -> ReplayReader:  # noqa: ARG002, N802 - Spark's signature
        return ReplayReader(self._settings)


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """What the options say."""

    source: files.FileSource
    columns: tuple[str, ...] | None
    as_arrived: bool
    start_us: int | None
    pace: Pace

    def schema(self) -> pa.Schema:
        """The columns that are given, in the types of the files."""
        whole = files.schema(self.source)
        # The time column is looked up here too, so that a wrong name fails before the query starts.
        time_column(whole, self.source.time, self.source.path)
        for name in self.columns or ():
            if name not in whole.names:
                hint = f"the columns are {', '.join(whole.names)}"
                raise InputError(f"there is no column '{name}'", place=self.source.path, hint=hint)
        return whole if self.columns is None else pa.schema([whole.field(name) for name in self.columns])


@dataclass(frozen=True, slots=True)
class Recording:
    """All rows in the order they come, and when each does; `times_us` never falls."""

    table: pa.Table
    times_us: NDArray[np.int64]


class ReplayReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are numbers of rows in the order of the replay."""

    def __init__(self, settings: ReplaySettings, wall: Callable[[], int] = wall_us) -> None:
        self._settings = settings
        self._wall = wall
        self._last_wall_us: int | None = None
        self._recording: Recording | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        times_us = self._recorded().times_us
        origin_us = self._settings.start_us
        if origin_us is None:
            origin_us = int(times_us[0]) if len(times_us) else 0
        return Position(rows=0, until_us=0, began_us=self._wall(), origin_us=origin_us).offset(self._shape())

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._last_wall_us = self._wall()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: ARG002, N802 - Spark's signature
        began = position(start, self._shape(), _SOURCE)
        pace, times_us = self._settings.pace, self._recorded().times_us
        if began.rows == len(times_us):
            return start
        now_us = self._wall() if self._last_wall_us is None else self._last_wall_us
        last_us = int(times_us[-1]) + 1 - began.origin_us
        until_us = max(began.until_us, min(pace.until_us(began, now_us), last_us))
        rows = len(times_us)
        if until_us < last_us:
            rows = max(began.rows, int(np.searchsorted(times_us, began.origin_us + until_us)))
        if pace.max_rows is not None and rows > began.rows + pace.max_rows:
            rows = began.rows + pace.max_rows
            until_us = max(began.until_us, int(times_us[rows]) - began.origin_us)
        if rows == began.rows and until_us == pace.due_us(began, now_us):
            # Nothing has come yet, and nothing was held back: there is no reason for a batch.
            return start
        return Position(rows, until_us, began.began_us, began.origin_us).offset(self._shape())

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        first, last = position(start, self._shape(), _SOURCE).rows, position(end, self._shape(), _SOURCE).rows
        rows = self._recorded().table.slice(first, last - first)
        a_partition = max(1, rows.num_rows * _PARTITION_BYTES // max(1, rows.nbytes))
        pieces = (rows.slice(at, a_partition) for at in range(0, rows.num_rows, a_partition))
        return [InputPartition(_packed(piece)) for piece in pieces]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with pa.ipc.open_stream(partition.value) as batches:
            yield from batches

    def _recorded(self) -> Recording:
        if self._recording is None:
            self._recording = _recording(self._settings)
        return self._recording

    def _shape(self) -> Shape:
        times_us = self._recorded().times_us
        columns = ",".join(self._recorded().table.column_names)
        first_us, last_us = (int(times_us[0]), int(times_us[-1])) if len(times_us) else (0, 0)
        return {
            "rows": len(times_us),
            "as_arrived": str(self._settings.as_arrived).lower(),
            "columns": columns,
            "first_us": first_us,
            "last_us": last_us,
        }


def _recording(settings: ReplaySettings) -> Recording:
    """Reads the files: the order of the rows is that of `Replay`, of which this is one long batch."""
    source, wanted = settings.source, settings.schema().names
    time = time_column(files.schema(source), source.time, source.path)
    table = files.read(source, [*wanted, time])
    replay = Replay({"rows": (table, time, source.unit)}, batch_rows=max(1, len(table)), as_arrived=settings.as_arrived)
    ordered = next((batch.tables["rows"] for batch in replay), table)
    times_us = _arrival_times(event_time_us(ordered.column(time), source.unit))
    return Recording(in_spark_types(ordered.select(wanted), source.path), times_us)


def _arrival_times(events_us: pa.Array) -> NDArray[np.int64]:
    """When each row comes: not before the row in front of it. A row without time comes with that row."""
    present = events_us.drop_null()
    if not len(present):
        return np.zeros(len(events_us), dtype=np.int64)
    # Rows without time in front of all others come with the first that has one.
    filled = np.asarray(events_us.fill_null(_EARLIEST_US))
    latest_us: NDArray[np.int64] = np.maximum.accumulate(filled)
    return np.where(latest_us == _EARLIEST_US, present[0].as_py(), latest_us)


def _packed(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_table(rows)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]
