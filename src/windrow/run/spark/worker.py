"""What the tasks of a batch do: the entrance, probes and results of the join in one process, over one slice's segments.

    blobs ── enter ──▶ store + probe messages ──▶ hop 1 ──▶ … ──▶ hop m-1 ──▶ results
             (any task)                         by slice: store new rows, probe step 1      (by slice: probe step h)

A task gets all it needs in its `Job`; it decides nothing. Segments it writes carry batch, slice, run and attempt in
their names, and the names travel on with the messages, so that only what a successful task wrote is ever read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from windrow.plan.drivers import Order
from windrow.plan.plan import Plan
from windrow.plan.slices import TimeSlices
from windrow.query.expression import Column
from windrow.query.spec import QuerySpec
from windrow.run.admit import NEVER_US, Entry
from windrow.run.batch import Position, probe_step, time_reach
from windrow.run.partial import Partial, View, first_partial
from windrow.run.program import Program
from windrow.run.results import result_batch
from windrow.run.spark import messages
from windrow.run.spark.messages import COUNT, KEPT, PROBE, RESULT, STORE, Message
from windrow.run.spark.segments import cached_segment, write_with_indexes
from windrow.run.spark.state import Live
from windrow.store import codec
from windrow.store.files import SegmentFile
from windrow.store.segment import Segment, merge
from windrow.store.storage import Storage

LARGEST_MESSAGE_ROWS = 1 << 18
Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class Job:
    """One batch, as tasks see it."""

    spec: QuerySpec
    plan_text: str
    arrow_types: Mapping[Column, pa.DataType]
    batch: int
    now_us: int
    rows: int
    max_ahead_us: int | None
    watermarks_us: Mapping[str, int]
    order: Order | None
    slices: Mapping[str, TimeSlices]
    live: Live
    merges: Mapping[int, Mapping[str, tuple[tuple[str, ...], ...]]]
    storage: Storage
    run: str

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(stream.name for stream in self.spec.streams)


_programs: dict[tuple[str, str], Program] = {}


def program_of(job: Job) -> Program:
    """The query made ready, once a worker."""
    key = (repr(job.spec), job.plan_text)
    if key not in _programs:
        _programs[key] = Program(job.spec, Plan.from_json(job.plan_text), dict(job.arrow_types))
    return _programs[key]


def enter(job: Job) -> Callable[[Batches], Batches]:
    """Task: packed rows pass the entrance and go to the slice that keeps them and the slices they probe."""

    def task(batches: Batches) -> Batches:
        program = program_of(job)
        for batch in batches:
            for stream, blob in zip(batch.column("stream").to_pylist(), batch.column("blob"), strict=True):
                if stream >= 0:
                    yield messages.as_batch(list(_entered(job, program, job.names[stream], blob.as_buffer())))

    return task


def _entered(job: Job, program: Program, name: str, blob: pa.Buffer) -> Iterator[Message]:
    entry = Entry(program, job.max_ahead_us, None)
    for gate in entry.gates.values():
        gate.watermark_us = job.watermarks_us[gate.stream.name]
    table = pa.Table.from_batches([codec.from_bytes(blob)])
    segment = entry.admit({name: [table]}, job.now_us)[name]
    gate = entry.gates[name]
    counted = {**vars(gate.counts), "newest_us": gate.newest_us}
    yield Message(0, COUNT, name, len(table), json.dumps(counted).encode())
    if len(segment):
        yield from placed(job, program, name, segment)


def placed(job: Job, program: Program, name: str, segment: Segment) -> Iterator[Message]:
    """New rows as messages: to keep, to the slice of each; to probe, to all slices their first step reaches."""
    homes = job.slices[name].of(segment.time_us)
    batch = codec.to_batch(segment)
    for home in np.unique(homes):
        rows = np.flatnonzero(homes == home)
        part = batch if len(rows) == len(segment) else batch.take(pa.array(rows))
        yield Message(int(home), STORE, name, len(rows), codec.to_bytes(part))
    stream = program.spec.stream(name)
    views = {name: View(stream, (), segment)}
    yield from _sent(job, program, name, 0, first_partial(views, name, segment))


def _sent(job: Job, program: Program, driver: str, number: int, partial: Partial) -> Iterator[Message]:
    """Partial results as messages to the slices that step `number` of their path reaches."""
    step, carried = program.steps[driver][number], program.carried[driver][number]
    for start in range(0, len(partial), LARGEST_MESSAGE_ROWS):
        chunk = partial.pick(np.arange(start, min(start + LARGEST_MESSAGE_ROWS, len(partial))))
        reach = time_reach(step, chunk, program.spec.stream(step.target))
        visited = job.slices[step.target].visits(reach.low, reach.high)
        everywhere = messages.partial_bytes(chunk, carried) if visited.all(axis=0).any() else b""
        for place in range(visited.shape[1]):
            rows = np.flatnonzero(visited[:, place])
            if len(rows):
                payload = everywhere if len(rows) == len(chunk) else messages.partial_bytes(chunk.pick(rows), carried)
                yield Message(place, PROBE, driver, len(rows), payload)


def hop(job: Job, number: int, attempt: Callable[[], str]) -> Callable[[Batches], Batches]:
    """Task: on each slice, store what is new (in hop 0) and take step `number` of every path."""

    def task(batches: Batches) -> Batches:
        program = program_of(job)
        by_slice: dict[int, list[Message]] = {}
        for batch in batches:
            for row in zip(*(batch.column(k) for k in range(len(messages.SCHEMA))), strict=True):
                place, kind, path, rows, payload = row
                held = payload.as_buffer() if kind.as_py() in (STORE, PROBE) else payload.as_py()
                message = Message(place.as_py(), kind.as_py(), path.as_py(), rows.as_py(), held)
                by_slice.setdefault(message.slice, []).append(message)
        for place, found in by_slice.items():
            for message in _hopped(job, program, number, place, found, attempt()):
                yield messages.as_batch([message])

    return task


def _hopped(
    job: Job, program: Program, number: int, place: int, found: list[Message], attempt: str
) -> Iterator[Message]:
    yield from (message for message in found if message.kind in (COUNT, RESULT))
    fresh: dict[str, Segment] = {}
    if number == 0:
        for message, segment in _kept(job, program, place, found, attempt):
            if segment is not None:
                fresh[message.path] = segment
            yield message
    else:
        for message in found:
            if message.kind == KEPT:
                written = json.loads(message.payload)
                if not written["replaces"]:
                    file = SegmentFile.from_fields(written["file"])
                    fresh[message.path] = cached_segment(job.storage, file, program, message.path)
                yield message
    stored = job.live.get(place, {})
    views = {
        stream.name: View(
            stream,
            tuple(cached_segment(job.storage, f, program, stream.name) for f in stored.get(stream.name, ())),
            fresh.get(stream.name),
        )
        for stream in program.spec.streams
    }
    for message in found:
        if message.kind == PROBE:
            yield from _probed(job, program, number, message, views)


def _kept(
    job: Job, program: Program, place: int, found: list[Message], attempt: str
) -> Iterator[tuple[Message, Segment | None]]:
    """Write the slice's new rows of each stream as a segment, and the merges the plan asks for."""
    for name in job.names:
        layout = program.layouts[name]
        parts = [
            codec.from_batch(codec.from_bytes(m.payload), layout) for m in found if m.kind == STORE and m.path == name
        ]
        base = f"segments/{job.batch:09d}-{place}-{name}-{job.run}-{attempt}"
        if parts:
            segment = replace(merge(parts, NEVER_US), level=0)
            yield _written(job, place, base, name, segment, ()), segment
        for count, group in enumerate(job.merges.get(place, {}).get(name, ())):
            held = {file.name: file for file in job.live[place][name]}
            merged = merge([cached_segment(job.storage, held[member], program, name) for member in group], NEVER_US)
            yield _written(job, place, f"{base}-merge{count}", name, merged, group), None


