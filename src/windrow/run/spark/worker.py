"""What the tasks of a batch do: the entrance, probes and results of the join in one process, over one slice's segments.

    few rows    rows ── whole ──▶ told                                 one task: all slices, the whole path
    many rows   rows ── enter ──▶ hop 1 ──▶ … ──▶ hop m-1 ──▶ told    a shuffle by slice before each hop
                                   stores new rows      writes results

Both are the batch of the in-process runtime; they differ in how far rows travel. A task gets all it needs in its
`Job`; it decides nothing. What it writes carries batch, slice, run and attempt in its name, and the names travel on
with the messages to the driver program, so that only what a successful task wrote is ever read.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa

from windrow.plan.bins import Bins
from windrow.plan.drivers import Order
from windrow.plan.plan import Plan, path_name
from windrow.plan.shedding import ALL, Shedding
from windrow.probe import ship
from windrow.query.expression import Column
from windrow.query.spec import QuerySpec
from windrow.run.admit import NEVER_US, Entry
from windrow.run.batch import Position, leg_of, portion_of, run_batch, take_leg
from windrow.run.counting import Clerk
from windrow.run.partial import Partial, View
from windrow.run.program import Keep, Program
from windrow.run.results import result_batch
from windrow.run.spark import messages
from windrow.run.spark.aside import BECAUSE
from windrow.run.spark.journal import segment_name
from windrow.run.spark.lanes import Feed
from windrow.run.spark.messages import COUNT, DONE, KEPT, NOTED, PROBE, RESULT, STAGED, STORE, Message
from windrow.run.spark.results import Output, ResultFile, write_results
from windrow.run.spark.segments import cached_segment, retain_segments, write_with_indexes
from windrow.run.spark.sending import Sender, by_home
from windrow.run.spark.state import Live, each_file
from windrow.run.spark.thinning import Thinning, told_of
from windrow.store import codec
from windrow.store.files import SegmentFile
from windrow.store.segment import Segment, merge
from windrow.store.storage import Storage

Batches = Iterator[pa.RecordBatch]
Attempt = Callable[[], tuple[int, str]]
"""The number of this task's part of the work, and a name that no other attempt at it has."""


class Shipped(Protocol):
    """What a broadcast is to a task."""

    @property
    def value(self) -> bytes:
        """The bytes that were broadcast."""


@dataclass(frozen=True)
class Kernels:
    """Compiled kernels for machines that lack them."""

    names: tuple[str, ...]
    files: Shipped


@dataclass(frozen=True)
class Job:
    """One batch, or a part of one, as tasks see it: of event times after `from_us`, up to `to_us`; `last` says that no
    input follows.
    """

    spec: QuerySpec
    plan_text: str
    arrow_types: Mapping[Column, pa.DataType]
    keep: Keep
    key: str
    batch: int
    part: int
    from_us: int | None
    to_us: int | None
    last: bool
    now_us: int
    max_ahead_us: int | None
    watermarks_us: Mapping[str, int]
    order: Order | None
    tasks: int
    feed: Feed
    live: Live
    merges: Mapping[int, Mapping[str, tuple[tuple[str, ...], ...]]]
    storage: Storage
    output: Output
    aside: Output | None
    run: str
    sheds: bool = False
    shedding: Shedding = ALL
    bins: Mapping[str, tuple[Bins, ...]] = field(default_factory=dict)
    kernels: Kernels | None = None
    thinning: Thinning | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(stream.name for stream in self.spec.streams)


_programs: dict[str, Program] = {}


def program_of(job: Job) -> Program:
    """The query made ready, once a worker."""
    spare_collector()
    if job.key not in _programs:
        if job.kernels is not None and ship.missing(job.kernels.names):
            ship.unpack(job.kernels.files.value)
        plan = Plan.from_json(job.plan_text)
        _programs[job.key] = Program(job.spec, plan, dict(job.arrow_types), job.keep, job.sheds)
    return _programs[job.key]


def places(program: Program) -> range:
    """All slices."""
    return range(program.plan.slices.count)


def ready(job: Job) -> Program:
    """The program of a job, at the beginning of a batch: what is no longer live need not be held."""
    retain_segments(job.storage, {file.name for _, _, file in each_file(job.live)})
    return program_of(job)


_spared = False


