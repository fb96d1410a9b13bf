"""What the tasks of a batch do: the entrance, probes and results of the join in one process, over one slice's segments.

    few rows    rows ── whole ──▶ told                                 one task: all slices, the whole path
    many rows   rows ── enter ──▶ hop 1 ──▶ … ──▶ hop m-1 ──▶ told    a shuffle by slice before each hop
                                   stores new rows      writes results

Both are the batch of the in-process runtime; they differ in how far rows travel. A task does what its job says
(`windrow.run.spark.job`), over the windows of its slices (`windrow.run.spark.windows`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, replace

import numpy as np
import pyarrow as pa

from windrow.plan.plan import path_name
from windrow.run.admit import NEVER_US, Entry
from windrow.run.backlog import marked_schema
from windrow.run.batch import Position, leg_of, portion_of, run_batch, take_leg
from windrow.run.counting import Clerk
from windrow.run.freshness import FreshResults, limits_of
from windrow.run.partial import Partial, View
from windrow.run.program import Program
from windrow.run.repair import driven, rows_of_portions
from windrow.run.results import result_batches
from windrow.run.sifting import Sifters
from windrow.run.spark import messages, windows
from windrow.run.spark.aside import AsideRows
from windrow.run.spark.job import Attempt, Job, places, program_of, ready
from windrow.run.spark.messages import AGED, CAME, COUNT, DONE, NOTED, PROBE, RESULT, STAGED, STORE, SUMMED, Message
from windrow.run.spark.results import ResultFile, write_results
from windrow.run.spark.sending import Sender, by_home
from windrow.run.spark.wire import tally_bytes
from windrow.run.tally import Tallying
from windrow.store import codec
from windrow.store.segment import Segment, merge

Batches = Iterator[pa.RecordBatch]


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
        yield messages.as_batch([*told, done(started)])

    return task


def whole_of_admitted(job: Job, attempt: Attempt) -> Callable[[Batches], Batches]:
    """Task: a whole batch of rows that the driver program has admitted; it has to be the only one."""

    def task(batches: Batches) -> Batches:
        started = time.perf_counter()
        program = ready(job)
        parts: dict[str, list[Segment]] = {}
        for message in messages_of(batches):
            if message.kind == STORE:
                parts.setdefault(message.path, []).append(windows.segment_of(program, message))
        fresh = {name: replace(merge(found, NEVER_US), level=0) for name, found in parts.items()}
        told = [*came(job, program, fresh), *_settled(job, program, fresh, attempt)]
        yield messages.as_batch([*told, done(started)])

    return task


def _entered(
    job: Job, program: Program, batches: Batches, attempt: Attempt
) -> tuple[list[Message], dict[str, Segment]]:
    """The rows that belong to the job's part, through the entrance: what to tell, and the new segments."""
    pushed: dict[str, list[pa.Table]] = {}
    for name, table in job.feed.tables(batches):
        pushed.setdefault(name, []).append(table)
    entry = Entry(program, job.max_ahead_us, _aside_of(job, attempt))
    for gate in entry.gates.values():
        gate.watermark_us = job.watermarks_us[gate.stream.name]
    fresh = entry.admit(pushed, job.now_us, job.last, (job.from_us, job.to_us), job.shedding, job.number)
    aside = entry.set_aside.files() if isinstance(entry.set_aside, AsideRows) else {}
    counted = [
        Message(0, COUNT, name, gate.counts.rows, _json({
            "counts": vars(gate.counts), "newest_us": gate.newest_us, "aside": aside.get(name, []),
        }))
        for name, gate in entry.gates.items() if name in pushed
    ]  # fmt: skip
    return [*counted, *came(job, program, fresh)], fresh


def came(job: Job, program: Program, fresh: Mapping[str, Segment]) -> Iterator[Message]:
    """What the ledger is to know of new rows: where they lie, and how many each portion has."""
    if job.repairs and job.shedding.restricts:
        for name, segment in fresh.items():
            if len(segment):
                rows = rows_of_portions(program, name, segment, job.shedding)
                yield Message(0, CAME, name, len(segment), _json({"rows": rows, **asdict(driven(segment))}))


def _aside_of(job: Job, attempt: Attempt) -> AsideRows | None:
    """What takes the rows that do not enter, if they are wanted."""
    if job.aside is None:
        return None
    return AsideRows(job.aside, f"{job.batch:09d}.{job.part}-{{}}-{job.run}-{attempt()[1]}")


