"""`windrow-synthetic`: a generated stream whose matches are known (`streams.synthetic`), at a set rate.

Columns `ts` TIMESTAMP, `id` BIGINT (0, 1, 2 …) and `x` DOUBLE. The n-th row is the same in every run: which batch it
comes in is the offset's matter (`pace`), what it holds that of the slice of time it lies in (`slices`).

    option               default       meaning
    name                 stream        the stream; streams of other names draw other numbers
    arrivals             poisson       poisson, constant, sinusoidal, step or b-model
    rate_hz              100           rows a second (on average)
    lag_s, noise         0, 0          τ and κ of the process
    domain, period_s     1000, 50      D and η of the process
    seed                 0
    start                2024-01-01    event time of the beginning: an ISO time, or `now`
    duration_s           endless       how long the stream is
    speed                1             multiples of wall time, or `max`: as fast as batches come
    span_s               no limit      most event time in a batch
    max_rows_per_batch   no limit      most rows in a batch (rows of one microsecond stay together)
    partitions           1             Spark tasks that make the rows of a batch

    cycle_s (60), amplitude (1)        arrivals=sinusoidal: the length of a wave and its height
    steps                              arrivals=step: seconds:rate pairs such as 10:100,5:1000
    cycle_s (60), bias (0.2), levels (10)    arrivals=b-model
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from types import MappingProxyType

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import DoubleType, LongType, StructField, StructType, TimestampType

from windrow.errors import UsageError
from windrow.run.spark.sources.options import SourceOptions
from windrow.run.spark.sources.pace import PACE_OPTIONS, Offset, Pace, Position, Shape, position, read_pace, wall_us
from windrow.run.spark.sources.slices import ROWS_A_SLICE, SlicedStream, slice_us
from windrow.streams.arrivals import SECOND_US, Arrivals, BModel, Constant, Poisson, Sinusoidal, Step
from windrow.streams.synthetic import MIDNIGHT_US, GrubJoinStream

SYNTHETIC_SCHEMA = StructType(
    [StructField("ts", TimestampType()), StructField("id", LongType()), StructField("x", DoubleType())]
)

ARRIVAL_OPTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "poisson": ("rate_hz",),
        "constant": ("rate_hz",),
        "sinusoidal": ("rate_hz", "amplitude", "cycle_s"),
        "step": ("steps",),
        "b-model": ("rate_hz", "bias", "levels", "cycle_s"),
    }
)
"""The options of each pattern of arrivals."""

_PROCESS_OPTIONS = ("name", "arrivals", "lag_s", "noise", "domain", "period_s", "seed", "start", "duration_s")
_SOURCE = "windrow-synthetic"


class SyntheticSource(DataSource):
    """One generated stream; its options are checked when it is made."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        arrivals = options.get("arrivals", "poisson")
        own = ARRIVAL_OPTIONS.get(arrivals, ("rate_hz",))
        given = SourceOptions(_SOURCE, options, known=(*_PROCESS_OPTIONS, *own, *PACE_OPTIONS, "partitions"))
        self._settings = _settings(given)

    @classmethod
    def name(cls) -> str:
        return _SOURCE

    def schema(self) -> StructType:
        return SYNTHETIC_SCHEMA

    def streamReader(self, schema: StructType) -> SyntheticReader:  # noqa: ARG002, N802 - Spark's signature
        return SyntheticReader(self._settings)


@dataclass(frozen=True, slots=True)
class SyntheticSettings:
    """What the options say; `start_us` is None for "when the query first begins"."""

    stream: SlicedStream
    pace: Pace
    start_us: int | None
    duration_us: int | None
    partitions: int

    def shape(self) -> Shape:
        start = "now" if self.start_us is None else self.start_us
        return {"stream": repr(self.stream.stream), "seed": self.stream.seed, "start_us": start}


@dataclass(frozen=True, slots=True)
class Piece:
    """The part of a batch that one task makes."""

    origin_us: int
    from_us: int
    until_us: int
    first_id: int


class SyntheticReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are positions in the stream's time, with the number of rows before them."""

    def __init__(self, settings: SyntheticSettings, wall: Callable[[], int] = wall_us) -> None:
        self._settings = settings
        self._shape = settings.shape()
        self._wall = wall
        self._last_wall_us: int | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        now_us = self._wall()
        origin_us = now_us if self._settings.start_us is None else self._settings.start_us
        return Position(rows=0, until_us=0, began_us=now_us, origin_us=origin_us).offset(self._shape)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        if self._settings.pace.is_unbounded and self._settings.duration_us is None:
            hint = "give duration_s, or another speed than 'max'"
            raise UsageError(f"all there is of an endless {_SOURCE} at speed 'max' never ends", hint=hint)
        self._last_wall_us = self._wall()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: ARG002, N802 - Spark's signature
        began = position(start, self._shape, _SOURCE)
        pace, duration_us = self._settings.pace, self._settings.duration_us
        now_us = self._wall() if self._last_wall_us is None else self._last_wall_us
        due_us = pace.due_us(began, now_us)
        wanted_us = pace.until_us(began, now_us)
        if duration_us is not None:
            wanted_us = max(began.until_us, min(wanted_us, duration_us))
        stream = self._settings.stream
        rows, until_us = stream.advance(began.origin_us, began.until_us, wanted_us, pace.max_rows)
        if rows == 0 and until_us == due_us:
            # Nothing has come yet, and nothing was held back: there is no reason for a batch.
            return start
        return Position(began.rows + rows, until_us, began.began_us, began.origin_us).offset(self._shape)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        first, last = position(start, self._shape, _SOURCE), position(end, self._shape, _SOURCE)
        if first.rows == last.rows:
            return []
        count = self._settings.partitions
        cuts_us = [first.until_us + (last.until_us - first.until_us) * part // count for part in range(count + 1)]
        pieces, first_id = [], first.rows
        for from_us, until_us in pairwise(cuts_us):
            pieces.append(InputPartition(Piece(last.origin_us, from_us, until_us, first_id)))
            if count > 1:
                first_id += self._settings.stream.count(last.origin_us, from_us, until_us)
        return pieces

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        piece: Piece = partition.value
        return self._settings.stream.rows(piece.origin_us, piece.from_us, piece.until_us, piece.first_id)


def _settings(options: SourceOptions) -> SyntheticSettings:
    arrivals, slice_s, rows_hz = _arrivals(options)
    stream = GrubJoinStream(
        options.text("name", "stream"),
        arrivals,
        lag_s=options.number("lag_s", 0.0, signed=True),
        noise=options.number("noise", 0.0),
        domain=options.number("domain", 1000.0, above_zero=True),
        period_s=options.number("period_s", 50.0, above_zero=True),
    )
    sliced = SlicedStream(stream, options.integer("seed", 0), slice_us(stream, slice_s, rows_hz))
    is_now = options.text("start", "") == "now"
    start_us = None if is_now else options.instant_us("start")
    duration_s = options.number("duration_s", 0.0, above_zero=True)
    return SyntheticSettings(
        sliced,
        read_pace(options),
        start_us=MIDNIGHT_US if start_us is None and not is_now else start_us,
        duration_us=round(duration_s * SECOND_US) if "duration_s" in options else None,
        partitions=options.integer("partitions", 1, least=1),
    )


def _arrivals(options: SourceOptions) -> tuple[Arrivals, float, float]:
    """The pattern of arrivals, the length of its slices in seconds, and its mean rate."""
    kind = options.choice("arrivals", "poisson", tuple(ARRIVAL_OPTIONS))
    if kind == "step":
        steps = _steps(options)
        cycle_s = sum(duration_s for duration_s, _ in steps)
        return Step(steps), cycle_s, sum(duration_s * rate_hz for duration_s, rate_hz in steps) / cycle_s
    rate_hz = options.number("rate_hz", 100.0, above_zero=True)
    if kind == "poisson":
        return Poisson(rate_hz), ROWS_A_SLICE / rate_hz, rate_hz
    if kind == "constant":
        rate = _simple_rate(rate_hz)
        return Constant(float(rate)), rate.denominator * max(1, ROWS_A_SLICE // rate.numerator), float(rate)
    cycle_s = options.number("cycle_s", 60.0, above_zero=True)
    if kind == "sinusoidal":
        return Sinusoidal(rate_hz, options.number("amplitude", 1.0), cycle_s), cycle_s, rate_hz
    return BModel(rate_hz, options.number("bias", 0.2), options.integer("levels", 10)), cycle_s, rate_hz


def _simple_rate(rate_hz: float) -> Fraction:
    """The rate as a ratio of small numbers, so that a whole number of rows comes in a whole number of seconds."""
    if rate_hz >= 1:
        return Fraction(rate_hz).limit_denominator(1000)
    return 1 / (1 / Fraction(rate_hz)).limit_denominator(1000)


def _steps(options: SourceOptions) -> tuple[tuple[float, float], ...]:
    hint = "write seconds:rate pairs such as 10:100,5:1000, not all of rate 0"
    text = options.needed("steps", hint)
    try:
        pairs = [tuple(float(number) for number in pair.split(":")) for pair in text.split(",")]
        steps = tuple((duration_s, rate_hz) for duration_s, rate_hz in pairs)
    except ValueError:
        raise UsageError(f"steps of {_SOURCE} is '{text}'", hint=hint) from None
    if sum(rate_hz for _, rate_hz in steps) <= 0:
        raise UsageError(f"steps of {_SOURCE} is '{text}': no row ever comes", hint=hint)
    return steps
