"""Events of a join in one process, and events that cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import windrow
from windrow.control.controller import ControlSettings
from windrow.errors import StateError
from windrow.run.events import FORMAT_VERSION, EventLog, event_name, read_event, read_events
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


@pytest.mark.usefixtures("interpreted")
def test_an_exact_join_tells_which_condition_turns_pairs_away_and_where_results_lie(tmp_path: Path) -> None:
    select = "SELECT a.id AS i, b.id AS j FROM cam1 AS a, cam2 AS b"
    text = f"{select} WHERE a.id >= 0 AND ABS(a.x - b.x) <= 30 AND a.id < b.id - {{}}"
    for far, name in ((0, "near"), (10**9, "far")):
        query = windrow.sql(f"{text.format(far)} WINDOW 5 SECONDS", ROWS)
        with windrow.local(query, events=tmp_path / name) as join:
            for number in range(10):
                for source, table in ROWS.items():
                    size = len(table) // 10
                    join.push(source, table.slice(number * size, size))
                join.step(now_s=2.0 * (number + 1))
    near, far_off = ([*read_events(LocalStorage(tmp_path / name))][-1]["totals"] for name in ("near", "far"))
    assert far_off["results"] == 0 < near["results"]
    for driver, path in far_off["paths"].items():
        (step,) = path["steps"]
        assert 0 < step["met"] <= path["drivers"]
        assert 0 < step["pairs"] <= step["searched"]
        band, order = step["passed"]
        assert 0 < band < step["pairs"]
        assert (order, step["through"], step["alone"]) == (0, [band, 0], [0, band])
        assert sum(near["paths"][driver]["steps"][0]["lags"]) == near["paths"][driver]["results"] > 0


def test_totals_go_on_where_another_process_wrote_and_a_batch_that_is_run_again_counts_once(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    for batches in ((0, 1, 1), (2, 3), (3,)):
        log = EventLog(storage, clock=lambda: 5.0)
        for batch in batches:
            log.write(event(batch, results=10 + batch))
    events = [(each["totals"], each["plan"] is None) for each in read_events(storage)]
    assert [(totals["batches"], totals["results"], told_before) for totals, told_before in events] == [
        (1, 10, False),
        (2, 21, True),
        (3, 33, False),
        (4, 46, False),
    ]
    storage.put(event_name(3), b"{")
    log = EventLog(storage)
    log.write(event(4, results=1))
    assert (
        read_event(storage, event_name(4))["totals"] | {"since": 4, "batches": 1, "results": 1}
        == (read_event(storage, event_name(4))["totals"])
    )


def event(batch: int, results: int) -> dict[str, Any]:
    """As much of an event as totals ask for."""
    return {
        "version": FORMAT_VERSION, "batch": batch, "results": results, "busy_s": 0.5, "streams": {}, "query": {},
        "repaired": {"results": 0}, "work": {"sampled": {}, "others": {}, "sifts": {}}, "plan": {"paths": []},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "says"),
    [(b"{", "the event is damaged: JSONDecodeError"), (b"[]", "the event is damaged: TypeError"),
     (b"{}", "the event is damaged: KeyError"), (b'{"version": 99}', "the event has format version 99, this is 2")],
)  # fmt: skip
def test_events_that_cannot_be_read(text: bytes, says: str, tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    storage.put(event_name(3), text)
    with pytest.raises(StateError, match=says) as raised:
        list(read_events(storage))
    assert "events/000000003.json" in str(raised.value)


def test_other_files_are_no_events(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    log = EventLog(storage)
    log.write(event(4, results=1))
    storage.put("events/notes.json", b"mine")
    assert [event["batch"] for event in read_events(storage)] == [4]
