"""A job, spread over tasks: one task where there is little to do, else the entrance and a shuffle before each hop.

    tasks = 1    rows ─ coalesce ─▶ whole ─▶ told
    tasks > 1    rows ─▶ enter ─ by slice ─▶ hop ─ by slice ─▶ hop ─▶ told
    repair       a sign for each share of the pieces ─▶ mending.whole; or one for each slice ─▶ find, and hops
    row windows  rows ─ to the driver program, which admits them ─▶ messages ─▶ whole, or hops

The order of rows over all streams decides what a row window counts; probing is shared out as ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession

from windrow.control.ledger import Piece
from windrow.run.admit import Entry
from windrow.run.program import Program
from windrow.run.spark import job as jobs
from windrow.run.spark import mending, messages, worker
from windrow.run.spark.job import Job
from windrow.run.spark.messages import SEEK, Message
from windrow.run.spark.sending import stored

MOST_PIECES = 4096
"""Pieces of one job: messages number them in 16 bits."""


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
            out = _by_slice(out, job).mapInArrow(worker.hop(job, number, attempt), messages.SPARK_SCHEMA)
    return list(out.collect())


def run_repair(spark: SparkSession, job: Job, program: Program, *, by_slice: bool) -> list[Row]:
    """Run a job that repairs pieces, shared out by slice or piece by piece, and return what its tasks tell."""
    attempt = jobs.attempt_of
    out = _as_rows(spark, [Message(place, SEEK, "", 0, b"") for place in jobs.places(program)])
    if not by_slice:
        return list(out.mapInArrow(mending.whole(job, attempt), messages.SPARK_SCHEMA).collect())
    out = _by_slice(out, job).mapInArrow(mending.find(job, attempt), messages.SPARK_SCHEMA)
    for number in range(len(job.names) - 1):
        out = _by_slice(out, job).mapInArrow(mending.hop(job, number, attempt), messages.SPARK_SCHEMA)
    return list(out.collect())


def jobs_of(job: Job, pieces: Sequence[Piece]) -> Iterator[Job]:
    """Jobs for pieces, each of not too many: parts of the batch behind its own."""
    for count, start in enumerate(range(0, len(pieces), MOST_PIECES)):
        yield replace(job, part=job.part + count, pieces=tuple(pieces[start : start + MOST_PIECES]))


def _by_slice(frame: DataFrame, job: Job) -> DataFrame:
    return frame.selectExpr(f"slice % {job.tasks} AS task", "*").repartitionById(job.tasks, "task").drop("task")


def _admitted_here(frame: DataFrame, job: Job, entry: Entry, program: Program) -> DataFrame:
    """Messages of the rows that row windows let in now, made by the driver program."""
    pushed: dict[str, list[pa.Table]] = {}
    for name, table in job.feed.tables(iter(frame.toArrow().to_batches())):
        pushed.setdefault(name, []).append(table)
    found: list[Message] = []
    span = (job.from_us, job.to_us)
    sender = worker.sender_of(job, program)
    fresh = entry.admit(pushed, job.now_us, job.last, span, job.shedding, job.number)
    for name, segment in fresh.items():
        if len(segment):
            alone = job.tasks == 1
            found.extend(stored(program, name, segment) if alone else sender.placed(name, segment))
    found.extend(worker.came(job, program, fresh))
    found.append(worker.noted(sender.clerk))
    return _as_rows(frame.sparkSession, found)


def _as_rows(spark: SparkSession, found: list[Message]) -> DataFrame:
    rows = [Row(**{**message._asdict(), "payload": bytearray(message.payload)}) for message in found]
    return spark.createDataFrame(rows, messages.SPARK_SCHEMA)


def shown(job: Job, parts: int) -> str:
    """What Spark's UI says of the job of a batch."""
    hops = len(job.names) - 1
    part = f"part {job.part + 1} of {parts}, " if parts > 1 else ""
    if job.pieces:
        return f"repair {len(job.pieces)} pieces, in {hops} hops over {job.tasks} tasks"
    if job.tasks == 1:
        return f"{part}{hops} hops in one task"
    return f"{part}enter, then {hops} hops over {job.tasks} tasks"
