"""Runs whose events the tests of the page look at: made here in a moment, with predicates interpreted."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import windrow
from windrow.control.controller import ControlSettings
from windrow.dashboard.history import History, Reader
from windrow.dashboard.view import view_of
from windrow.run.backlog import RepairSettings
from windrow.streams.synthetic import cameras, generate

SELECT = "SELECT a.id AS i, b.id AS j FROM cam1 AS a, cam2 AS b"
NEAR = f"{SELECT} WHERE a.id >= 0 AND ABS(a.x - b.x) <= 30 AND a.id < b.id - 0 WINDOW 5 SECONDS"
FAR = f"{SELECT} WHERE a.id >= 0 AND ABS(a.x - b.x) <= 30 AND a.id < b.id - 1000000000 WINDOW 5 SECONDS"
"""The condition on ids holds for no pair, the one on places for some."""
THREE = (
    "SELECT a.id AS i, b.id AS j, c.id AS k FROM cam1 AS a, cam2 AS b, cam3 AS c "
    "WHERE ABS(a.x - b.x) <= 30 AND ABS(b.x - c.x) <= 30 WINDOW 5 SECONDS LATENESS 1 SECONDS"
)
ROWS = generate(cameras(20, (0, 1, 3), (2, 2, 5)), duration_s=24, seed=1)
BATCHES = 24

Tables = dict[str, pa.Table]


def run(
    text: str,
    folder: Path,
    rows: Tables = ROWS,
    batches: int = BATCHES,
    each: Callable[[int], None] = lambda number: None,
    **options: Any,
) -> None:
    """Run a query over rows, a second of them a batch; `each` is called after every batch."""
    query = windrow.sql(text, rows)
    with windrow.local(query, events=folder, clock=lambda: 1.7e9 + batches, **options) as join:
        sources = {stream.source for stream in join.spec.streams}
        for number in range(batches):
            for source in sources:
                size = -(-len(rows[source]) // batches)
                join.push(source, rows[source].slice(number * size, size))
            join.step(now_s=1.7e9 + number)
            each(number)
        join.finish()


def throttled(folder: Path, shed: str = "repair", **options: Any) -> None:
    """A throttled run of three streams, repaired."""
    control = ControlSettings(interval_s=2.0, sample=0.3)
    repair = RepairSettings(at_end=True) if shed == "repair" else None
    run(THREE, folder, methods=(), throttle=0.4, control=control, shed=shed, repair=repair, **options)


def history_of(folder: Path) -> History:
    """What the page reads of a folder."""
    reader = Reader(str(folder))
    reader.refresh()
    return reader.history


def seen(folder: Path, now_s: float = 0.0) -> Any:
    """What the page shows of a folder."""
    return view_of(history_of(folder), "made", now_s)


def multiplied(folder: Path, target: Path, count: int) -> None:
    """A folder of many events: those of another, again and again."""
    originals = sorted((folder / "events").iterdir())
    (target / "events").mkdir(parents=True)
    for number in range(count):
        (target / "events" / f"{number:09d}.json").hardlink_to(originals[number % len(originals)])


def copied(folder: Path, target: Path) -> Path:
    """The events of a folder in another; where they are then."""
    shutil.copytree(folder, target)
    return target / "events"