def _written(job: Job, place: int, base: str, name: str, segment: Segment, replaces: tuple[str, ...]) -> Message:
    """A segment in its file, and the message that makes it known."""
    file = write_with_indexes(job.storage, base, segment, program_of(job).indexes[name])
    told = {"file": file.to_fields(), "replaces": replaces}
    return Message(place, KEPT, name, len(segment), json.dumps(told).encode())


def _probed(job: Job, program: Program, number: int, message: Message, views: Mapping[str, View]) -> Iterator[Message]:
    driver = message.path
    step = program.steps[driver][number]
    if not views[step.target].segments:
        return
    partial = messages.bytes_partial(message.payload, program, views)
    position = Position(driver, job.order, job.names)
    for block in probe_step(step, partial, position):
        if number + 1 < len(program.steps[driver]):
            yield from _sent(job, program, driver, number + 1, block)
            continue
        for start in range(0, len(block), LARGEST_MESSAGE_ROWS):
            rows = block.pick(np.arange(start, min(start + LARGEST_MESSAGE_ROWS, len(block))))
            yield Message(message.slice, RESULT, driver, len(rows), codec.to_bytes(result_batch(program, rows)))


def results(schema: pa.Schema) -> Callable[[Batches], Batches]:
    """Task: result messages as rows of the SELECT list."""

    def task(batches: Batches) -> Batches:
        for batch in batches:
            for kind, payload in zip(batch.column("kind").to_pylist(), batch.column("payload"), strict=True):
                if kind == RESULT:
                    yield codec.from_bytes(payload.as_buffer()).cast(schema)

    return task


def pack(columns: tuple[str, ...], stream: int, largest_bytes: int = 8 << 20) -> Callable[[Batches], Batches]:
    """Task: rows of one stream as Arrow blobs, so that streams of different schemas can be one."""

    def task(batches: Batches) -> Batches:
        for batch in batches:
            table = pa.Table.from_batches([batch]).select(list(columns))
            rows = max(1, len(table))
            step = max(1, int(rows * min(1.0, largest_bytes / max(1, table.nbytes))))
            for start in range(0, len(table), step):
                part = table.slice(start, step).combine_chunks().to_batches()
                yield blob_batch([(stream, len(b), codec.to_bytes(b)) for b in part])

    return task


def blob_batch(rows: Iterable[tuple[int, int, bytes]]) -> pa.RecordBatch:
    """Blobs as Spark takes them."""
    listed = list(rows)
    arrays = [
        pa.array([row[0] for row in listed], pa.int32()),
        pa.array([row[1] for row in listed], pa.int64()),
        pa.array([row[2] for row in listed], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=["stream", "rows", "blob"])


BLOB_SCHEMA = "stream int, rows bigint, blob binary"


def attempt_of() -> str:
    """A name for this attempt of this task: no other task of the run has it."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return "local" if context is None else str(context.taskAttemptId())
