"""Publishing: a folder holds each batch once, whatever failed attempts staged; on disks and on object stores."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from tests.store.object_store import object_storage
from windrow.errors import UsageError
from windrow.run.spark import publish
from windrow.run.spark.publish import FolderSink, inside, move
from windrow.run.spark.results import Output, ResultFile, Results, write_results
from windrow.store.storage import LocalStorage, Storage, open_storage

SCHEMA = pa.schema([("a_id", pa.int64()), ("name", pa.string())])
PLACES: dict[str, Callable[[Path], Storage]] = {"disk": lambda path: open_storage(str(path)), "objects": object_storage}


@pytest.fixture(params=PLACES)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return PLACES[request.param](tmp_path)


def rows(*ids: int) -> pa.RecordBatch:
    return pa.record_batch([list(ids), [f"name {each}" for each in ids]], schema=SCHEMA)


def staged(sink: FolderSink, attempt: str, *ids: int) -> ResultFile:
    """What one attempt of a task stages."""
    written = write_results(Output(sink.staging, sink.form), f"results/{attempt}", SCHEMA, [rows(*ids)], inline_bytes=0)
    assert isinstance(written, ResultFile)
    return written


def results(sink: FolderSink, *files: ResultFile, inline: tuple[pa.Table, ...] = ()) -> Results:
    return Results(cast(Any, None), Output(sink.staging, sink.form), SCHEMA, files, inline)


def published(folder: Storage) -> dict[str, list[int]]:
    """The ids in each file a reader of the folder would see."""
    names = [name for name in folder.list() if not name.startswith("_")]
    return {name: pq.read_table(pa.BufferReader(folder.get(name)))["a_id"].to_pylist() for name in names}


def test_only_what_successful_attempts_staged_is_published(folder: Storage) -> None:
    sink = FolderSink(folder)
    good = staged(sink, "0-1", 1, 2), staged(sink, "0-2", 3)
    staged(sink, "0-2-speculative", 3)
    assert published(folder) == {}
    sink.deliver(results(sink, *good), 0)
    assert published(folder) == {"batch=0/part-0.parquet": [1, 2], "batch=0/part-1.parquet": [3]}
    assert sink.staging.list() == ()


def test_a_batch_that_is_run_again_takes_the_place_of_what_was_published(folder: Storage) -> None:
    first = FolderSink(folder)
    first.deliver(results(first, staged(first, "a", 1), staged(first, "b", 2), staged(first, "c", 3)), 7)
    staged(first, "8-begun", 9)
    again = FolderSink(folder)
    again.deliver(results(again, staged(again, "d", 1, 2, 3)), 7)
    assert published(folder) == {"batch=7/part-0.parquet": [1, 2, 3]}
    assert again.staging.list() == (), "what the dead attempt had staged is gone"


def test_a_publication_that_is_cut_off_is_made_whole_by_the_next(
    folder: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = FolderSink(folder)
    files = staged(sink, "a", 1), staged(sink, "b", 2)
    moved: list[str] = []

    def dying(source: Storage, name: str, target: Storage, new_name: str) -> None:
        if moved:
            raise OSError("the driver program dies here")
        moved.append(name)
        move(source, name, target, new_name)

    with monkeypatch.context() as patch:
        patch.setattr(publish, "move", dying)
        with pytest.raises(OSError, match="dies here"):
            sink.deliver(results(sink, *files), 3)
    assert len(published(folder)) == 1
    again = FolderSink(folder)
    again.deliver(results(again, staged(again, "c", 1), staged(again, "d", 2)), 3)
    assert sorted(chain.from_iterable(published(folder).values())) == [1, 2]


def test_a_batch_without_results_leaves_no_folder(tmp_path: Path) -> None:
    sink = FolderSink(LocalStorage(tmp_path / "out"))
    nothing = write_results(Output(sink.staging, sink.form), "results/x", SCHEMA, [])
    assert isinstance(nothing, pa.Table)
    sink.deliver(results(sink, inline=(nothing,)), 0)
    assert not (tmp_path / "out" / "batch=0").exists()
    assert sink.is_empty()


def test_rows_that_came_in_messages_are_a_file_too(folder: Storage) -> None:
    sink = FolderSink(folder)
    inline = pa.Table.from_batches([rows(5)]), pa.Table.from_batches([], SCHEMA)
    sink.deliver(results(sink, staged(sink, "a", 4), inline=inline), 1)
    assert published(folder) == {"batch=1/part-0.parquet": [4], "batch=1/part-1.parquet": [5]}
    assert not sink.is_empty()


def test_readers_of_the_folder_skip_what_is_staged(tmp_path: Path) -> None:
    sink = FolderSink(LocalStorage(tmp_path / "out"))
    sink.deliver(results(sink, staged(sink, "a", 1)), 0)
    staged(sink, "b", 2)
    assert ds.dataset(tmp_path / "out", partitioning="hive").to_table().to_pylist() == [
        {"a_id": 1, "name": "name 1", "batch": 0}
    ]


def test_what_failed_attempts_staged_is_deleted_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish, "SWEEP_EVERY", 3)
    sink = FolderSink(LocalStorage(tmp_path / "out"))
    left = []
    for batch in range(4):
        staged(sink, f"{batch}-failed", batch)
        (tmp_path / "out" / "_staged" / "results" / f".{batch}.part").write_bytes(b"half")
        sink.deliver(results(sink, staged(sink, f"{batch}", batch)), batch)
        left.append(sum(len(files) for _, _, files in os.walk(tmp_path / "out" / "_staged")))
    assert left == [0, 2, 4, 0]


def test_storages_inside_others_have_places_of_their_own(folder: Storage) -> None:
    below = inside(folder, "sub")
    below.put("x/1", b"one")
    assert folder.list() == ("sub/x/1",)
    assert below.list() == ("x/1",)
    assert below.place("x/1") == folder.place("sub/x/1")
    assert below.fetch("x/1").read_bytes() == b"one"
    with pytest.raises(UsageError, match="has no folders"):
        inside(cast(Any, _Nowhere()), "sub")


class _Nowhere:
    address = "nowhere"
