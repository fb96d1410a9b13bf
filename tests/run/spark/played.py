"""Spark, played in this process: a join's driver program runs its batches over frames that are lists of Arrow batches.

    PlayedFrame    what `BatchRunner` asks of a DataFrame: counts, a shuffle by slice, tasks over partitions
    PlayedSpark    the session behind it; it draws the order in which rows reach a task, and runs tasks twice if asked
    Played         a query from batch to batch: rows in, results out, restarts

What travels is copied through Arrow's stream format, as between processes, and tasks are pickled as Spark pickles them.
"""

from __future__ import annotations

import itertools
import pickle
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame, Row

from tests.oracle.duck import rows_of
from windrow.plan.order import plan_query
from windrow.query.builder import Join
from windrow.query.spec import QuerySpec
from windrow.run.program import Keep, kept_columns
from windrow.run.spark import job, keeping, messages, query
from windrow.run.spark.blobs import LAST, Blob, Blobs, blob_batch, blobs_of
from windrow.run.spark.lanes import CLOCK, STREAM, Arrived, Lanes
from windrow.run.spark.query import BatchRunner
from windrow.run.spark.results import Output, Results, read_results
from windrow.run.spark.setting import MOST_ROWS, Setting
from windrow.run.spark.state import Commit, Live, each_file
from windrow.run.spark.upkeep import SPAN_SHARE, Merges
from windrow.store import codec
from windrow.store.files import SegmentFile
from windrow.store.operand import time_us
from windrow.store.storage import LocalStorage
from windrow.store.tiers import FAN_IN

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
Rows = Counter[tuple[Any, ...]]


