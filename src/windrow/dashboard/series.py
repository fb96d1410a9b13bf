"""What changes with time, as series that share one time axis: one point a batch of the history.

Where events were left out between two points, rates are those of the whole gap, from counts that only grow.

    rates        rows a second of each stream, of all, and how many this machine could join in full
    work         the throttle, and how much of the time was busy
    results      results a second, found at once and made up for; recall of the last batches, with its interval
    durations    seconds a batch took, seconds it had, and the longest that a row waited for its results
    bytes        bytes of each window
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from windrow.dashboard.batches import Asked, Batch

Values = list[float | None]
SMOOTHED = 5
"""Capacity is the median of so many batches: what a batch takes varies more than what the machine can do."""


def series_of(batches: Sequence[Batch], query: Asked) -> dict[str, Any]:
    """All series, by name, and the times of their points in milliseconds since 1970."""
    names = list(query.streams)
    capacity = _smoothed([_capacity(batch) for batch in batches])
    limit_s = allowed_delay_s(query)
    repairs = any(batch.ledger is not None for batch in batches)
    return {
        "at_ms": [round(batch.now_s * 1000) for batch in batches],
        "batch": [batch.batch for batch in batches],
        "rates": {name: _rates(batches, lambda batch, name=name: _rows(batch, name)) for name in names},  # type: ignore[misc]
        "rate": _rates(batches, lambda batch: sum(stream.rows for stream in batch.streams.values())),
        "capacity": capacity,
        "throttle": [batch.throttle for batch in batches],
        "busy": [batch.busy_s / batch.span_s if batch.span_s > 0 else None for batch in batches],
        "results": _rates(batches, lambda batch: batch.totals.results - batch.totals.repaired),
        "repaired": _rates(batches, lambda batch: batch.totals.repaired) if repairs else None,
        "recall": [batch.recall.recent.recall for batch in batches],
        "recall_low": [batch.recall.recent.low for batch in batches],
        "recall_high": [batch.recall.recent.high for batch in batches],
        "busy_s": [batch.busy_s for batch in batches],
        "span_s": [batch.span_s if batch.span_s > 0 else None for batch in batches],
        "delay_s": [batch.span_s + batch.busy_s if batch.span_s > 0 else None for batch in batches],
        "delay_limit_s": limit_s,
        "bytes": {name: [_stored(batch, name) for batch in batches] for name in names},
        "repair_s": [None if batch.ledger is None else batch.ledger.open.cost_s for batch in batches],
    }


def allowed_delay_s(query: Asked) -> float | None:
    """How long results may take at most: each stream's FRESHNESS less its window, where it has one."""
    spare = [s.freshness_us - (s.window_us or 0) for s in query.streams.values() if s.freshness_us is not None]
    return max(0.0, min(spare) / 1e6) if spare else None


def _capacity(batch: Batch) -> float | None:
    """Rows a second that could be joined in full."""
    rate = batch.rows_per_s
    if rate is None or batch.busy_s <= 0 or rate <= 0:
        return None
    return rate * batch.span_s * batch.throttle / batch.busy_s


def _rates(batches: Sequence[Batch], count: Callable[[Batch], float]) -> Values:
    if not batches:
        return []
    found: Values = [None]
    for before, after in pairwise(batches):
        span_s, grown = after.now_s - before.now_s, count(after) - count(before)
        found.append(grown / span_s if span_s > 0 and grown >= 0 else None)
    return found


def _smoothed(values: Values) -> Values:
    smooth: Values = []
    for number in range(len(values)):
        near = [value for value in values[max(0, number + 1 - SMOOTHED) : number + 1] if value is not None]
        smooth.append(median(near) if near else None)
    return smooth


def _rows(batch: Batch, name: str) -> int:
    return batch.streams[name].rows if name in batch.streams else 0


def _stored(batch: Batch, name: str) -> int:
    return batch.streams[name].stored_bytes if name in batch.streams else 0
