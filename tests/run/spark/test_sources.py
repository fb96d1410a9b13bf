"""The sources in running queries: every batch has its rows, and has them again after a restart from the checkpoint."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from windrow.run.spark.sources import SOURCES, register

Rows = list[tuple[Any, ...]]

DEADLINE_S = 120
GENERATED = {"name": "cam1", "rate_hz": "800", "noise": "2", "speed": "max", "span_s": "1", "duration_s": "8"}


def stream(spark: SparkSession, source: str, options: Mapping[str, str]) -> DataFrame:
    return spark.readStream.format(source).options(**options).load()


class Batches:
    """A sink that keeps each batch's rows, and can be told to die in one of them, after the rows have been read."""

    def __init__(self, dies_in: int | None = None) -> None:
        self.rows: dict[int, Rows] = {}
        self._dies_in = dies_in

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        self.rows[batch_id] = [tuple(row) for row in batch.collect()]
        if batch_id == self._dies_in:
            raise RuntimeError("the sink dies")

    def all(self) -> Rows:
        return [row for batch_id in sorted(self.rows) for row in self.rows[batch_id]]


def start(frame: DataFrame, sink: Batches, checkpoint: Path, **trigger: Any) -> StreamingQuery:
    writer = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint))
    return writer.trigger(**trigger).start()


def all_available(frame: DataFrame, checkpoint: Path, dies_in: int | None = None) -> Batches:
    """Runs until the source has no more, or the sink dies."""
    sink = Batches(dies_in)
    query = start(frame, sink, checkpoint, availableNow=True)
    if dies_in is None:
        assert query.awaitTermination(DEADLINE_S)
    else:
        with pytest.raises(StreamingQueryException, match="the sink dies"):
            query.awaitTermination(DEADLINE_S)
    return sink


@contextmanager
def running(frame: DataFrame, sink: Batches, checkpoint: Path, until: Callable[[], bool], pace: str) -> Iterator[None]:
    """Runs a query that does not end until something holds."""
    query = start(frame, sink, checkpoint, processingTime=pace)
    try:
        deadline = time.monotonic() + DEADLINE_S
        while not until() and query.isActive and time.monotonic() < deadline:
            time.sleep(0.05)
        yield
    finally:
        query.stop()
    assert until()


def ticks(checkpoint: Path) -> dict[int, int]:
    """The time of each batch, from Spark's own log of offsets."""
    logged = {int(file.name): file for file in (checkpoint / "offsets").iterdir() if file.name.isdigit()}
    return {batch: json.loads(logged[batch].read_text().splitlines()[-1])["now_us"] for batch in sorted(logged)}


def test_registering_twice_changes_nothing(spark: SparkSession) -> None:
    register(spark)
    own = ("windrow-clock", "windrow-synthetic", "windrow-replay", "windrow-results", "windrow-recorded")
    assert tuple(source.name() for source in SOURCES) == own
    assert stream(spark, "windrow-clock", {}).dtypes == [("now_us", "bigint")]
    assert stream(spark, "windrow-synthetic", {}).dtypes == [("ts", "timestamp"), ("id", "bigint"), ("x", "double")]


def test_every_batch_has_one_time_the_same_on_replay(spark: SparkSession, tmp_path: Path) -> None:
    before_us = time.time_ns() // 1000
    clock = stream(spark, "windrow-clock", {})
    dead = Batches(dies_in=2)
    with pytest.raises(StreamingQueryException, match="the sink dies"):
        start(clock, dead, tmp_path, processingTime="100 milliseconds").awaitTermination(DEADLINE_S)
    assert dead.rows == {0: [], 1: [], 2: []}
    then = ticks(tmp_path)
    again = Batches()
    with running(clock, again, tmp_path, lambda: len(again.rows) >= 3, "100 milliseconds"):
        pass
    now = ticks(tmp_path)
    assert {batch: now[batch] for batch in then} == then
    assert min(again.rows) == 2
    times_us = list(now.values())
    assert times_us == sorted(set(times_us))
    assert before_us <= times_us[0]
    assert times_us[-1] <= time.time_ns() // 1000


def test_ticks_are_whole_and_all_available_is_one(spark: SparkSession, tmp_path: Path) -> None:
    clock = stream(spark, "windrow-clock", {"every_s": "0.4"})
    sink = Batches()
    with running(clock, sink, tmp_path / "a", lambda: len(sink.rows) >= 3, "50 milliseconds"):
        pass
    assert all(now_us % 400_000 == 0 for now_us in ticks(tmp_path / "a").values())
    assert len(all_available(clock, tmp_path / "b").rows) == 1


def test_generated_batches_come_again_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    undisturbed = all_available(stream(spark, "windrow-synthetic", GENERATED), tmp_path / "a")
    assert sorted(undisturbed.rows) == list(range(8))
    in_two_tasks = stream(spark, "windrow-synthetic", {**GENERATED, "partitions": "2"})
    first = all_available(in_two_tasks, tmp_path / "b", dies_in=3)
    second = all_available(in_two_tasks, tmp_path / "b")
    assert (sorted(first.rows), sorted(second.rows)) == ([0, 1, 2, 3], [3, 4, 5, 6, 7])
    assert second.rows[3] == first.rows[3]
    assert {**first.rows, **second.rows} == undisturbed.rows
    assert [row[1] for row in undisturbed.all()] == list(range(len(undisturbed.all())))


