"""Any piece of an endless generated stream, always the same: time is cut into slices, each drawn from its own seed.

    time      |---- slice 0 ----|---- slice 1 ----|---- slice 2 ----|
    a range            [=================)                              rows of slices 0 and 1 that lie in it

A slice is `generate`d with a seed made of the stream's and the slice's number; whoever needs a piece of it makes the
whole slice, and keeps the last few. How long a slice is follows from the arrivals, so that slices join without a seam:

    poisson        about 16,000 rows, any length will do: what comes has no memory
    constant       a whole number of seconds and of rows
    others         one cycle: a wave, the steps, a burst (a part of a row at its end counts as one)

>>> from windrow.streams.arrivals import Constant
>>> stream = SlicedStream(GrubJoinStream("cam", Constant(0.1), lag_s=5), seed=1, slice_us=10_000_000)
>>> [[row["x"] for row in rows.to_pylist()] for rows in stream.rows(0, 10_000_000, 30_000_000, first_id=1)]
[[300.0], [500.0]]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.errors import UsageError
from windrow.run.spark.sources.pace import FOREVER_US
from windrow.streams.arrivals import SECOND_US
from windrow.streams.synthetic import GrubJoinStream, generate

ROWS_A_SLICE = 1 << 14
MOST_ROWS_A_SLICE = 1 << 20
SLICE_SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("id", pa.int64()), ("x", pa.float64())])

_SLICES_KEPT = 8
_SEEDS_APART = 1 << 64


@dataclass(frozen=True, slots=True)
class SlicedStream:
    """A stream whose rows in any range of time can be made again; times are microseconds from its origin."""

    stream: GrubJoinStream
    seed: int
    slice_us: int

    def rows(self, origin_us: int, from_us: int, until_us: int, first_id: int) -> Iterator[pa.RecordBatch]:
        """The rows in [from, until), a batch a slice, with ids from `first_id` on."""
        for number in range(from_us // self.slice_us, -(-until_us // self.slice_us)):
            times_us, values = _slice(self, origin_us, number)
            low, high = np.searchsorted(times_us, (from_us, until_us)).tolist()
            if low < high:
                stamps = pa.array(times_us[low:high] + origin_us).cast(SLICE_SCHEMA.field("ts").type)
                ids = np.arange(first_id, first_id + high - low)
                yield pa.record_batch([stamps, pa.array(ids), pa.array(values[low:high])], schema=SLICE_SCHEMA)
                first_id += high - low

    def count(self, origin_us: int, from_us: int, until_us: int) -> int:
        """How many rows lie in [from, until)."""
        return self.advance(origin_us, from_us, until_us, max_rows=None)[0]

    def advance(self, origin_us: int, from_us: int, until_us: int, max_rows: int | None) -> tuple[int, int]:
        """How many rows a batch from `from_us` takes, and until when: `until_us`, or earlier by `max_rows`.

        Rows of one microsecond stay together, so there may be more of them than `max_rows`.
        """
        rows, at_us = 0, from_us
        while at_us < until_us:
            number = at_us // self.slice_us
            end_us = min((number + 1) * self.slice_us, until_us)
            times_us, _ = _slice(self, origin_us, number)
            low, high = np.searchsorted(times_us, (at_us, end_us)).tolist()
            if max_rows is not None and rows + high - low > max_rows:
                cut_us = _cut_us(times_us, low + max_rows - rows, from_us)
                return rows + int(np.searchsorted(times_us, cut_us)) - low, cut_us
            rows, at_us = rows + high - low, end_us
        return rows, at_us


def slice_us(stream: GrubJoinStream, wanted_s: float, rows_hz: float) -> int:
    """A slice of the wanted length, in microseconds; refused if it would hold too many rows to be made at a time."""
    rows = rows_hz * wanted_s
    if rows > MOST_ROWS_A_SLICE:
        message = f"a cycle of stream '{stream.name}' has {rows:,.0f} rows, more than {MOST_ROWS_A_SLICE:,}"
        raise UsageError(message, hint="take a shorter cycle or a lower rate")
    return min(max(1, round(wanted_s * SECOND_US)), FOREVER_US)


def _cut_us(times_us: NDArray[np.int64], row: int, from_us: int) -> int:
    """The time to stop before, so that a row of this slice is the first that is left out."""
    cut_us = int(times_us[row])
    if cut_us > from_us:
        return cut_us
    # All rows so far share the first microsecond: they are taken together, or the stream would stand still.
    return cut_us + 1


@lru_cache(maxsize=_SLICES_KEPT)
def _slice(sliced: SlicedStream, origin_us: int, number: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Times from the origin, and values, of one slice."""
    begins_us = origin_us + number * sliced.slice_us
    seed = sliced.seed * _SEEDS_APART + number
    made = generate([sliced.stream], sliced.slice_us / SECOND_US, seed, begins_us)[sliced.stream.name]
    return np.asarray(made.column("ts").cast(pa.int64())) - origin_us, np.asarray(made.column("x"))
