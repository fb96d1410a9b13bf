"""The handle: what it tells of a join, how it stops one, how a failure looks. The batches are a stub's."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import DataFrame, SparkSession

from windrow.control.recall import RecallMeter
from windrow.errors import FunctionError, UsageError, WindrowError
from windrow.plan.shedding import ALL
from windrow.run.admit import NEVER_US
from windrow.run.report import Clocked
from windrow.run.spark.handle import RunningJoin, held_back_by
from windrow.run.spark.query import BatchRunner
from windrow.run.spark.results import Output, Results
from windrow.run.spark.sinks import FunctionSink
from windrow.run.spark.turnstile import Turnstile
from windrow.store.files import SegmentFile
from windrow.store.storage import LocalStorage

SECOND_US = 1_000_000
ENOUGH_S = 60.0


class Batches:
    """Runs batches as a join does, as far as the handle can see: `during` is what a batch does."""

    def __init__(self, during: Callable[[int], None] = lambda batch: None) -> None:
        self.during = during
        self.last: Any = None
        self.steering = SimpleNamespace(shedding=ALL, recall=RecallMeter(), clocked=Clocked())
        self.repairing = None
        self.progress: deque[dict[str, Any]] = deque(maxlen=100)
        self.begun: list[int] = []
        self.done: list[int] = []

    def run(self, frame: DataFrame, batch: int) -> None:
        self.begun.append(batch)
        self.during(batch)
        self.done.append(batch)


def started(spark: SparkSession, batches: Batches, checkpoint: Path, name: str | None = None) -> RunningJoin:
    """A query that runs batches back to back."""
    turnstile = Turnstile(batches.run, first=lambda: None)
    writer = spark.readStream.format("windrow-clock").load().writeStream.foreachBatch(turnstile)
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(processingTime="0 seconds")
    query = (writer if name is None else writer.queryName(name)).start()
    return RunningJoin(query, cast(BatchRunner, batches), turnstile, lambda: spark.range(1))


def until(condition: Callable[[], object]) -> None:
    """Wait for something that other threads do."""
    deadline = time.monotonic() + ENOUGH_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("it has not come to pass")
        time.sleep(0.01)


def test_stop_waits_for_the_batch_that_is_running(spark: SparkSession, tmp_path: Path) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def during(batch: int) -> None:
        if batch == 1:
            inside.set()
            go_on.wait(ENOUGH_S)

    batches = Batches(during)
    query = started(spark, batches, tmp_path, name="slow")
    assert inside.wait(ENOUGH_S)
    assert (query.name, query.is_active, query.results().count()) == ("slow", True, 1)
    assert repr(query) == "<RunningJoin slow: running>"
    stopping = threading.Thread(target=query.stop)
    stopping.start()
    until(lambda: query._turnstile._is_closed)
    assert query.status()["active"]
    go_on.set()
    stopping.join(ENOUGH_S)
    assert not query.is_active
    assert (batches.begun, batches.done) == ([0, 1], [0, 1]), "no batch was begun after it"
    assert query.exception() is None
    assert query.await_termination()
    assert query.await_termination(0)
    query.stop()


def test_a_batch_beyond_the_time_limit_is_cut_off_and_is_no_failure(spark: SparkSession, tmp_path: Path) -> None:
    inside = threading.Event()
    batches = Batches()
    query = started(spark, batches, tmp_path)

    def during(batch: int) -> None:
        if batch == 1:
            inside.set()
            until(lambda: not query.is_active)
            raise RuntimeError("the jobs of the batch are cancelled")

    batches.during = during
    assert inside.wait(ENOUGH_S)
    with pytest.raises(UsageError, match="timeout_s is -1"):
        query.stop(-1)
    query.stop(timeout_s=0)
    assert batches.begun == [0, 1]
    assert 1 not in batches.done
    assert query.exception() is None
    assert query.await_termination()


def test_a_failure_is_one_line_with_what_was_said(spark: SparkSession, tmp_path: Path) -> None:
    def refuse(frame: DataFrame, batch: int) -> None:
        raise ValueError(f"no room for batch {batch}")

    batches = Batches()
    sink = FunctionSink(refuse, LocalStorage(tmp_path / "staged"))
    nothing = Results(spark, Output(LocalStorage(tmp_path), "frame"), cast(Any, spark.range(1).toArrow().schema))
    batches.during = lambda batch: sink.deliver(nothing, batch) if batch == 2 else None
    failing = pytest.raises(FunctionError, match="ValueError: no room for batch 2")
    with started(spark, batches, tmp_path / "c") as query, failing as raised:
        query.await_termination(ENOUGH_S)
    told = query.exception()
    assert isinstance(told, FunctionError)
    assert str(told) == str(raised.value)
    assert "\n" not in str(told)
    assert "in refuse, batch 2" in told.place
    assert isinstance(told.__cause__, FunctionError)
    assert isinstance(told.__cause__.__cause__, ValueError)
    spoken = query.spark_query.exception()
    assert spoken is not None
    assert "clientserver" in str(spoken)
    assert len(str(spoken)) < 4000, "Spark is given the line, not the traceback of the function"


def test_what_fails_outside_of_batches_is_told_too(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.readStream.format("rate").load().selectExpr("raise_error('no such row') AS x")
    turnstile = Turnstile(lambda frame, batch: cast(None, frame.collect()), first=lambda: None)
    query = rows.writeStream.foreachBatch(turnstile).option("checkpointLocation", str(tmp_path)).start()
    join = RunningJoin(query, cast(BatchRunner, Batches()), turnstile, lambda: rows)
    with pytest.raises(WindrowError, match="no such row") as raised:
        join.await_termination()
    assert raised.value.hint.startswith("correct the cause")


def test_a_batch_may_stop_its_own_query(spark: SparkSession, tmp_path: Path) -> None:
    batches = Batches()
    query = started(spark, batches, tmp_path)
    batches.during = lambda batch: query.stop() if batch == 3 else None
    assert query.await_termination(ENOUGH_S)
    assert batches.done == [0, 1, 2, 3]
    assert query.exception() is None


def test_status_tells_where_the_join_stands(spark: SparkSession, tmp_path: Path) -> None:
    batches = Batches()
    query = started(spark, batches, tmp_path)
    try:
        status = query.status()
        assert (status["active"], status["batch"], status["results"], status["streams"]) == (True, -1, 0, {})
        assert (status["now"], status["held_back_by"], status["segments"], status["bytes"]) == (None, None, 0, 0)
        assert (query.recent_progress(), query.last_progress()) == ([], None)
        counts = {"rows": 40, "late": 2, "bad": 1, "ahead": 0, "filtered": 3}
        gates = {
            "a": SimpleNamespace(watermark_us=7 * SECOND_US, counts=counts),
            "b": SimpleNamespace(watermark_us=NEVER_US, counts=dict.fromkeys(counts, 0)),
        }
        files = tuple(SegmentFile(f"segments/{size}", 10, size, 0, 1, 0, {}) for size in (100, 20))
        live = {0: {"a": files[:1]}, 1: {"a": files[1:]}}
        memory: dict[str, Any] = {"limit_bytes": 500, "largest_bytes": 200, "crowded": 1, "lost_results": 2.25}
        memory["streams"] = {"a": {"let_go": 6}, "b": {"let_go": 0}}
        batches.last = SimpleNamespace(
            batch=4, now_us=10 * SECOND_US, results=25, gates=gates, live=live, memory=memory, freshness=None
        )
        for batch in range(5):
            now_us = batch * SECOND_US // 2
            batches.progress.append({"batch": batch, "now_us": now_us, "rows": {"a": 8}, "results": 5})
        status = query.status()
    finally:
        query.stop()
    assert status["streams"] == {
        "a": {**counts, "stored": 20, "let_go": 6, "rows_per_s": 16.0, "watermark": "1970-01-01T00:00:07+00:00"},
        "b": {**dict.fromkeys(counts, 0), "stored": 0, "let_go": 0, "rows_per_s": 0.0, "watermark": None},
    }
    told = ("batch", "now", "results", "results_per_s", "throttle", "held_back_by", "segments", "bytes")
    assert tuple(status[name] for name in told) == (4, "1970-01-01T00:00:10+00:00", 25, 10.0, 1.0, "b", 2, 120)
    assert status["recall"] == RecallMeter().whole.to_values()
    kept = {"limit_bytes": 500, "held_bytes": 120, "largest_bytes": 200}
    assert status["memory"] == {**kept, "let_go": 6, "lost_results": 2.2, "crowded": 1}
    assert held_back_by({"a": 1, "b": 1}) is None
    assert query.last_progress() == {"batch": 4, "now_us": 2 * SECOND_US, "rows": {"a": 8}, "results": 5}
    assert query.id != query.run_id
