"""How far a source has come, and how far it may go: positions in a stream, and the pace of its time.

    rows        rows given so far            until_us    how far the stream's time has come, from its origin
    began_us    wall time of the first start  origin_us   event time at which the stream begins

    wall time    began                    now                        speed 1: as fast as the wall time
                   |-----------------------|                         speed 3: three times as fast
    stream         |=====batch=====|--------                         speed max: as far as a batch may go
                 origin    until, at most span_us or max_rows further than the batch before

A position is an offset of Spark's: it is written to the checkpoint, with the options that shape the rows.

>>> began = Position(rows=0, until_us=0, began_us=1_000, origin_us=0)
>>> Pace(speed=2.0).until_us(began, now_us=6_000), Pace(speed=2.0, span_us=500).until_us(began, now_us=6_000)
(10000, 500)
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from windrow.errors import StateError
from windrow.run.spark.sources.options import SourceOptions
from windrow.streams.arrivals import SECOND_US
from windrow.streams.replay import ROWS_A_BATCH

OFFSET_VERSION = 1
"""The form of offsets in a checkpoint; another one is refused."""

PACE_OPTIONS = ("speed", "span_s", "max_rows_per_batch")
FOREVER_US = 2**62

Offset = dict[str, Any]
Shape = Mapping[str, str | int]
"""The options and facts that decide which rows a range of offsets has."""


@dataclass(frozen=True, slots=True)
class Position:
    """How far a stream has come."""

    rows: int
    until_us: int
    began_us: int
    origin_us: int

    def offset(self, shape: Shape) -> Offset:
        return {"version": OFFSET_VERSION, **asdict(self), "of": dict(sorted(shape.items()))}


def position(offset: Mapping[str, Any], shape: Shape, source: str) -> Position:
    """The position an offset stands for; a `StateError` if it was written by a source of another shape."""
    if offset.get("version") != OFFSET_VERSION:
        message = f"the checkpoint holds offsets of version {offset.get('version')} of {source}, not {OFFSET_VERSION}"
        raise StateError(message, hint="start from a new checkpoint")
    before = offset["of"]
    for name in dict.fromkeys((*shape, *before)):
        if before.get(name) != shape.get(name):
            message = (
                f"{name} of {source} is '{shape.get(name)}', but the checkpoint was begun with '{before.get(name)}'"
            )
            raise StateError(message, hint="set it as it was, or start from a new checkpoint")
    return Position(offset["rows"], offset["until_us"], offset["began_us"], offset["origin_us"])


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a stream's time goes, in multiples of wall time, and how far one batch may take it.

    `speed` is infinite for "as fast as batches come"; `span_us` is the most time of the stream in a batch, `max_rows`
    the most rows.
    """

    speed: float = 1.0
    span_us: int | None = None
    max_rows: int | None = None

    @property
    def is_unbounded(self) -> bool:
        """Whether wall time plays no part."""
        return math.isinf(self.speed)

    def until_us(self, start: Position, now_us: int) -> int:
        """How far the stream's time may come in a batch that begins at a position; never back."""
        until_us = self.due_us(start, now_us)
        if self.span_us is not None:
            until_us = min(until_us, start.until_us + self.span_us)
        return max(until_us, start.until_us)

    def due_us(self, start: Position, now_us: int) -> int:
        """How far the stream's time would be if no batch had limits."""
        return FOREVER_US if self.is_unbounded else math.floor((now_us - start.began_us) * self.speed)


def read_pace(options: SourceOptions) -> Pace:
    """The pace that the options `speed`, `span_s` and `max_rows_per_batch` ask for.

    Without a limit, batches at speed `max` hold 100,000 rows.
    """
    is_unbounded = options.text("speed", "1") in ("max", "0")
    speed = math.inf if is_unbounded else options.number("speed", 1.0, above_zero=True)
    span_us = max(1, round(options.number("span_s", 0.0, above_zero=True) * SECOND_US)) if "span_s" in options else None
    max_rows = options.integer("max_rows_per_batch", 0, least=1) or None
    if is_unbounded and span_us is None and max_rows is None:
        max_rows = ROWS_A_BATCH
    return Pace(speed, span_us, max_rows)


def wall_us() -> int:
    """Wall time in microseconds since 1970."""
    return time.time_ns() // 1_000
