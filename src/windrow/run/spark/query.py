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

from windrow.plan.drivers import Load, Order, order_of_drivers
from windrow.plan.plan import Plan
from windrow.plan.slices import time_slices
from windrow.query.expression import Column
from windrow.query.spec import QuerySpec
from windrow.run.admit import NEVER_US, Entry
from windrow.run.program import Program
from windrow.run.spark import messages, worker
from windrow.run.spark.journal import Journal, is_done
from windrow.run.spark.messages import COUNT, KEPT, RESULT, Message
from windrow.run.spark.question import check_same, question_of
from windrow.run.spark.state import Commit, Gate
from windrow.run.spark.upkeep import Kept, after_batch, merges_of
from windrow.store import codec
from windrow.store.files import SegmentFile
from windrow.store.storage import Storage

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
        self.journal = Journal(setting.storage)
        self.question = question_of(self.program)
        self.slices = {s.name: time_slices(setting.slices, s.window.span_us) for s in setting.spec.streams}
        self.run_name = uuid.uuid4().hex[:8]
        self.last: Commit | None = None

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
            self.last = self.journal.last(batch) or Commit(-1, self.question)
            check_same(self.last.question, self.question)
        return is_done(self.last, batch, "")

    def _planned(self, batch: int, frame: DataFrame) -> tuple[worker.Job, Entry]:
        """The job of a batch, by the plan written for it or by one that is written now, and the entrance before it."""
        last = self._state
        plan = self.journal.plan(batch)
        if plan is None:
            rows: dict[int, int] = {}
            for row in frame.select("stream", "rows").collect():
                rows[row["stream"]] = rows.get(row["stream"], 0) + row["rows"]
            now_us = max(last.now_us, rows.get(CLOCK, last.now_us))
            taken = sum(amount for stream, amount in rows.items() if stream != CLOCK)
            order = self._order(rows, batch)
            plan = {"now_us": now_us, "rows": taken, "order": order, "merges": merges_of(last.live, self.setting.spec)}
            plan = self.journal.write_plan(batch, plan)
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
        return self.last or Commit(-1, self.question)

    def _entrance(self, batch: int) -> Entry:
        """The entrances as the last batch left them."""
        entry = Entry(self.program, self.setting.max_ahead_us, None)
        for name, held in self._state.gates.items():
            gate = entry.gates[name]
            gate.newest_us, gate.watermark_us = held.newest_us, held.watermark_us
            gate.heard_us, gate.counted = held.heard_us, held.counted
            for field, amount in held.counts.items():
                setattr(gate.counts, field, amount)
            waiting = self.journal.waiting(batch - 1, name) if entry.row_windowed else None
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
            blob = codec.from_bytes(bytes(row["blob"]))
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
        kept = []
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
                file, replaces = SegmentFile.from_fields(value["file"]), tuple(value["replaces"])
                kept.append(Kept(row["slice"], row["path"], file, replaces))
        entry.advance(job.now_us)
        live, dying = after_batch(last, kept, entry.expiry)
        gates = {
            name: Gate(g.newest_us, g.watermark_us, g.heard_us, g.counted, vars(g.counts))
            for name, g in entry.gates.items()
        }
        commit = Commit(
            job.batch, self.question, "", self.run_name, job.now_us, last.results + found, gates, live, dying
        )
        for name, gate in entry.gates.items():
            for rows in gate.waiting[:1]:
                self.journal.write_waiting(job.batch, name, rows)
        self.journal.write_commit(commit)
        self.journal.forget(job.batch - 2, job.names, last.dying)
        self.last = commit
