"""A throttled join on a real Spark: its batches give what the join in one process gives by the plans as written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import windrow
from tests.oracle.duck import difference, rows_of
from tests.run.spark import batched
from tests.run.spark.batched import Collected
from tests.run.spark.played import Rows
from tests.run.spark.test_against_duckdb import LEAST_BATCHES, LITTLE, OnSpark, brought, on_spark
from windrow.control.controller import ControlSettings
from windrow.plan.shedding import Shedding
from windrow.query.builder import Join
from windrow.run.events import read_events
from windrow.run.local import LocalJoin
from windrow.run.spark import query as spark_query
from windrow.store.storage import open_storage

CONTROL = ControlSettings(interval_s=0.2, sample=0.4, bins=5)
THROTTLE = 0.3


def check_throttled(given: OnSpark, spark: SparkSession, folder: Path) -> int:
    """Run a query with less than all of the work; how many results it has."""
    _, tables, pushed = brought(given, folder / "in")
    schemas = {read: table.schema for read, table in tables.items()}
    sink, checkpoint = Collected(), folder / "checkpoint"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_query, "ONE_TASK_SECONDS", LITTLE[given.hops]())
        shed = {**given.options, "throttle": THROTTLE, "control": CONTROL}
        batched.run(on_spark(spark, given.text, folder / "in", schemas), checkpoint, sink, **shed)
    log = [Shedding.from_values(event["shedding"]) for event in read_events(open_storage(f"{checkpoint}/windrow"))]
    assert len(log) >= LEAST_BATCHES
    assert sum(shedding.restricts for shedding in log) > len(log) / 2
    join = windrow.sql(given.text, streams=tables, time=dict.fromkeys(tables, "ts"))
    policy = str(given.options.get("policy", "timestamp"))
    expected, exact = _by(log, join, pushed, policy), _by((), join, pushed, policy)
    exact += [Counter()] * (len(expected) - len(exact))
    for batch, rows in enumerate(expected):
        assert difference(sink.batches.get(batch, Counter()), rows) == "", batch
        assert not rows - exact[batch]
    total = sum(rows.total() for rows in expected)
    assert 0 < total < sum(rows.total() for rows in exact)
    return total


def _by(log: Sequence[Shedding], join: Join, pushed: Sequence[dict[str, pa.Table]], policy: str) -> list[Rows]:
    """The rows of each batch in one process, by a log of what was left out; all rows without one."""
    found = []
    shed: dict[str, Any] = {"throttle": THROTTLE, "control": CONTROL} if log else {}
    with LocalJoin(join, policy=policy, **shed) as running:
        for batch in range(max(len(log), len(pushed))):
            if log and running.controller is not None:
                running.controller.shedding = log[batch]
                running.controller._batches.clear()
            for name, table in (pushed[batch] if batch < len(pushed) else {}).items():
                running.push(name, table)
            found.append(rows_of(running.step(now_s=0)))
    return found
