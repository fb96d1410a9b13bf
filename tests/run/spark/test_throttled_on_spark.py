"""A throttled join on a real Spark, in hops over slices."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tests.run.spark.shed_on_spark import check_throttled
from tests.run.spark.test_against_duckdb import EVERY


def test_batches_give_the_rows_of_their_written_plans(spark: SparkSession, tmp_path: Path) -> None:
    assert check_throttled(EVERY["a band sliced by its value, by slice"], spark, tmp_path) > 10
