"""State between batches: what a restart reads is what was written, or it is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.store.object_store import object_storage
from tests.store.segments import LAYOUT, rows_of, segment_of
from windrow.errors import StateError
from windrow.run.spark import state
from windrow.run.spark.state import FORMAT_VERSION, Commit, Gate, Ledgers, Live, cached_segment
from windrow.store.files import SegmentFile, write_segment
from windrow.store.storage import LocalStorage, Storage

pytestmark = pytest.mark.usefixtures("interpreted")

NEVER_US = -(2**63)
COUNTS = {"rows": 5, "late": 1, "bad": 0, "ahead": 0, "filtered": 2}


def file_of(name: str) -> SegmentFile:
    return SegmentFile(name, 3, 1000, -5, 7, 1, {"a": (4, 6)})


def commit_of(batch: int) -> Commit:
    gates = {"a": Gate(2**62, NEVER_US, 17, 6, COUNTS), "b": Gate(NEVER_US, NEVER_US, None, 0, COUNTS)}
    live: Live = {
        0: {"a": (file_of("segments/1"), file_of("segments/2")), "b": ()},
        11: {"b": (file_of("segments/3"),)},
    }
    return Commit(batch, "é 'query'", 12, 34, gates, live, ("segments/0",))


@pytest.fixture(params=["folder", "object store"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return LocalStorage(tmp_path) if request.param == "folder" else object_storage(tmp_path)


def test_a_commit_survives_its_passage_through_text() -> None:
    commit = commit_of(8)
    assert Commit.from_json(commit.to_json()) == commit
    assert commit.names() == {"segments/1", "segments/2", "segments/3"}
    first = Commit(-1, "query")
    assert Commit.from_json(first.to_json()) == first
    assert first.names() == set()


@pytest.mark.parametrize("version", [FORMAT_VERSION + 1, 0, str(FORMAT_VERSION), None])
def test_another_version_is_refused(version: object) -> None:
    text = json.dumps({**json.loads(commit_of(1).to_json()), "version": version})
    with pytest.raises(StateError, match=f"has format version {version}, this is {FORMAT_VERSION}"):
        Commit.from_json(text)


@pytest.mark.parametrize("name", ["version", "batch", "fingerprint", "now_us", "results", "gates", "live", "dying"])
def test_a_commit_that_lacks_a_field_is_refused(name: str) -> None:
    fields = json.loads(commit_of(1).to_json())
    fields.pop(name)
    with pytest.raises(StateError, match="damaged"):
        Commit.from_json(json.dumps(fields))


DAMAGE: dict[str, Any] = {
    "live": [],
    "gates": {"a": {"newest_us": 1}},
    "batch": "x",
    "dying": None,
    "results": [],
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_commit_with_a_field_of_another_kind_is_refused(name: str) -> None:
    fields = {**json.loads(commit_of(1).to_json()), name: DAMAGE[name]}
    with pytest.raises(StateError, match="damaged"):
        Commit.from_json(json.dumps(fields))


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", '"x"', commit_of(1).to_json()[:-20]])
def test_text_that_is_no_commit_is_refused(text: str) -> None:
    with pytest.raises(StateError, match="damaged"):
        Commit.from_json(text)


def test_ledgers_find_what_was_written(storage: Storage) -> None:
    ledgers = Ledgers(storage)
    assert (ledgers.plan(3), ledgers.commit(3), ledgers.waiting(3, "a")) == (None, None, None)
    plan = {"now_us": 2**60, "order": ["b", "a"], "merges": {"4": {"a": [["segments/1", "segments/2"]]}}}
    rows = pa.table({"ts": pa.array([1, None], pa.timestamp("us")), "\0event time": [1, 2]})
    ledgers.write_plan(3, plan)
    ledgers.write_waiting(3, "a", pa.concat_tables([rows, rows]))
    ledgers.write_waiting(3, "b", rows.slice(0, 0))
    ledgers.write_commit(commit_of(3))
    again = Ledgers(storage)
    assert again.plan(3) == plan
    assert again.commit(3) == commit_of(3)
    waiting = again.waiting(3, "a")
    assert waiting is not None
    assert waiting.equals(pa.concat_tables([rows, rows]))
    held_back = again.waiting(3, "b")
    assert held_back is None or len(held_back) == 0
    assert (again.plan(2), again.commit(4), again.waiting(2, "a")) == (None, None, None)


def test_a_batch_is_forgotten_and_no_other(storage: Storage) -> None:
    ledgers = Ledgers(storage)
    rows = pa.table({"x": [1]})
    for batch in (1, 2, 12):
        ledgers.write_plan(batch, {"batch": batch})
        ledgers.write_waiting(batch, "a", rows)
        ledgers.write_commit(commit_of(batch))
        storage.put(f"segments/{batch}", b"x")
    ledgers.forget(2, ("a", "b"), ("segments/2", "segments/7"))
    left = [f"{kind}{batch}{end}" for kind, end in (("commits/", ".json"), ("plans/", ".json")) for batch in (1, 12)]
    left += [f"{kind}{batch}{end}" for kind, end in (("segments/", ""), ("waiting/", "-a")) for batch in (1, 12)]
    assert storage.list() == tuple(sorted(left))
    ledgers.forget(2, ("a", "b"), ("segments/2",))
    ledgers.forget(-1, ("a",), ())
    assert storage.list() == tuple(sorted(left))


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe\x00", b"[1]"])
def test_damaged_files_are_told_by_name(storage: Storage, data: bytes) -> None:
    ledgers = Ledgers(storage)
    for name in ("plans/1.json", "commits/1.json", "waiting/1-a"):
        storage.put(name, data)
    with pytest.raises(StateError, match=r"plans/1\.json"):
        ledgers.plan(1)
    with pytest.raises(StateError, match=r"commits/1\.json"):
        ledgers.commit(1)
    with pytest.raises(StateError, match="waiting/1-a"):
        ledgers.waiting(1, "a")


def test_a_segment_is_read_once(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    segment = segment_of([1, 2, 3], first_clock=5)
    file, other = (write_segment(storage, f"segments/{name}", segment) for name in ("one", "two"))
    first = cached_segment(storage, file, LAYOUT)
    assert rows_of(first) == rows_of(segment)
    first.index("key", lambda: "built once")
    monkeypatch.setattr(state, "CACHED_SEGMENTS", 1)
    assert cached_segment(storage, file, LAYOUT) is first
    second = cached_segment(storage, other, LAYOUT)
    assert second is not first
    assert cached_segment(storage, other, LAYOUT) is second
    again = cached_segment(storage, file, LAYOUT)
    assert again is not first
    assert rows_of(again) == rows_of(segment)


def test_the_same_name_elsewhere_is_another_segment(tmp_path: Path) -> None:
    here, there = LocalStorage(tmp_path / "here"), LocalStorage(tmp_path / "there")
    one, two = segment_of([1, 2]), segment_of([3])
    found = [cached_segment(s, write_segment(s, "segments/1", rows), LAYOUT) for s, rows in ((here, one), (there, two))]
    assert [len(segment) for segment in found] == [2, 1]
