"""The journal: what is found again, what goes and what stays, and two driver programs on one checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tests.run.spark.commits import commit_of, file_of
from tests.store.object_store import object_storage
from windrow.errors import StateError
from windrow.run.spark.journal import WHOLE_EVERY, Journal, is_done, segment_name, sweep
from windrow.run.spark.state import Commit, base_of, changed
from windrow.store.files import SegmentFile
from windrow.store.storage import LocalStorage, Storage


@pytest.fixture(params=["folder", "object store"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return LocalStorage(tmp_path) if request.param == "folder" else object_storage(tmp_path)


def test_a_journal_finds_what_was_written(storage: Storage) -> None:
    journal = Journal(storage)
    assert (journal.plan(3), journal.commit(3), journal.waiting(3, "a/b")) == (None, None, None)
    plan = {"now_us": 2**60, "order": ["b", "a"], "merges": {"4": {"a": [["segments/1", "segments/2"]]}}}
    rows = pa.table({"ts": pa.array([1, None], pa.timestamp("us")), "x": [3, 4], "\0event time": [1, 2]})
    assert journal.write_plan(3, plan) == plan
    journal.write_waiting(3, "a/b", pa.concat_tables([rows, rows]))
    journal.write_waiting(3, "b", rows.slice(0, 0))
    journal.write_commit(commit_of(3))
    again = Journal(storage)
    assert again.plan(3) == plan
    assert again.commit(3) == commit_of(3)
    waiting = again.waiting(3, "a/b")
    assert waiting is not None
    assert waiting.equals(pa.concat_tables([rows, rows]))
    assert len(again.waiting(3, "b") or ()) == 0
    assert (again.plan(2), again.plan(3, attempt=2), again.commit(4), again.waiting(2, "a/b")) == (None,) * 4


def test_waiting_rows_serve_another_select_list(storage: Storage) -> None:
    journal = Journal(storage)
    journal.write_waiting(1, "a", pa.table({"ts": [1], "x": [2], "y": [3], "\0event time": [4]}))
    found = journal.waiting(1, "a", ("y", "ts"))
    assert found is not None
    assert found.to_pylist() == [{"y": 3, "ts": 1, "\0event time": 4}]
    with pytest.raises(StateError, match=r"waiting rows of stream 'a' hold no column z .*waiting/1-a"):
        journal.waiting(1, "a", ("y", "z"))


def states(count: int) -> Iterator[Commit]:
    """A query over many batches: a new segment each, three of them live, and one that stays."""
    commit = commit_of(0)
    for batch in range(count):
        names = [f"segments/{batch:03d}-{k}" for k in range(12)] if batch == 0 else [f"segments/{batch:03d}-0"]
        gone = [f"segments/{batch - 3:03d}-0"]
        live = changed(commit.live, gone, {1: {"b": [file_of(name, 0) for name in names]}})
        commit = replace(commit, batch=batch, live=live, results=batch)
        yield commit


def test_most_commits_say_what_is_different_and_all_are_found(storage: Storage) -> None:
    journal = Journal(storage)
    bases = []
    last = None
    for commit in states(2 * WHOLE_EVERY + 5):
        journal.write_commit(commit)
        journal.forget(commit.batch - 2, ("a",), ())
        found = storage.get(f"commits/{commit.batch}.json").decode()
        bases.append(base_of(found))
        for before in (last, commit):
            assert before is None or Journal(storage).commit(before.batch) == before
        kept = {int(name[8:-5]) for name in storage.list("commits")}
        recent = {commit.batch, *([] if last is None else [last.batch])}
        assert kept == recent | {base for each in recent if (base := bases[each]) is not None}
        last = commit
    whole = [batch for batch, base in enumerate(bases) if base is None]
    assert whole == [0, WHOLE_EVERY, 2 * WHOLE_EVERY]
    assert max(base for base in bases if base is not None) == 2 * WHOLE_EVERY


def test_a_restart_goes_on_from_a_difference(storage: Storage) -> None:
    everything = list(states(8))
    Journal(storage).write_commit(everything[0])
    for commit in everything[1:5]:
        resumed(storage, commit)
    assert base_of(storage.get("commits/4.json").decode()) == 0
    assert Journal(storage).last(5) == everything[4]
    assert Journal(storage).last(4) == everything[4]
    storage.delete("commits/0.json")
    with pytest.raises(StateError, match="commit 4 builds on commit 0, which is not there"):
        Journal(storage).commit(4)


def resumed(storage: Storage, commit: Commit) -> None:
    journal = Journal(storage)
    assert journal.last(commit.batch) is not None
    journal.write_commit(commit)


def test_the_first_batch_has_no_state_and_later_ones_must(storage: Storage) -> None:
    assert Journal(storage).last(0) is None
    with pytest.raises(StateError, match="batch 5 is due, but the state has neither it nor the one before"):
        Journal(storage).last(5)


def test_of_two_driver_programs_one_goes_on(storage: Storage) -> None:
    one, two = Journal(storage), Journal(storage)
    assert one.write_plan(1, {"now_us": 1}) == {"now_us": 1}
    assert two.write_plan(1, {"now_us": 2}) == {"now_us": 1}
    one.write_commit(commit_of(1, run="one"))
    with pytest.raises(StateError, match="batch 1 has been committed by another driver program"):
        two.write_commit(commit_of(1, run="two"))
    one.write_commit(commit_of(1, run="one"))
    found = Journal(storage).commit(1)
    assert found is not None
    assert found.run == "one"


def test_a_batch_is_forgotten_and_no_other(storage: Storage) -> None:
    journal = Journal(storage)
    rows = pa.table({"x": [1]})
    for batch in (1, 2, 12):
        journal.write_plan(batch, {"batch": batch})
        journal.write_waiting(batch, "a", rows)
        Journal(storage).write_commit(commit_of(batch))
        storage.put(f"segments/{batch}", b"x")
    journal.forget(2, ("a", "b"), ("segments/2", "segments/7"))
    left = [f"{kind}{batch}{end}" for kind, end in (("commits/", ".json"), ("plans/", ".json")) for batch in (1, 12)]
    left += [f"{kind}{batch}{end}" for kind, end in (("segments/", ""), ("waiting/", "-a")) for batch in (1, 12)]
    assert storage.list() == tuple(sorted(left))
    journal.forget(2, ("a", "b"), ("segments/2",))
    journal.forget(-1, ("a",), ())
    assert storage.list() == tuple(sorted(left))


def test_what_failed_attempts_left_is_swept(storage: Storage) -> None:
    journal = Journal(storage)
    named = [segment_name(batch, 0, "a", "r1", "1") for batch in range(1, 9)]
    files = [SegmentFile(name, 3, 1, 0, 1, 0, {}, {"sorted a.x": 2}) for name in named]
    live = [files[0], *files[3:8]]
    strays = [segment_name(batch, 3, "a b", "r0", "17") for batch in (1, 7, 8, 9)]
    for name in (*(name for file in files for name in file.names), *strays, "segments/notes.txt", "other/3"):
        storage.put(name, b"x")
    base = replace(commit_of(5), live={0: {"a": tuple(files[:7])}}, dying=())
    journal.write_commit(base)
    for batch in (6, 7, 8):
        dying = files[1].names if batch == 8 else ()
        journal.write_commit(replace(base, batch=batch, live={0: {"a": tuple(live)}}, dying=dying))
        journal.write_plan(batch, {})
    for name in ("plans/3.json", "plans/6-2.json", "waiting/4-a", "commits/2.json"):
        storage.put(name, b"{}")
    last = Journal(storage).last(8)
    assert last is not None
    before = set(storage.list())
    gone = Journal(storage).sweep(last)
    assert set(gone) == {
        *files[2].names, strays[0], "plans/3.json", "plans/6.json", "plans/6-2.json", "waiting/4-a", "commits/2.json",
        "commits/6.json",
    }  # fmt: skip
    assert set(storage.list()) == before - set(gone)
    assert Journal(storage).last(8) == last
    assert Journal(storage).sweep(last) == ()


def test_sweeping_a_folder_leaves_what_is_named_or_young(storage: Storage) -> None:
    for name in ("out/3-a", "out/4-a", "out/4-b", "out/5-a", "out/README"):
        storage.put(name, b"x")
    assert sweep(storage, "out", {"out/4-b"}, before=5) == ("out/3-a", "out/4-a")
    assert storage.list("out") == ("out/4-b", "out/5-a", "out/README")


def test_only_the_next_batch_of_the_same_query_is_due() -> None:
    last = commit_of(4)
    assert is_done(last, 4, "query 7")
    assert not is_done(last, 5, "query 7")
    assert not is_done(replace(last, query=""), 5, "query 7")
    for batch in (3, 6, 0):
        with pytest.raises(StateError, match=f"batch {batch} is due after batch 4"):
            is_done(last, batch, "query 7")
    with pytest.raises(StateError, match="the state belongs to the query query 7, this is query 8"):
        is_done(last, 5, "query 8")


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe\x00", b"[1]"])
def test_damaged_files_are_told_by_name(storage: Storage, data: bytes) -> None:
    journal = Journal(storage)
    for name in ("plans/1.json", "commits/1.json", "waiting/1-a"):
        storage.put(name, data)
    with pytest.raises(StateError, match=r"plans/1\.json"):
        journal.plan(1)
    with pytest.raises(StateError, match=r"commits/1\.json"):
        journal.commit(1)
    with pytest.raises(StateError, match="waiting/1-a"):
        journal.waiting(1, "a")
