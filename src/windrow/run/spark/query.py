"""A running join on Spark: micro-batches through foreachBatch, one Spark job to find a batch's results.

    streams ─ pack ─┐                     count ─▶ plan, written ─▶ the job ─▶ told ─▶ sink ─▶ commit
    streams ─ pack ─┼─ union ─ foreachBatch │                         │
    clock ──────────┘                       └ too large: in parts     └ few rows: one task
                                              cut by event time         many: by slice, a hop a step

Order of what is written: commit k-1, plan k, segments and staged results of k, sink, commit k, Spark's own commit. If
commit k exists, batch k is not run again; if it does not, it runs by the plan that was written for it. So a sink that
is keyed by batch holds each result once, whatever died in between.

In a query with a row window the driver program admits the rows (their order over all streams decides what they count);
probing is shared out as ever.
"""

from __future__ import annotations

import re
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Any

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame, Row

from windrow.control.controller import ControlSettings
from windrow.plan.drivers import Load, Order, order_of_drivers
from windrow.plan.plan import Plan
from windrow.plan.shedding import Shedding
from windrow.plan.slices import Slices
from windrow.plan.work import REFERENCE, WorkCosts
from windrow.probe import ship
from windrow.query.expression import Column
from windrow.query.spec import QuerySpec
from windrow.run.admit import Entry
from windrow.run.events import EventLog, event_of
from windrow.run.program import Keep, Program
from windrow.run.spark import messages, worker
from windrow.run.spark.aside import Aside
from windrow.run.spark.described import described
from windrow.run.spark.journal import Journal, is_done
from windrow.run.spark.keeping import Keeping, upkeep_of, within
from windrow.run.spark.lanes import Arrived, Feed
from windrow.run.spark.messages import Message
from windrow.run.spark.question import check_same, question_of
from windrow.run.spark.results import Output, Results
from windrow.run.spark.sending import stored
from windrow.run.spark.state import Commit, Gate, Live
from windrow.run.spark.steering import Steering
from windrow.run.spark.thinning import Thinning
from windrow.run.spark.told import Told
from windrow.run.spark.upkeep import after_batch
from windrow.run.warm import warm
from windrow.store.storage import Storage

Sink = Callable[[Results, int], None]
MOST_ROWS = 2_000_000
ONE_TASK_SECONDS = 0.3
"""Work up to this runs as one task: sharing it out would take longer than the work."""
SECONDS_A_ROW = 2e-5
"""What a row is taken to cost before any has been joined."""
REMEMBERED_BATCHES = 100
SWEEP_EVERY = 256
"""After so many batches what failed attempts left is looked for."""


@dataclass(frozen=True)
class Setting:
    """What a query on Spark is made of, besides its streams."""

    spec: QuerySpec
    plan: Plan
    arrow_types: Mapping[Column, pa.DataType]
    storage: Storage
    feed: Feed
    output: Output
    sink: Sink
    max_ahead_us: int | None
    aside: Aside | None = None
    keep: Keep = "used"
    control: ControlSettings | None = None
    costs: WorkCosts = REFERENCE
    pace: float = 1.0
    most_rows: int = MOST_ROWS
    clock: Callable[[], float] = time.time

    @property
    def sheds(self) -> bool:
        """Whether rows are stored with what shedding draws by. Where not all columns are kept it could not be had
        later, and the throttle may change.
        """
        return self.control is not None or self.keep == "used"

    def program(self, plan: Plan) -> Program:
        """The query made ready under a plan."""
        return Program(self.spec, plan, dict(self.arrow_types), self.keep, self.sheds)


