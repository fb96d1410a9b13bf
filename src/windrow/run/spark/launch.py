"""The start of a join on Spark: its batches, sink and trigger put together, and what cannot run refused in one line.

frame of all streams ─ foreachBatch ─▶ turnstile ─▶ batches ─▶ sink
                                          └ the handle: status, stop, exception, results
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from windrow.errors import QueryError, UsageError
from windrow.query.clauses import span_us
from windrow.run.spark.asked import write_asked
from windrow.run.spark.failures import brief
from windrow.run.spark.handle import RunningJoin
from windrow.run.spark.journal import Journal
from windrow.run.spark.publish import FolderSink
from windrow.run.spark.query import BatchRunner
from windrow.run.spark.question import check_same
from windrow.run.spark.setting import Setting
from windrow.run.spark.sinks import FormatSink, Sink
from windrow.run.spark.sources.follow import follow
from windrow.run.spark.turnstile import Turnstile
from windrow.run.spark.whereabouts import begin_span, last_commit, read_spans, span_of
from windrow.store.storage import Storage, shown

AVAILABLE_NOW = "available now"
_TRIGGERS = 'give a span such as "1 second", or "available now"'
_STARTED = "one join runs from a checkpoint at a time, and the names of those that run differ"


def launch(
    frame: DataFrame, setting: Setting, sink: Sink, *, checkpoint: str, trigger: str, name: str | None = None
) -> RunningJoin:
    """Start a join whose streams are one frame; `setting` delivers to `sink`."""
    timing = trigger_of(trigger)
    spark, state = frame.sparkSession, setting.storage
    runner = BatchRunner(setting)
    _refuse_other_question(setting.storage, runner)
    schema = runner.schema
    if isinstance(sink, FormatSink):
        sink.check(spark)
    spans = read_spans(state)
    if isinstance(sink, FolderSink) and not sink.kept:
        recorded = span_of(sink, 0, schema).address
        if all(span.address != recorded for span in spans) and not sink.is_empty():
            hint = "give a new folder, or the checkpoint of the join that wrote there"
            raise UsageError("the sink holds results of another join", place=shown(sink.folder.address), hint=hint)
    if not spans:
        # Noted now, so that results() works at once; a change is noted when this start has proved the only one.
        begin_span(state, span_of(sink, 0, schema))

    def begin() -> None:
        begin_span(state, span_of(sink, last_commit(state) + 1, schema))
        if setting.repairs:
            write_asked(setting, sink)

    turnstile = Turnstile(runner.run, first=begin)
    writer = frame.writeStream.foreachBatch(turnstile).option("checkpointLocation", f"{checkpoint}/spark")
    if name is not None:
        writer = writer.queryName(name)
    try:
        spark_query = writer.trigger(**timing).start()
    except Exception as error:
        raise UsageError(f"Spark does not start the join: {brief(error).message}", hint=_STARTED) from error
    return RunningJoin(spark_query, runner, turnstile, lambda: follow(spark, state.address))


def _refuse_other_question(state: Storage, runner: BatchRunner) -> None:
    """Say what differs from the query that the checkpoint belongs to before anything starts."""
    last = Journal(state).commit(last_commit(state))
    if last is not None:
        check_same(last.question, runner.question)


def apart_s(trigger: str) -> float:
    """How many seconds batches are apart at least.

    >>> apart_s("1.5 seconds"), apart_s("available now")
    (1.5, 0.0)
    """
    every = trigger_of(trigger).get("processingTime")
    return 0.0 if every is None else int(every.partition(" ")[0]) / 1000


def trigger_of(text: str) -> dict[str, Any]:
    """A trigger as Spark takes it.

    >>> trigger_of("1.5 seconds"), trigger_of("available now")
    ({'processingTime': '1500 milliseconds'}, {'availableNow': True})
    >>> trigger_of("continuous 1 second")
    Traceback (most recent call last):
        ...
    windrow.errors.UsageError: a join cannot run with the trigger 'continuous 1 second': it runs in micro-batches.
    Next: give a span such as "1 second", or "available now"
    """
    asked = str(text).lower()
    if text == AVAILABLE_NOW:
        return {"availableNow": True}
    if any(word in asked for word in ("continuous", "realtime", "real-time", "real time")):
        raise UsageError(f"a join cannot run with the trigger '{text}': it runs in micro-batches", hint=_TRIGGERS)
    if asked == "once":
        raise UsageError(
            "a join cannot run with the trigger 'once'", hint='give "available now": all there is, then end'
        )
    try:
        wait_us = span_us(text)
    except (QueryError, TypeError):
        raise UsageError(f"the trigger is {text!r}", hint=_TRIGGERS) from None
    if wait_us % 1000:
        raise UsageError(f"the trigger is {text!r}", hint="give whole milliseconds")
    return {"processingTime": f"{wait_us // 1000} milliseconds"}
