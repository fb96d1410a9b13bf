"""Recorded streams through the join on Spark, in at least twenty batches, against DuckDB over what was in time.

Quick on slices of the recordings and a played Spark; the long ones run on Spark itself, on hours and days.
Skipped where the recordings are absent (`recorded` in `tests/conftest.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import windrow
from tests.oracle import recordings
from tests.oracle.arrivals import batches
from tests.oracle.duck import answer, difference, question
from tests.oracle.naive import Watermarks
from tests.oracle.recordings import Recording
from tests.run.spark import batched
from tests.run.spark.played import Played, Rows, Way
from tests.run.spark.test_against_duckdb import LEAST_BATCHES, OnSpark, check_on_spark, in_full, on_spark


@dataclass(frozen=True)
class Asked:
    """What of a recording is joined, and how; `late` says that rows are."""

    recording: Callable[[Path], Recording]
    way: Way
    least_rows: int
    late: bool = False


SLICES_OF_RECORDINGS = {
    "quotes": Asked(lambda folder: recordings.quotes(folder, 8), Way(5, "range"), 300),
    "connections": Asked(lambda folder: recordings.connections(folder, 3_000, "2 SECONDS"), Way(5, "hash"), 50, True),
    "headlines": Asked(lambda folder: recordings.headlines(folder, 5), Way(2, "time"), 2),
    "sensors": Asked(lambda folder: recordings.sensors(folder, 15), Way(2, "hash", policy="round_robin"), 300),
}

WHOLE = {
    "quotes": Asked(lambda folder: recordings.quotes(folder, 360), Way(2, "range"), 10_000),
    "connections": Asked(
        lambda folder: recordings.connections(folder, 50_000, "30 SECONDS"), Way(2, "hash"), 1_000, True
    ),
    "headlines": Asked(lambda folder: recordings.headlines(folder, 40), Way(2, "time"), 20),
    "sensors": Asked(lambda folder: recordings.sensors(folder, 7_200), Way(2, "hash", policy="round_robin"), 100_000),
}


def cut(recording: Recording) -> list[dict[str, pa.Table]]:
    """The recording as it arrived, in a few more than twenty batches."""
    size = len(recording.arrivals) // LEAST_BATCHES
    return in_full(batches(recording.tables, recording.arrivals, size), recording.tables)


@pytest.mark.parametrize("name", SLICES_OF_RECORDINGS)
def test_slices_of_recordings_on_a_played_spark(name: str, recorded: Path, tmp_path: Path) -> None:
    given = SLICES_OF_RECORDINGS[name]
    recording = given.recording(recorded)
    query: Any = windrow.sql(recording.text, recording.tables, time=dict.fromkeys(recording.tables, "ts"))
    running = Played(query, tmp_path, given.way)
    twin = Watermarks({stream.source: stream.lateness_us for stream in query.spec().streams})
    kept: dict[str, list[pa.Table]] = {name: [] for name in recording.tables}
    found: Rows = Counter()
    pushed = cut(recording)
    for number, part in enumerate(pushed):
        for stream, table in twin.admit(part).items():
            kept[stream].append(table)
        found += running.run(number, part)
    expected = answer(question(recording.text), {name: pa.concat_tables(parts) for name, parts in kept.items()}).rows
    assert len(pushed) >= LEAST_BATCHES
    assert expected.total() >= given.least_rows
    assert (twin.late.total() > 0) == given.late
    assert difference(found, expected) == ""


@pytest.mark.long
@pytest.mark.parametrize("name", WHOLE)
def test_whole_recordings_on_spark(name: str, recorded: Path, spark: SparkSession, tmp_path: Path) -> None:
    given = WHOLE[name]
    recording = given.recording(recorded)
    pushed = [{name: batched.delivered(table) for name, table in part.items()} for part in cut(recording)]
    schemas = {name: table.schema for name, table in pushed[0].items()}
    batched.lay_out(tmp_path / "in", pushed, schemas)
    query = on_spark(spark, recording.text, tmp_path / "in", schemas)
    way = given.way
    options = {"slices": way.slices, "slice_by": way.slice_by, "policy": way.policy}
    asked = OnSpark(recording.text, options, hops=True)
    found = check_on_spark(query, question(recording.text), pushed, asked, tmp_path / "checkpoint")
    assert found.total() >= given.least_rows
