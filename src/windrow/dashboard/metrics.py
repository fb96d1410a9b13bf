"""Metrics of a run for Prometheus, from its newest event; names and units are in `docs/metrics.md`.

    history ── METRICS: name, kind, help, labels, values ──▶ text

Counts only grow while a checkpoint or folder lasts; seconds, bytes and shares are named by their unit. What Spark says
of its own work (`windrow.run.spark.listener`) comes beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest

from windrow.dashboard.batches import Batch
from windrow.dashboard.history import History, Reader

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Sample = tuple[tuple[str, ...], float]
SparkNumbers = Callable[[], Mapping[str, Mapping[str, float]]]
"""What Spark says of its queries: numbers by the name of the query."""


@dataclass(frozen=True)
class Described:
    """One metric: its name (without `_total`), whether it is a counter, what it is, its labels, and its values."""

    name: str
    counts: bool
    text: str
    labels: tuple[str, ...]
    values: Callable[[Batch], Iterable[Sample]]


def _of_streams(field: str) -> Callable[[Batch], Iterable[Sample]]:
    return lambda batch: [((name,), float(getattr(stream, field))) for name, stream in batch.streams.items()]


def _one(value: Callable[[Batch], float]) -> Callable[[Batch], Iterable[Sample]]:
    return lambda batch: [((), float(value(batch)))]


def _bad(batch: Batch) -> Iterator[Sample]:
    for name, stream in batch.streams.items():
        yield (name, "no_time"), stream.bad
        yield (name, "too_far_ahead"), stream.ahead


def _watermarks(batch: Batch) -> Iterator[Sample]:
    for name, stream in batch.streams.items():
        if stream.watermark_us is not None:
            yield (name,), stream.watermark_us / 1e6


def _behind(batch: Batch) -> Iterator[Sample]:
    marks = [s.watermark_us for s in batch.streams.values() if s.watermark_us is not None]
    for name, stream in batch.streams.items():
        if stream.watermark_us is not None:
            yield (name,), (max(marks) - stream.watermark_us) / 1e6


def _recall(field: str) -> Callable[[Batch], Iterable[Sample]]:
    def values(batch: Batch) -> Iterator[Sample]:
        for span, held in (("whole", batch.recall.whole), ("recent", batch.recall.recent)):
            value = getattr(held, field)
            if value is not None:
                yield (span,), value

    return values


def _pairs(batch: Batch) -> Iterator[Sample]:
    for path, did in batch.totals.paths.items():
        for target, step in zip(did.targets, did.steps, strict=False):
            for kind in ("searched", "candidates", "matches"):
                yield (path, target, kind), getattr(step, kind)


def _ledger(field: str) -> Callable[[Batch], Iterable[Sample]]:
    def values(batch: Batch) -> Iterator[Sample]:
        if batch.ledger is not None:
            for state in ("open", "done", "forgotten"):
                yield (state,), getattr(getattr(batch.ledger, state), field)

    return values


def _fresh(field: str) -> Callable[[Batch], Iterable[Sample]]:
    def values(batch: Batch) -> Iterator[Sample]:
        for name, held in batch.freshness.streams.items() if batch.freshness is not None else ():
            value = getattr(held, field)
            if value is not None:
                yield (name,), value

    return values


def _stale(batch: Batch) -> Iterator[Sample]:
    if batch.freshness is not None:
        yield (), batch.freshness.suppressed


STREAM = ("stream",)
METRICS = (
    Described("windrow_rows", True, "Rows that came, by stream.", STREAM, _of_streams("rows")),
    Described("windrow_late_rows", True, "Rows behind their stream's watermark, left out.", STREAM,
              _of_streams("late")),
    Described("windrow_bad_rows", True, "Rows without an event time, or with one too far ahead.",
              ("stream", "reason"), _bad),
    Described("windrow_filtered_rows", True, "Rows that conditions on one stream let not through.", STREAM,
              _of_streams("filtered")),
    Described("windrow_dropped_rows", True, "Rows dropped before the join, at random or for lack of room.", STREAM,
              _of_streams("dropped")),
    Described("windrow_window_rows", False, "Rows in a stream's window.", STREAM, _of_streams("stored")),
    Described("windrow_window_bytes", False, "Bytes of a stream's window.", STREAM, _of_streams("stored_bytes")),
    Described("windrow_watermark_timestamp_seconds", False, "Where a stream's watermark stands, in event time.",
              STREAM, _watermarks),
    Described("windrow_watermark_behind_seconds", False, "How far a stream's watermark is behind the furthest one.",
              STREAM, _behind),
    Described("windrow_results", True, "Results found.", (), _one(lambda batch: batch.totals.results)),
    Described("windrow_repaired_results", True, "Results among them that were made up for.", (),
              _one(lambda batch: batch.totals.repaired)),
    Described("windrow_lost_results", True, "Results missed because rows were let go for memory, estimated.", (),
              _one(lambda batch: batch.totals.lost)),
    Described("windrow_batches", True, "Batches done.", (), _one(lambda batch: batch.totals.batches)),
    Described("windrow_busy_seconds", True, "Seconds that batches took.", (), _one(lambda batch: batch.totals.busy_s)),
    Described("windrow_batch_busy_seconds", False, "Seconds the last batch took.", (),
              _one(lambda batch: batch.busy_s)),
    Described("windrow_batch_span_seconds", False, "Seconds since the batch before: what the last one had.", (),
              _one(lambda batch: batch.span_s)),
    Described("windrow_batch_phase_seconds", False, "Seconds of the last batch, by phase.", ("phase",),
              lambda batch: [((phase,), seconds) for phase, seconds in batch.durations_s.items()]),
    Described("windrow_throttle_ratio", False, "Share of the full work that is done.", (),
              _one(lambda batch: batch.throttle)),
    Described("windrow_recall_ratio", False, "Share of all results that was delivered.", ("span",), _recall("recall")),
    Described("windrow_recall_low_ratio", False, "Lower end of its 95 % interval.", ("span",), _recall("low")),
    Described("windrow_recall_high_ratio", False, "Upper end of its 95 % interval.", ("span",), _recall("high")),
    Described("windrow_step_pairs", True, "Pairs within reach of a step, looked at by its method, and matched.",
              ("path", "store", "kind"), _pairs),
    Described("windrow_stale_results", True, "Results held back because they were older than FRESHNESS allows.", (),
              _stale),
    Described("windrow_freshness_asked_seconds", False, "The FRESHNESS asked for.", STREAM, _fresh("asked_s")),
    Described("windrow_freshness_oldest_seconds", False, "Age of the oldest row in any result delivered.", STREAM,
              _fresh("oldest_s")),
    Described("windrow_ledger_pieces", False, "Pieces of left-out work, by what became of them.", ("state",),
              _ledger("pieces")),
    Described("windrow_ledger_cost_seconds", False, "Seconds these pieces are expected to take.", ("state",),
              _ledger("cost_s")),
    Described("windrow_event_timestamp_seconds", False, "Time of day of the last event.", (),
              _one(lambda batch: batch.written_s)),
)  # fmt: skip

SPARK_METRICS = {
    "batch_id": "Number of Spark's last micro-batch.",
    "input_rows": "Rows Spark read in its last micro-batch.",
    "input_rows_per_second": "Rows a second that arrived, as Spark counts them.",
    "processed_rows_per_second": "Rows a second that Spark could take, by its last micro-batch.",
    "batch_duration_seconds": "Seconds Spark's last micro-batch took, with all around it.",
}
"""Numbers of Spark's own progress; their metrics are called `windrow_spark_…`, one sample a query."""


