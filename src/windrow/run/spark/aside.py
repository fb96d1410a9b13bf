"""Rows set aside: what did not enter a window, with the reason, as Parquet files.

    <folder>/stream=a/batch=7/part-0.parquet     the stream's columns, and `set_aside_because`: late, bad time, …

They are published batch by batch like results, so each row is there once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

import pyarrow as pa
from pyspark.sql import SparkSession

from windrow.run.spark.publish import STAGED, FolderSink, inside
from windrow.run.spark.results import Output, ResultFile, Results
from windrow.store.storage import Storage


class Aside:
    """A folder for rows that are set aside."""

    def __init__(self, folder: Storage) -> None:
        self.folder = folder
        self.output = Output(inside(folder, STAGED), "parquet")
        self._sinks: dict[str, FolderSink] = {}

    def deliver(self, files: Mapping[str, Sequence[ResultFile]], batch: int) -> None:
        """Publish what the tasks of a batch staged, by stream."""
        for stream, staged in files.items():
            if stream not in self._sinks:
                below = inside(self.folder, f"stream={quote(stream, safe='')}")
                self._sinks[stream] = FolderSink(below, self.output.storage)
            if staged:
                spark = SparkSession.active()
                results = Results(spark, self.output, pa.schema([]), tuple(staged))
                self._sinks[stream].deliver(results, batch)
