"""Streaming sources for Spark, written in Python, whose offsets can be replayed: the same range gives the same rows.

    windrow-clock        one row a batch: the time of the batch                                   clock
    windrow-synthetic    generated streams whose matches are known, at a set rate                 synthetic, slices
    windrow-replay       recorded files at a multiple of real time, or as fast as batches come    replay
    windrow-results      what a join has found, batch by batch as it commits them                 follow
    windrow-recorded     recorded files of all streams of a query in step, for `windrow run`      recorded

After `register(spark)` each is a format:

    spark.readStream.format("windrow-synthetic").option("name", "cam1").option("rate_hz", 1000).load()

A generated or replayed source follows the wall time since the query first began; that moment is part of its offsets, so
after a restart it goes on where a stream of the real world would be (`pace`). The options that shape the rows are part
of the offsets as well: a checkpoint refuses others.

The workers import this package: it has to be installed there, or be on their PYTHONPATH. Offsets need Spark 4.2 or
later, the first whose Python sources are told where the last batch ended.
"""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from windrow.run.spark.sources.clock import ClockSource
from windrow.run.spark.sources.follow import ResultSource
from windrow.run.spark.sources.recorded import RecordedSource
from windrow.run.spark.sources.replay import ReplaySource
from windrow.run.spark.sources.synthetic import SyntheticSource

SOURCES: tuple[type[DataSource], ...] = (ClockSource, SyntheticSource, ReplaySource, ResultSource, RecordedSource)
"""All sources."""


def register(spark: SparkSession) -> None:
    """Make the sources known to a session under their names; doing so again changes nothing."""
    for source in SOURCES:
        spark.dataSource.register(source)
