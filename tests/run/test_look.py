"""A look at rows: what it takes in, and when there is nothing to see."""

from __future__ import annotations

import pyarrow as pa
import pytest

import windrow
from windrow.control.forecast import forecast
from windrow.run.look import look


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDROW_COMPILE", "0")


def table(times: list[int | None], x: list[int]) -> pa.Table:
    stamps = [None if time is None else time * 1_000_000 for time in times]
    return pa.table({"ts": pa.array(stamps, pa.timestamp("us")), "x": x})


def test_rows_are_taken_in_order_of_event_time_and_those_without_are_left_out() -> None:
    rows = {"a": table([9, 1, None, 5, 3], [9, 1, 0, 5, 3]), "b": table([2, 4, 6, 8, 99], [1, 3, 5, 7, 0])}
    query = windrow.sql("SELECT COUNT(*) AS n FROM a, b WHERE a.x = b.x WINDOW 3 SECONDS", rows)
    seen = look(query, rows, most_rows=6)
    assert seen is not None
    assert (seen.rows, seen.span_s, seen.results, seen.is_long) == (6, 5.0, 3, True)
    assert seen.known.streams[0].rate_hz == 4 / 8
    told = forecast(seen.known)
    assert told.results_hz > 0
    assert told.memory_bytes > 0


def test_a_stream_without_rows_there_gives_nothing() -> None:
    rows = {"a": table([1, 2], [1, 2]), "b": table([], [])}
    query = windrow.sql("SELECT a.x AS x FROM a, b WHERE a.x = b.x WINDOW 3 SECONDS", rows)
    assert look(query, rows) is None
    late = {"a": table([1, 2], [1, 2]), "b": table([50], [1])}
    assert look(query, late, most_rows=2) is None
