"""The windows of a slice in a task: live segments, read, and the new rows of a batch, written among them.

    hop 0     rows sent here ── segment_of, merge ──▶ stored_in: a file a stream, its name told, and merges
              files live before ── held_by ─────────▶ views: what steps probe
    hop 1 …   names told in hop 0 ── read ──────────▶ views

What is written carries batch, slice, run and attempt in its name, and the names travel on with the messages to the
driver program, so that only what a successful task wrote is ever read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from windrow.run.admit import NEVER_US
from windrow.run.partial import View
from windrow.run.program import Program
from windrow.run.spark.job import Job
from windrow.run.spark.journal import segment_name
from windrow.run.spark.messages import KEPT, PROBE, STORE, Message
from windrow.run.spark.segments import cached_segment, write_with_indexes
from windrow.run.spark.thinning import told_of
from windrow.store import codec
from windrow.store.files import SegmentFile
from windrow.store.segment import Segment, merge


def views_of(
    job: Job, program: Program, number: int, place: int, found: list[Message], attempt: str
) -> tuple[list[Message], dict[str, View]]:
    """What a slice tells before it probes, and its windows: in hop 0 its new rows are stored on the way."""
    told = [message for message in found if message.kind not in (STORE, PROBE)]
    fresh: dict[str, Segment] = {}
    if number == 0:
        parts: dict[str, list[Segment]] = {}
        for message in found:
            if message.kind == STORE:
                parts.setdefault(message.path, []).append(segment_of(program, message))
        fresh = {name: replace(merge(held, NEVER_US), level=0) for name, held in parts.items()}
        told += stored_in(job, program, place, fresh, attempt)
    else:
        for message in told:
            if message.kind == KEPT:
                told_of_it = json.loads(message.payload)
                if not told_of_it["replaces"]:
                    file = SegmentFile.from_fields(told_of_it["file"])
                    fresh[message.path] = _read(job, program, message.path, file)
    views = {
        stream.name: View(stream, held_by(job, program, (place,), stream.name), fresh.get(stream.name))
        for stream in program.spec.streams
    }
    return told, views


def held_by(job: Job, program: Program, places: Iterable[int], name: str) -> tuple[Segment, ...]:
    """The stored segments of a stream on some slices."""
    files = (file for place in places for file in job.live.get(place, {}).get(name, ()))
    return tuple(_read(job, program, name, file) for file in files)


def _read(job: Job, program: Program, name: str, file: SegmentFile) -> Segment:
    return cached_segment(job.storage, file, program, name)


def stored_in(job: Job, program: Program, place: int, fresh: Mapping[str, Segment], attempt: str) -> Iterator[Message]:
    """Write the slice's new rows of each stream as a segment, and the merges the plan asks for; under a memory limit
    these leave behind what is let go.
    """
    for name in job.names:
        base = segment_name(job.batch, place, name, job.run, f"{attempt}.{job.part}")
        if name in fresh:
            yield write(job, program, place, base, name, fresh[name], ())
        for count, group in enumerate(job.merges.get(place, {}).get(name, ())):
            held = {file.name: file for file in job.live[place][name]}
            members = [_read(job, program, name, held[member]) for member in group]
            merged, let_go = members[0] if len(members) == 1 else merge(members, NEVER_US), 0
            if job.thinning is not None:
                merged, let_go = job.thinning.thinned(job.spec.stream(name).window, name, merged)
            yield write(job, program, place, f"{base}-merge{count}", name, merged, group, let_go)


def write(
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
    return Message(place, KEPT, name, len(segment), json.dumps(facts).encode())


def segment_of(program: Program, message: Message) -> Segment:
    """The rows of a message."""
    return codec.from_batch(codec.from_bytes(message.payload), program.layouts[message.path])
