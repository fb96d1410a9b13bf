"""Streaming queries over recorded seconds: every file is one second of one stream, every batch takes one of each.

    seconds of a, b, c as files ──▶ readStream, one file a trigger ──▶ query under test ──▶ durations Spark reports

All queries of a bench read the same files in the same session, `local[2]`, one after the other. A batch's duration is
Spark's own figure (`triggerExecution`: offsets, planning, the batch, its log), so nothing is left out on either side.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import windrow
from windrow.run.spark.join import SparkJoin
from windrow.streams.synthetic import GrubJoinStream, generate

SECOND_US = 1_000_000
LONGEST_WAIT_S = 900
SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("id", pa.int64()), ("x", pa.float64())])


@contextmanager
def session() -> Iterator[SparkSession]:
    """A quiet session on two cores."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("windrow benchmarks")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()


@dataclass(frozen=True)
class Seconds:
    """Recorded streams, a file a second, below `folder`."""

    folder: Path
    names: tuple[str, ...]
    schema: pa.Schema

    def frames(self, spark: SparkSession) -> dict[str, DataFrame]:
        """The streams, a second of each a batch."""
        reader = spark.readStream.schema(from_arrow_schema(self.schema)).option("maxFilesPerTrigger", 1)
        return {name: reader.parquet(str(self.folder / name)) for name in self.names}


@contextmanager
def recorded(streams: Sequence[GrubJoinStream], seconds: int) -> Iterator[Seconds]:
    """Generated streams as files, for as long as the block lasts."""
    with tempfile.TemporaryDirectory() as folder:
        for name, table in generate(streams, seconds, seed=7, start_us=0).items():
            (Path(folder) / name).mkdir()
            times = table["ts"].cast(pa.int64()).to_numpy()
            zoned = table.set_column(0, "ts", table["ts"].cast(pa.timestamp("us", "UTC")))
            edges = times.searchsorted([second * SECOND_US for second in range(seconds + 1)])
            for second in range(seconds):
                file = Path(folder) / name / f"{second:05d}.parquet"
                pq.write_table(zoned.slice(edges[second], edges[second + 1] - edges[second]), file)
                os.utime(file, (1_000_000_000 + second, 1_000_000_000 + second))
        yield Seconds(Path(folder), tuple(stream.name for stream in streams), SCHEMA)


Start = Callable[[str], Any]
"""Starts a query with a checkpoint folder; gives back Spark's StreamingQuery."""


def durations_ms(start: Start, batches: int, skip: int) -> dict[int, Mapping[str, float]]:
    """What Spark reports of each batch after the first `skip`, until `batches` have run."""
    checkpoint = tempfile.mkdtemp()
    query = start(checkpoint)
    seen: dict[int, Mapping[str, float]] = {}
    deadline = time.monotonic() + LONGEST_WAIT_S
    try:
        while len(seen) < batches and time.monotonic() < deadline:
            time.sleep(0.2)
            if query.exception() is not None:
                raise query.exception()
            seen.update({report["batchId"]: report["durationMs"] for report in query.recentProgress})
    finally:
        query.stop()
        shutil.rmtree(checkpoint, ignore_errors=True)
    return {batch: seen[batch] for batch in sorted(seen)[skip:batches]}


def median_ms(start: Start, batches: int, skip: int) -> float:
    """The median duration of a batch."""
    found = durations_ms(start, batches, skip)
    return statistics.median(report["triggerExecution"] for report in found.values())


def asked(text: str, frames: Mapping[str, DataFrame]) -> SparkJoin:
    """The join of a text over streams."""
    return cast(SparkJoin, windrow.sql(text, frames))
