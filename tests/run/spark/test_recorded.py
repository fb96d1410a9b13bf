"""The source that `windrow run` reads: the batches of a replay, packed, whatever the types of the files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.streaming.datasource import ReadLimit

from windrow.errors import StateError, UsageError
from windrow.run.spark.blobs import LAST, Blobs
from windrow.run.spark.lanes import CLOCK
from windrow.run.spark.sources.recorded import RecordedReader, RecordedSource, Recordings
from windrow.streams.files import FileSource
from windrow.streams.recorded import recorded
from windrow.streams.replay import Replay

ROWS = 200


def stream(seed: int) -> pa.Table:
    """Rows a little out of order, of types that Spark does not have."""
    generator = np.random.default_rng(seed)
    millis = np.sort(generator.integers(1_000, 10_000, ROWS)) + generator.integers(-300, 300, ROWS)
    return pa.table(
        {
            "at": pa.array(millis, mask=generator.random(ROWS) < 0.02),
            "small": pa.array(generator.integers(0, 255, ROWS), pa.uint8()),
            "kind": pa.array(generator.choice(["car", "van"], ROWS)).dictionary_encode(),
            "unread": pa.nulls(ROWS),
        }
    )


@pytest.fixture
def recordings(tmp_path: Path) -> Recordings:
    """Two files; the first is read by two streams, with different columns."""
    for name in ("s", "t"):
        pq.write_table(stream(seed=len(name) + ord(name)), tmp_path / f"{name}.parquet")
    sources = {name: FileSource(str(tmp_path / f"{name}.parquet"), "at", "ms") for name in ("s", "t")}
    streams = (("s", "at", ("at", "small")), ("t", "at", ("at", "kind")), ("s", "at", ("at", "kind")))
    return Recordings(sources, streams, span_us=700_000)


def replay(recordings: Recordings, as_arrived: bool = False) -> Replay:
    inputs = {name: recorded(source) for name, source in recordings.sources.items()}
    read = {name: (found.read(["at", "small", "kind"]), "at", None) for name, found in inputs.items()}
    return Replay(read, batch_us=recordings.span_us, as_arrived=as_arrived)


def unpacked(reader: RecordedReader, number: int) -> tuple[dict[str, pa.Table], list[tuple[int, int]]]:
    """The rows of a batch by stream, and the rows that are no blobs."""
    start, end = ({**reader.initialOffset(), "batches": number + step} for step in (0, 1))
    given = [batch for partition in reader.partitions(start, end) for batch in reader.read(partition)]
    signs = [(row["stream"], row["rows"]) for batch in given for row in batch.to_pylist() if row["stream"] < 0]
    found: dict[str, list[pa.Table]] = {}
    for name, table in Blobs(("a", "b", "c")).tables(iter(given)):
        found.setdefault(name, []).append(table)
    return {name: pa.concat_tables(tables) for name, tables in found.items()}, signs


@pytest.mark.parametrize("as_arrived", [False, True])
def test_batches_are_those_of_the_replay(recordings: Recordings, as_arrived: bool) -> None:
    given = Recordings.from_json(Recordings(recordings.sources, recordings.streams, 700_000, as_arrived).to_json())
    reader = RecordedReader(given)
    expected = list(replay(recordings, as_arrived))
    assert len(expected) > 10
    for number, batch in enumerate(expected):
        rows, signs = unpacked(reader, number)
        last = [(LAST, 0)] if number + 1 == len(expected) else []
        assert signs == [(CLOCK, batch.end_us), *last]
        for name, (source, _, columns) in zip("abc", recordings.streams, strict=True):
            wanted = batch.tables[source].select(list(columns))
            found = rows.get(name, wanted.slice(0, 0))
            assert found.to_pylist() == wanted.to_pylist()
            assert found.schema == wanted.schema


def test_offsets_go_on_by_one_batch_to_the_end(recordings: Recordings) -> None:
    reader = RecordedReader(recordings)
    reader.prepareForTriggerAvailableNow()
    offset, seen = reader.initialOffset(), 0
    while (after := reader.latestOffset(offset, ReadLimit())) != offset:
        offset, seen = after, seen + 1
    assert seen == len(replay(recordings)) > 10


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"span_us": 800_000}, "span_us"),
        ({"as_arrived": True}, "as_arrived"),
        ({"streams": (("s", "at", ("at",)), ("t", "at", ("at",)))}, "streams"),
    ],
)
def test_a_checkpoint_of_other_recordings_is_refused(
    recordings: Recordings, changed: dict[str, object], says: str
) -> None:
    offset = RecordedReader(recordings).initialOffset()
    other = Recordings(**{"sources": recordings.sources, "streams": recordings.streams, "span_us": 700_000} | changed)  # type: ignore[arg-type]
    with pytest.raises(StateError, match=says):
        RecordedReader(other).latestOffset(offset, ReadLimit())
    with pytest.raises(StateError, match="version 7"):
        RecordedReader(recordings).latestOffset({**offset, "version": 7}, ReadLimit())


def test_nothing_to_read_gives_no_batch(tmp_path: Path) -> None:
    pq.write_table(stream(1).slice(0, 0), tmp_path / "none.parquet")
    sources = {"s": FileSource(str(tmp_path / "none.parquet"), "at", "ms")}
    reader = RecordedReader(Recordings(sources, (("s", "at", ("at",)),)))
    offset = reader.initialOffset()
    assert reader.latestOffset(offset, ReadLimit()) == offset


def test_recordings_have_to_be_given() -> None:
    with pytest.raises(UsageError, match="recordings"):
        RecordedSource({})
