"""Segments of tasks: remembered as long as there is room, with indexes from files, as whole as they were written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import windrow
from tests.oracle.tables import table_of
from tests.store.object_store import object_storage
from tests.store.segments import rows_of
from windrow.errors import SourceError, StateError
from windrow.plan.order import plan_query
from windrow.probe.indexes import index_of, key_text
from windrow.run.admit import Entry
from windrow.run.program import Program
from windrow.run.spark import segments
from windrow.run.spark.segments import (
    SegmentCache,
    cached_segment,
    read_with_indexes,
    remember_segment,
    retain_segments,
    write_with_indexes,
)
from windrow.store.files import SegmentFile, index_name, write_index, write_segment
from windrow.store.segment import Segment
from windrow.store.storage import LocalStorage, Storage

pytestmark = pytest.mark.usefixtures("interpreted")

ASKED = """SELECT a.id AS i, b.id AS j FROM s AS a, t AS b
    WHERE ABS(a.f64 - b.f64) <= 1 WINDOW 10 SECONDS"""
BY_KEY = "SELECT a.id AS i, b.id AS j FROM s AS a, t AS b WHERE a.s = b.s AND a.i64 = b.i64 WINDOW 10 SECONDS"


def program_of(text: str = ASKED) -> Program:
    tables = {"s": table_of(0, 0), "t": table_of(0, 0)}
    spec = windrow.sql(text, streams=tables, time={"s": "ts", "t": "ts"}).spec()
    return Program(spec, plan_query(spec), {})


def segment_of(program: Program, rows: int, seed: int = 0, level: int = 1) -> Segment:
    pushed = {"a": [table_of(rows, seed)]}
    return replace(Entry(program, None, None).admit(pushed, 0, last=True)["a"], level=level)


@pytest.fixture(params=["folder", "object store"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return LocalStorage(tmp_path) if request.param == "folder" else object_storage(tmp_path)


@pytest.fixture
def unremembered(monkeypatch: pytest.MonkeyPatch) -> SegmentCache:
    """A worker that remembers nothing yet, and writes indexes of any size."""
    cache = SegmentCache(2**30, 100)
    monkeypatch.setattr(segments, "_cache", lambda: cache)
    monkeypatch.setattr(segments, "INDEXED_ROWS", 1)
    return cache


@pytest.mark.parametrize("text", [ASKED, BY_KEY], ids=["sorted", "hashed"])
def test_indexes_that_were_written_are_not_built_again(
    text: str, storage: Storage, unremembered: SegmentCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = program_of(text)
    (key,) = program.indexes["a"]
    assert key[0] == ("sorted" if text == ASKED else "hashed")
    written = segment_of(program, 50)
    file = write_with_indexes(storage, "segments/1", written, program.indexes["a"])
    assert list(file.indexes) == [key_text(key)]
    assert set(storage.list()) == set(file.names)
    assert file.total_bytes == sum(len(storage.get(name)) for name in file.names)
    assert SegmentFile.from_json(file.to_json()) == file
    found = read_with_indexes(storage, file, program, "a")
    monkeypatch.setattr("windrow.probe.hashed.build", None)
    monkeypatch.setattr("windrow.probe.sorted.build", None)
    assert [part.tolist() for part in index_of(found, key)[:2]] == [
        part.tolist() for part in index_of(written, key)[:2]
    ]
    assert rows_of(found) == rows_of(written)


def test_an_index_that_is_not_named_is_built(storage: Storage, unremembered: SegmentCache) -> None:
    program = program_of()
    (key,) = program.indexes["a"]
    small = segment_of(program, 50, level=0)
    file = write_with_indexes(storage, "segments/1", small, program.indexes["a"])
    assert file.indexes == {}
    assert storage.list() == ("segments/1",)
    other = replace(file, indexes={"hashed a.k VARCHAR": 1})
    for each in (file, other):
        found = read_with_indexes(storage, each, program, "a")
        assert index_of(found, key)[1].tolist() == index_of(small, key)[1].tolist()


def test_few_rows_get_no_index_file(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    program = program_of()
    monkeypatch.setattr(segments, "INDEXED_ROWS", 51)
    assert write_with_indexes(storage, "segments/1", segment_of(program, 50), program.indexes["a"]).indexes == {}
    rows = len(segment_of(program, 60))
    monkeypatch.setattr(segments, "INDEXED_ROWS", rows)
    assert len(write_with_indexes(storage, "segments/2", segment_of(program, 60), program.indexes["a"]).indexes) == 1


def test_an_index_that_is_named_has_to_be_whole(storage: Storage, unremembered: SegmentCache) -> None:
    program = program_of()
    (key,) = program.indexes["a"]
    file = write_with_indexes(storage, "segments/1", segment_of(program, 50), program.indexes["a"])
    name = index_name(file.name, key_text(key))
    data = storage.get(name)
    storage.put(name, data[:-40])
    with pytest.raises(StateError, match=rf"'{name}' is damaged: {len(data) - 40} bytes instead of {len(data)}"):
        index_of(read_with_indexes(storage, file, program, "a"), key)
    size = write_index(storage, name, {"keys": segment_of(program, 50).time_us})
    with pytest.raises(StateError, match="is damaged: it is no index of the kind sorted"):
        index_of(read_with_indexes(storage, replace(file, indexes={key_text(key): size}), program, "a"), key)
    storage.delete(name)
    with pytest.raises(SourceError, match="there is no"):
        index_of(read_with_indexes(storage, file, program, "a"), key)


def test_a_segment_is_read_once(storage: Storage, unremembered: SegmentCache) -> None:
    program = program_of()
    segment = segment_of(program, 40)
    file, other = (write_segment(storage, f"segments/{name}", segment) for name in ("one", "two"))
    first = cached_segment(storage, file, program, "a")
    assert rows_of(first) == rows_of(segment)
    unremembered.most_segments = 1
    assert cached_segment(storage, file, program, "a") is first
    second = cached_segment(storage, other, program, "a")
    assert second is not first
    assert cached_segment(storage, other, program, "a") is second
    again = cached_segment(storage, file, program, "a")
    assert again is not first
    assert rows_of(again) == rows_of(segment)


def test_what_a_worker_wrote_it_need_not_read(storage: Storage, unremembered: SegmentCache) -> None:
    program = program_of()
    segment = segment_of(program, 40)
    file = write_with_indexes(storage, "segments/1", segment, program.indexes["a"])
    storage.delete(file.name)
    assert cached_segment(storage, file, program, "a") is segment
    remember_segment(storage, replace(file, name="segments/2"), segment)
    assert unremembered.nbytes == 2 * file.total_bytes


def test_another_layout_is_read_anew(storage: Storage, unremembered: SegmentCache) -> None:
    program, other = program_of(), program_of(ASKED.replace("a.id AS i, ", ""))
    file = write_with_indexes(storage, "segments/1", segment_of(program, 40), ())
    assert cached_segment(storage, file, other, "a").columns == ()
    assert len(cached_segment(storage, file, program, "a").columns) == 1
    assert len(unremembered) == 1


def test_memory_is_bounded_and_the_dead_are_forgotten(tmp_path: Path, unremembered: SegmentCache) -> None:
    program = program_of()
    here, there = LocalStorage(tmp_path / "here"), LocalStorage(tmp_path / "there")
    files = [write_with_indexes(here, f"segments/{k}", segment_of(program, 40, seed=k), ()) for k in range(5)]
    kept = write_with_indexes(there, "segments/1", segment_of(program, 9), ())
    assert unremembered.nbytes == sum(file.bytes for file in (*files, kept))
    retain_segments(here, {"segments/0", "segments/3"})
    assert unremembered.nbytes == sum(file.bytes for file in (files[0], files[3], kept))
    assert unremembered.find(there.address, "segments/1", program.layouts["a"]) is not None
    unremembered.most_bytes = files[3].bytes + files[4].bytes
    cached_segment(here, files[4], program, "a")
    assert unremembered.nbytes <= unremembered.most_bytes
    assert unremembered.find(here.address, "segments/4", program.layouts["a"]) is not None
    assert unremembered.find(here.address, "segments/0", program.layouts["a"]) is None
    unremembered.most_bytes = 1
    cached_segment(here, files[1], program, "a")
    assert (len(unremembered), unremembered.nbytes) == (1, files[1].bytes)


def test_each_process_has_a_memory_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = program_of()
    storage = LocalStorage(tmp_path)
    file = write_with_indexes(storage, "segments/1", segment_of(program, 40), ())
    first = cached_segment(storage, file, program, "a")
    monkeypatch.setattr("os.getpid", lambda: -7)
    assert cached_segment(storage, file, program, "a") is not first
