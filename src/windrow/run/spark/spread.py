"""A job, spread over tasks: one task where there is little to do, else the entrance and a shuffle before each hop.

    tasks = 1    rows ─ coalesce ─▶ whole ─▶ told
    tasks > 1    rows ─▶ enter ─ by slice ─▶ hop ─ by slice ─▶ hop ─▶ told
    row windows  rows ─ to the driver program, which admits them ─▶ messages ─▶ whole, or hops

The order of rows over all streams decides what a row window counts; probing is shared out as ever.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, Row

from windrow.run.admit import Entry
from windrow.run.program import Program
from windrow.run.spark import job as jobs
from windrow.run.spark import messages, worker
from windrow.run.spark.job import Job
from windrow.run.spark.messages import Message
from windrow.run.spark.sending import stored


def run_job(frame: DataFrame, job: Job, entry: Entry, program: Program) -> list[Row]:
    """Run a job over the packed rows, and return what its tasks tell."""
    attempt = jobs.attempt_of
    if entry.row_windowed:
        out = _admitted_here(frame, job, entry, program)
        if job.tasks == 1:
            out = out.coalesce(1).mapInArrow(worker.whole_of_admitted(job, attempt), messages.SPARK_SCHEMA)
    else:
        if job.tasks == 1:
            out = frame.coalesce(1).mapInArrow(worker.whole(job, attempt), messages.SPARK_SCHEMA)
        else:
            out = frame.mapInArrow(worker.enter(job, attempt), messages.SPARK_SCHEMA)
    if job.tasks > 1:
        for number in range(len(job.names) - 1):
            sliced = out.selectExpr(f"slice % {job.tasks} AS task", "*").repartitionById(job.tasks, "task").drop("task")
            out = sliced.mapInArrow(worker.hop(job, number, attempt), messages.SPARK_SCHEMA)
    return list(out.collect())


def _admitted_here(frame: DataFrame, job: Job, entry: Entry, program: Program) -> DataFrame:
    """Messages of the rows that row windows let in now, made by the driver program."""
    pushed: dict[str, list[pa.Table]] = {}
    for name, table in job.feed.tables(iter(frame.toArrow().to_batches())):
        pushed.setdefault(name, []).append(table)
    found: list[Message] = []
    span = (job.from_us, job.to_us)
    sender = worker.sender_of(job, program)
    for name, segment in entry.admit(pushed, job.now_us, job.last, span, job.shedding).items():
        if len(segment):
            alone = job.tasks == 1
            found.extend(stored(program, name, segment) if alone else sender.placed(name, segment))
    found.append(worker.noted(sender.clerk))
    rows = [Row(**{**message._asdict(), "payload": bytearray(message.payload)}) for message in found]
    return frame.sparkSession.createDataFrame(rows, messages.SPARK_SCHEMA)


def shown(job: Job, parts: int) -> str:
    """What Spark's UI says of the job of a batch."""
    hops = len(job.names) - 1
    part = f"part {job.part + 1} of {parts}, " if parts > 1 else ""
    if job.tasks == 1:
        return f"{part}{hops} hops in one task"
    return f"{part}enter, then {hops} hops over {job.tasks} tasks"
