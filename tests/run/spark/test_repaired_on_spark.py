"""What a throttled join on a real Spark left out comes later, while it runs and when it is stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import windrow
from tests.oracle.duck import difference, rows_of
from tests.run.spark import batched
from tests.run.spark.played import Rows
from tests.run.spark.shed_on_spark import CONTROL, THROTTLE, _by
from tests.run.spark.test_against_duckdb import EVERY, LITTLE, OnSpark, brought, on_spark
from windrow.run.backlog import RepairReport
from windrow.run.spark import query as spark_query
from windrow.run.spark import stopped
from windrow.run.spark.repairing import Repairing


def written(folder: Path) -> tuple[Rows, Rows]:
    """Prompt rows and repaired ones, as published."""
    found: tuple[Rows, Rows] = (Counter(), Counter())
    for file in sorted(folder.glob("batch=*/*.parquet")):
        table = pq.ParquetFile(file).read()
        for late in (False, True):
            chosen = table.filter(pa.compute.equal(table["repaired"], late))
            found[late].update(rows_of(chosen.drop_columns(["repaired"])))
    return found


def check_repaired(given: OnSpark, spark: SparkSession, folder: Path) -> tuple[Rows, Rows, RepairReport]:
    """Run a query with less than all of the work, repair a little while it runs and all when it has stopped."""
    _, tables, pushed = brought(given, folder / "in")
    schemas: Mapping[str, pa.Schema] = {read: table.schema for read, table in tables.items()}
    out, checkpoint = folder / "out", folder / "checkpoint"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_query, "ONE_TASK_SECONDS", LITTLE[given.hops]())
        patch.setattr(Repairing, "_slack_s", lambda *_: 1.0)  # where batches follow at once there is none
        patch.setattr(Repairing, "is_overdue", lambda *_: False)  # nor does a busy machine put repairs off
        shed: dict[str, Any] = {"throttle": THROTTLE, "control": CONTROL, "shed": "repair"}
        join = on_spark(spark, given.text, folder / "in", schemas)
        batched.run(join, checkpoint, str(out), **{**given.options, **shed})
        between = written(out)
        patch.setattr(stopped, "ROUND_S", 0.2)
        report = windrow.repair(spark, checkpoint)
    prompt, late = written(out)
    assert prompt == between[0]
    assert report.open_pieces == 0
    assert report.results == late.total()
    assert windrow.repair(spark, checkpoint) == report
    whole = windrow.sql(given.text, streams=tables, time=dict.fromkeys(tables, "ts"))
    expected = sum(_by((), whole, pushed, str(given.options.get("policy", "timestamp"))), Counter())
    assert difference(prompt + late, expected) == ""
    assert min(prompt.total(), late.total()) > 0
    return between[1], late, report


def test_prompt_and_repaired_rows_are_those_of_the_whole_join(spark: SparkSession, tmp_path: Path) -> None:
    before, late, _ = check_repaired(EVERY["a band sliced by its value, by slice"], spark, tmp_path)
    assert 0 < before.total() < late.total()


@pytest.mark.long
@pytest.mark.parametrize("name", EVERY)
def test_queries_of_every_kind_are_repaired(name: str, spark: SparkSession, tmp_path: Path) -> None:
    check_repaired(EVERY[name], spark, tmp_path)
