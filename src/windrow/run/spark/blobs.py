"""Blobs: rows of streams as Arrow data that Spark only carries, so that they keep the types of their files.

    stream   rows   first_us   last_us   blob
    0        1000   10.00      10.90     rows of stream 0, at most 8 MB
    1        700    10.01      10.93     rows of stream 1
    -1       now                         the clock: event time at the end of the batch
    -2                                   the end of the input

What streams in lanes are to live queries (`windrow.run.spark.lanes`), blobs are to recordings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from windrow.run.spark.lanes import CLOCK, STREAM, Arrived
from windrow.store.codec import from_bytes, to_bytes
from windrow.store.operand import time_us

LAST = -2
LARGEST_BLOB_BYTES = 8 << 20
BLOB_SCHEMA = "stream int, rows bigint, first_us bigint, last_us bigint, blob binary"
_KINDS = (pa.int32(), pa.int64(), pa.int64(), pa.int64(), pa.binary())


class Blob(NamedTuple):
    """Rows of stream number `stream`, or a sign; the range of event time is None where no row has one."""

    stream: int
    rows: int
    first_us: int | None = None
    last_us: int | None = None
    blob: bytes | None = None


@dataclass(frozen=True)
class Blobs:
    """What has to be known to read streams out of blobs: their names, by number."""

    names: tuple[str, ...]

    def tables(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, pa.Table]]:
        """The rows of a task's input, blob by blob."""
        for batch in batches:
            for number, blob in zip(batch.column("stream").to_pylist(), batch.column("blob"), strict=True):
                if number >= 0:
                    yield self.names[number], pa.Table.from_batches([from_bytes(blob.as_buffer())])

    def arrived(self, frame: DataFrame) -> Arrived:
        """The rows of each stream, and what the signs say."""
        rows: dict[str, int] = {}
        now_us: int | None = None
        is_last = False
        for number, count in frame.select(STREAM, "rows").collect():
            if number >= 0:
                rows[self.names[number]] = rows.get(self.names[number], 0) + count
            elif number == CLOCK:
                now_us = count if now_us is None else max(now_us, count)
            is_last = is_last or number == LAST
        return Arrived(rows, now_us, is_last)

    def cuts(self, frame: DataFrame, times: Mapping[str, str], parts: int) -> tuple[int, ...]:  # noqa: ARG002 - blobs tell
        """Event times that cut a batch in parts of about the same size."""
        told = frame.filter(f"{STREAM} >= 0").select("rows", "first_us", "last_us").collect()
        return cuts_of([(rows, first, last) for rows, first, last in told if first is not None], parts)


def blobs_of(table: pa.Table, stream: int, time: str, largest_bytes: int = LARGEST_BLOB_BYTES) -> Iterator[Blob]:
    """The rows of a stream as blobs."""
    rows = len(table)
    step = max(1, int(rows * min(1.0, largest_bytes / max(1, table.nbytes))))
    for start in range(0, rows, step):
        for batch in table.slice(start, step).combine_chunks().to_batches():
            extremes = pc.min_max(time_us(batch.column(time))).as_py()
            yield Blob(stream, len(batch), extremes["min"], extremes["max"], to_bytes(batch))


def blob_batch(blobs: Iterable[Blob]) -> pa.RecordBatch:
    """Blobs as Spark takes them."""
    columns = list(zip(*blobs, strict=True)) or [()] * len(_KINDS)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, _KINDS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=list(Blob._fields))


def cuts_of(blobs: Sequence[tuple[int, int, int]], parts: int) -> tuple[int, ...]:
    """Event times at which to cut blobs, given as (rows, first, last), whose rows lie evenly in their ranges.

    >>> cuts_of([(100, 0, 99), (300, 100, 399)], parts=4)
    (99, 199, 299)
    >>> cuts_of([(100, 7, 7)], parts=4)
    ()
    """
    if not blobs:
        return ()
    rows, first, last = np.asarray(blobs, np.int64).T
    edges = np.unique(np.concatenate([first - 1, last]))
    share = np.clip((edges[:, None] - (first - 1)) / (last - first + 1), 0, 1)
    below = (share * rows).sum(axis=1)
    wanted = rows.sum() * np.arange(1, parts) / parts
    cuts = np.unique(np.floor(np.interp(wanted, below, edges)).astype(np.int64))
    return tuple(int(cut) for cut in cuts if first.min() <= cut < last.max())
