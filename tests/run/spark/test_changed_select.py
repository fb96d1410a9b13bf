"""Another SELECT list on an old checkpoint: rows from then on are those of the new query from its beginning."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.run.spark.test_join import BATCHES, Rows, asked, folders, in_process, text
from windrow.errors import WindrowError

__all__ = ("folders",)  # a fixture

STOPPED = 4
CONDITION = "abs(a.x - b.x) <= 0.3 AND a.k <> b.k"
WINDOWS = {"time": "WINDOW 5 SECONDS", "rows": "WINDOW a ROWS 20, b 6 SECONDS"}
BEFORE, AFTER = "a.id AS a_id, b.id AS b_id", "b.s AS s, a.x + b.x AS x, result_id() AS key, a.ts AS t, b.id AS b_id"


def collecting_until(stop: int | None, into: dict[int, Rows]) -> Any:
    def sink(frame: DataFrame, batch: int) -> None:
        if batch == stop:
            raise ValueError("stopped here")
        into[batch] = Counter(tuple(row) for row in frame.collect())

    return sink


def stopped(spark: SparkSession, folders: dict[str, str], query: str, options: dict[str, Any]) -> dict[int, Rows]:
    found: dict[int, Rows] = {}
    with pytest.raises(WindrowError, match="stopped here"):
        asked(spark, folders, query, "ab").start(collecting_until(STOPPED, found), **options).await_termination()
    assert list(found) == list(range(STOPPED))
    return found


@pytest.mark.parametrize("window", WINDOWS)
def test_the_select_list_may_change(window: str, spark: SparkSession, folders: dict[str, str], tmp_path: Path) -> None:
    before = text(CONDITION, "ab", WINDOWS[window])
    after = before.replace(BEFORE, AFTER)
    options: dict[str, Any] = {"checkpoint": tmp_path, "trigger": "available now", "slices": 2, "max_ahead": None}
    found = stopped(spark, folders, before, options)
    asked(spark, folders, after, "ab").start(collecting_until(None, found), **options).await_termination()
    expected = in_process(before, "ab")[:STOPPED] + in_process(after, "ab")[STOPPED:]
    assert [found[number] for number in range(BATCHES)] == expected
    assert sum(map(Counter.total, expected[STOPPED:])) > 20


def test_a_column_that_was_not_kept_is_named(spark: SparkSession, folders: dict[str, str], tmp_path: Path) -> None:
    before = text(CONDITION, "ab", WINDOWS["time"])
    options: dict[str, Any] = {
        "checkpoint": tmp_path, "trigger": "available now", "slices": 2, "max_ahead": None, "keep": "used",
    }  # fmt: skip
    stopped(spark, folders, before, options)
    after = before.replace(BEFORE, AFTER)
    with pytest.raises(WindrowError, match=r"stored rows hold no column [ab]\.(ts TIMESTAMP|s VARCHAR)"):
        asked(spark, folders, after, "ab").start(collecting_until(None, {}), **options).await_termination()
