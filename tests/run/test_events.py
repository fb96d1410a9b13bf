"""Events of a join in one process, and events that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

import windrow
from windrow.control.controller import ControlSettings
from windrow.errors import StateError
from windrow.run.events import EventLog, event_name, read_events
from windrow.store.storage import LocalStorage
from windrow.streams.synthetic import cameras, generate

ROWS = generate(cameras(20, (0, 1), (2, 2)), duration_s=20, seed=1)
TEXT = "SELECT a.id AS i, b.id AS j FROM cam1 AS a, cam2 AS b WHERE ABS(a.x - b.x) <= 5 WINDOW 5 SECONDS"


@pytest.mark.usefixtures("interpreted")
def test_every_step_of_a_join_in_process_is_told(tmp_path: Path) -> None:
    control = ControlSettings(interval_s=2.0)
    found = 0
    with windrow.local(windrow.sql(TEXT, ROWS), throttle=0.5, control=control, events=tmp_path) as join:
        for number in range(10):
            for name, table in ROWS.items():
                size = len(table) // 10
                join.push(name, table.slice(number * size, size))
            found += len(join.step(now_s=2.0 * (number + 1)))
    events = list(read_events(LocalStorage(tmp_path)))
    assert [event["batch"] for event in events] == list(range(10))
    assert sum(event["results"] for event in events) == found > 0
    assert events[-1]["throttle"] == 0.5
    assert [event["plan"] is not None for event in events] == [True, *[False] * 9]
    assert events[-1]["streams"]["a"]["rows"] == sum(event["work"]["others"]["a"]["drivers"] for event in events) + sum(
        event["work"]["sampled"].get("a", {"drivers": 0})["drivers"] for event in events
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [(b"{", "the event is damaged: JSONDecodeError"), (b"[]", "the event is damaged: TypeError"),
     (b"{}", "the event is damaged: KeyError"), (b'{"version": 99}', "the event has format version 99, this is 1")],
)  # fmt: skip
def test_events_that_cannot_be_read(text: bytes, says: str, tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    storage.put(event_name(3), text)
    with pytest.raises(StateError, match=says) as raised:
        list(read_events(storage))
    assert "events/000000003.json" in str(raised.value)


def test_other_files_are_no_events(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    EventLog(storage).write({"version": 1, "batch": 4, "plan": {}})
    storage.put("events/notes.json", b"mine")
    assert [event["batch"] for event in read_events(storage)] == [4]
