"""How many results a second leave Spark: three streams of a thousand rows a second, many matches, five columns."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

import windrow
from benchmarks.measure import Row, in_child, main
from benchmarks.spark_batches import asked, durations_ms, recorded, session
from windrow.streams.arrivals import Constant
from windrow.streams.synthetic import GrubJoinStream

DESCRIPTION = "Results a second out of Spark: 3 x 1,000 rows/s, 20 s windows, five 8-byte columns"
QUESTION = """SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id, a.x AS a_x, c.x AS c_x FROM a, b, c
    WHERE ABS(a.x - b.x) <= {band} AND ABS(b.x - c.x) <= {band} WINDOW 20 SECONDS"""


@dataclass(frozen=True, slots=True)
class Size:
    """How many batches to run, how many to leave out at the beginning, how wide the bands are."""

    batches: int
    skip: int
    band: float


QUICK = Size(batches=6, skip=3, band=0.5)
FULL = Size(batches=40, skip=24, band=1)


def run(quick: bool) -> list[Row]:
    """The rows of this bench."""
    return in_child("benchmarks.bench_spark_results", quick)


def measure(size: Size) -> list[Row]:
    """Measure in this process."""
    streams = [GrubJoinStream(name, Constant(1_000), noise=2.0) for name in ("a", "b", "c")]
    with recorded(streams, size.batches) as seconds, session() as spark, tempfile.TemporaryDirectory() as folder:
        frames = seconds.frames(spark)
        noop = _rate(size, frames, sink=windrow.Format("noop"))
        parquet = _rate(size, frames, sink=f"{folder}/out")
    return [
        _row("to Spark's noop format", noop, 5.0, size),
        _row("to Parquet files", parquet, 3.5, size),
    ]


def _rate(size: Size, frames: Mapping[str, DataFrame], **target: Any) -> tuple[float, float]:
    """Millions of results a second of batch time, and millions a batch."""
    held: list[Any] = []

    def start(checkpoint: str) -> Any:
        query = asked(QUESTION.format(band=size.band), frames)
        held.append(query.start(**target, checkpoint=checkpoint, trigger="0 seconds", max_ahead=None))
        return held[0].spark_query

    spent = durations_ms(start, size.batches, size.skip)
    results = {report["batch"]: report["results"] for report in held[0].recent_progress()}
    rates = [results[batch] / report["triggerExecution"] / 1e3 for batch, report in spent.items()]
    return statistics.median(rates), statistics.median(results[batch] for batch in spent) / 1e6


def _row(name: str, found: tuple[float, float], goal: float, size: Size) -> Row:
    rate, a_batch = found
    return {
        "name": name,
        "peer_name": "",
        "ours": round(rate, 2),
        "peer": None,
        "unit": "million/s",
        "ratio": None,
        "goal": f">= {goal:g}",
        "met": rate >= goal,
        "note": f"median of {size.batches - size.skip} batches of {a_batch:.2f} million results, windows full",
    }


if __name__ == "__main__":
    main(DESCRIPTION, run)