def spare_collector() -> None:
    """Take what the worker has loaded out of the garbage collector's sight. Spark collects after each task, and going
    through all modules of Python's numeric libraries takes longer than a small batch.
    """
    global _spared  # noqa: PLW0603 - once a process
    if not _spared:
        _spared = True
        gc.collect()
        gc.freeze()


def enter(job: Job, attempt: Attempt) -> Callable[[Batches], Batches]:
    """Task: rows pass the entrance and go to the slice that keeps them and the slices they probe."""

    def task(batches: Batches) -> Batches:
        program = ready(job)
        counted, fresh = _entered(job, program, batches, attempt)
        yield messages.as_batch(counted)
        sender = sender_of(job, program)
        for name, segment in fresh.items():
            if len(segment):
                for message in sender.placed(name, segment):
                    yield messages.as_batch([message])
        yield messages.as_batch([noted(sender.clerk)])

    return task


def whole(job: Job, attempt: Attempt) -> Callable[[Batches], Batches]:
    """Task: a whole batch, from rows to results; it has to be the only one."""

    def task(batches: Batches) -> Batches:
        started = time.perf_counter()
        program = ready(job)
        counted, fresh = _entered(job, program, batches, attempt)
        told = [*counted, *_settled(job, program, fresh, attempt)]
        yield messages.as_batch([*told, _done(started)])

    return task


def whole_of_admitted(job: Job, attempt: Attempt) -> Callable[[Batches], Batches]:
    """Task: a whole batch of rows that the driver program has admitted; it has to be the only one."""

    def task(batches: Batches) -> Batches:
        started = time.perf_counter()
        program = ready(job)
        parts: dict[str, list[Segment]] = {}
        for message in _messages_of(batches):
            if message.kind == STORE:
                parts.setdefault(message.path, []).append(_segment_of(program, message))
        fresh = {name: replace(merge(found, NEVER_US), level=0) for name, found in parts.items()}
        yield messages.as_batch([*_settled(job, program, fresh, attempt), _done(started)])

    return task


def _entered(
    job: Job, program: Program, batches: Batches, attempt: Attempt
) -> tuple[list[Message], dict[str, Segment]]:
    """The rows that belong to the job's part, through the entrance: what to tell, and the new segments."""
    pushed: dict[str, list[pa.Table]] = {}
    for name, table in job.feed.tables(batches):
        pushed.setdefault(name, []).append(table)
    entry = Entry(program, job.max_ahead_us, _Aside(job, job.aside, attempt) if job.aside else None)
    for gate in entry.gates.values():
        gate.watermark_us = job.watermarks_us[gate.stream.name]
    fresh = entry.admit(pushed, job.now_us, part=(job.from_us, job.to_us), shedding=job.shedding)
    aside = entry.set_aside.files() if isinstance(entry.set_aside, _Aside) else {}
    counted = [
        Message(0, COUNT, name, gate.counts.rows, _json({
            "counts": vars(gate.counts), "newest_us": gate.newest_us, "aside": aside.get(name, []),
        }))
        for name, gate in entry.gates.items() if name in pushed
    ]  # fmt: skip
    return counted, fresh


class _Aside:
    """Keeps the rows that did not enter, a file a stream."""

    def __init__(self, job: Job, output: Output, attempt: Attempt) -> None:
        self.output = output
        self.name = f"{job.batch:09d}.{job.part}-{{}}-{job.run}-{attempt()[1]}"
        self.held: dict[str, list[pa.Table]] = {}

    def __call__(self, stream: str, reason: str, rows: pa.Table) -> None:
        reasons = pa.array([reason] * len(rows), pa.string())
        self.held.setdefault(stream, []).append(rows.append_column(BECAUSE, reasons))

    def files(self) -> dict[str, list[dict[str, object]]]:
        """Write what was set aside; the files of each stream."""
        found: dict[str, list[dict[str, object]]] = {}
        for stream, tables in self.held.items():
            table = pa.concat_tables(tables).combine_chunks()
            staged = write_results(self.output, self.name.format(stream), table.schema, table.to_batches(), 0)
            if isinstance(staged, ResultFile):
                found[stream] = [staged.fields()]
        return found


