"""Two streams on Spark, beside Spark's own stream-stream join with the usual workaround for a band.

Spark joins streams by equality only. The workaround: bucket the value by the band's width, repeat the rows of one side
for the two neighbouring buckets, join by bucket, and check the band in what is left of the condition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

import windrow
from benchmarks.measure import Row, Timing, faster, in_child, main
from benchmarks.spark_batches import asked, median_ms, recorded, session
from windrow.streams.arrivals import Constant
from windrow.streams.synthetic import GrubJoinStream

DESCRIPTION = "Band join of two streams on Spark, 20 s windows, a second a batch, beside Spark's own join with buckets"


@dataclass(frozen=True, slots=True)
class Size:
    """A rate a stream, the width of the band, the least ratio wanted; batches to run, and to leave out before."""

    rate_hz: float
    band: float
    goal: float
    batches: int
    skip: int


QUICK = (Size(500, 1, 2.5, batches=6, skip=3),)
FULL = (Size(5_000, 1, 2.5, batches=40, skip=24), Size(20_000, 0.1, 4.0, batches=34, skip=24))


def run(quick: bool) -> list[Row]:
    """The rows of this bench."""
    return in_child("benchmarks.bench_spark_join", quick)


def measure(sizes: tuple[Size, ...]) -> list[Row]:
    """Measure in this process, one size after the other."""
    return [_measured(size) for size in sizes]


def _measured(size: Size) -> Row:
    streams = [GrubJoinStream(name, Constant(size.rate_hz), noise=2.0) for name in ("a", "b")]
    with recorded(streams, size.batches) as seconds, session() as spark:
        frames = seconds.frames(spark)
        ours_ms = median_ms(partial(ours, frames, size.band), size.batches, size.skip)
        peer_ms = median_ms(partial(workaround, frames, size.band), size.batches, size.skip)
    note = f"medians of {size.batches - size.skip} batches of {2 * size.rate_hz:g} rows, windows full"
    name = f"{size.rate_hz:g} rows/s a stream, band {size.band:g}"
    return faster(name, Timing(ours_ms / 1e3, peer_ms / 1e3, "Spark"), size.goal, note)


def ours(frames: Mapping[str, DataFrame], band: float, checkpoint: str) -> Any:
    """The join, with Spark's noop format as the sink."""
    text = f"SELECT a.id AS a_id, b.id AS b_id FROM a, b WHERE ABS(a.x - b.x) <= {band} WINDOW 20 SECONDS"
    query = asked(text, frames)
    return query.start(windrow.Format("noop"), checkpoint=checkpoint, trigger="0 seconds", max_ahead=None).spark_query


def workaround(frames: Mapping[str, DataFrame], band: float, checkpoint: str) -> Any:
    """Spark's own join by bucket."""
    a = frames["a"].withWatermark("ts", "0 seconds")
    a = a.select(f.col("ts").alias("a_ts"), f.col("id").alias("a_id"), f.col("x").alias("a_x"))
    a = a.withColumn("a_bucket", f.floor(f.col("a_x") / band))
    b = frames["b"].withWatermark("ts", "0 seconds")
    b = b.select(f.col("ts").alias("b_ts"), f.col("id").alias("b_id"), f.col("x").alias("b_x"))
    bucket = f.floor(f.col("b_x") / band)
    b = b.withColumn("b_bucket", f.explode(f.array(bucket - 1, bucket, bucket + 1)))
    near = f.expr(
        f"a_bucket = b_bucket AND abs(a_x - b_x) <= {band} "
        "AND a_ts BETWEEN b_ts - INTERVAL 20 SECONDS AND b_ts + INTERVAL 20 SECONDS"
    )
    joined = a.join(b, near).select("a_id", "b_id")
    writer = joined.writeStream.format("noop").option("checkpointLocation", checkpoint).outputMode("append")
    return writer.trigger(processingTime="0 seconds").start()


if __name__ == "__main__":
    main(DESCRIPTION, run)
