"""A program for the tests: runs a join over folders of files and dies by SIGKILL at a point of a batch.

python -m tests.run.spark.killed FOLDER POINT BATCH        POINT "never" runs to the end
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from pyspark.sql import SparkSession

import windrow
from windrow.run.spark.query import BatchRunner

QUERY = """
    SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id FROM a, b, c
    WHERE ABS(a.x - b.x) <= 0.3 AND b.k = c.k WINDOW 5 SECONDS LATENESS 2 SECONDS"""

POINTS = {"plan written": "_job", "before the commit": "_commit", "committed": "_commit"}


def die_at(point: str, batch: int) -> None:
    """Arrange for the process to end, without any cleaning up, at a point of a batch."""
    original = getattr(BatchRunner, POINTS[point])

    def dying(self: BatchRunner, number: int, *arguments: Any) -> Any:
        due = number == batch
        if due and point != "committed":
            os.kill(os.getpid(), signal.SIGKILL)
        found = original(self, number, *arguments)
        if due:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    setattr(BatchRunner, POINTS[point], dying)


def main(folder: str, point: str, batch: int) -> None:
    """Run the join to the end of its input, or to its death."""
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.sql.shuffle.partitions", "2")
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    frames = {}
    for name in "abc":
        schema = spark.read.parquet(f"{folder}/{name}").schema
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        frames[name] = reader.parquet(f"{folder}/{name}")
    if point != "never":
        die_at(point, batch)
    join = windrow.sql(QUERY, frames)
    options = {"checkpoint": f"{folder}/state", "trigger": "available now", "slices": 2, "max_ahead": None}
    join.start(f"{folder}/out", **options).await_termination()  # type: ignore[attr-defined]
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