def hop(job: Job, number: int, attempt: Attempt) -> Callable[[Batches], Batches]:
    """Task: on each of its slices, store what is new (in hop 0) and take step `number` of every path."""

    def task(batches: Batches) -> Batches:
        started = time.perf_counter()
        program = program_of(job)
        mine, name = attempt()
        sender = sender_of(job, program)
        clerk = sender.clerk
        by_slice: dict[int, list[Message]] = {place: [] for place in places(program) if place % job.tasks == mine}
        for message in _messages_of(batches):
            by_slice.setdefault(message.slice, []).append(message)
        probes: list[tuple[Message, Mapping[str, View]]] = []
        for place, found in by_slice.items():
            told, views = _views(job, program, number, place, found, name)
            yield messages.as_batch(told)
            probes.extend((message, views) for message in found if message.kind == PROBE)
        extended = (
            (message, block)
            for message, views in probes
            for block in _extended(job, program, number, message, views, clerk)
        )
        if number + 2 < len(job.names):
            for message, block in extended:
                for further in sender.sent(message.path, message.portion, number + 1, block):
                    yield messages.as_batch([further])
        else:
            complete = (_noted_result(job, program, message, block, clerk) for message, block in extended)
            yield messages.as_batch(_found(job, program, mine, name, complete))
        yield messages.as_batch([noted(clerk), _done(started)])

    return task


def _views(
    job: Job, program: Program, number: int, place: int, found: list[Message], attempt: str
) -> tuple[list[Message], dict[str, View]]:
    """What a slice tells before it probes, and its windows: in hop 0 its new rows are stored on the way."""
    told = [message for message in found if message.kind not in (STORE, PROBE)]
    fresh: dict[str, Segment] = {}
    if number == 0:
        parts: dict[str, list[Segment]] = {}
        for message in found:
            if message.kind == STORE:
                parts.setdefault(message.path, []).append(_segment_of(program, message))
        fresh = {name: replace(merge(held, NEVER_US), level=0) for name, held in parts.items()}
        told += _kept(job, program, place, fresh, attempt)
    else:
        for message in told:
            if message.kind == KEPT:
                written = json.loads(message.payload)
                if not written["replaces"]:
                    file = SegmentFile.from_fields(written["file"])
                    fresh[message.path] = _read(job, program, message.path, file)
    views = {
        stream.name: View(stream, _held(job, program, (place,), stream.name), fresh.get(stream.name))
        for stream in program.spec.streams
    }
    return told, views


def _held(job: Job, program: Program, places: Iterable[int], name: str) -> tuple[Segment, ...]:
    """The stored segments of a stream on some slices."""
    files = (file for place in places for file in job.live.get(place, {}).get(name, ()))
    return tuple(_read(job, program, name, file) for file in files)


def _read(job: Job, program: Program, name: str, file: SegmentFile) -> Segment:
    return cached_segment(job.storage, file, program, name)


def _settled(job: Job, program: Program, fresh: Mapping[str, Segment], attempt: Attempt) -> Iterator[Message]:
    """Store new rows in their slices and join them, all in this task."""
    mine, name = attempt()
    parts: dict[int, dict[str, Segment]] = {place: {} for place in places(program)}
    for stream, segment in fresh.items():
        if len(segment):
            batch = codec.to_batch(segment)
            for home, rows in by_home(program, stream, segment):
                alone = len(rows) == len(segment)
                part = segment if alone else codec.from_batch(batch.take(pa.array(rows)), segment.layout)
                parts[home][stream] = part
    for place, held in parts.items():
        yield from _kept(job, program, place, held, name)
    windows = {stream: _held(job, program, places(program), stream) for stream in job.names}
    clerk = clerk_of(job, program)
    yield from _found(job, program, mine, name, run_batch(program, windows, fresh, job.order, job.shedding, clerk))
    yield noted(clerk)


def _kept(job: Job, program: Program, place: int, fresh: Mapping[str, Segment], attempt: str) -> Iterator[Message]:
    """Write the slice's new rows of each stream as a segment, and the merges the plan asks for; under a memory limit
    these leave behind what is let go.
    """
    for name in job.names:
        base = segment_name(job.batch, place, name, job.run, f"{attempt}.{job.part}")
        if name in fresh:
            yield _written(job, program, place, base, name, fresh[name], ())
        for count, group in enumerate(job.merges.get(place, {}).get(name, ())):
            held = {file.name: file for file in job.live[place][name]}
            members = [_read(job, program, name, held[member]) for member in group]
            merged, let_go = members[0] if len(members) == 1 else merge(members, NEVER_US), 0
            if job.thinning is not None:
                merged, let_go = job.thinning.thinned(job.spec.stream(name).window, name, merged)
            yield _written(job, program, place, f"{base}-merge{count}", name, merged, group, let_go)


