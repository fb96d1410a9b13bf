"""A job: one batch, or a part of one, as its tasks see it, and the query that a worker makes ready for it once.

    driver program ── Job, pickled ──▶ task ── ready ──▶ Program: made once a worker, by the job's key
                                                           └ kernels: from the cache, or shipped with the job

A task gets all it needs in its job; it decides nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from windrow.control.ledger import Piece, Written
from windrow.plan.bins import Bins
from windrow.plan.drivers import Order
from windrow.plan.plan import Plan
from windrow.plan.shedding import ALL, Shedding
from windrow.probe import ship
from windrow.query.expression import Column
from windrow.query.spec import QuerySpec
from windrow.run.program import Keep, Program
from windrow.run.spark.lanes import Feed
from windrow.run.spark.results import Output
from windrow.run.spark.segments import retain_segments
from windrow.run.spark.state import Live, each_file
from windrow.run.spark.thinning import Thinning
from windrow.store.storage import Storage

Attempt = Callable[[], tuple[int, str]]
"""The number of this task's part of the work, and a name that no other attempt at it has."""


MOST_PARTS = 1 << 20
"""A batch has fewer: its rows know the part, as its number behind the batch's."""


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
    input follows, `learns` that a controller learns from what is noted. One with `pieces` has no input: it repairs
    them, of batches that ran as `written`.
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
    repairs: bool = False
    shedding: Shedding = ALL
    bins: Mapping[str, tuple[Bins, ...]] = field(default_factory=dict)
    learns: bool = False
    kernels: Kernels | None = None
    thinning: Thinning | None = None
    pieces: tuple[Piece, ...] = ()
    written: Mapping[int, Written] = field(default_factory=dict)

    @property
    def number(self) -> int:
        """The number of the batch, or of the part of it, that its rows know."""
        return self.batch * MOST_PARTS + self.part

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
        _programs[job.key] = Program(job.spec, plan, dict(job.arrow_types), job.keep, job.sheds, job.repairs)
    return _programs[job.key]


def places(program: Program) -> range:
    """All slices."""
    return range(program.plan.slices.count)


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


def ready(job: Job) -> Program:
    """The program of a job, at the beginning of a batch: what is no longer live need not be held."""
    retain_segments(job.storage, {file.name for _, _, file in each_file(job.live)})
    return program_of(job)


def attempt_of() -> tuple[int, str]:
    """The partition this task works on, and a name for this attempt at it: no other task of the run has it."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return (0, "local") if context is None else (context.partitionId(), str(context.taskAttemptId()))
