"""What tasks do, task by task and without Spark: on any number of slices, the rows of the join in one process.

`Cluster` plays Spark and the driver program: it cuts rows into packed blobs, hands messages to the slice they name in
any order, and carries segments and watermarks from batch to batch.
"""

from __future__ import annotations

import itertools
import json
import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windrow
from tests.oracle.duck import rows_of
from tests.oracle.tables import table_of
from windrow.plan.drivers import Order
from windrow.plan.order import plan_query
from windrow.query.builder import Join
from windrow.run.admit import Entry
from windrow.run.program import Program
from windrow.run.spark import messages, worker
from windrow.run.spark.lanes import CLOCK, STREAM, Lanes
from windrow.run.spark.messages import COUNT, DONE, KEPT, PROBE, RESULT, STAGED, STORE, Message
from windrow.run.spark.results import Output, ResultFile, read_results
from windrow.run.spark.worker import Job, enter, hop, placed
from windrow.store import codec
from windrow.store.files import SegmentFile
from windrow.store.storage import LocalStorage

pytestmark = pytest.mark.usefixtures("interpreted")

BATCHES = 8
STEP_US = 3_000_000
TWO = """SELECT a.id AS i, b.id AS j, a.s AS s, result_ts() AS newest FROM s AS a, t AS b
    WHERE ABS(a.f64 - b.f64) <= 1 AND a.i32 <> b.i64 WINDOW a 4 SECONDS, b 11 SECONDS LATENESS 9 SECONDS"""
THREE = """SELECT a.id AS i, b.id AS j, c.id AS k, b.v AS v, result_id() AS key FROM s AS a, t AS b, u AS c
    WHERE a.k = b.k AND b.i32 < c.i32 AND a.t8 + b.t8 <= c.s16 WINDOW a 7 SECONDS, b 2 SECONDS, c 5 SECONDS
    LATENESS 9 SECONDS"""
TEXTS = """SELECT a.id AS i, b.id AS j, c.d52 AS d FROM s AS a, t AS b, u AS c
    WHERE jaccard(a.s, b.s) >= 0.5 AND a.s < c.s AND cosine(b.v, c.v) > 0.9 WINDOW 5 SECONDS LATENESS 9 SECONDS"""
TIMES = """SELECT a.id AS i, b.id AS j FROM s AS a, t AS b
    WHERE b.ts BETWEEN a.ts - INTERVAL 2 SECONDS AND a.ts + INTERVAL 1 SECONDS WINDOW 20 SECONDS LATENESS 9 SECONDS"""
ROWS = """SELECT a.id AS i, b.id AS j, c.id AS k FROM s AS a, t AS b, u AS c
    WHERE a.flag = b.flag AND b.u8 <= c.u8 WINDOW a ROWS 9, b 6 SECONDS, c ROWS 5 LATENESS 9 SECONDS"""
QUESTIONS = {"two": TWO, "three": THREE, "texts": TEXTS, "times": TIMES}


def joined(text: str) -> Join:
    names = [name for name in ("s", "t", "u") if f"{name} AS" in text]
    tables = {name: plain_keys(table_of(0, 0)) for name in names}
    return windrow.sql(text, streams=tables, time=dict.fromkeys(names, "ts"))


def plain_keys(table: pa.Table) -> pa.Table:
    """As Spark delivers rows: no dictionaries."""
    return table.set_column(table.schema.get_field_index("k"), "k", table["k"].cast(pa.string()))


def batches_of(names: Iterable[str], rows: int = 22) -> list[dict[str, pa.Table]]:
    """Batches that overlap in time, so that some rows come late; now and then a stream is silent."""
    return [
        {
            name: plain_keys(table_of(0 if (batch + number) % 5 == 4 else rows, 10 * batch + number,
                                      base_us=batch * STEP_US, span=14, null_times=True))
            for number, name in enumerate(names)
        }
        for batch in range(BATCHES)
    ]  # fmt: skip


