"""`windrow-results`: the results of a running or finished join as a stream, batch by batch as they are committed.

    commits      … 40    41    42                 the join commits batch 42
    follower     … 40 ▶  41 ▶  42                 reads what lies in batch=41, batch=42; never what comes after

The offset is the number of the last batch read. A batch is read when it is committed, so what a batch that failed has
published in part is never seen. Results that are kept in the checkpoint (a join without a sink) are deleted once the
follower has done with them: they have one follower. A folder can be followed by any number, and stays as it is.

    option        default    meaning
    path          (needed)   the join's checkpoint; also `load(CHECKPOINT)`
    folder        recorded   where the results are now, if they have been moved
    from_batch    the first  the batch to begin with
    max_batches   no limit   most batches of the join in one of the follower's

A change of the SELECT list or sink at a restart ends what can be read as one stream: following begins behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from windrow.errors import StateError, UsageError
from windrow.run.spark.failures import brief
from windrow.run.spark.publish import batch_folder, inside
from windrow.run.spark.results import ResultFile, read_results
from windrow.run.spark.sources.options import SourceOptions
from windrow.run.spark.sources.pace import Offset
from windrow.run.spark.sources.spark_types import in_spark_types, spark_arrow_schema
from windrow.run.spark.whereabouts import FILE, Span, last_commit, read_spans
from windrow.store.storage import Storage, open_storage

SOURCE = "windrow-results"
STATE = "windrow"
"""The folder of the state below a checkpoint."""

_OPTIONS = ("path", "folder", "from_batch", "max_batches")
_LISTED_ONE_BY_ONE = 16


class ResultSource(DataSource):
    """The results of a join; its schema is that of the SELECT list."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        given = SourceOptions(SOURCE, options, known=_OPTIONS)
        self._settings = FollowSettings(
            given.needed("path", "give it as load('CHECKPOINT')"),
            given.text("folder", ""),
            given.integer("from_batch", 0),
            given.integer("max_batches", 0, least=1) or None,
        )

    @classmethod
    def name(cls) -> str:
        return SOURCE

    def schema(self) -> StructType:
        span = self._settings.spans[-1]
        return from_arrow_schema(spark_arrow_schema(span.schema, self._settings.path))

    def streamReader(self, schema: StructType) -> ResultReader:  # noqa: ARG002, N802 - Spark's signature
        return ResultReader(self._settings)


@dataclass(frozen=True)
class FollowSettings:
    """What the options say, and what the checkpoint says of the results."""

    path: str
    moved_to: str
    from_batch: int
    max_batches: int | None

    @cached_property
    def state(self) -> Storage:
        """The state of the join: below its checkpoint, or what was given if that is the state itself."""
        given = open_storage(self.path)
        below = inside(given, STATE)
        return given if below.find(FILE) is None and given.find(FILE) is not None else below

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """The last spans of batches that can be read as one stream."""
        spans = read_spans(self.state)
        if not spans:
            hint = "give the folder that start() was given as checkpoint"
            raise UsageError("no join has begun in this checkpoint", place=self.path, hint=hint)
        if not spans[-1].is_readable:
            hint = "start the join without a sink, or with a path, to follow its results"
            raise UsageError(f"the results go to {spans[-1].address}, from where they cannot be read back", hint=hint)
        first = len(spans) - 1
        while first > 0 and spans[first - 1].is_readable and spans[first - 1].schema == spans[-1].schema:
            first -= 1
        return spans[first:]

    def span(self, batch: int) -> Span:
        """The span a batch belongs to."""
        found = [span for span in self.spans if span.first <= batch]
        if not found:
            message = f"the SELECT list or the sink of the join changed at batch {self.spans[0].first}"
            hint = f"follow from there with a new checkpoint; batch {batch} can no longer be read"
            raise StateError(message, place=self.path, hint=hint)
        return found[-1]


class ResultReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are numbers of batches; a partition is a file."""

    def __init__(self, settings: FollowSettings) -> None:
        self._settings = settings
        self._last: int | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        return {"batch": max(self._settings.spans[0].first, self._settings.from_batch) - 1}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._last = last_commit(self._settings.state)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: ARG002, N802 - Spark's signature
        last = last_commit(self._settings.state) if self._last is None else self._last
        if self._settings.max_batches is not None:
            last = min(last, start["batch"] + self._settings.max_batches)
        return {"batch": max(last, start["batch"])}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        found = []
        batches = range(start["batch"] + 1, end["batch"] + 1)
        for span, numbers in self._by_span(batches):
            folder = span.folder(self._settings.state, self._settings.moved_to)
            found += [InputPartition((folder, name, span.schema)) for name in _files(folder, numbers)]
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        folder, name, schema = partition.value
        for batch in read_results(folder, schema, ResultFile(name, 0, 0)):
            yield from in_spark_types(pa.Table.from_batches([batch]), folder.place(name)).to_batches()

    def commit(self, end: Offset) -> None:
        kept = [span for span in self._settings.spans if span.what == "kept"]
        if not kept:
            return
        folder = kept[0].folder(self._settings.state)
        for name in folder.list():
            if _batch_of(name) <= end["batch"]:
                folder.delete(name)

    def _by_span(self, batches: range) -> list[tuple[Span, range]]:
        found: list[tuple[Span, range]] = []
        for batch in batches:
            span = self._settings.span(batch)
            if found and found[-1][0] is span:
                found[-1] = (span, range(found[-1][1].start, batch + 1))
            else:
                found.append((span, range(batch, batch + 1)))
        return found


def follow(spark: SparkSession, path: str) -> DataFrame:
    """The results of the join with this checkpoint, or state, as a streaming DataFrame."""
    try:
        return spark.readStream.format(SOURCE).load(path)
    except AnalysisException as error:
        raise brief(error, place=path) from None


def _files(folder: Storage, batches: range) -> list[str]:
    """The files of some batches; of many at once, since each listing may be a call to another machine."""
    if len(batches) <= _LISTED_ONE_BY_ONE:
        return [name for batch in batches for name in folder.list(batch_folder(batch))]
    return [name for name in folder.list() if _batch_of(name) in batches]


def _batch_of(name: str) -> int:
    """The batch a file belongs to; one that cannot be for other files."""
    key, _, number = name.partition("/")[0].partition("=")
    return int(number) if key == "batch" and number.isdigit() else 2**63
