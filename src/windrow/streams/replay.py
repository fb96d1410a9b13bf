"""Replay of recorded rows: all streams advance together, batch by batch.

Every row gets an arrival time, which never falls within a stream; a batch takes the rows of all streams whose arrival
times lie in its span.

    in event-time order (the default)      rows are ordered by event time first (stable); arrival time = event time
    as arrived                             rows keep the order of their file; arrival time = largest event time so far

    a   1  2  2     5            |         spans of 3:  [1, 4)  a 1 2 2   b 1
    b   1           5  6  |  8             |            [4, 7)  a 5       b 5 6
                                           |            [7, 10)           b 8

A row without event time arrives with the row before it: it is the join's to count, and is not lost on the way. Spans
without rows give no batch. Batches are slices; only a stream that had to be ordered is copied, once.

>>> rows = pa.table({"ts": pa.array([3, 1, 9], pa.timestamp("us"))})
>>> replay = Replay({"a": (rows, "ts", None)}, batch_us=4)
>>> [(batch.tables["a"].column("ts").cast("int64").to_pylist(), batch.end_us) for batch in replay]
[([1, 3], 5), ([9], 13)]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windrow.errors import InputError, UsageError
from windrow.streams.event_time import event_time_us

Recorded: TypeAlias = tuple[pa.Table, str, str | None]
"""A stream's rows, the name of its time column, and the unit of that column where it is an integer or a float."""

FEWEST_BATCHES = 20
ROWS_A_BATCH = 100_000

_Times: TypeAlias = NDArray[np.int64]
_Numbers: TypeAlias = NDArray[np.uint64]
_Integer = TypeVar("_Integer", np.int64, np.uint64)
_LAST_US = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ReplayBatch:
    """The rows of one span, for every stream (some may have none); all arrive before `end_us`."""

    tables: dict[str, pa.Table]
    end_us: int


class Replay:
    """Recorded streams cut into batches by a span of time (`batch_us`) or by rows of all streams (`batch_rows`).

    Without either, the span is chosen: about 100,000 rows a batch, and at least 20 batches where the times allow it.
    `rows` counts the rows of all streams, `batches` the batches, `empty_spans` the spans left out between them;
    `span_us` is the span, or None for batches by rows. It can be iterated more than once.
    """

    def __init__(
        self,
        inputs: Mapping[str, Recorded],
        *,
        batch_us: int | None = None,
        batch_rows: int | None = None,
        as_arrived: bool = False,
    ) -> None:
        _check_cuts(batch_us, batch_rows)
        self._tables, arrivals = _arriving(inputs, as_arrived)
        self.rows = sum(table.num_rows for table in self._tables.values())
        self.span_us: int | None = None
        self.empty_spans = 0
        if batch_rows is not None:
            numbers, self._ends_us = _cut_by_rows(arrivals, batch_rows)
            occupied = np.arange(len(self._ends_us), dtype=np.uint64)
        else:
            self.span_us = batch_us if batch_us is not None else default_span_us(list(arrivals.values()))
            numbers, self._ends_us, occupied = _cut_by_time(arrivals, self.span_us)
            self.empty_spans = int(occupied[-1]) + 1 - len(occupied) if len(occupied) else 0
        self.batches = len(occupied)
        self._cuts = {name: [*np.searchsorted(own, occupied).tolist(), len(own)] for name, own in numbers.items()}

    def __len__(self) -> int:
        return self.batches

    def __iter__(self) -> Iterator[ReplayBatch]:
        return map(self.batch, range(self.batches))

    @property
    def ends_us(self) -> Sequence[int]:
        """When each batch ends."""
        return self._ends_us

    def batch(self, place: int) -> ReplayBatch:
        """The batch at a place, counted from 0."""
        tables = {}
        for name, table in self._tables.items():
            start, end = self._cuts[name][place : place + 2]
            tables[name] = table.slice(start, end - start)
        return ReplayBatch(tables, self._ends_us[place])


