"""What a batch on Spark costs whatever is in it: three streams of a hundred rows, beside a batch that does nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

from pyspark.sql import DataFrame

import windrow
from benchmarks.measure import Row, in_child, main, smaller
from benchmarks.spark_batches import asked, median_ms, recorded, session
from windrow.streams.arrivals import Constant
from windrow.streams.synthetic import GrubJoinStream

DESCRIPTION = "Fixed cost of a batch on Spark: 100 rows of each of three streams, beyond an empty foreachBatch"
QUESTION = """SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id FROM a, b, c
    WHERE ABS(a.x - b.x) <= 1 AND ABS(b.x - c.x) <= 1 WINDOW 20 SECONDS"""


@dataclass(frozen=True, slots=True)
class Size:
    """How many batches to run, and how many of them to leave out at the beginning."""

    batches: int
    skip: int


QUICK = Size(batches=8, skip=4)
FULL = Size(batches=60, skip=20)


def run(quick: bool) -> list[Row]:
    """The rows of this bench."""
    return in_child("benchmarks.bench_spark_batch", quick)


def measure(size: Size) -> list[Row]:
    """Measure in this process."""
    streams = [GrubJoinStream(name, Constant(100), noise=2.0) for name in ("a", "b", "c")]
    with recorded(streams, size.batches) as seconds, session() as spark:
        frames = seconds.frames(spark)
        empty_ms = median_ms(partial(nothing, frames), size.batches, size.skip)
        ours_ms = median_ms(partial(ours, frames), size.batches, size.skip)
    note = f"a batch took {ours_ms:.0f} ms, one that does nothing {empty_ms:.0f} ms (medians)"
    return [smaller("beyond an empty batch", ours=ours_ms - empty_ms, peer=None, unit="ms", goal=600, note=note)]


def ours(frames: Mapping[str, DataFrame], checkpoint: str) -> Any:
    """The join, with Spark's noop format as the sink."""
    query = asked(QUESTION, frames)
    return query.start(windrow.Format("noop"), checkpoint=checkpoint, trigger="0 seconds", max_ahead=None).spark_query


def nothing(frames: Mapping[str, DataFrame], checkpoint: str) -> Any:
    """The same sources, and a foreachBatch that does nothing."""
    writer = reduce(DataFrame.union, frames.values()).writeStream.foreachBatch(lambda *_: None)
    return writer.option("checkpointLocation", checkpoint).trigger(processingTime="0 seconds").start()


if __name__ == "__main__":
    main(DESCRIPTION, run)
