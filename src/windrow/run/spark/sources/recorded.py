"""`windrow-recorded`: recorded streams together, in step, packed as a join takes them: what `windrow run` reads.

    batch k   blobs of stream 0 | blobs of stream 1 | … | the clock: event time at the batch's end
    the last  the same | the end of the input

One source gives all streams, so they cannot fall out of step whatever Spark does, and its batches are those of
`streams.replay`: the same rows as in process, in the types of the files. An offset is the number of batches given, so
a run that is killed goes on at a restart with the batch it was at. The files are read by the process that plans the
batches; rows go to the tasks by value, so no other machine has to see the files. They have to stay as they are: a
checkpoint of other recordings, or of other batches, is refused.

    option       default      meaning
    recordings   (needed)     what is read, as `Recordings.to_json` writes it
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from windrow.errors import StateError
from windrow.run.spark.blobs import BLOB_SCHEMA, LAST, Blob, blob_batch, blobs_of
from windrow.run.spark.lanes import CLOCK
from windrow.run.spark.sources.options import SourceOptions
from windrow.run.spark.sources.pace import Offset
from windrow.streams.files import FileSource
from windrow.streams.recorded import recorded
from windrow.streams.replay import Replay
from windrow.streams.schedule import Schedule

_SOURCE = "windrow-recorded"
_VERSION = 1
_PARTITION_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Recordings:
    """Recorded streams and how they are cut into batches.

    `sources` are recordings by name, `streams` the source, the event-time column and all columns of each stream of the
    query, in its order. With a `pace` the batches come when they are due, that many times as fast as event time passes.
    """

    sources: Mapping[str, FileSource]
    streams: tuple[tuple[str, str, tuple[str, ...]], ...]
    span_us: int | None = None
    as_arrived: bool = False
    pace: float | None = None

    @property
    def apart_s(self) -> float:
        """How many seconds batches are apart at least."""
        return 0.0 if self.pace is None or self.span_us is None else self.span_us / 1e6 / self.pace

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Recordings:
        value = json.loads(text)
        sources = {name: FileSource(**source) for name, source in value.pop("sources").items()}
        streams = tuple((source, time, tuple(columns)) for source, time, columns in value.pop("streams"))
        return Recordings(sources, streams, **value)

    def replay(self) -> Replay:
        """All rows, in the order and the batches in which they come."""
        inputs = {}
        for name, source in self.sources.items():
            found = recorded(source)
            columns = dict.fromkeys(column for read, _, wanted in self.streams if read == name for column in wanted)
            inputs[name] = (found.read(list(columns)), found.time, None)
        return Replay(inputs, batch_us=self.span_us, as_arrived=self.as_arrived)


class RecordedSource(DataSource):
    """Recorded streams as the one packed stream that a join reads."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        given = SourceOptions(_SOURCE, options, known=("recordings",))
        self._recordings = Recordings.from_json(given.needed("recordings", "windrow run gives it"))

    @classmethod
    def name(cls) -> str:
        return _SOURCE

    def schema(self) -> str:
        return BLOB_SCHEMA

    def streamReader(self, schema: StructType) -> RecordedReader:  # noqa: ARG002, N802 - Spark's signature
        return RecordedReader(self._recordings)


class RecordedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are numbers of batches."""

    def __init__(self, recordings: Recordings) -> None:
        self._recordings = recordings
        self._replay: Replay | None = None
        self._schedule: Schedule | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        return self._offset(0)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """There is nothing to fix: the end of a recording does not move."""

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: ARG002, N802 - Spark's signature
        given, replay = self._given(start), self._played()
        if self._recordings.pace is None:
            return self._offset(min(given + 1, replay.batches))
        if self._schedule is None:
            self._schedule = Schedule(replay.ends_us, self._recordings.pace)
        return self._offset(self._schedule.due(given))

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        found: list[InputPartition] = []
        for place in range(self._given(start), self._given(end)):
            found.extend(InputPartition(rows) for rows in _shared_out(self._packed(place)))
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for blob in partition.value:
            yield blob_batch([blob])

    def _packed(self, place: int) -> Iterator[Blob]:
        batch = self._played().batch(place)
        for number, (source, time, columns) in enumerate(self._recordings.streams):
            yield from blobs_of(batch.tables[source].select(list(columns)), number, time)
        yield Blob(CLOCK, batch.end_us)
        if place + 1 == self._played().batches:
            yield Blob(LAST, 0)

    def _played(self) -> Replay:
        if self._replay is None:
            self._replay = self._recordings.replay()
        return self._replay

    def _shape(self) -> dict[str, Any]:
        """What says whether another run reads the same rows in the same batches."""
        replay = self._played()
        first, last = (replay.batch(place).end_us if replay.batches else 0 for place in (0, replay.batches - 1))
        return {
            "streams": [source for source, _, _ in self._recordings.streams],
            "as_arrived": self._recordings.as_arrived,
            "rows": replay.rows,
            "span_us": replay.span_us,
            "batches": replay.batches,
            "first_end_us": first,
            "last_end_us": last,
        }

    def _offset(self, given: int) -> Offset:
        return {"version": _VERSION, "batches": given, "of": self._shape()}

    def _given(self, offset: Offset) -> int:
        """The number of batches given so far; a `StateError` if that was of other recordings."""
        if offset.get("version") != _VERSION:
            message = f"the checkpoint holds offsets of version {offset.get('version')} of {_SOURCE}, not {_VERSION}"
            raise StateError(message, hint="start with a new checkpoint")
        shape = self._shape()
        for name, before in offset["of"].items():
            if before != shape.get(name):
                message = f"the recordings' {name} is {shape.get(name)}, but the checkpoint was begun with {before}"
                hint = "give the files and options of the first run, or another checkpoint"
                raise StateError(message, hint=hint)
        return int(offset["batches"])


def _shared_out(blobs: Iterator[Blob]) -> Iterator[list[Blob]]:
    """Blobs in parts that are worth a task."""
    part: list[Blob] = []
    size = 0
    for blob in blobs:
        part.append(blob)
        size += len(blob.blob or b"")
        if size >= _PARTITION_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part
