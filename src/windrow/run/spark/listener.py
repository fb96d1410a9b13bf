"""What Spark itself says of its streaming queries, bridged to whoever collects metrics.

    Spark ── progress of a micro-batch ──▶ ProgressBridge ── numbers() ──▶ windrow.dashboard.metrics

    bridge = ProgressBridge()
    spark.streams.addListener(bridge)
    serve_metrics(9464, Reader("near.state"), bridge.numbers)

It keeps the last progress of each query that runs, by name, or by id where it has none. Spark calls it from a thread of
its own, so it does no more than that.
"""

from __future__ import annotations

import math
from threading import Lock
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener

MOST_QUERIES = 100


class ProgressBridge(StreamingQueryListener):
    """Listens to all queries of a session."""

    def __init__(self) -> None:
        super().__init__()
        self._held: dict[str, tuple[str, dict[str, float]]] = {}
        self._lock = Lock()

    def numbers(self) -> dict[str, dict[str, float]]:
        """The last numbers of each query, as `windrow.dashboard.metrics.SPARK_METRICS` names them."""
        with self._lock:
            return {name: dict(numbers) for name, numbers in self._held.values()}

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """A query has begun: there are no numbers yet."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """A micro-batch is done."""
        progress = event.progress
        with self._lock:
            self._held[str(progress.runId)] = (str(progress.name or progress.id), numbers_of(progress))
            while len(self._held) > MOST_QUERIES:
                del self._held[next(iter(self._held))]

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """There was nothing to do."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """A query has ended, and so have its numbers."""
        with self._lock:
            self._held.pop(str(event.runId), None)


def numbers_of(progress: Any) -> dict[str, float]:
    """The numbers of a progress; rates that Spark cannot tell yet are left out."""
    found = {
        "batch_id": float(progress.batchId),
        "input_rows": float(progress.numInputRows),
        "input_rows_per_second": float(progress.inputRowsPerSecond),
        "processed_rows_per_second": float(progress.processedRowsPerSecond),
        "batch_duration_seconds": float(progress.batchDuration) / 1000,
    }
    return {name: value for name, value in found.items() if math.isfinite(value)}