def exposition(history: History, spark: Mapping[str, Mapping[str, float]] | None = None) -> bytes:
    """All metrics in Prometheus's text format; none before the first event."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Fixed(list(families(history, spark or {}))))
    return generate_latest(registry)


def families(history: History, spark: Mapping[str, Mapping[str, float]]) -> Iterator[Metric]:
    """The metrics of the newest batch, and Spark's."""
    if history.batches:
        for metric in METRICS:
            kind = CounterMetricFamily if metric.counts else GaugeMetricFamily
            family = kind(metric.name, metric.text, labels=metric.labels)
            for labels, value in metric.values(history.batches[-1]):
                family.add_metric(labels, value)
            yield family
    for name, text in SPARK_METRICS.items() if spark else ():
        family = GaugeMetricFamily(f"windrow_spark_{name}", text, labels=("query",))
        for query, numbers in spark.items():
            if name in numbers:
                family.add_metric((query,), numbers[name])
        yield family


class RunCollector:
    """Reads a run's newest event whenever it is asked."""

    def __init__(self, reader: Reader, spark: SparkNumbers = dict) -> None:
        self._reader = reader
        self._spark = spark
        self._lock = Lock()

    def collect(self) -> Iterator[Metric]:
        """What Prometheus's client asks for."""
        with self._lock:
            self._reader.refresh()
            found = list(families(self._reader.history, self._spark()))
        yield from found


def serve_metrics(port: int, reader: Reader, spark: SparkNumbers = dict, address: str = "127.0.0.1") -> Any:
    """Serve a run's metrics from a thread of this program; the server, to `shutdown`."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(RunCollector(reader, spark))
    server, _ = start_http_server(port, address, registry)
    return server


class _Fixed:
    def __init__(self, found: list[Metric]) -> None:
        self._found = found

    def collect(self) -> Iterator[Metric]:
        yield from self._found