def test_a_generated_stream_goes_on_where_it_would_be(spark: SparkSession, tmp_path: Path) -> None:
    live = stream(spark, "windrow-synthetic", {"arrivals": "constant", "rate_hz": "200", "start": "now"})
    first, second = Batches(), Batches()
    with running(live, first, tmp_path, lambda: len(first.rows) >= 3, "200 milliseconds"):
        pass
    with running(live, second, tmp_path, lambda: len(second.rows) >= 3, "200 milliseconds"):
        pass
    rows = sorted({*first.all(), *second.all()}, key=lambda row: row[1])
    assert [row[1] for row in rows] == list(range(len(rows)))
    gaps_s = {(after[0] - before[0]).total_seconds() for before, after in pairwise(rows)}
    assert gaps_s == {0.005}
    # The rows that were due while no query ran come in the first batches after the restart.
    assert len(second.rows[max(first.rows) + 1]) > 0
    assert rows[-1][0].timestamp() <= time.time()


def test_other_options_are_refused_by_a_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    all_available(stream(spark, "windrow-synthetic", GENERATED), tmp_path, dies_in=1)
    changed = stream(spark, "windrow-synthetic", {**GENERATED, "seed": "9"})
    with pytest.raises(StreamingQueryException, match=r"seed of windrow-synthetic is '9'.*begun with '0'"):
        start(changed, Batches(), tmp_path, availableNow=True).awaitTermination(DEADLINE_S)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Two files of rows out of order, one row without a time."""
    generator = np.random.default_rng(5)
    folder = tmp_path / "recorded"
    folder.mkdir()
    for part in range(2):
        ids = np.arange(part * 500, part * 500 + 500)
        seen = pa.array(ids * 20 + generator.integers(0, 400, 500), pa.timestamp("ms"), mask=ids == 90)
        pq.write_table(pa.table({"seen": seen, "n": ids, "word": [f"w{n}" for n in ids]}), folder / f"{part}.parquet")
    return folder


@pytest.mark.parametrize("as_arrived", ["true", "false"])
def test_recorded_batches_come_again_after_a_restart(
    spark: SparkSession, recording: Path, tmp_path: Path, as_arrived: str
) -> None:
    options = {"path": f"{recording}?time=seen", "speed": "max", "span_s": "2", "as_arrived": as_arrived}
    replayed = stream(spark, "windrow-replay", options)
    assert replayed.dtypes == [("seen", "timestamp_ntz"), ("n", "bigint"), ("word", "string")]
    undisturbed = all_available(replayed, tmp_path / "a")
    first = all_available(replayed, tmp_path / "b", dies_in=4)
    second = all_available(replayed, tmp_path / "b")
    assert len(undisturbed.rows) >= 10
    assert second.rows[4] == first.rows[4]
    assert {**first.rows, **second.rows} == undisturbed.rows
    recorded = pa.concat_tables([pq.read_table(path) for path in sorted(recording.iterdir())]).to_pylist()
    expected = [tuple(row.values()) for row in recorded]
    if as_arrived == "true":
        assert undisturbed.all() == expected
    else:
        assert undisturbed.all() != expected
        assert sorted(undisturbed.all(), key=lambda row: row[1]) == expected
        times = [seen for seen, _, _ in undisturbed.all() if seen is not None]
        assert times == sorted(times)


def test_a_recording_at_a_multiple_of_real_time(spark: SparkSession, recording: Path, tmp_path: Path) -> None:
    # Twenty seconds of rows, ten times as fast as they came: two seconds.
    fast = stream(spark, "windrow-replay", {"path": f"{recording}?time=seen", "speed": "10", "columns": "n"})
    sink = Batches()
    with running(fast, sink, tmp_path, lambda: len(sink.all()) >= 1_000, "200 milliseconds"):
        pass
    assert sorted(sink.all()) == [(n,) for n in range(1_000)]
    assert len(sink.rows) > 1


def test_recorded_quotes_arrive_as_they_are(spark: SparkSession, recorded: Path, tmp_path: Path) -> None:
    path = recorded / "fx_quotes.parquet"
    table = pq.read_table(path)
    options = {"path": str(path), "speed": "max", "max_rows_per_batch": "200000", "as_arrived": "true"}
    counted: dict[int, int] = {}
    frame = stream(spark, "windrow-replay", options)
    writer = frame.writeStream.foreachBatch(lambda batch, batch_id: counted.update({batch_id: batch.count()}))
    query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    assert query.awaitTermination(DEADLINE_S)
    assert frame.columns == table.column_names
    assert sum(counted.values()) == len(table)
    assert len(counted) == -(-len(table) // 200_000)


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("windrow-synthetic", {"rate_hz": "-3"}, "UsageError: rate_hz of windrow-synthetic is '-3'"),
        ("windrow-clock", {"evry_s": "1"}, "UsageError: windrow-clock has no option 'evry_s'"),
        ("windrow-replay", {"path": "absent.parquet"}, "SourceError: 'absent.parquet' does not exist"),
    ],
)
def test_bad_options_fail_before_the_query_starts(
    spark: SparkSession, source: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(AnalysisException) as raised:
        stream(spark, source, options)
    assert message in str(raised.value)
