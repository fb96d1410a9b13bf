"""A join under a virtual clock: any query, over rows made or recorded, on a machine as slow as asked.

    rows, by their event time ──▶ due by now? push ──▶ one batch, really run ──▶ its work, in counts
                 ▲                                                                      │ WorkCosts, speed
                 └────── now += the seconds that takes, or the time to the next batch ◀─┘

The batches are those of the in-process runtime, with the same controller; only time is made up: what a batch takes
follows from what it did (`windrow.plan.work`): rows let in, merged and indexed, probes, candidates, results, decisions,
and something for the batch itself. So a simulation is the same on every machine, and far faster than real time.

A batch takes all rows that came while the one before it ran. If that took longer than `batch_s`, it begins at once.

>>> import windrow
>>> from windrow.streams.synthetic import cameras, generate
>>> rows = generate(cameras(100, (0, 5), (2, 2)), duration_s=60, seed=1)
>>> text = "SELECT a.id AS i, b.id AS j FROM cam1 AS a, cam2 AS b WHERE ABS(a.x - b.x) <= 1 WINDOW 10 SECONDS"
>>> query = windrow.sql(text, streams=rows)
>>> fast = Machine(REFERENCE.scaled(5000), speed=1000)
>>> exact = simulate(query, rows, fast, methods=["loop"])
>>> slow = fast.overloaded(exact, 3, after_s=20)           # on which the exact join takes three times too long
>>> shed = simulate(query, rows, slow, methods=["loop"], throttle="auto")
>>> shed.found(20, 60) > 0.8 * exact.found(20, 60) > 500
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.control.charge import work_of
from windrow.control.observation import Observation, PathTally
from windrow.errors import UsageError
from windrow.plan.shedding import Shedding
from windrow.plan.work import REFERENCE, WorkCosts
from windrow.query.builder import Join
from windrow.run.local import LocalJoin
from windrow.store.operand import time_us


@dataclass(frozen=True, slots=True)
class Machine:
    """What work costs, and how many of these seconds pass in one of the virtual clock: its speed."""

    costs: WorkCosts = REFERENCE
    speed: float = 1.0

    @property
    def pace(self) -> WorkCosts:
        """What work costs in seconds of the virtual clock."""
        return self.costs.slowed(1 / self.speed)

    def overloaded(self, run: Simulated, times: float, after_s: float = 0.0) -> Machine:
        """One so slow that what `run` took on this machine would take `times` as long as there is time for."""
        return replace(self, speed=self.speed * run.load(after_s) / times)


@dataclass(frozen=True, slots=True)
class Step:
    """One batch: when it began and ended on the virtual clock (seconds since the first row could come), repairs
    included, what it was told to leave out, what it did.
    """

    begin_s: float
    end_s: float
    shedding: Shedding
    observation: Observation
    dropped: int


@dataclass(frozen=True)
class Simulated:
    """A run: its batches, and the results where they were to be kept."""

    steps: tuple[Step, ...]
    duration_s: float
    tables: tuple[pa.Table, ...] = field(default=(), repr=False)

    @property
    def results(self) -> int:
        """How many results there were."""
        return self.found()

    def found(self, from_s: float = 0.0, to_s: float = float("inf")) -> int:
        """How many results batches gave that ended in a span of time."""
        return sum(step.observation.results for step in self.steps if from_s < step.end_s <= to_s)

    def load(self, from_s: float = 0.0) -> float:
        """Seconds of work for each second of arrivals, of the batches that began after a time."""
        counted = [step for step in self.steps if step.begin_s > from_s]
        span_s = sum(step.observation.span_s for step in counted)
        return sum(step.observation.busy_s for step in counted) / span_s if span_s > 0 else 0.0

    def throttles(self) -> list[tuple[float, float]]:
        """The throttle of each batch, by when it began."""
        return [(step.begin_s, step.shedding.throttle) for step in self.steps]


def simulate(
    query: Join,
    rows: Mapping[str, pa.Table],
    machine: Machine = Machine(),
    *,
    batch_s: float = 1.0,
    duration_s: float | None = None,
    keep_results: bool = False,
    before: Callable[[LocalJoin, float], None] | None = None,
    **options: Any,
) -> Simulated:
    """Run a query over rows (by source, in order of their arrival, each there at its event time); `options` are those
    of `windrow.local`; the controller's first guess at what work costs is right, unless they have another. `before` is
    called before each batch, with the join and the time.
    """
    if not (batch_s > 0 and machine.speed > 0):
        raise UsageError(f"batches of {batch_s} s at speed {machine.speed}", hint="give both above 0")
    lanes = _Lanes(query, rows)
    until_s = lanes.span_s if duration_s is None else duration_s
    meter = _Meter(machine.pace)
    join = LocalJoin(query, charge=meter, **{"costs": meter.costs, **options})
    meter.join = join
    steps: list[Step] = []
    kept: list[pa.Table] = []
    now_s = batch_s
    while now_s < until_s + batch_s:
        for source, table in lanes.due(min(now_s, until_s)):
            join.push(source, table)
        if before is not None:
            before(join, now_s)
        found = join.step(now_s=lanes.start_s + now_s)
        observed = join.observation
        if observed is None:
            break
        end_s = now_s + observed.busy_s + observed.repaired.seconds
        steps.append(Step(now_s, end_s, join.plan.shedding, observed, join.dropped))
        if keep_results:
            kept.append(found)
        now_s = max(now_s + batch_s, end_s)
    return Simulated(tuple(steps), until_s, tuple(kept))


class _Meter:
    """Says what a batch takes on a machine, instead of a stopwatch."""

    def __init__(self, costs: WorkCosts) -> None:
        self.costs = costs
        self.join: LocalJoin | None = None
        self._decided = 0

    def __call__(self, done: Observation) -> Observation:
        join, costs = self.join, self.costs
        if join is None:
            return done
        methods = {path.name: tuple(step.method for step in path.steps) for path in join.plan.paths}
        decided, self._decided = self._decided, decisions_of(join)
        drove = [tally.drivers for held in (done.joined.sampled, done.joined.others) for tally in held.values()]
        rows = sum(drove) if drove else sum(arrival.rows for arrival in done.arrivals.values())
        indexed = any(method in ("sorted", "hashed") for held in methods.values() for method in held)
        work = work_of(
            done,
            join.plan,
            merged_rows=done.merged,
            indexed_rows=rows + done.merged if indexed else 0,
            decisions=self._decided - decided,
        )
        sampled, others = (
            {path: _timed(tally, methods[path], costs) for path, tally in held.items()}
            for held in (done.joined.sampled, done.joined.others)
        )
        joined = replace(done.joined, sampled=sampled, others=others)
        return replace(done, busy_s=costs.seconds_of(work).total_s, joined=joined)


def decisions_of(join: LocalJoin) -> int:
    """How often it was looked for what to leave out."""
    decider = join.controller or join.allowances
    return 0 if decider is None else decider.decisions


def _timed(tally: PathTally, methods: Sequence[str], costs: WorkCosts) -> PathTally:
    steps = (
        replace(step, index_s=0.0, seconds=costs.step(method).seconds(step.probes, step.candidates, step.matches))
        for method, step in zip(methods, tally.steps, strict=True)
    )
    return replace(tally, steps=tuple(steps))


class _Lanes:
    """The rows of each source, handed out as they become due."""

    def __init__(self, query: Join, rows: Mapping[str, pa.Table]) -> None:
        columns = {stream.source: stream.time for stream in query.spec().streams}
        self.tables = {source: rows[source].combine_chunks() for source in columns if source in rows}
        if missing := [source for source in columns if source not in rows]:
            raise UsageError(f"there are no rows of '{missing[0]}'", hint="give a table for each source of the query")
        self.times = {}
        for source, table in self.tables.items():
            chunks = table.column(columns[source]).chunks
            words = pa.concat_arrays([time_us(chunk) for chunk in chunks]) if chunks else pa.array([], pa.int64())
            self.times[source] = np.maximum.accumulate(np.asarray(words)) if len(words) else np.zeros(0, np.int64)
        firsts = [int(times[0]) for times in self.times.values() if len(times)]
        lasts = [int(times[-1]) for times in self.times.values() if len(times)]
        self.start_us = min(firsts, default=0) // 1_000_000 * 1_000_000
        self.span_s = (max(lasts, default=0) - self.start_us) / 1e6
        self.places = dict.fromkeys(self.tables, 0)

    @property
    def start_s(self) -> float:
        return self.start_us / 1e6

    def due(self, now_s: float) -> Iterator[tuple[str, pa.Table]]:
        """What came since the last time."""
        for source, table in self.tables.items():
            upto = int(np.searchsorted(self.times[source], self.start_us + int(now_s * 1e6), side="right"))
            first, self.places[source] = self.places[source], upto
            if upto > first:
                yield source, table.slice(first, upto - first)
