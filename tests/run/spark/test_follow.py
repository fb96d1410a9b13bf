"""Following a join's results: what is committed and nothing else, each batch once, in exactly the declared types."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from windrow.errors import SourceError, StateError, UsageError
from windrow.run.spark.publish import FolderSink, inside
from windrow.run.spark.sinks import Format, FormatSink, FunctionSink
from windrow.run.spark.sources.follow import ResultReader, ResultSource, follow
from windrow.run.spark.whereabouts import FILE, begin_span, last_commit, read_spans, span_of
from windrow.store.storage import LocalStorage, Storage

SCHEMA = pa.schema([("a_id", pa.int64()), ("name", pa.string())])
ALL = {
    "seen": (pa.timestamp("us"), dt.datetime(2024, 1, 1, 0, 0, 2)),
    "zoned": (pa.timestamp("us", "UTC"), dt.datetime(2024, 1, 1, 0, 0, 2)),
    "price": (pa.decimal128(10, 2), Decimal("1.25")),
    "share": (pa.float32(), 0.5),
    "small": (pa.int8(), 3),
    "true": (pa.bool_(), True),
    "day": (pa.date32(), dt.date(2024, 1, 1)),
    "gap": (pa.duration("us"), dt.timedelta(seconds=3)),
    "vector": (pa.list_(pa.float32()), [1.0, 2.0]),
    "raw": (pa.binary(), bytearray(b"x")),
    "inner": (pa.struct([("x", pa.int32())]), {"x": 1}),
}


class Join:
    """What a join leaves behind, batch by batch, without running one."""

    def __init__(self, checkpoint: Path, sink: FolderSink | None = None, schema: pa.Schema = SCHEMA) -> None:
        self.state = LocalStorage(checkpoint / "windrow")
        self.sink = sink or FolderSink(inside(self.state, "results"), inside(self.state, "staged"), kept=True)
        self.schema = schema
        begin_span(self.state, span_of(self.sink, last_commit(self.state) + 1, schema))

    def publish(self, batch: int, *rows: tuple[Any, ...]) -> None:
        for number, row in enumerate(rows):
            table = pa.table([[value] for value in row], schema=self.schema)
            with self.sink.folder.writing(f"batch={batch}/part-{number}.parquet") as file:
                pq.write_table(table, file)

    def commit(self, batch: int) -> None:
        self.state.put(f"commits/{batch}.json", b"{}")
        self.state.delete(f"commits/{batch - 2}.json")


def read(frame: DataFrame, checkpoint: Path) -> list[Any]:
    """What is there now, by a follower that goes on from where it was."""
    found: list[Any] = []

    def look(batch: DataFrame, _: int) -> None:
        found.extend(tuple(row) for row in batch.collect())

    query = frame.writeStream.option("checkpointLocation", str(checkpoint)).foreachBatch(look)
    query.trigger(availableNow=True).start().awaitTermination()
    return sorted(found)


def test_a_follower_sees_each_committed_batch_once(spark: SparkSession, tmp_path: Path) -> None:
    join = Join(tmp_path / "c", FolderSink(LocalStorage(tmp_path / "out")))
    frame = follow(spark, str(tmp_path / "c"))
    assert frame.schema.simpleString() == "struct<a_id:bigint,name:string>"
    join.publish(0, (1, "x"), (2, "y"))
    assert read(frame, tmp_path / "f") == [], "nothing is committed"
    join.commit(0)
    join.publish(1, (3, "z"))
    assert read(frame, tmp_path / "f") == [(1, "x"), (2, "y")]
    join.commit(1)
    join.commit(2)
    assert read(frame, tmp_path / "f") == [(3, "z")]
    assert read(frame, tmp_path / "f") == []
    assert read(follow(spark, str(tmp_path / "c" / "windrow")), tmp_path / "g") == [(1, "x"), (2, "y"), (3, "z")]
    assert len(join.sink.folder.list()) == 3, "a folder stays as it is"


def test_results_kept_in_the_checkpoint_go_when_the_follower_is_past_them(spark: SparkSession, tmp_path: Path) -> None:
    join = Join(tmp_path / "c")
    frame = follow(spark, str(tmp_path / "c"))
    found = []
    for batch in range(3):
        join.publish(batch, (batch, "x"))
        join.commit(batch)
        found += read(frame, tmp_path / "f")
    assert [row[0] for row in found] == [0, 1, 2]
    assert join.sink.folder.list() == ("batch=2/part-0.parquet",), "the last may be asked for again"


def test_every_type_that_results_can_have_is_read_as_declared(spark: SparkSession, tmp_path: Path) -> None:
    schema = pa.schema([(name, type_) for name, (type_, _) in ALL.items()])
    join = Join(tmp_path / "c", schema=schema)
    join.publish(0, tuple(value for _, value in ALL.values()), (None,) * len(ALL))
    join.commit(0)
    nothing, row = read_unsorted(follow(spark, str(tmp_path / "c")), tmp_path / "f")
    assert nothing == dict.fromkeys(ALL)
    assert row == {name: value for name, (_, value) in ALL.items()}


def read_unsorted(frame: DataFrame, checkpoint: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    def look(batch: DataFrame, _: int) -> None:
        found.extend(row.asDict(recursive=True) for row in batch.collect())

    query = frame.writeStream.option("checkpointLocation", str(checkpoint)).foreachBatch(look)
    query.trigger(availableNow=True).start().awaitTermination()
    return sorted(found, key=lambda row: row["small"] is not None)


def reader(join: Join, **options: str) -> ResultReader:
    source = ResultSource({"path": str(join.state.root.parent), **options})
    return source.streamReader(source.schema())


def names(found: ResultReader, start: int, end: int) -> list[str]:
    return [part.value[1] for part in found.partitions({"batch": start}, {"batch": end})]


def test_many_batches_are_listed_at_once_and_only_those(tmp_path: Path) -> None:
    join = Join(tmp_path / "c")
    for batch in range(40):
        join.publish(batch, (batch, "x"))
    join.state.put("results/batch=x/part-0.parquet", b"")
    join.state.put("results/notes.txt", b"")
    join.commit(40)
    found = reader(join)
    assert found.initialOffset() == {"batch": -1}
    assert set(names(found, 4, 34)) == {f"batch={batch}/part-0.parquet" for batch in range(5, 35)}
    assert names(found, 4, 5) == ["batch=5/part-0.parquet"]
    assert names(found, 5, 5) == []
    found.commit({"batch": 38})
    assert join.sink.folder.list() == ("batch=39/part-0.parquet", "batch=x/part-0.parquet", "notes.txt")


def test_options_say_where_to_begin_and_how_far_to_go(tmp_path: Path) -> None:
    join = Join(tmp_path / "c", FolderSink(LocalStorage(tmp_path / "out")))
    for batch in range(5):
        join.publish(batch, (batch, "x"))
        join.commit(batch)
    (tmp_path / "out").rename(tmp_path / "moved")
    found = reader(join, from_batch="3", max_batches="1", folder=str(tmp_path / "moved"))
    assert found.initialOffset() == {"batch": 2}
    assert found.latestOffset({"batch": 2}, None) == {"batch": 3}  # type: ignore[arg-type]
    part = found.partitions({"batch": 2}, {"batch": 3})[0]
    assert [batch.to_pylist() for batch in found.read(part)] == [[{"a_id": 3, "name": "x"}]]
    gone = reader(join)
    assert gone.partitions({"batch": -1}, {"batch": 4}) == []
    with pytest.raises(SourceError):
        list(gone.read(type(part)((LocalStorage(tmp_path / "out"), "batch=0/part-0.parquet", SCHEMA))))


def test_a_change_of_columns_or_of_the_sink_begins_a_new_stream(tmp_path: Path) -> None:
    join = Join(tmp_path / "c")
    join.publish(0, (0, "x"))
    join.commit(0)
    other = Join(tmp_path / "c", FolderSink(LocalStorage(tmp_path / "out")))
    other.publish(1, (1, "y"))
    other.commit(1)
    assert [span.first for span in read_spans(join.state)] == [0, 1]
    assert names(reader(join), -1, 1) == ["batch=0/part-0.parquet", "batch=1/part-0.parquet"]
    again = Join(tmp_path / "c", FolderSink(LocalStorage(tmp_path / "out")))
    assert len(read_spans(again.state)) == 2, "nothing has changed"
    changed = Join(tmp_path / "c", schema=pa.schema([("a_id", pa.int64())]))
    changed.publish(2, (2,))
    changed.commit(2)
    found = reader(changed)
    assert found.initialOffset() == {"batch": 1}
    with pytest.raises(StateError, match="changed at batch 2"):
        found.partitions({"batch": 0}, {"batch": 2})


def test_what_cannot_be_followed_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    state: Storage = LocalStorage(tmp_path / "c" / "windrow")
    with pytest.raises(UsageError, match="no join has begun"):
        ResultSource({"path": str(tmp_path / "c")}).schema()
    begin_span(state, span_of(FormatSink(Format("noop"), state), 0, SCHEMA))
    with pytest.raises(UsageError, match="go to format 'noop'"):
        ResultSource({"path": str(tmp_path / "c")}).schema()
    begin_span(state, span_of(FunctionSink(print, state), 0, SCHEMA))
    with pytest.raises(UsageError, match="go to function print"):
        ResultSource({"path": str(tmp_path / "c")}).schema()
    with pytest.raises(UsageError, match="no option 'pth'"):
        ResultSource({"pth": "x"})
    state.put(FILE, b'{"version": 9}')
    with pytest.raises(StateError, match="has version 9"):
        read_spans(state)
    state.put(FILE, b"{")
    with pytest.raises(StateError, match="is damaged"):
        read_spans(state)


def test_an_address_with_a_password_is_not_written_down(tmp_path: Path) -> None:
    sink = FolderSink(LocalStorage(tmp_path))
    sink.folder.address = "s3://key:secret@bucket/out"
    span = span_of(sink, 0, SCHEMA)
    assert span.address == ""
    with pytest.raises(UsageError, match="has a password"):
        span.folder(LocalStorage(tmp_path))
