"""Whatever slices are made by, a join on Spark has the rows of the join in process: as one task, in hops, in turn."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.run.spark.test_join import BATCHES, Rows, asked, collecting, folders, in_process, text
from windrow.run.spark import query as running_query
from windrow.run.spark.lanes import Arrived
from windrow.run.spark.query import BatchRunner

__all__ = ("folders",)  # a fixture

CASES = {
    "hash, and a band beside it": ("a.k = b.k AND abs(b.x - c.x) <= 0.3", "abc", "WINDOW 5 SECONDS", "hash", 5),
    "hash of texts, row windows": ("a.s = b.s", "ab", "WINDOW a ROWS 20, b 6 SECONDS", "hash", 2),
    "range": ("abs(a.x - b.x) <= 0.1 AND abs(b.x - c.x) <= 0.1", "abc", "WINDOW 5 SECONDS", "range", 5),
    "a band with both its ends": ("a.k BETWEEN b.k - 1 AND b.k + 1", "ab", "WINDOW 5 SECONDS", "range", 2),
    "time": ("abs(a.x - b.x) <= 0.3 AND a.k = b.k", "ab", "WINDOW 5 SECONDS", "time", 5),
}


@pytest.mark.parametrize("case", CASES)
def test_the_rows_do_not_depend_on_the_slices(
    case: str, spark: SparkSession, folders: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    condition, names, window, by, slices = CASES[case]
    written = text(condition, names, window)
    expected = in_process(written, names)
    assert sum(map(Counter.total, expected)) > 50
    planned = BatchRunner._planned
    tasks: list[int] = []

    def in_turn(self: BatchRunner, batch: int, frame: DataFrame, rows: Arrived) -> dict[str, Any]:
        """Two of three batches in hops, as if they were large."""
        monkeypatch.setattr(running_query, "ONE_TASK_SECONDS", -1.0 if batch % 3 else 1e9)
        plan = planned(self, batch, frame, rows)
        tasks.append(plan["tasks"])
        return plan

    monkeypatch.setattr(BatchRunner, "_planned", in_turn)
    found: dict[int, Rows] = {}
    running = asked(spark, folders, written, names).start(
        collecting(found), checkpoint=tmp_path, trigger="available now", slices=slices, slice_by=by, max_ahead=None
    )
    running.await_termination()
    assert [found[number] for number in range(BATCHES)] == expected
    assert {1, slices} <= set(tasks)
    state = running._runner.last
    assert state is not None
    assert len([place for place, streams in state.live.items() if any(streams.values())]) > 1
