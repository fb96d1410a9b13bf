"""Memory: what a band join holds at its peak, beside the raw bytes of the rows that are live."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

import windrow
from benchmarks.measure import Row, in_child, main, smaller

DESCRIPTION = "Peak memory of a band join of two windows of 1,000,000 rows, five columns of 8 bytes each"
SCHEMA = pa.schema(
    [("ts", pa.timestamp("us")), ("id", pa.int64()), ("x", pa.float64()), ("y", pa.float64()), ("k", pa.int64())]
)
COLUMNS = ", ".join(f"{stream}.{name} AS {stream}_{name}" for stream in ("a", "b") for name in SCHEMA.names)
COLUMN_BYTES = 8
_MEGABYTE = 1_000_000
_SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Sizes:
    """Rows a delta of each stream, deltas a window, batches once the windows are full."""

    delta_rows: int
    window_deltas: int
    batches: int

    @property
    def live_bytes(self) -> int:
        return 2 * self.delta_rows * self.window_deltas * len(SCHEMA) * COLUMN_BYTES


QUICK = Sizes(delta_rows=10_000, window_deltas=100, batches=50)
FULL = Sizes(delta_rows=10_000, window_deltas=100, batches=300)


def run(quick: bool) -> list[Row]:
    """The rows of this bench."""
    return in_child("benchmarks.bench_memory", quick)


def measure(sizes: Sizes) -> list[Row]:
    """Measure in this process, which should be a fresh one: the peak is that of its whole life."""
    results = stream(Sizes(sizes.delta_rows, 1, 3))
    constant = resident("VmRSS")
    results += stream(sizes)
    peak = resident("VmHWM")
    return [
        smaller(
            "peak memory of a band join",
            ours=(peak - constant) / _MEGABYTE,
            peer=sizes.live_bytes / _MEGABYTE,
            unit="MB",
            goal=3.0,
            peer_name="raw bytes of live rows",
            note=f"besides {constant / _MEGABYTE:.0f} MB that a small window takes too; {results:,} results",
        )
    ]


def stream(sizes: Sizes) -> int:
    """Run a join until its windows are full and `batches` more; the number of results."""
    text = f"SELECT {COLUMNS} FROM a, b WHERE ABS(a.x - b.x) <= 0.25 WINDOW {sizes.window_deltas} SECONDS"
    results = 0
    with windrow.local(windrow.sql(text, streams={"a": SCHEMA, "b": SCHEMA})) as join:
        for number in range(sizes.window_deltas + sizes.batches):
            for place, name in enumerate(("a", "b")):
                join.push(name, delta(place, number, sizes))
            results += len(join.step())
    return results


def delta(place: int, number: int, sizes: Sizes) -> pa.Table:
    """Delta `number` of a stream: one second of event time."""
    rows = sizes.delta_rows
    random = np.random.default_rng([5, place, number])
    times_us = number * _SECOND_US + np.sort(random.integers(0, _SECOND_US, rows))
    span = rows * sizes.window_deltas
    ids = np.arange(number * rows, (number + 1) * rows)
    columns = [
        times_us,
        ids,
        random.uniform(0, span, rows),
        random.uniform(0, span, rows),
        random.integers(0, span, rows),
    ]
    return pa.table([pa.array(values, kind) for values, kind in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA)


def resident(field: str) -> int:
    """Bytes of memory this process holds (VmRSS), or has held at most (VmHWM); the kernel counts them, in kB."""
    found = re.search(rf"^{field}:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    if found is None:
        raise OSError(f"the kernel does not tell {field}")
    return int(found[1]) * 1024


if __name__ == "__main__":
    main(DESCRIPTION, run)