class Cluster:
    """A join run task by task."""

    def __init__(
        self, query: Join, folder: Path, slices: int, fan_in: int = 3, expire: bool = True, slice_by: str = "auto"
    ) -> None:
        self.spec = query.spec()
        self.plan = plan_query(self.spec, slices=slices, slice_by=slice_by)
        self.program = Program(self.spec, self.plan, {})
        self.names = tuple(stream.name for stream in self.spec.streams)
        self.storage = LocalStorage(folder)
        self.slices = slices
        self.fan_in, self.expire = fan_in, expire
        self.entry = Entry(self.program, None, None)
        self.live: dict[int, dict[str, tuple[SegmentFile, ...]]] = {}
        self.merged = 0
        self.draw = np.random.default_rng(slices)
        self.attempts = (str(number) for number in itertools.count())
        columns = {s.name: tuple(column.name for column in self.spec.used_columns(s.name)) for s in self.spec.streams}
        self.lanes = Lanes(self.names, tuple({c: f"{name}.{c}" for c in columns[name]} for name in self.names))

    def job(self, batch: int, order: Order | None) -> Job:
        """The job of a batch, as a worker unpacks it."""
        merges: dict[int, dict[str, tuple[tuple[str, ...], ...]]] = {}
        for place, streams in self.live.items():
            for name, files in streams.items():
                tiers = [tuple(f.name for f in files if f.level == level) for level in {file.level for file in files}]
                groups = tuple(tier for tier in tiers if len(tier) >= self.fan_in)
                if groups:
                    merges.setdefault(place, {})[name] = groups
        job = Job(
            spec=self.spec,
            plan_text=self.plan.to_json(),
            arrow_types={},
            keep="used",
            key=repr((self.spec, self.plan)),
            batch=batch,
            part=0,
            from_us=None,
            to_us=None,
            now_us=0,
            max_ahead_us=None,
            watermarks_us={name: gate.watermark_us for name, gate in self.entry.gates.items()},
            order=order,
            tasks=self.slices,
            lanes=self.lanes,
            live=self.live,
            merges=merges,
            storage=self.storage,
            output=Output(self.storage, "arrow"),
            aside=None,
            run="run",
        )
        return unpacked(job)

    def entered(self, job: Job, pushed: Mapping[str, pa.Table]) -> list[Message]:
        """The messages of new rows: made by tasks, or by the driver program if a window counts rows."""
        if self.entry.row_windowed:
            segments = self.entry.admit({name: [table] for name, table in pushed.items()}, 0)
            return [m for name, rows in segments.items() if len(rows) for m in placed(self.program, name, rows)]
        parts = [pa.record_batch({STREAM: pa.array([CLOCK], pa.int32())})]
        for number, name in enumerate(self.names):
            for part in pushed[name].to_batches(max_chunksize=9):
                lanes = {lane: part.column(column) for column, lane in self.lanes.columns[number].items()}
                parts.append(pa.record_batch({STREAM: pa.array([number] * len(part), pa.int32()), **lanes}))
        return [m for part in parts for m in received(enter(job, self.attempt(0))(iter([part])))]

    def attempt(self, mine: int) -> worker.Attempt:
        """Who a task is."""
        return lambda: (mine, next(self.attempts))

    def shuffled(self, sent: list[Message]) -> Iterator[tuple[int, list[Message]]]:
        """Each task's number, and the messages of its slice in any order."""
        for place in range(self.slices):
            here = [message for message in sent if message.slice == place]
            yield place, [here[k] for k in self.draw.permutation(len(here))]

    def hopped(self, job: Job, number: int, mine: int, found: list[Message]) -> list[Message]:
        """What a task makes of the messages of one slice."""
        cuts = [found[:1], found[1:]]
        task = hop(job, number, self.attempt(mine))
        return received(task(iter([messages.as_batch(cut) for cut in cuts])))

    def run(self, batch: int, pushed: Mapping[str, pa.Table], order: Order | None = None) -> pa.Table:
        """One batch: the rows it results in."""
        job = self.job(batch, order)
        sent = self.entered(job, pushed)
        for number in range(len(self.names) - 1):
            assert {message.slice for message in sent} <= set(range(self.slices))
            sent = [m for mine, found in self.shuffled(sent) for m in self.hopped(job, number, mine, found)]
        assert {message.kind for message in sent} <= {COUNT, KEPT, RESULT, STAGED, DONE}
        self.commit(job, sent)
        parts = [
            m.payload if m.kind == RESULT else ResultFile(**json.loads(m.payload))
            for m in sent if m.kind in (RESULT, STAGED)
        ]  # fmt: skip
        schema = self.program.schema
        found = [batch for part in parts for batch in read_results(self.storage, schema, part)]
        return pa.Table.from_batches(found, schema)

    def commit(self, job: Job, told: list[Message]) -> None:
        """Carry on what tasks tell of: watermarks and segments."""
        live = {place: dict(streams) for place, streams in self.live.items()}
        for message in told:
            if message.kind == COUNT:
                gate, value = self.entry.gates[message.path], json.loads(message.payload)
                gate.newest_us = max(gate.newest_us, value["newest_us"])
                for field, amount in value["counts"].items():
                    setattr(gate.counts, field, getattr(gate.counts, field) + amount)
            elif message.kind == KEPT:
                value = json.loads(message.payload)
                held = live.setdefault(message.slice, {}).get(message.path, ())
                kept = tuple(file for file in held if file.name not in value["replaces"])
                self.merged += len(value["replaces"])
                live[message.slice][message.path] = (*kept, SegmentFile.from_fields(value["file"]))
        self.entry.advance(job.now_us)
        if self.expire:
            cutoffs = {name: self.entry.expiry(name)[0] for name in self.names}
            live = {
                place: {name: tuple(f for f in files if f.last_us >= cutoffs[name]) for name, files in streams.items()}
                for place, streams in live.items()
            }
        self.live = live

    def stored(self) -> dict[str, int]:
        """The rows of each stream in segments that are live."""
        found = {name: [f for streams in self.live.values() for f in streams.get(name, ())] for name in self.names}
        return {name: sum(file.rows for file in files) for name, files in found.items()}


