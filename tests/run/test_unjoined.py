"""Rows that recall does not count: beside it in reports and events, whatever kept them from being joined."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windrow
from windrow.run.events import read_events
from windrow.run.unjoined import Unjoined
from windrow.store.storage import open_storage

pytestmark = pytest.mark.usefixtures("interpreted")

ROWS, BATCHES = 60, 8
TEXT = "SELECT a.k AS k FROM a, b WHERE a.k = b.k WINDOW 5 SECONDS"


def rows(batch: int, seed: int) -> pa.Table:
    """Rows of a second; the last of each batch are two seconds late."""
    random = np.random.default_rng([batch, seed])
    times = batch * 1_000_000 + np.arange(ROWS) * (1_000_000 // ROWS) - 2_000_000 * (np.arange(ROWS) >= ROWS - 2)
    return pa.table({"ts": pa.array(times, pa.timestamp("us")), "k": random.integers(0, 9, ROWS)})


def test_reports_and_events_tell_the_same_beside_recall(tmp_path: Path) -> None:
    query = windrow.sql(TEXT, streams={"a": rows(0, 0), "b": rows(0, 1)})
    options: dict[str, Any] = {"throttle": 0.6, "memory": "4KB", "buffer_rows": 50, "events": tmp_path}
    with windrow.local(query, **options) as join:
        for batch in range(BATCHES):
            for seed, name in enumerate("ab"):
                join.push(name, rows(batch, seed))
            join.step(now_s=float(batch))
        report = join.report
    *_, event = read_events(open_storage(str(tmp_path)))
    unjoined = report.unjoined
    assert event["unjoined"] == report.to_dict()["unjoined"] == unjoined.to_values()
    assert unjoined.dropped == join.dropped == sum(stream["dropped"] for stream in event["streams"].values()) > 0
    assert unjoined.let_go == sum(stream["let_go"] for stream in event["streams"].values()) > 0
    assert unjoined.late > 0
    assert unjoined.lost_results > 0
    assert str(report).endswith(f"; not counting {unjoined}")
    assert event["recall"]["whole"] == (report.recall and report.recall.to_values())


def test_an_exact_run_says_only_what_is_lacking() -> None:
    query = windrow.sql(TEXT, streams={"a": rows(0, 0), "b": rows(0, 1)})
    for limit, lacks in ((None, False), (40, True)):
        with windrow.local(query, buffer_rows=limit) as join:
            join.push("a", rows(0, 0))
            join.push("b", rows(0, 1))
            join.step(now_s=0.0)
        assert ("not counting 40 rows dropped" in str(join.report)) == lacks


def test_counts_of_several_streams_add_up() -> None:
    held = {"rows": 9, "late": 1, "bad": 2, "ahead": 3, "filtered": 4, "dropped": 5}
    assert Unjoined.of((held, held), overflowed=7, let_go=8, lost_results=1.26) == Unjoined(2, 4, 6, 17, 8, 1.3)
    assert str(Unjoined(bad=1, dropped=2)) == "1 rows bad, 2 dropped"