def hop(job: Job, number: int, attempt: Attempt) -> Callable[[Batches], Batches]:
    """Task: on each of its slices, store what is new (in hop 0) and take step `number` of every path."""

    def task(batches: Batches) -> Batches:
        started = time.perf_counter()
        program = program_of(job)
        mine, name = attempt()
        sender = sender_of(job, program)
        clerk = sender.clerk
        by_slice: dict[int, list[Message]] = {place: [] for place in places(program) if place % job.tasks == mine}
        for message in messages_of(batches):
            by_slice.setdefault(message.slice, []).append(message)
        probes: list[tuple[Message, Mapping[str, View]]] = []
        for place, found in by_slice.items():
            told, views = windows.views_of(job, program, number, place, found, name)
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
            told = results_of(job, program, (mine, name), complete, clerk)
            yield messages.as_batch(told)
        yield messages.as_batch([noted(clerk), done(started)])

    return task


def _settled(job: Job, program: Program, fresh: Mapping[str, Segment], attempt: Attempt) -> Iterator[Message]:
    """Store new rows in their slices and join them, all in this task."""
    _, name = attempt()
    parts: dict[int, dict[str, Segment]] = {place: {} for place in places(program)}
    for stream, segment in fresh.items():
        if len(segment):
            batch = codec.to_batch(segment)
            for home, rows in by_home(program, stream, segment):
                alone = len(rows) == len(segment)
                part = segment if alone else codec.from_batch(batch.take(pa.array(rows)), segment.layout)
                parts[home][stream] = part
    for place, held in parts.items():
        yield from windows.stored_in(job, program, place, held, name)
    stored = {stream: windows.held_by(job, program, places(program), stream) for stream in job.names}
    clerk = clerk_of(job, program)
    blocks = run_batch(program, stored, fresh, job.order, job.shedding, clerk)
    yield from results_of(job, program, attempt(), blocks, clerk)
    yield noted(clerk)


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


def results_of(
    job: Job, program: Program, attempt: tuple[int, str], blocks: Iterable[Partial], clerk: Clerk
) -> list[Message]:
    """What makes results known to the driver program: where they are staged, or what they add up to."""
    if clerk.tallying is None:
        return delivered(job, program, attempt, blocks)
    for _ in blocks:  # each has come to the clerk when it is here
        continue
    tally = clerk.tallying.done()
    return [Message(attempt[0], SUMMED, "", tally.results, tally_bytes(tally, program))] if tally.results else []


def delivered(job: Job, program: Program, attempt: tuple[int, str], blocks: Iterable[Partial]) -> list[Message]:
    """Results, staged, and the message that makes them known; stale ones are held back, unless they repair."""
    mine, name = attempt
    aged = FreshResults({} if job.pieces else limits_of(job.spec), job.now_us)
    schema = marked_schema(program.schema) if job.repairs else program.schema
    staged = write_results(
        job.output,
        f"results/{job.batch:09d}.{job.part}-{mine}-{job.run}-{name}",
        schema,
        (_marked(job, batch) for block in aged.of(blocks) for batch in result_batches(program, block)),
    )
    told = [Message(mine, AGED, "", 0, _json(aged.to_values()))] if aged.limits_us else []
    if isinstance(staged, ResultFile):
        return [*told, Message(mine, STAGED, "", staged.rows, _json(staged.fields()))]
    return [*told, Message(mine, RESULT, "", len(staged), messages.table_bytes(staged))] if len(staged) else told


def _marked(job: Job, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Results, which say whether they are repaired if rows may be."""
    if not job.repairs:
        return batch
    repaired = pa.array(np.full(len(batch), bool(job.pieces)))
    return pa.RecordBatch.from_arrays([*batch.columns, repaired], schema=marked_schema(batch.schema))


def messages_of(batches: Batches) -> Iterator[Message]:
    """The messages that reach a task."""
    for batch in batches:
        for row in zip(*(batch.column(k) for k in range(len(messages.SCHEMA))), strict=True):
            place, kind, path, rows, payload, portion = row
            held = payload.as_buffer() if kind.as_py() in (STORE, PROBE) else payload.as_py()
            yield Message(place.as_py(), kind.as_py(), path.as_py(), rows.as_py(), held, portion.as_py())


def sender_of(job: Job, program: Program) -> Sender:
    """What sends a task's rows on, with a clerk of its own."""
    return Sender(program, job.shedding, job.live, clerk_of(job, program))


def clerk_of(job: Job, program: Program) -> Clerk:
    """Who takes notes on what a task does."""
    retained = None if job.thinning is None else job.thinning.retained
    sifters = Sifters(program, job.batch)
    tallying = None if job.spec.summary is None else Tallying(program, job.spec.summary)
    return Clerk(program.plan.paths, job.bins, job.shedding, retained, tallying, sifters, job.learns)


def noted(clerk: Clerk) -> Message:
    """A clerk's notes, as a message."""
    return Message(0, NOTED, "", 0, _json(clerk.joined().to_values()))


def done(started: float) -> Message:
    """How long a task took, as a message."""
    return Message(0, DONE, "", 0, _json({"seconds": time.perf_counter() - started}))


def _json(value: object) -> bytes:
    return json.dumps(value).encode()
