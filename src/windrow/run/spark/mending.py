"""What the tasks of a repair do: pieces that earlier batches left out, over the windows as they are now.

    little work   whole ──▶ told                                    a share of the pieces, over all slices
    much work     find ──▶ hop 1 ──▶ … ──▶ hop m-1 ──▶ told        all pieces, a shuffle by slice before each hop
                  the driver's rows, on the slices that hold them

Pieces run as in one process (`windrow.run.repair`). Where a piece is about what lies outside of some lags, its rows go
to all slices that its windows reach. In messages `portion` is the number of a piece in its job.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from windrow.plan.shedding import ALL
from windrow.run.batch import take_leg
from windrow.run.counting import Clerk, StepCount
from windrow.run.partial import Partial, View
from windrow.run.program import Program
from windrow.run.repair import Errand, Repair
from windrow.run.spark import messages, windows
from windrow.run.spark.job import Attempt, Job, places, program_of
from windrow.run.spark.messages import PROBE, Message
from windrow.run.spark.sending import Heading, Sender
from windrow.run.spark.worker import Batches, delivered, done, messages_of


def whole(job: Job, attempt: Attempt) -> Callable[[Batches], Batches]:
    """Task: some of the pieces of a job, from rows to results: the shares that it gets the signs of."""

    def task(batches: Batches) -> Batches:
        started = time.perf_counter()
        pieces = [piece for sign in messages_of(batches) for piece in job.pieces[sign.slice :: job.tasks]]
        if not pieces:
            return
        program = program_of(job)
        stored = {stream: windows.held_by(job, program, places(program), stream) for stream in job.names}
        blocks = Repair(program, job.written, stored).run(pieces)
        yield messages.as_batch([*delivered(job, program, attempt(), blocks), done(started)])

    return task


def find(job: Job, attempt: Attempt) -> Callable[[Batches], Batches]:
    """Task: the driver's rows of each piece, on this task's slices, set out."""

    def task(batches: Batches) -> Batches:
        started = time.perf_counter()
        list(batches)
        program = program_of(job)
        mine, _ = attempt()
        sender = _sender(job, program)
        for place in (each for each in places(program) if each % job.tasks == mine):
            for number, piece in enumerate(job.pieces):
                errand = _errand(job, program, number)
                rows = errand.rows(_views(job, program, place, piece.driver))
                if rows is not None:
                    for message in _sent(sender, errand, number, 0, rows):
                        yield messages.as_batch([message])
        yield messages.as_batch([done(started)])

    return task


def hop(job: Job, number: int, attempt: Attempt) -> Callable[[Batches], Batches]:
    """Task: on each of its slices, take step `number` of every piece."""

    def task(batches: Batches) -> Batches:
        started = time.perf_counter()
        program = program_of(job)
        sender = _sender(job, program)
        probes: list[Message] = []
        told: list[Message] = []
        for message in messages_of(batches):
            (probes if message.kind == PROBE else told).append(message)
        extended = ((message, block) for message in probes for block in _extended(job, program, number, message))
        yield messages.as_batch(told)
        if number + 2 < len(job.names):
            for message, block in extended:
                errand = _errand(job, program, message.portion)
                for further in _sent(sender, errand, message.portion, number + 1, block):
                    yield messages.as_batch([further])
        else:
            yield messages.as_batch(delivered(job, program, attempt(), (block for _, block in extended)))
        yield messages.as_batch([done(started)])

    return task


def _extended(job: Job, program: Program, number: int, message: Message) -> Iterator[Partial]:
    """The partial results of a message, one step further."""
    errand = _errand(job, program, message.portion)
    target = program.steps[errand.path][number].target
    views = _views(job, program, message.slice, target)
    if views[target].segments:
        partial = messages.bytes_partial(message.payload, program, views)
        yield from take_leg(errand.leg(number, partial, StepCount()), partial, errand.position)


def _views(job: Job, program: Program, place: int, name: str) -> dict[str, View]:
    """The window of a stream on a slice, among those of all streams in their order, which the ids of results follow."""
    held = windows.held_by(job, program, (place,), name)
    return {stream.name: View(stream, held if stream.name == name else (), None) for stream in program.spec.streams}


def _errand(job: Job, program: Program, number: int) -> Errand:
    piece = job.pieces[number]
    return Errand(program, piece, job.written[piece.batch])


def _sent(sender: Sender, errand: Errand, number: int, step: int, partial: Partial) -> Iterator[Message]:
    heading = Heading(errand.piece.driver, number, errand.path, errand.lags(step))
    return sender.along(heading, step, partial)


def _sender(job: Job, program: Program) -> Sender:
    return Sender(program, ALL, job.live, Clerk(program.plan.paths, {}, ALL))
