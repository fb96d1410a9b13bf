"""Rows set aside: what did not enter a window, with the reason, as Parquet files.

    <folder>/stream=a/batch=7/part-0.parquet     the stream's columns, and `set_aside_because`: late, bad time, …

They are published batch by batch like results, so each row is there once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from windrow.run.spark.publish import STAGED, FolderSink, Staging, inside
from windrow.run.spark.results import Output, ResultFile
from windrow.store.storage import Storage

BECAUSE = "set_aside_because"
"""The column with the reason."""


class Aside:
    """A folder for rows that are set aside."""

    def __init__(self, folder: Storage) -> None:
        self.folder = folder
        self.output = Output(inside(folder, STAGED), "parquet")
        self._staging = Staging(self.output.storage)

    def deliver(self, files: Mapping[str, Sequence[ResultFile]], batch: int) -> None:
        """Publish what the tasks of a batch staged, by stream."""
        for stream, staged in files.items():
            if staged:
                below = inside(self.folder, f"stream={quote(stream, safe='')}")
                FolderSink(below, self.output.storage).publish(staged, batch)
        self._staging.delivered()