def default_span_us(arrivals: list[NDArray[np.int64]]) -> int:
    """A span that cuts sorted times into about 100,000 rows a batch, and into 20 batches or more where they allow it.

    >>> default_span_us([np.arange(1000), np.arange(500)])
    50
    """
    times_us = _distinct(np.empty(0, dtype=np.int64), *arrivals)
    if not len(times_us):
        return 1
    rows = sum(len(times) for times in arrivals)
    wanted = max(FEWEST_BATCHES, -(-rows // ROWS_A_BATCH))
    # Gaps leave spans without rows, so fewer batches may hold more rows; twice as many is the most that is let pass.
    fewest = min(len(times_us), max(FEWEST_BATCHES, wanted // 2))
    since = _since(times_us, int(times_us[0]))
    span_us = max(1, -(-(int(since[-1]) + 1) // wanted))
    while span_us > 1 and len(_without_repeats(since // np.uint64(span_us))) < fewest:
        span_us //= 2
    return span_us


def _check_cuts(batch_us: int | None, batch_rows: int | None) -> None:
    if batch_us is not None and batch_rows is not None:
        place = f"batch_us={batch_us}, batch_rows={batch_rows}"
        raise UsageError("batches are cut either by time or by rows", place=place, hint="give one of the two")
    if batch_us is not None and batch_us < 1:
        raise UsageError(f"a batch cannot span {batch_us} microseconds", hint="give a span above zero")
    if batch_rows is not None and batch_rows < 1:
        raise UsageError(f"a batch cannot hold {batch_rows} rows", hint="give at least one row")


def _arriving(inputs: Mapping[str, Recorded], as_arrived: bool) -> tuple[dict[str, pa.Table], dict[str, _Times]]:
    """The rows of each stream in the order they are to come, with their arrival times, which never fall."""
    events = {name: _event_times(name, *recorded) for name, recorded in inputs.items()}
    # A stream without any event time comes at the beginning, wherever the others begin.
    earliest_us = min((pc.min(times).as_py() for times in events.values() if times.null_count < len(times)), default=0)
    tables: dict[str, pa.Table] = {}
    arrivals: dict[str, _Times] = {}
    for name, (table, _, _) in inputs.items():
        times_us = _filled(events[name], earliest_us)
        tables[name] = table
        if as_arrived:
            times_us = np.maximum.accumulate(times_us) if len(times_us) else times_us
        elif np.any(times_us[1:] < times_us[:-1]):
            order = np.argsort(times_us, kind="stable")
            tables[name], times_us = table.take(pa.array(order)), times_us[order]
        arrivals[name] = times_us
    return tables, arrivals


def _event_times(name: str, table: pa.Table, time: str, unit: str | None) -> pa.Array:
    if time not in table.column_names:
        hint = f"its columns are {', '.join(table.column_names)}"
        raise InputError(f"stream '{name}' has no time column '{time}'", hint=hint)
    return event_time_us(table.column(time), unit)


def _filled(times_us: pa.Array, earliest_us: int) -> _Times:
    """Event times where a missing one is that of the row before it; before the first present one, the first's."""
    filled: _Times = np.asarray(times_us.fill_null(earliest_us))
    if times_us.null_count in (0, len(times_us)):
        return filled
    present = np.asarray(times_us.is_valid())
    source = np.maximum.accumulate(np.where(present, np.arange(len(filled)), int(np.argmax(present))))
    result: _Times = filled[source]
    return result


def _cut_by_time(arrivals: Mapping[str, _Times], span_us: int) -> tuple[dict[str, _Numbers], list[int], _Numbers]:
    """The span each row falls into, the end of each span that has rows, and which spans these are."""
    start_us = min((int(times_us[0]) for times_us in arrivals.values() if len(times_us)), default=0)
    numbers = {name: _since(times_us, start_us) // np.uint64(span_us) for name, times_us in arrivals.items()}
    occupied = _distinct(np.empty(0, dtype=np.uint64), *numbers.values())
    return numbers, [min(start_us + (number + 1) * span_us, _LAST_US) for number in occupied.tolist()], occupied


def _cut_by_rows(arrivals: Mapping[str, _Times], batch_rows: int) -> tuple[dict[str, _Numbers], list[int]]:
    """The batch of each row when the streams, merged by arrival time, are cut every so many rows; the batches' ends."""
    merged = np.concatenate([np.empty(0, dtype=np.int64), *arrivals.values()])
    order = np.argsort(merged, kind="stable")
    numbers = np.empty(len(merged), dtype=np.uint64)
    numbers[order] = np.arange(len(merged), dtype=np.uint64) // np.uint64(batch_rows)
    last = [min(first + batch_rows, len(merged)) - 1 for first in range(0, len(merged), batch_rows)]
    starts = np.cumsum([len(times_us) for times_us in arrivals.values()])[:-1]
    own = dict(zip(arrivals, np.split(numbers, starts), strict=True)) if arrivals else {}
    return own, [min(end_us + 1, _LAST_US) for end_us in merged[order[last]].tolist()]


def _since(times_us: _Times, start_us: int) -> _Numbers:
    """Distances from a time that none is before; unsigned, because the whole range of int64 does not fit int64."""
    return times_us.view(np.uint64) - np.uint64(start_us % 2**64)


def _distinct(*ordered: NDArray[_Integer]) -> NDArray[_Integer]:
    # A stable sort merges what is ordered already; np.unique hashes, which takes ten times as long.
    return _without_repeats(np.sort(np.concatenate([_without_repeats(part) for part in ordered]), kind="stable"))


def _without_repeats(ordered: NDArray[_Integer]) -> NDArray[_Integer]:
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))[: len(ordered)]]
