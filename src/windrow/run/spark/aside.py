"""Rows set aside: what did not enter a window, with the reason, as Parquet files.

    <folder>/stream=a/batch=7/part-0.parquet     the stream's columns, and `set_aside_because`: late, bad time, …

They are published batch by batch like results, so each row is there once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

import pyarrow as pa

from windrow.run.spark.publish import STAGED, FolderSink, Staging, inside
from windrow.run.spark.results import Output, ResultFile, write_results
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


class AsideRows:
    """Rows that one task sets aside, a file a stream; `name` has a place for the stream's."""

    def __init__(self, output: Output, name: str) -> None:
        self.output = output
        self.name = name
        self.held: dict[str, list[pa.Table]] = {}

    def __call__(self, stream: str, reason: str, rows: pa.Table) -> None:
        reasons = pa.array([reason] * len(rows), pa.string())
        self.held.setdefault(stream, []).append(rows.append_column(BECAUSE, reasons))

    def files(self) -> dict[str, list[dict[str, object]]]:
        """Write what was set aside; the files of each stream."""
        found: dict[str, list[dict[str, object]]] = {}
        for stream, tables in self.held.items():
            table = pa.concat_tables(tables).combine_chunks()
            staged = write_results(self.output, self.name.format(stream), table.schema, table.to_batches(), 0)
            if isinstance(staged, ResultFile):
                found[stream] = [staged.fields()]
        return found