def unpacked(job: Job) -> Job:
    copy = pickle.loads(pickle.dumps(job))
    assert isinstance(copy, Job)
    return copy


def received(batches: Iterator[pa.RecordBatch]) -> list[Message]:
    """Messages on their way: each batch as the next task gets it."""
    held = [codec.from_bytes(codec.to_bytes(batch)) for batch in batches]
    assert all(batch.schema == messages.SCHEMA for batch in held)
    return [Message(**row) for batch in held for row in batch.to_pylist()]


def as_pushed(cluster: Cluster, tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    return {stream.name: tables[stream.source] for stream in cluster.spec.streams}


def turns(names: tuple[str, ...], batch: int) -> Order:
    first = batch % len(names)
    return names[first:] + names[:first]


@pytest.mark.parametrize("ordered", [False, True], ids=["by time", "by buffers"])
@pytest.mark.parametrize("slices", [1, 2, 5])
@pytest.mark.parametrize("question", QUESTIONS)
def test_every_batch_gives_the_rows_of_the_join_in_one_process(
    question: str, slices: int, ordered: bool, tmp_path: Path
) -> None:
    query = joined(QUESTIONS[question])
    cluster = Cluster(query, tmp_path, slices)
    total: Counter[Any] = Counter()
    with windrow.local(query, policy="round_robin" if ordered else "timestamp") as join:
        for batch, tables in enumerate(batches_of(query.sources)):
            for name, table in tables.items():
                join.push(name, table)
            expected = rows_of(join.step(now_s=0))
            order = turns(cluster.names, batch) if ordered else None
            found = rows_of(cluster.run(batch, as_pushed(cluster, tables), order))
            assert found == expected, batch
            total += found
        streams = {name: gate.counts for name, gate in join.entry.gates.items()}
    assert total.total() > 50
    assert {name: gate.counts for name, gate in cluster.entry.gates.items()} == streams
    assert sum(counts.late for counts in streams.values()) > 0
    assert cluster.merged > 0
    assert set(cluster.live) == set(range(slices))


@pytest.mark.parametrize("slices", [1, 2, 5])
def test_windows_of_rows_are_shared_out_as_well(slices: int, tmp_path: Path) -> None:
    query = joined(ROWS)
    cluster = Cluster(query, tmp_path, slices)
    total = 0
    with windrow.local(query) as join:
        for batch, tables in enumerate(batches_of(query.sources)):
            for name, table in tables.items():
                join.push(name, table)
            expected = rows_of(join.step(now_s=0))
            assert rows_of(cluster.run(batch, as_pushed(cluster, tables))) == expected, batch
            total += expected.total()
    assert total > 50
    assert cluster.merged > 0


@pytest.mark.parametrize("slices", [1, 5])
def test_merges_lose_no_rows(slices: int, tmp_path: Path) -> None:
    query = joined(THREE)
    cluster = Cluster(query, tmp_path, slices, fan_in=2, expire=False)
    for batch, tables in enumerate(batches_of(query.sources)):
        cluster.run(batch, as_pushed(cluster, tables))
        gates = cluster.entry.gates
        counts = {name: gate.counts for name, gate in gates.items()}
        entered = {name: c.rows - c.late - c.bad - c.ahead - c.filtered for name, c in counts.items()}
        assert cluster.stored() == entered
    assert cluster.merged > BATCHES
    assert max(f.level for streams in cluster.live.values() for files in streams.values() for f in files) > 1
    names = [f.name for streams in cluster.live.values() for files in streams.values() for f in files]
    assert len(names) == len(set(names))
    assert set(names) < set(cluster.storage.list())


def contents(found: list[Message], kind: int) -> Counter[Any]:
    rows: Counter[Any] = Counter()
    for message in found:
        if message.kind == kind:
            rows += rows_of(pa.Table.from_batches([codec.from_bytes(message.payload)]))
    return rows


@pytest.mark.parametrize("slices", [1, 2, 5])
def test_a_task_that_is_run_twice_gives_the_same_rows_in_other_files(slices: int, tmp_path: Path) -> None:
    query = joined(THREE)
    cluster = Cluster(query, tmp_path, slices, fan_in=2)
    total = 0
    with windrow.local(query) as join:
        for batch, tables in enumerate(batches_of(query.sources)):
            for name, table in tables.items():
                join.push(name, table)
            job = cluster.job(batch, None)
            sent = cluster.entered(job, as_pushed(cluster, tables))
            for number in range(2):
                again = []
                for found in cluster.shuffled(sent):
                    first, second = cluster.hopped(job, number, found), cluster.hopped(job, number, found)
                    check_twice(cluster, number, first, second)
                    again += second
                sent = again
            cluster.commit(job, sent)
            found_rows = contents(sent, RESULT)
            assert found_rows == rows_of(join.step(now_s=0)), batch
            total += found_rows.total()
    assert total > 50
    assert cluster.merged > 0


def check_twice(cluster: Cluster, number: int, first: list[Message], second: list[Message]) -> None:
    """Two attempts agree in all but the names of files; those of the first may then go."""
    shapes = [[(m.slice, m.kind, m.path, m.rows) for m in attempt] for attempt in (first, second)]
    assert shapes[0] == shapes[1]
    assert contents(first, RESULT) == contents(second, RESULT)
    if number == 0:
        names = [{json.loads(m.payload)["file"]["name"] for m in found if m.kind == KEPT} for found in (first, second)]
        assert len(names[0]) == len(names[1]) == sum(message.kind == KEPT for message in first)
        assert not names[0] & names[1]
        for name in names[0]:
            cluster.storage.delete(name)


def test_partial_results_go_only_where_their_matches_can_be(tmp_path: Path) -> None:
    query = joined(TIMES.replace("20 SECONDS", "60 SECONDS"))
    cluster = Cluster(query, tmp_path, 5)
    job = cluster.job(0, None)
    rows = plain_keys(table_of(40, 1, span=0))
    sent = cluster.entered(job, {"a": rows, "b": rows.slice(0, 0)})
    assert {message.slice for message in sent if message.kind == STORE} == {0}
    assert {message.slice for message in sent if message.kind == PROBE} == {3, 4, 0}


@pytest.mark.parametrize("largest_bytes", [1, 300, 1 << 20])
def test_packing_cuts_rows_into_blobs_and_keeps_them(largest_bytes: int) -> None:
    table = plain_keys(table_of(50, 3))
    columns = ("v", "id", "ts", "s")
    blobs = [
        row
        for batch in pack(columns, 4, largest_bytes)(iter([*table.to_batches(20), table.to_batches()[0].slice(0, 0)]))
        for row in batch.to_pylist()
    ]
    parts = [codec.from_bytes(row["blob"]) for row in blobs]
    assert rows_of(pa.Table.from_batches(parts)) == rows_of(table.select(list(columns)))
    assert [row["rows"] for row in blobs] == [len(part) for part in parts]
    assert {row["stream"] for row in blobs} == {4}
    assert len(blobs) == {1: 50, 1 << 20: 3}.get(largest_bytes, len(blobs))
    assert len(blobs) >= 3


def test_an_attempt_outside_of_spark_has_a_name() -> None:
    assert worker.attempt_of() == "local"
