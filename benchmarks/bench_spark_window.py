"""What a longer window costs on Spark: the time of a batch at a constant rate of matches, and bytes on disk."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from benchmarks.measure import Row, Timing, in_child, main, smaller
from benchmarks.spark_batches import asked, durations_ms, recorded, session
from windrow.streams.arrivals import Constant
from windrow.streams.synthetic import GrubJoinStream

DESCRIPTION = (
    "Window of 20 s and of 600 s on Spark, a second a batch: time of a batch, and state on disk over raw bytes"
)
RATE_HZ = 1_000
ROW_BYTES = 24
BAND_SECONDS = 20.0
"""The band is this over the window: every row finds as many matches in either."""


@dataclass(frozen=True, slots=True)
class Size:
    """The windows, and how many batches are measured once they are full."""

    short_s: int
    long_s: int
    measured: int


QUICK = Size(short_s=2, long_s=4, measured=3)
FULL = Size(short_s=20, long_s=600, measured=25)


def run(quick: bool) -> list[Row]:
    """The rows of this bench."""
    return in_child("benchmarks.bench_spark_window", quick)


def measure(size: Size) -> list[Row]:
    """Measure in this process."""
    streams = [GrubJoinStream(name, Constant(RATE_HZ), noise=300.0) for name in ("a", "b")]
    seconds = size.long_s + size.measured + 10
    with recorded(streams, seconds) as held, session() as spark:
        frames = held.frames(spark)
        short_ms, short_bytes = _measured(frames, size.short_s, size)
        long_ms, long_bytes = _measured(frames, size.long_s, size)
    timing = Timing(long_ms / 1e3, short_ms / 1e3, f"{size.short_s} s")
    note = f"medians of {size.measured} batches of {2 * RATE_HZ} rows, windows full"
    name = f"a batch with a window of {size.long_s} s"
    return [
        smaller(name, ours=timing.ours_s * 1e3, peer=timing.peer_s * 1e3, unit="ms", goal=2, note=note,
                peer_name=timing.peer_name),
        *(
            smaller(f"state on disk, {window_s} s", ours=found / 1e6, peer=2 * RATE_HZ * window_s * ROW_BYTES / 1e6,
                    unit="MB", goal=1.5, note="mean of all files of segments over the bytes of the rows in the window",
                    peer_name="raw")
            for window_s, found in ((size.short_s, short_bytes), (size.long_s, long_bytes))
        ),
    ]  # fmt: skip


def _measured(frames: Mapping[str, DataFrame], window_s: int, size: Size) -> tuple[float, float]:
    """The median time of a batch, and the mean bytes of the segments' files meanwhile."""
    skip = window_s + 5
    on_disk: list[int] = []

    def start(checkpoint: str) -> Any:
        return ours(frames, window_s, checkpoint, partial(_weigh, on_disk, Path(checkpoint)))

    spent = durations_ms(start, skip + size.measured, skip)
    return (
        statistics.median(report["triggerExecution"] for report in spent.values()),
        statistics.mean(on_disk[-size.measured :]),
    )


def ours(frames: Mapping[str, DataFrame], window_s: int, checkpoint: str, seen: Any) -> Any:
    """The join; `seen` is called in every batch."""
    band = BAND_SECONDS / window_s
    text = f"SELECT a.id AS a_id, b.id AS b_id FROM a, b WHERE ABS(a.x - b.x) <= {band} WINDOW {window_s} SECONDS"

    def sink(frame: DataFrame, batch: int) -> None:
        seen(batch)
        frame.write.format("noop").mode("append").save()

    return asked(text, frames).start(sink, checkpoint=checkpoint, trigger="0 seconds", max_ahead=None).spark_query


def _weigh(found: list[int], checkpoint: Path, batch: int) -> None:  # noqa: ARG001 - the sink's signature
    folder = checkpoint / "windrow" / "segments"
    sizes = 0
    for file in folder.iterdir() if folder.is_dir() else ():
        try:
            sizes += file.stat().st_size
        except FileNotFoundError:  # deleted meanwhile
            continue
    found.append(sizes)


if __name__ == "__main__":
    main(DESCRIPTION, run)
