"""What it costs to be able to shed: sampling and notes while there is time for everything.

The same joins run exactly, and controlled at a throttle of 1: a share ω of the rows is sampled, probing is counted,
lags of results are learned, the harvest is optimised every interval, and results are what they were. Both take each
batch in turn. The goal is 1 + ω + 3 %.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import windrow
from benchmarks.measure import DisagreementError, Row, in_child, main, smaller, timed
from windrow.control.controller import ControlSettings
from windrow.query.builder import Join
from windrow.run.local import LocalJoin

DESCRIPTION = "Sampling and bookkeeping at a throttle of 1, beside the join without control"
SHARE, MORE, INTERVAL = 0.1, 0.03, 5
WARM = 2
"""Intervals until windows are full, and all is compiled."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A join: streams, condition, method, and rows of a stream a second."""

    streams: str
    condition: str
    method: str
    rate_hz: int


SHAPES: Mapping[str, Shape] = {
    "band": Shape("ab", "ABS(a.x - b.x) <= 0.0005", "sorted", 20_000),
    "equality": Shape("ab", "a.k = b.k", "hashed", 20_000),
    "any condition": Shape("ab", "ABS(a.x - b.x) <= 0.001 AND ABS(a.y - b.y) <= 0.5", "loop", 4_000),
    "three streams": Shape("abc", "a.k = b.k AND b.k = c.k", "hashed", 8_000),
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """Which joins, how many of their rows (a share), and intervals of `INTERVAL` batches that are measured."""

    shapes: Collection[str]
    share: float
    intervals: int


QUICK = Sizes(tuple(SHAPES), share=0.5, intervals=4)
FULL = Sizes(tuple(SHAPES), share=1.0, intervals=9)


def run(quick: bool) -> list[Row]:
    """The rows of this bench."""
    return in_child("benchmarks.bench_bookkeeping", quick)


def measure(sizes: Sizes) -> list[Row]:
    """Measure in this process."""
    return [_row(name, SHAPES[name], sizes) for name in sizes.shapes]


def _row(name: str, shape: Shape, sizes: Sizes) -> Row:
    rows = max(50, round(shape.rate_hz * sizes.share))
    query = windrow.sql(
        f"SELECT a.id AS i, b.id AS j FROM {', '.join(shape.streams)} WHERE {shape.condition} WINDOW 10 SECONDS",
        streams={stream: _batch(0, rows, number) for number, stream in enumerate(shape.streams)},
    )
    control = ControlSettings(interval_s=float(INTERVAL), sample=SHARE, fixed=1.0)
    plain = windrow.local(query, methods=(shape.method,))
    controlled = windrow.local(query, methods=(shape.method,), control=control)
    spent = [_interval(query, (plain, controlled), rows, number) for number in range(WARM + sizes.intervals)][WARM:]
    if plain.report.results != controlled.report.results:
        raise DisagreementError(f"{controlled.report.results} results, and {plain.report.results} without control")
    exact_s, ours_s = (statistics.median(each) for each in zip(*spent, strict=True))
    return smaller(
        f"{name}, {len(shape.streams)} streams",
        ours=ours_s / INTERVAL * 1e3,
        peer=exact_s / INTERVAL * 1e3,
        unit="ms",
        goal=1 + SHARE + MORE,
        peer_name="not controlled",
        note=f"a batch of {rows:,} rows a stream; median of {len(spent)} intervals of {INTERVAL} batches",
    )


def _interval(query: Join, joins: tuple[LocalJoin, LocalJoin], rows: int, number: int) -> tuple[float, float]:
    """The seconds that an interval takes without control, and with it."""
    plain_s = controlled_s = 0.0
    plain, controlled = joins
    for batch in range(number * INTERVAL, (number + 1) * INTERVAL):
        for stream, name in enumerate(query.sources):
            table = _batch(batch, rows, stream)
            plain.push(name, table)
            controlled.push(name, table)
        plain_s += timed(lambda: plain.step(now_s=batch + 1.0))[0]  # noqa: B023 - called at once
        controlled_s += timed(lambda: controlled.step(now_s=batch + 1.0))[0]  # noqa: B023 - called at once
    return plain_s, controlled_s


def _batch(batch: int, rows: int, stream: int) -> pa.Table:
    random = np.random.default_rng([batch, stream])
    times = batch * 1_000_000 + np.sort(random.integers(0, 1_000_000, rows))
    return pa.table({
        "ts": pa.array(times, pa.timestamp("us")),
        "id": np.arange(batch * rows, (batch + 1) * rows),
        "x": random.uniform(size=rows),
        "y": random.uniform(size=rows),
        "k": random.integers(0, 10 * rows, rows),
    })  # fmt: skip


if __name__ == "__main__":
    main(DESCRIPTION, run)