class BatchRunner:
    """Runs micro-batches in the driver program; `run` is what foreachBatch calls."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self._take_plan(setting.plan)
        self.steering = Steering(setting.spec, self.plan, setting.control, setting.costs, setting.pace)
        controller = self.steering.controller
        self.keeping = Keeping.of(setting.spec, setting.control, controller, self.program.indexes)
        self.question = question_of(self.program)
        self.journal = Journal(setting.storage)
        self.events = EventLog(setting.storage)
        self.run_name = uuid.uuid4().hex[:8]
        self.query = ""
        self.last: Commit | None = None
        self.progress: deque[dict[str, Any]] = deque(maxlen=REMEMBERED_BATCHES)
        self._seconds_a_row = SECONDS_A_ROW
        self._is_warm = False
        self._kernels: worker.Kernels | None = None

    def _take_plan(self, plan: Plan) -> None:
        setting = self.setting
        self.plan = plan
        self.program = setting.program(plan)
        self._plan_text = plan.to_json()
        types = sorted(f"{column} {kind}" for column, kind in setting.arrow_types.items())
        said = (setting.spec, self._plan_text, types, setting.keep, setting.sheds)
        self._key = sha256(repr(said).encode()).hexdigest()

    def run(self, frame: DataFrame, batch: int) -> None:
        """Run one micro-batch, unless the state already has it."""
        spark = frame.sparkSession
        self.query = spark.sparkContext.getLocalProperty("sql.streaming.queryId") or ""
        if self._is_done(batch):
            return
        watch = Stopwatch()
        self.steering.begin()
        if self.keeping is not None:
            self.keeping.restore(self._state.memory)
        if not self._is_warm:
            with watch.phase("compile"):
                self._warm(spark.sparkContext)
        spark.conf.set("spark.sql.adaptive.enabled", "false")
        spark.conf.set("spark.sql.shuffle.partitions", "1")
        frame = frame.persist()
        try:
            with watch.phase("count"), described(spark.sparkContext, batch, "count new rows"):
                arrived = self.setting.feed.arrived(frame)
            with watch.phase("plan"):
                plan = self._planned(batch, frame, arrived)
            told, entry, live = self._joined(frame, batch, plan, watch)
            live = within(self.keeping, plan, arrived.rows, told, entry, self._state.live, live)
        finally:
            frame.unpersist()
        with watch.phase("sink"), described(spark.sparkContext, batch, "results to the sink"):
            results = Results(spark, self.setting.output, self.program.schema, tuple(told.files), tuple(told.inline))
            self.setting.sink(results, batch)
            if self.setting.aside is not None:
                self.setting.aside.deliver(told.aside, batch)
        with watch.phase("commit"):
            busy_s = watch.elapsed_s - watch.seconds.get("compile_s", 0.0)
            done = told.observation(batch, plan["now_us"], busy_s, self._state, entry, live)
            self.steering.observe(done, parallel=told.seconds / max(watch.seconds.get("join_s", 0.0), 1e-9))
            self._tell(entry, watch)
            self._commit(batch, plan, entry, live, told)
        self.steering.end(watch.seconds["commit_s"])
        if plan["rows"] and told.seconds:
            self._seconds_a_row = told.seconds / plan["rows"]
        self.progress.append({
            "batch": batch,
            "now_us": plan["now_us"],
            "rows": dict(arrived.rows),
            "results": told.results,
            "tasks": plan["tasks"],
            "parts": len(plan["cuts"]) + 1,
            "work_s": told.seconds,
            "throttle": plan["shedding"]["throttle"],
            "let_go": 0 if self.keeping is None else self.keeping.let_go - self.keeping.let_go_before,
            **watch.seconds,
        })  # fmt: skip

    def _warm(self, context: SparkContext) -> None:
        """Compile the kernels of the query; workers on other machines get them, those of this one share the cache."""
        warm(self.setting.program(self.plan))
        if not re.fullmatch(r"local(\[.*\])?", str(context.master)):
            names, files = ship.packed()
            self._kernels = worker.Kernels(names, context.broadcast(files))
        self._is_warm = True

    def _joined(
        self, frame: DataFrame, batch: int, plan: Mapping[str, Any], watch: Stopwatch
    ) -> tuple[Told, Entry, Live]:
        """Run the parts of a batch, one after the other; each sees what those before it stored."""
        told, entry, live = Told(), self._entrance(batch), self._state.live
        edges = [None, *plan["cuts"], None]
        for part in range(len(edges) - 1):
            job = self._job(batch, part, (edges[part], edges[part + 1]), plan, entry, live)
            with watch.phase("join"), described(frame.sparkSession.sparkContext, batch, _shown(job, len(edges) - 1)):
                rows = self._ran(frame, job, entry) if plan["rows"] or entry.row_windowed else []
            live = self._settled(job, entry, live, rows, told)
        return told, entry, live

    def _is_done(self, batch: int) -> bool:
        if self.last is None:
            self.last = self.journal.last(batch) or Commit(-1, self.question)
            check_same(self.last.question, self.question)
            if self.last.slices is not None:  # stored rows lie where the plan of their time put them
                self._take_plan(replace(self.plan, slices=Slices.from_values(self.last.slices)))
            self.steering.restore(self.last.controller)
            self.journal.sweep(self.last)
        return is_done(self.last, batch, self.query)

    def _planned(self, batch: int, frame: DataFrame, arrived: Arrived) -> dict[str, Any]:
        """The plan that was written for a batch, or one that is written now."""
        plan = self.journal.plan(batch)
        if plan is None:
            last = self._state
            now_us = int(self.setting.clock() * 1_000_000) if arrived.now_us is None else arrived.now_us
            taken = sum(arrived.rows.values())
            small = taken * self._seconds_a_row <= ONE_TASK_SECONDS
            now_us = max(last.now_us, now_us)
            plan = {
                "now_us": now_us,
                "last": arrived.last,
                "rows": taken,
                "order": self._order(arrived.rows, batch),
                "tasks": 1 if small else self.plan.slices.count,
                "cuts": self._cuts(frame, taken),
                "shedding": self.steering.decide(now_us / 1e6).to_values(),
                **upkeep_of(self.keeping, last.live, self.setting.spec, arrived.rows),
            }
            plan = self.journal.write_plan(batch, plan)
        self.steering.follow(Shedding.from_values(plan["shedding"]))
        return plan

    def _cuts(self, frame: DataFrame, rows: int) -> tuple[int, ...]:
        """Where to cut a batch that is too large for one job."""
        parts = -(-rows // self.setting.most_rows)
        if parts < 2:
            return ()
        times = {stream.name: stream.time for stream in self.setting.spec.streams}
        return self.setting.feed.cuts(frame, times, parts)

    def _job(
        self,
        batch: int,
        part: int,
        span: tuple[int | None, int | None],
        plan: Mapping[str, Any],
        entry: Entry,
        live: Live,
    ) -> worker.Job:
        merges = plan["merges"] if part == 0 else {}
        return worker.Job(
            spec=self.setting.spec,
            plan_text=self._plan_text,
            arrow_types=self.setting.arrow_types,
            keep=self.setting.keep,
            key=self._key,
            batch=batch,
            part=part,
            from_us=span[0],
            to_us=span[1],
            last=bool(plan["last"]) and span[1] is None,
            now_us=int(plan["now_us"]),
            max_ahead_us=self.setting.max_ahead_us,
            watermarks_us={name: gate.watermark_us for name, gate in entry.gates.items()},
            order=None if plan["order"] is None else tuple(plan["order"]),
            tasks=int(plan["tasks"]),
            feed=self.setting.feed,
            live=live,
            merges={int(p): {n: tuple(map(tuple, g)) for n, g in m.items()} for p, m in merges.items()},
            storage=self.setting.storage,
            output=self.setting.output,
            aside=None if self.setting.aside is None else self.setting.aside.output,
            run=self.run_name,
            sheds=self.setting.sheds,
            shedding=self.steering.shedding,
            bins=self.steering.bins,
            kernels=self._kernels,
            thinning=Thinning.from_values(plan.get("memory")),
        )

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
            for counted, amount in held.counts.items():
                setattr(gate.counts, counted, amount)
            waiting = self.journal.waiting(batch - 1, name, self._columns(name)) if entry.row_windowed else None
            gate.waiting = [] if waiting is None else [waiting]
        return entry

    def _columns(self, name: str) -> list[str]:
        return [column.name for column in self.program.kept[name]]

    def _order(self, rows: Mapping[str, int], batch: int) -> Order | None:
        last = self._state
        loads = {
            stream.name: Load(
                buffered=rows.get(stream.name, 0),
                stored=sum(file.rows for found in last.live.values() for file in found.get(stream.name, ())),
                seen=last.gates[stream.name].counts["rows"] if stream.name in last.gates else 0,
            )
            for stream in self.setting.spec.streams
        }
        return order_of_drivers(self.plan.policy, loads, last.results, batch)

    def _ran(self, frame: DataFrame, job: worker.Job, entry: Entry) -> list[Row]:
        """Run the job over the packed rows, and return what its tasks tell."""
        attempt = worker.attempt_of
        if entry.row_windowed:
            out = self._admitted_here(frame, job, entry)
            if job.tasks == 1:
                out = out.coalesce(1).mapInArrow(worker.whole_of_admitted(job, attempt), messages.SPARK_SCHEMA)
        else:
            if job.tasks == 1:
                out = frame.coalesce(1).mapInArrow(worker.whole(job, attempt), messages.SPARK_SCHEMA)
            else:
                out = frame.mapInArrow(worker.enter(job, attempt), messages.SPARK_SCHEMA)
        if job.tasks > 1:
            for number in range(len(self.setting.spec.streams) - 1):
                sliced = (
                    out.selectExpr(f"slice % {job.tasks} AS task", "*").repartitionById(job.tasks, "task").drop("task")
                )
                out = sliced.mapInArrow(worker.hop(job, number, attempt), messages.SPARK_SCHEMA)
        return list(out.collect())

    def _admitted_here(self, frame: DataFrame, job: worker.Job, entry: Entry) -> DataFrame:
        """Messages of the rows that row windows let in now, made by the driver program."""
        pushed: dict[str, list[pa.Table]] = {}
        for name, table in job.feed.tables(iter(frame.toArrow().to_batches())):
            pushed.setdefault(name, []).append(table)
        found: list[Message] = []
        span = (job.from_us, job.to_us)
        sender = worker.sender_of(job, self.program)
        for name, segment in entry.admit(pushed, job.now_us, job.last, span, job.shedding).items():
            if len(segment):
                alone = job.tasks == 1
                found.extend(stored(self.program, name, segment) if alone else sender.placed(name, segment))
        found.append(worker.noted(sender.clerk))
        rows = [Row(**{**message._asdict(), "payload": bytearray(message.payload)}) for message in found]
        return frame.sparkSession.createDataFrame(rows, messages.SPARK_SCHEMA)

    def _settled(self, job: worker.Job, entry: Entry, live: Live, rows: Sequence[Row], told: Told) -> Live:
        """Take in what tasks tell: results to `told`, counts to the entrances; the segments that are live now."""
        kept = told.take_in(rows, entry, job.now_us)
        entry.advance(job.now_us)
        gone = job.thinning.dying if job.thinning is not None else frozenset()
        after, dying = after_batch(replace(self._state, live=live), kept, entry.expiry, gone)
        told.dying.update(dying)
        return after

    def _tell(self, entry: Entry, watch: Stopwatch) -> None:
        """Write the event of the batch that was observed last."""
        if self.steering.observation is not None:
            kept = () if self.keeping is None else self.keeping.spans
            plan = replace(self.plan, shedding=self.steering.shedding, kept=kept)
            counts = {name: gate.counts for name, gate in entry.gates.items()}
            durations_s = {name.removesuffix("_s"): seconds for name, seconds in watch.seconds.items()}
            done, controller = self.steering.observation, self.steering.controller
            self.events.write(event_of(done, plan, counts, durations_s, controller))

    def _commit(self, batch: int, plan: Mapping[str, Any], entry: Entry, live: Live, told: Told) -> None:
        last = self._state
        gates = {
            name: Gate(g.newest_us, g.watermark_us, g.heard_us, g.counted, vars(g.counts))
            for name, g in entry.gates.items()
        }
        if self.setting.output.storage is self.setting.storage:
            told.dying.update(file.name for file in told.files)
        commit = Commit(
            batch,
            self.question,
            self.query,
            self.run_name,
            plan["now_us"],
            last.results + told.results,
            gates,
            live,
            tuple(sorted(told.dying)),
            slices=asdict(self.plan.slices),
            controller=self.steering.to_values(),
            memory=None if self.keeping is None else self.keeping.to_values(),
        )
        for name, gate in entry.gates.items():
            for rows in gate.waiting[:1]:
                self.journal.write_waiting(batch, name, rows)
        self.journal.write_commit(commit)
        self.journal.forget(batch - 2, tuple(entry.gates) if entry.row_windowed else (), last.dying)
        if batch % SWEEP_EVERY == SWEEP_EVERY - 1:
            self.journal.sweep(commit)
        self.last = commit


def _shown(job: worker.Job, parts: int) -> str:
    """What Spark's UI says of the job of a batch."""
    hops = len(job.names) - 1
    part = f"part {job.part + 1} of {parts}, " if parts > 1 else ""
    if job.tasks == 1:
        return f"{part}{hops} hops in one task"
    return f"{part}enter, then {hops} hops over {job.tasks} tasks"


class Stopwatch:
    """Seconds spent in the phases of a batch."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._started = time.perf_counter()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the batch began."""
        return time.perf_counter() - self._started

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the block towards a phase."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[f"{name}_s"] = self.seconds.get(f"{name}_s", 0.0) + time.perf_counter() - started