@dataclass
class PlayedSpark:
    """The session: `twice` runs every task a second time and forgets what the first attempt said."""

    seed: int = 0
    twice: bool = False
    query_id: str = "the query"
    jobs: int = 0
    tasks: Counter[int] = field(default_factory=Counter)
    """Jobs by the number of tasks in their last stage."""

    def __post_init__(self) -> None:
        self.draw = np.random.default_rng(self.seed)
        self.attempts = itertools.count()
        self.conf = SimpleNamespace(set=lambda name, value: None)
        said = {"sql.streaming.queryId": self.query_id}
        self.sparkContext = SimpleNamespace(
            master="local[1]", getLocalProperty=said.get, setLocalProperty=said.__setitem__
        )

    def run(self, task: Task, number: int, partition: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        """A task over a partition, in an attempt of its own."""
        for _ in range(2 if self.twice else 1):
            _running["task"] = (number, f"attempt{next(self.attempts)}")
            found = [codec.from_bytes(codec.to_bytes(batch)) for batch in task(iter(partition))]
        assert all(batch.schema == messages.SCHEMA for batch in found)
        return found

    def createDataFrame(self, rows: Iterable[Row], schema: str) -> PlayedFrame:  # noqa: N802 - Spark's
        assert schema == messages.SPARK_SCHEMA
        return PlayedFrame(self, [[pa.RecordBatch.from_pylist([row.asDict() for row in rows], messages.SCHEMA)]])


@dataclass
class PlayedFrame:
    """A DataFrame: batches of rows in partitions."""

    sparkSession: PlayedSpark  # noqa: N815 - Spark's name
    partitions: list[list[pa.RecordBatch]]

    def persist(self) -> PlayedFrame:
        return self

    def unpersist(self) -> None:
        """Nothing is kept."""

    def filter(self, condition: str) -> PlayedFrame:
        assert condition == f"{STREAM} >= 0"
        return replace(self, partitions=[[b.filter(pc.field(STREAM) >= 0) for b in part] for part in self.partitions])

    def select(self, *names: str) -> Told:
        """A few columns, to be collected."""
        table = self.toArrow().select(list(names))
        return Told(list(zip(*(column.to_pylist() for column in table.columns), strict=True)))

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name
        return pa.Table.from_batches(list(self._batches()))

    def coalesce(self, number: int) -> PlayedFrame:
        assert number == 1
        return replace(self, partitions=[list(self._batches())])

    def mapInArrow(self, task: Task, schema: str) -> PlayedFrame:  # noqa: N802 - Spark's name
        assert schema == messages.SPARK_SCHEMA
        run, shipped = self.sparkSession.run, pickle.loads(cloudpickle.dumps(task))  # type: ignore[no-untyped-call]
        return replace(self, partitions=[run(shipped, number, part) for number, part in enumerate(self.partitions)])

    def selectExpr(self, first: str, rest: str) -> PlayedFrame:  # noqa: N802 - Spark's name
        assert re.fullmatch(r"slice % \d+ AS task", first)
        assert rest == "*"
        return self

    def repartitionById(self, number: int, column: str) -> PlayedFrame:  # noqa: N802 - Spark's name
        assert column == "task"
        held = pa.Table.from_batches(list(self._batches()), messages.SCHEMA)
        places = held["slice"].to_numpy() % number
        partitions = []
        for task in range(number):
            rows = self.sparkSession.draw.permutation(np.flatnonzero(places == task))
            batches = held.take(pa.array(rows)).combine_chunks().to_batches(max_chunksize=7)
            partitions.append(batches)
        return replace(self, partitions=partitions)

    def drop(self, column: str) -> PlayedFrame:
        assert column == "task"
        return self

    def collect(self) -> list[Any]:
        """The rows; they can be asked by name."""
        self.sparkSession.jobs += 1
        self.sparkSession.tasks[len(self.partitions)] += 1
        return [row for batch in self._batches() for row in batch.to_pylist()]

    def _batches(self) -> Iterator[pa.RecordBatch]:
        return itertools.chain.from_iterable(self.partitions)


@dataclass
class Told:
    """Rows that the driver program asks for before it plans."""

    rows: list[Any]

    def collect(self) -> list[Any]:
        return self.rows


@dataclass(frozen=True)
class PlayedLanes(Lanes):
    """Lanes, counted and cut without Spark's SQL."""

    def arrived(self, frame: Any) -> Arrived:
        counted = Counter(frame.toArrow().column(STREAM).to_pylist())
        return Arrived({name: counted[number] for number, name in enumerate(self.names)})

    def cuts(self, frame: Any, times: Mapping[str, str], parts: int) -> tuple[int, ...]:
        found: list[int] = []
        for name, table in self.tables(iter(frame.toArrow().to_batches())):
            found += pa.chunked_array(map(time_us, table[times[name]].chunks), pa.int64()).drop_null().to_pylist()
        found.sort()
        return tuple(sorted({found[len(found) * number // parts] for number in range(1, parts)} if found else ()))


_running: dict[str, tuple[int, str]] = {}


def attempt_of() -> tuple[int, str]:
    """Who the task is that runs now, as `job.attempt_of` says it."""
    return _running["task"]


def lanes_of(schemas: Mapping[str, pa.Schema]) -> PlayedLanes:
    """Lanes by type, for frames of these schemas."""
    columns = []
    for schema in schemas.values():
        taken: Counter[str] = Counter()
        held = {}
        for each in schema:
            taken[str(each.type)] += 1
            held[each.name] = f"{each.type} {taken[str(each.type)]}"
        columns.append(held)
    return PlayedLanes(tuple(schemas), tuple(columns))


def in_lanes(lanes: Lanes, tables: Mapping[str, pa.Table]) -> pa.Table:
    """The rows of all streams as one table."""
    found = [pa.table({STREAM: pa.array([CLOCK], pa.int32())})]
    for number, name in enumerate(lanes.names):
        if name in tables:
            held = {lane: tables[name][column] for column, lane in lanes.columns[number].items()}
            found.append(pa.table({STREAM: pa.array([number] * len(tables[name]), pa.int32()), **held}))
    return pa.concat_tables(found, promote_options="default")


def in_blobs(blobs: Blobs, tables: Mapping[str, pa.Table], times: Mapping[str, str], last: bool) -> pa.Table:
    """The rows of all streams as blobs of a few rows, with the signs."""
    found = [Blob(CLOCK, 0), *([Blob(LAST, 0)] if last else [])]
    for number, name in enumerate(blobs.names):
        if name in tables and len(tables[name]):
            found += blobs_of(tables[name], number, times[name], largest_bytes=max(1, tables[name].nbytes // 3))
    return pa.Table.from_batches([blob_batch(found)])


@dataclass(frozen=True)
class Way:
    """How a query runs: `hops` in a task a slice, or all in one task; `fan_in` segments of a level are merged at once
    (None: as in earnest).
    """

    slices: int = 1
    slice_by: str = "time"
    hops: bool = True
    policy: str = "timestamp"
    keep: Keep = "used"
    feed: Literal["lanes", "blobs"] = "lanes"
    fan_in: int | None = None
    most_rows: int = MOST_ROWS


class Played:
    """A query on a played Spark; `setting` are fields of `Setting` that differ."""

    def __init__(
        self, join: Join, folder: Path, way: Way | None = None, spark: PlayedSpark | None = None, **setting: Any
    ) -> None:
        self.spec, self.way, self.spark = join.spec(), way or Way(), spark or PlayedSpark()
        self.storage = LocalStorage(folder)
        schemas = {s.name: join.sources[s.source].schema for s in self.spec.streams}
        keep = self.way.keep
        self.kept = {name: [c.name for c in kept_columns(self.spec, name, keep)] for name in schemas}
        laid = {name: pa.schema([schema.field(c) for c in self.kept[name]]) for name, schema in schemas.items()}
        self.feed: PlayedLanes | Blobs = lanes_of(laid) if self.way.feed == "lanes" else Blobs(tuple(laid))
        self.found: dict[int, list[pa.Table]] = {}
        self.merged = 0
        plan = plan_query(self.spec, policy=self.way.policy, slices=self.way.slices, slice_by=self.way.slice_by)
        self.setting = Setting(
            self.spec,
            plan,
            arrow_types={c: schemas[s.name].field(c.name).type for s in self.spec.streams for c in s.columns},
            storage=self.storage,
            feed=self.feed,
            output=Output(self.storage, "frame"),
            sink=self._sink,
            max_ahead_us=None,
            keep=keep,
            most_rows=self.way.most_rows,
        )
        self.restart(**setting)

    def restart(self, **changed: Any) -> None:
        """Another driver program on the same state."""
        self.setting = replace(self.setting, **changed)
        self.runner = BatchRunner(self.setting)

    def frame(self, pushed: Mapping[str, pa.Table], last: bool = False) -> PlayedFrame:
        """A micro-batch of these rows by the names of streams, in two partitions."""
        tables = {s.name: pushed[s.source].select(self.kept[s.name]) for s in self.spec.streams if s.source in pushed}
        if isinstance(self.feed, Blobs):
            rows = in_blobs(self.feed, tables, {s.name: s.time for s in self.spec.streams}, last)
        else:
            rows = in_lanes(self.feed, tables)
        mixed = rows.take(pa.array(self.spark.draw.permutation(len(rows)))).combine_chunks()
        halves = (mixed.slice(0, len(mixed) // 2), mixed.slice(len(mixed) // 2))
        return PlayedFrame(self.spark, [half.to_batches(max_chunksize=9) for half in halves])

    def run(self, batch: int, pushed: Mapping[str, pa.Table], last: bool = False) -> Rows:
        """One micro-batch: the rows the sink gets; `last` (in blobs) says that no input follows."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(job, "attempt_of", attempt_of)
            patch.setattr(query, "ONE_TASK_SECONDS", -1.0 if self.way.hops else float("inf"))
            if self.way.fan_in is not None:
                patch.setattr(keeping, "merges_of", self._merges_of)
            self.runner.run(cast(DataFrame, self.frame(pushed, last)), batch)
        return self.rows(batch)

    @property
    def state(self) -> Commit:
        """What the last commit says."""
        assert self.runner.last is not None
        return self.runner.last

    @property
    def files(self) -> list[tuple[int, str, SegmentFile]]:
        """Live segments, with slice and stream."""
        return list(each_file(self.state.live))

    def rows(self, batch: int) -> Rows:
        """What the sink got for a batch, the last time."""
        return rows_of(self.found[batch][-1])

    def _merges_of(self, live: Live, spec: QuerySpec, share: int = SPAN_SHARE) -> Merges:
        """Merges as soon as there are `fan_in` segments of a level, however far they span."""
        found: Merges = {}
        for place, streams in live.items():
            for name, files in streams.items():
                tiers = [[f.name for f in files if f.level == level] for level in {file.level for file in files}]
                groups = [tier for tier in tiers if len(tier) >= (self.way.fan_in or FAN_IN)]
                self.merged += sum(map(len, groups))
                if groups:
                    found.setdefault(place, {})[name] = groups
        return found

    def _sink(self, results: Results, batch: int) -> None:
        storage, schema = results.output.storage, results.schema
        read = [part for file in results.files for part in read_results(storage, schema, file)]
        table = pa.concat_tables([pa.Table.from_batches(read, schema), *results.inline])
        assert len(table) == results.rows
        self.found.setdefault(batch, []).append(table)