def _written(
    job: Job,
    program: Program,
    place: int,
    base: str,
    name: str,
    segment: Segment,
    replaces: tuple[str, ...],
    let_go: int = 0,
) -> Message:
    """A segment in its file, and the message that makes it known."""
    file = write_with_indexes(job.storage, base, segment, program.indexes[name])
    facts: dict[str, object] = {"file": file.to_fields(), "replaces": replaces}
    if job.thinning is not None and replaces:
        facts["let_go"] = let_go
    elif job.thinning is not None:
        window, size = job.spec.stream(name).window, codec.to_batch(segment).nbytes
        facts.update(told_of(window, name, segment, file, size))
    return Message(place, KEPT, name, len(segment), _json(facts))


def _extended(
    job: Job, program: Program, number: int, message: Message, views: Mapping[str, View], clerk: Clerk
) -> Iterator[Partial]:
    """The partial results of a message, one step further."""
    driver, shedding = message.path, job.shedding
    portion = portion_of(program, driver, message.portion, shedding)
    path = path_name(driver, portion.alternative)
    if views[program.steps[path][number].target].segments:
        partial = messages.bytes_partial(message.payload, program, views)
        leg = leg_of(program, driver, portion, number, partial, shedding, clerk.page(path, portion.sampled))
        yield from take_leg(leg, partial, Position(driver, job.order, job.names))


def _noted_result(job: Job, program: Program, message: Message, block: Partial, clerk: Clerk) -> Partial:
    """A block of complete results, after the clerk has taken notes on it."""
    portion = portion_of(program, message.path, message.portion, job.shedding)
    clerk.page(path_name(message.path, portion.alternative), portion.sampled).found(block)
    return block


def _found(job: Job, program: Program, mine: int, attempt: str, blocks: Iterable[Partial]) -> list[Message]:
    """Results, staged, and the message that makes them known."""
    name = f"results/{job.batch:09d}.{job.part}-{mine}-{job.run}-{attempt}"
    staged = write_results(job.output, name, program.schema, (result_batch(program, block) for block in blocks))
    if isinstance(staged, ResultFile):
        return [Message(mine, STAGED, "", staged.rows, _json(staged.fields()))]
    return [Message(mine, RESULT, "", len(staged), messages.table_bytes(staged))] if len(staged) else []


def _messages_of(batches: Batches) -> Iterator[Message]:
    for batch in batches:
        for row in zip(*(batch.column(k) for k in range(len(messages.SCHEMA))), strict=True):
            place, kind, path, rows, payload, portion = row
            held = payload.as_buffer() if kind.as_py() in (STORE, PROBE) else payload.as_py()
            yield Message(place.as_py(), kind.as_py(), path.as_py(), rows.as_py(), held, portion.as_py())


def _segment_of(program: Program, message: Message) -> Segment:
    return codec.from_batch(codec.from_bytes(message.payload), program.layouts[message.path])


def sender_of(job: Job, program: Program) -> Sender:
    """What sends a task's rows on, with a clerk of its own."""
    return Sender(program, job.shedding, job.live, clerk_of(job, program))


def clerk_of(job: Job, program: Program) -> Clerk:
    """Who takes notes on what a task does."""
    return Clerk(program.plan.paths, job.bins, job.shedding, None if job.thinning is None else job.thinning.retained)


def noted(clerk: Clerk) -> Message:
    """A clerk's notes, as a message."""
    return Message(0, NOTED, "", 0, _json(clerk.joined().to_values()))


def _done(started: float) -> Message:
    return Message(0, DONE, "", 0, _json({"seconds": time.perf_counter() - started}))


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def attempt_of() -> tuple[int, str]:
    """The partition this task works on, and a name for this attempt at it: no other task of the run has it."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return (0, "local") if context is None else (context.partitionId(), str(context.taskAttemptId()))
