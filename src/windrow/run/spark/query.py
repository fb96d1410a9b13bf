"""A running join on Spark: micro-batches through foreachBatch, one Spark job a batch.

    streams ─ pack ─┐
    streams ─ pack ─┼─ union ─ foreachBatch:  plan ─▶ enter ─▶ by slice: hop 1 ─▶ … ─▶ hop m-1 ─▶ sink ─▶ commit
    clock ──────────┘

Order of what is written: commit k-1, plan k, segments of k, sink, commit k, Spark's own commit. If commit k exists,
batch k is not run again; if it does not, it runs by the plan that was written for it. So a sink that is keyed by batch
holds each result once, whatever died in between.

In a query with a row window the driver program admits the rows (their order over all streams decides what they count);
probing is shared out as ever.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql.pandas.types import from_arrow_schema

from windrow.errors import StateError
from windrow.plan.drivers import Load, Order, order_of_drivers
from windrow.plan.plan import Plan
from windrow.plan.slices import time_slices
from windrow.query.expression import Column
from windrow.query.spec import UNBOUNDED, QuerySpec
from windrow.run.admit import NEVER_US, Entry
from windrow.run.program import Program
from windrow.run.spark import messages, worker
from windrow.run.spark.messages import COUNT, KEPT, RESULT, Message
from windrow.run.spark.state import Commit, Gate, Ledgers, Live
from windrow.store.files import SegmentFile
from windrow.store.storage import Storage
from windrow.store.window import FAN_IN, SPAN_SHARE

Sink = Callable[[DataFrame, int], None]
CLOCK = -1


@dataclass(frozen=True)
class Setting:
    """What a query on Spark is made of, besides its streams."""

    spec: QuerySpec
    plan: Plan
    arrow_types: Mapping[Column, pa.DataType]
    storage: Storage
    sink: Sink
    slices: int
    max_ahead_us: int | None


class BatchRunner:
    """Runs micro-batches in the driver program; `run` is what foreachBatch calls."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.program = Program(setting.spec, setting.plan, dict(setting.arrow_types))
        self.ledgers = Ledgers(setting.storage)
        self.slices = {s.name: time_slices(setting.slices, s.window.span_us) for s in setting.spec.streams}
        self.run_name = uuid.uuid4().hex[:8]
        self.last: Commit | None = None

    @property
    def fingerprint(self) -> str:
        """What has to stay the same for a checkpoint to be of use: streams, windows, condition, slices."""
        spec = self.setting.spec
        return repr((spec.streams, [str(conjunct) for conjunct in spec.conjuncts], self.setting.slices))

    def run(self, frame: DataFrame, batch: int) -> None:
        """Run one micro-batch, unless the state already has it."""
        if self._is_done(batch):
            return
        frame = frame.persist()
        try:
            job, entry = self._planned(batch, frame)
            told = self._probed(frame, job, entry) if job.rows or entry.row_windowed else []
        finally:
            frame.unpersist()
        self._commit(job, entry, told)

    def _probed(self, frame: DataFrame, job: worker.Job, entry: Entry) -> list[Row]:
        """Run the job, give its results to the sink, and return what the tasks tell; of results only how many."""
        out = self._job(frame, job, entry).persist()
        try:
            told = out.selectExpr("slice", "kind", "path", "rows", f"if(kind <> {RESULT}, payload, NULL) AS payload")
            rows = told.collect()
            schema = self.program.schema
            results = out.filter(f"kind = {RESULT}").mapInArrow(worker.results(schema), from_arrow_schema(schema))
            self.setting.sink(results, job.batch)
        finally:
            out.unpersist()
        return list(rows)

    def _is_done(self, batch: int) -> bool:
        if self.last is None:
            self.last = self.ledgers.commit(batch) or self.ledgers.commit(batch - 1)
        if self.last is None:
            if batch > 0:
                message = f"batch {batch} is due, but the state has neither it nor the one before"
                raise StateError(message, hint="use the state that belongs to this checkpoint")
            self.last = Commit(-1, self.fingerprint)
        if self.last.fingerprint != self.fingerprint:
            message = f"the checkpoint belongs to another query: {_difference(self.last.fingerprint, self.fingerprint)}"
            raise StateError(message, hint="start with a new checkpoint")
        if batch not in (self.last.batch, self.last.batch + 1):
            message = f"batch {batch} is due after batch {self.last.batch}"
            raise StateError(message, hint="use the state that belongs to this checkpoint")
        return batch == self.last.batch

    def _planned(self, batch: int, frame: DataFrame) -> tuple[worker.Job, Entry]:
        """The job of a batch, by the plan written for it or by one that is written now, and the entrance before it."""
        last = self._state
        plan = self.ledgers.plan(batch)
        if plan is None:
            rows: dict[int, int] = {}
            for row in frame.select("stream", "rows").collect():
                rows[row["stream"]] = rows.get(row["stream"], 0) + row["rows"]
            now_us = max(last.now_us, rows.get(CLOCK, last.now_us))
            taken = sum(amount for stream, amount in rows.items() if stream != CLOCK)
            order = self._order(rows, batch)
            plan = {"now_us": now_us, "rows": taken, "order": order, "merges": self._merges(last.live)}
            self.ledgers.write_plan(batch, plan)
        entry = self._entrance(batch)
        job = worker.Job(
            spec=self.setting.spec,
            plan_text=self.setting.plan.to_json(),
            arrow_types=self.setting.arrow_types,
            batch=batch,
            now_us=int(plan["now_us"]),
            rows=int(plan["rows"]),
            max_ahead_us=self.setting.max_ahead_us,
            watermarks_us={name: gate.watermark_us for name, gate in entry.gates.items()},
            order=None if plan["order"] is None else tuple(plan["order"]),
            slices=self.slices,
            live=last.live,
            merges={int(p): {n: tuple(map(tuple, g)) for n, g in m.items()} for p, m in plan["merges"].items()},
            storage=self.setting.storage,
            run=self.run_name,
        )
        return job, entry

    @property
    def _state(self) -> Commit:
        return self.last or Commit(-1, self.fingerprint)

    def _entrance(self, batch: int) -> Entry:
        """The entrances as the last batch left them."""
        entry = Entry(self.program, self.setting.max_ahead_us, None)
        for name, held in self._state.gates.items():
            gate = entry.gates[name]
            gate.newest_us, gate.watermark_us = held.newest_us, held.watermark_us
            gate.heard_us, gate.counted = held.heard_us, held.counted
            for field, amount in held.counts.items():
                setattr(gate.counts, field, amount)
            waiting = self.ledgers.waiting(batch - 1, name) if entry.row_windowed else None
            gate.waiting = [] if waiting is None else [waiting]
        return entry

    def _order(self, rows: Mapping[int, int], batch: int) -> Order | None:
        last = self._state
        loads = {
            stream.name: Load(
                buffered=rows.get(number, 0),
                stored=sum(file.rows for found in last.live.values() for file in found.get(stream.name, ())),
                seen=last.gates[stream.name].counts["rows"] if stream.name in last.gates else 0,
            )
            for number, stream in enumerate(self.setting.spec.streams)
        }
        return order_of_drivers(self.setting.plan.policy, loads, last.results, batch)

    def _merges(self, live: Live) -> dict[int, dict[str, list[list[str]]]]:
        """Which segments of each slice to merge in a batch: of sixteen of a tier, those that lie close together."""
        merges: dict[int, dict[str, list[list[str]]]] = {}
        for place, streams in live.items():
            for name, files in streams.items():
                window = self.setting.spec.stream(name).window
                for level in sorted({file.level for file in files}):
                    tier = [file for file in files if file.level == level]
                    groups = _close(tier, window.span_us) if len(tier) >= FAN_IN else []
                    if groups:
                        merges.setdefault(place, {}).setdefault(name, []).extend(groups)
        return merges

    def _job(self, frame: DataFrame, job: worker.Job, entry: Entry) -> DataFrame:
        """The one job: packed rows enter, then a hop a step, each on the slices its messages name."""
        if entry.row_windowed:
            out = self._admitted_here(frame, job, entry)
        else:
            out = frame.mapInArrow(worker.enter(job), messages.SPARK_SCHEMA)
        for number in range(len(self.setting.spec.streams) - 1):
            hop = worker.hop(job, number, worker.attempt_of)
            out = out.repartitionById(self.setting.slices, "slice").mapInArrow(hop, messages.SPARK_SCHEMA)
        return out

    def _admitted_here(self, frame: DataFrame, job: worker.Job, entry: Entry) -> DataFrame:
        """Messages of the rows that row windows let in now, made by the driver program."""
        pushed: dict[str, list[pa.Table]] = {}
        for row in frame.filter(f"stream <> {CLOCK}").collect():
            blob = messages.from_bytes(bytes(row["blob"]))
            pushed.setdefault(job.names[row["stream"]], []).append(pa.Table.from_batches([blob]))
        found: list[Message] = []
        for name, segment in entry.admit(pushed, job.now_us).items():
            if len(segment):
                found.extend(worker.placed(job, self.program, name, segment))
        rows = [Row(**{**message._asdict(), "payload": bytearray(message.payload)}) for message in found]
        return frame.sparkSession.createDataFrame(rows, messages.SPARK_SCHEMA)

    def _commit(self, job: worker.Job, entry: Entry, told: Sequence[Row]) -> None:
        last = self._state
        found = sum(row["rows"] for row in told if row["kind"] == RESULT)
        live = {place: {name: list(files) for name, files in streams.items()} for place, streams in last.live.items()}
        for row in told:
            if row["kind"] == RESULT:
                continue
            value = json.loads(bytes(row["payload"]))
            if row["kind"] == COUNT:
                gate = entry.gates[row["path"]]
                newest_us = value.pop("newest_us")
                if newest_us > NEVER_US:
                    gate.newest_us, gate.heard_us = max(gate.newest_us, newest_us), job.now_us
                for field, amount in value.items():
                    setattr(gate.counts, field, getattr(gate.counts, field) + amount)
            elif row["kind"] == KEPT:
                files = live.setdefault(row["slice"], {}).setdefault(row["path"], [])
                files[:] = [
                    *(f for f in files if f.name not in value["replaces"]),
                    SegmentFile.from_fields(value["file"]),
                ]
        entry.advance(job.now_us)
        remaining = {
            place: {
                name: tuple(file for file in files if _needed(file, entry, name)) for name, files in streams.items()
            }
            for place, streams in live.items()
        }
        gates = {
            name: Gate(g.newest_us, g.watermark_us, g.heard_us, g.counted, vars(g.counts))
            for name, g in entry.gates.items()
        }
        commit = Commit(job.batch, self.fingerprint, job.now_us, last.results + found, gates, remaining)
        written = {file.name for streams in live.values() for files in streams.values() for file in files}
        dying = tuple(sorted((last.names() | written) - commit.names()))
        commit = Commit(**{**vars(commit), "dying": dying})
        for name, gate in entry.gates.items():
            for rows in gate.waiting[:1]:
                self.ledgers.write_waiting(job.batch, name, rows)
        self.ledgers.write_commit(commit)
        self.ledgers.forget(job.batch - 2, job.names, last.dying)
        self.last = commit


def _needed(file: SegmentFile, entry: Entry, name: str) -> bool:
    cutoff_us, first_clock = entry.expiry(name)
    return file.last_us >= cutoff_us and (first_clock <= 0 or file.clocks[name][1] >= first_clock)


def _close(tier: Sequence[SegmentFile], span_us: int | None) -> list[list[str]]:
    """The tier in groups of at least two that span at most a quarter of the window."""
    widest_us = UNBOUNDED if span_us is None else span_us // SPAN_SHARE
    groups: list[list[SegmentFile]] = []
    for file in tier:
        group = groups[-1] if groups else []
        first_us, last_us = min(f.first_us for f in (*group, file)), max(f.last_us for f in (*group, file))
        if group and last_us - first_us <= widest_us:
            group.append(file)
        else:
            groups.append([file])
    return [[file.name for file in group] for group in groups if len(group) > 1]


def _difference(before: str, now: str) -> str:
    start = next((k for k, (a, b) in enumerate(zip(before, now, strict=False)) if a != b), min(len(before), len(now)))
    return f"…{before[max(0, start - 20) : start + 40]}… became …{now[max(0, start - 20) : start + 40]}…"
