"""Rows at the entrance of a join on Spark: late, without time, from the future; a stream that is idle."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import SparkSession

import windrow
from tests.run.spark import batched
from tests.run.spark.batched import Collected

SECOND_US = 1_000_000
TWO_DAYS_US = 2 * 86_400 * SECOND_US


def rows(*times_us: int | None) -> pa.Table:
    return pa.table({"ts": pa.array(times_us, pa.timestamp("us")), "x": pa.array([1.0] * len(times_us))})


def test_rows_that_do_not_enter_are_counted_and_set_aside_and_idle_streams_hold_nothing_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    start_us = int(time.time()) * SECOND_US
    after = [start_us + second * SECOND_US for second in range(30)]
    future_us = start_us + TWO_DAYS_US
    pushed = [
        {"a": rows(*after[8:12]), "b": rows(after[9], after[11])},
        {"a": rows(after[20]), "b": rows()},  # b is silent: its watermark is that of a
        {"a": rows(after[5], None, future_us, after[21]), "b": rows(after[12], after[21])},
    ]
    schemas = {name: table.schema for name, table in pushed[0].items()}
    batched.lay_out(tmp_path / "in", pushed, schemas)
    join: Any = windrow.join(spark)
    for name, frame in batched.frames(spark, tmp_path / "in", schemas).items():
        join = join.stream(name, frame, time="ts", window="5 seconds", idle="1 ms")
    join = join.where("a.x = b.x").select("a.ts as at", "b.ts as bt")
    sink, left = Collected(), tmp_path / "left"
    running = batched.run(join, tmp_path / "c", sink, max_ahead="1 day", set_aside=left, most_rows=4, slices=2)
    assert [batch["parts"] for batch in running.recent_progress()[:3]] == [2, 1, 2]
    assert {batch: found.total() for batch, found in sink.batches.items() if found} == {0: 8, 2: 2}
    streams = running.status()["streams"]
    assert {name: streams["a"][name] for name in ("rows", "late", "bad", "ahead")} == {
        "rows": 9, "late": 1, "bad": 1, "ahead": 1,
    }  # fmt: skip
    assert (streams["b"]["rows"], streams["b"]["late"]) == (4, 1)
    assert streams["a"]["watermark"] == streams["b"]["watermark"]
    aside = ds.dataset(left, partitioning="hive", exclude_invalid_files=True).to_table().to_pylist()
    moments = {(row["stream"], row["set_aside_because"]): row["ts"] for row in aside}
    assert set(moments) == {("a", "late"), ("a", "bad time"), ("a", "too far ahead"), ("b", "late")}
    assert moments["a", "bad time"] is None
