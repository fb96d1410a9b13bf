"""The report: what a run took in, left out and found."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import windrow
from windrow.run.report import Report, peak_memory_bytes

pytestmark = pytest.mark.usefixtures("interpreted")


def table(times_s: list[int | None]) -> pa.Table:
    stamps = [None if each is None else each * 1_000_000 for each in times_s]
    return pa.table({"ts": pa.array(stamps, pa.timestamp("us")), "k": pa.array([1] * len(stamps), pa.int32())})


def finished() -> tuple[Report, Report]:
    """The report of a small run before its first row, and after its last."""
    text = "SELECT a.k AS k, a.k / 0 AS z FROM a, b WHERE a.k = b.k AND b.k < 2 WINDOW 10 SECONDS LATENESS 1 SECONDS"
    query = windrow.sql(text, streams={"a": table([]), "b": table([])})
    with windrow.local(query, policy="round_robin", max_ahead="1 DAY", clock=lambda: 100.0) as join:
        before = join.report
        join.push("a", table([1, 2, None, 10**6]))
        join.push("b", table([2, 3]))
        join.step()
        join.push("a", table([0, 30]))
        join.finish()
        return before, join.report


def test_nothing_yet() -> None:
    before, _ = finished()
    assert (before.batches, before.results, before.faults) == (0, 0, 0)
    assert before.streams["a"].watermark_us is None
    assert str(before).startswith("0 rows in (0 late, 0 bad), 0 batches, 0 results")


def test_rows_by_what_became_of_them() -> None:
    _, report = finished()
    a, b = report.streams["a"], report.streams["b"]
    assert (a.rows, a.late, a.bad, a.too_far_ahead, a.filtered, a.waiting) == (6, 1, 1, 1, 0, 0)
    assert (b.rows, b.late, b.bad, b.too_far_ahead) == (2, 0, 0, 0)
    assert (a.watermark_us, b.watermark_us) == (29_000_000, 2_000_000)
    assert a.rows == a.late + a.bad + a.too_far_ahead + a.filtered + a.waiting + 3
    assert a.stored == 3
    assert a.segments == 2
    assert a.stored_bytes >= 3 * (8 + 4)


def test_totals_and_steps() -> None:
    _, report = finished()
    assert (report.policy, report.batches, report.results, report.faults) == ("round_robin", 2, 4, 4)
    assert report.seconds > 0
    assert report.peak_memory_bytes > 2**20
    assert [(step.driver, step.store, step.method) for step in report.steps] == [
        ("a", "b", "hashed"),
        ("b", "a", "hashed"),
    ]
    assert sum(step.matched for step in report.steps) == 4
    assert all("a.k = b.k" in step.why for step in report.steps)
    assert "8 rows in (1 late, 2 bad), 2 batches, 4 results" in str(report)


def test_reports_are_json() -> None:
    _, report = finished()
    value = json.loads(report.to_json())
    assert value == json.loads(json.dumps(report.to_dict()))
    assert value["streams"]["a"]["too_far_ahead"] == 1
    assert value["steps"][0]["method"] == "hashed"


def test_peak_memory_is_in_bytes() -> None:
    assert 2**20 < peak_memory_bytes() < 2**45
