"""What the page reads of a folder: few files of many, and none that it should not."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.dashboard import made
from windrow.dashboard.batches import read
from windrow.dashboard.decode import DamagedError
from windrow.dashboard.history import OLD, RECENT, Reader
from windrow.errors import UsageError
from windrow.store.storage import LocalStorage


def test_events_are_found_below_a_checkpoint_below_the_folder_and_at_it(runs: Path, tmp_path: Path) -> None:
    made.copied(runs / "near", tmp_path / "checkpoint" / "windrow")
    for address in (runs / "near", runs / "near" / "events", tmp_path / "checkpoint"):
        history = made.history_of(address)
        assert [batch.batch for batch in history.batches] == list(range(made.BATCHES + 1))
        assert (history.events, history.damaged) == (made.BATCHES + 1, 0)


def test_new_events_are_followed_and_one_that_is_written_again_is_read_again(runs: Path, tmp_path: Path) -> None:
    whole = sorted((runs / "near" / "events").iterdir())
    reader = Reader(str(tmp_path))
    assert not reader.refresh()
    assert not reader.history.batches
    (tmp_path / "events").mkdir()
    for number, file in enumerate(whole[:4]):
        (tmp_path / "events" / file.name).write_bytes(file.read_bytes())
        assert reader.refresh()
        assert not reader.refresh()
        assert len(reader.history.batches) == number + 1
    again = json.loads(whole[3].read_bytes()) | {"results": 77}
    LocalStorage(tmp_path).put(f"events/{whole[3].name}", json.dumps(again).encode())
    assert reader.refresh()
    assert reader.history.batches[-1].results == 77


def test_a_hundred_thousand_events_are_read_as_a_few(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.multiplied(runs / "near", tmp_path, 100_000)
    asked: list[str] = []
    find = LocalStorage.find

    def noted(storage: LocalStorage, name: str) -> bytes | None:
        asked.append(name)
        return find(storage, name)

    monkeypatch.setattr(LocalStorage, "find", noted)
    reader = Reader(str(tmp_path))
    assert reader.refresh()
    assert reader.history.events == 100_000
    assert RECENT < len(reader.history.batches) <= RECENT + OLD
    assert len(asked) <= RECENT + OLD + 1
    asked.clear()
    assert not reader.refresh()
    assert len(asked) <= 2


def test_torn_files_and_what_is_no_file_are_passed_over_and_counted(runs: Path, tmp_path: Path) -> None:
    events = made.copied(runs / "near", tmp_path / "run")
    names = sorted(events.iterdir())
    secret = tmp_path / "secret.json"
    secret.write_bytes(names[0].read_bytes())
    names[2].write_bytes(names[2].read_bytes()[:-40])
    names[3].write_bytes(b"")
    names[4].write_bytes(b"[" * 100_000)
    names[5].write_bytes(b'{"version": 99}')
    names[6].unlink()
    names[6].symlink_to(secret)
    names[7].unlink()
    os.mkfifo(names[7])
    names[8].write_bytes(names[8].read_bytes().replace(b'"busy_s":', b'"busy_s":1e999,"was":', 1))
    (events / "notes.json").write_text("mine")
    (events / "0000000001.json").write_text("mine")
    history = made.history_of(tmp_path / "run")
    kept = [n for n in range(made.BATCHES + 1) if n not in range(2, 9)]
    assert [batch.batch for batch in history.batches] == kept
    assert (history.events, history.damaged) == (made.BATCHES + 1, 7)
    view = made.seen(tmp_path / "run")
    assert (view["state"], view["damaged"]) == ("finished", 7)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"busy_s": "1"}, "Batch.busy_s is not a number"),
        ({"busy_s": True}, "Batch.busy_s is not a number"),
        ({"busy_s": 10**400}, "Batch.busy_s is not a finite number"),
        ({"now_s": 1e200}, "the clock is out of range"),
        ({"streams": []}, "Batch.streams is not a mapping"),
        ({"shedding": {"throttle": 1, "portions": [["a"]]}}, "Batch.shedding.portions has 1 parts, not 2"),
        ({"version": "2"}, "format version 2, this is 2"),
    ],
)
def test_an_event_whose_parts_are_not_what_they_should_be_is_refused(runs: Path, change: object, says: str) -> None:
    event = json.loads((runs / "near" / "events" / "000000000.json").read_bytes())
    assert read(json.dumps(event).encode()).batch == 0
    with pytest.raises(DamagedError, match=says):
        read(json.dumps({**event, **change}).encode())  # type: ignore[dict-item]


def test_a_plan_of_another_query_is_refused(runs: Path) -> None:
    event = json.loads((runs / "near" / "events" / "000000000.json").read_bytes())
    event["plan"]["paths"][0]["steps"][0]["conjuncts"] = [99]
    with pytest.raises(DamagedError, match="conditions that are not there"):
        read(json.dumps(event).encode())
    event["plan"]["paths"][0]["steps"][0] |= {"conjuncts": [1], "stream": "zzz"}
    with pytest.raises(DamagedError, match="streams that are not there"):
        read(json.dumps(event).encode())


def test_a_folder_that_is_not_there_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no folder"):
        Reader(str(tmp_path / "nowhere"))
