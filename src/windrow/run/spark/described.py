"""Jobs of a batch under names a reader of Spark's UI understands: batch, hop, stage.

with described(spark.sparkContext, 12, "hop 1 of 2: store, probe"):
    frame.collect()             # the UI shows: windrow batch 12: hop 1 of 2: store, probe
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext

DESCRIPTION = "spark.job.description"
CALL_SITES = ("callSite.short", "callSite.long")


@contextmanager
def described(spark_context: SparkContext, batch: int, text: str) -> Iterator[None]:
    """Jobs that this thread starts in the block are shown by `text`, their stages too; what was set before returns."""
    shown = f"windrow batch {batch}: {text}"
    before = {name: spark_context.getLocalProperty(name) for name in (DESCRIPTION, *CALL_SITES)}
    try:
        for name in before:
            spark_context.setLocalProperty(name, shown)
        yield
    finally:
        for name, value in before.items():
            # Spark takes None for "not set"; its type hint does not know.
            spark_context.setLocalProperty(name, value)  # type: ignore[arg-type]
