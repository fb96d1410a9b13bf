"""A running join on Spark: micro-batches through foreachBatch, one Spark job to find a batch's results.

    streams ─ pack ─┐                     count ─▶ plan, written ─▶ the job ─▶ told ─▶ sink ─▶ commit
    streams ─ pack ─┼─ union ─ foreachBatch │                         │
    clock ──────────┘                       └ too large: in parts     └ few rows: one task
                                              cut by event time         many: by slice, a hop a step

Order of what is written: commit k-1, plan k, segments and staged results of k, sink, commit k, Spark's own commit. If
commit k exists, batch k is not run again; if it does not, it runs by the plan that was written for it. So a sink that
is keyed by batch holds each result once, whatever died in between.
"""

from __future__ import annotations

import re
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession

from windrow.control.ledger import Piece
from windrow.plan.plan import Plan
from windrow.plan.shedding import Shedding
from windrow.plan.slices import Slices
from windrow.probe import ship
from windrow.run.admit import Entry
from windrow.run.backlog import marked_schema
from windrow.run.events import EventLog, Scene, event_of
from windrow.run.spark.described import described
from windrow.run.spark.entrance import gates_of, opened
from windrow.run.spark.job import MOST_PARTS, Job, Kernels
from windrow.run.spark.journal import Journal, is_done
from windrow.run.spark.keeping import Keeping, upkeep_of, within
from windrow.run.spark.lanes import Arrived
from windrow.run.spark.planning import cuts_of, order_of
from windrow.run.spark.promises import Promises
from windrow.run.spark.question import check_same, question_of
from windrow.run.spark.repairing import Repairing
from windrow.run.spark.results import Results
from windrow.run.spark.rounds import check_alone, standing, write_plan, write_round
from windrow.run.spark.setting import Setting
from windrow.run.spark.spread import jobs_of, run_job, run_repair, shown
from windrow.run.spark.state import Commit, Live, bytes_by_slice
from windrow.run.spark.steering import Steering
from windrow.run.spark.stopwatch import Stopwatch
from windrow.run.spark.summed import Sums
from windrow.run.spark.thinning import Thinning
from windrow.run.spark.told import Told
from windrow.run.spark.upkeep import after_batch
from windrow.run.warm import warm

ONE_TASK_SECONDS = 0.3
"""Work up to this runs as one task: sharing it out would take longer than the work."""
SECONDS_A_ROW = 2e-5
"""What a row is taken to cost before any has been joined."""
REMEMBERED_BATCHES = 100
_APART = ("compile_s", "repair_s")
"""Phases that are not the time of a batch's own work."""
SWEEP_EVERY = 256
"""After so many batches what failed attempts left is looked for."""


class BatchRunner:
    """Runs micro-batches in the driver program; `run` is what foreachBatch calls."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self._take_plan(setting.plan)
        self.steering = Steering(
            setting.spec, self.plan, setting.control, setting.costs, setting.pace, setting.trigger_s
        )
        controller = self.steering.controller
        self.keeping = Keeping.of(setting.spec, setting.control, controller, self.program.indexes)
        self.repairing = Repairing.of(self.program, setting, controller)
        self.promises = Promises.of(setting)
        self.question = question_of(self.program)
        self.journal = Journal(setting.storage)
        self.sums = Sums.of(self.program, self.journal)
        self.events = EventLog(setting.storage)
        self.run_name = uuid.uuid4().hex[:8]
        self.query = ""
        self.last: Commit | None = None
        self.progress: deque[dict[str, Any]] = deque(maxlen=REMEMBERED_BATCHES)
        self._seconds_a_row = SECONDS_A_ROW
        self._is_warm = self._is_new = False
        self._rounds = 0
        self._begun: tuple[Piece, ...] | None = None
        self._kernels: Kernels | None = None
        if setting.events is not None:
            self.events = EventLog(setting.events)

    def _take_plan(self, plan: Plan) -> None:
        setting = self.setting
        self.plan = plan
        self.program = setting.program(plan)
        self._plan_text = plan.to_json()
        types = sorted(f"{column} {kind}" for column, kind in setting.arrow_types.items())
        said = (setting.spec, self._plan_text, types, setting.keep, setting.sheds, setting.repairs)
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
        with watch.phase("compile"):
            self._settle_in(spark)
        frame = frame.persist()
        try:
            with watch.phase("count"), described(spark.sparkContext, batch, "count new rows"):
                arrived = self.setting.feed.arrived(frame)
            with watch.phase("plan"):
                plan = self._planned(batch, frame, arrived)
            told, entry, live = self._joined(frame, batch, plan, watch)
            plan = self._repaired(spark, batch, plan, told, entry, live, watch)
            live = within(self.keeping, plan, arrived.rows, told, entry, self._state.live, live)
        finally:
            frame.unpersist()
        with watch.phase("sink"), described(spark.sparkContext, batch, "results to the sink"):
            if self.sums is not None:
                thinning = Thinning.from_values(plan.get("memory"))
                lets_go = thinning is not None and thinning.retained.lets_go
                told.inline = [self.sums.final(batch, plan["last"], self.steering.shedding, told, entry, lets_go)]
            results = Results(spark, self.setting.output, self.schema, tuple(told.files), tuple(told.inline))
            self.setting.sink(results, batch)
            if self.setting.aside is not None:
                self.setting.aside.deliver(told.aside, batch)
        with watch.phase("commit"):
            busy_s = watch.elapsed_s - sum(watch.seconds.get(name, 0.0) for name in _APART)
            done = told.observation(batch, plan["now_us"], busy_s, self._state, entry, live)
            self.steering.observe(done, parallel=told.seconds / max(watch.seconds.get("join_s", 0.0), 1e-9))
            if self.repairing is not None and self.steering.observation is not None:
                self.repairing.observe(plan["rows"], self.steering.observation)
            if self.promises is not None and self.steering.observation is not None:
                self.promises.observe(self.steering.observation, entry, told.aged)
            self._tell(entry, watch, live, bool(plan["last"]))
            self._commit(batch, plan, entry, live, told)
        self.steering.end(watch.seconds["commit_s"])
        if plan["rows"] and told.seconds:
            self._seconds_a_row = told.seconds / plan["rows"]
        self.progress.append({
            "batch": batch,
            "now_us": plan["now_us"],
            "rows": dict(arrived.rows),
            "results": told.results,
            "repaired": told.repaired.results,
            "tasks": plan["tasks"],
            "parts": len(plan["cuts"]) + 1,
            "work_s": told.seconds,
            "throttle": Shedding.from_values(plan["shedding"]).work,
            "suppressed": told.aged.suppressed,
            "let_go": 0 if self.keeping is None else self.keeping.let_go - self.keeping.let_go_before,
            **watch.seconds,
        })  # fmt: skip

    def _settle_in(self, spark: SparkSession) -> None:
        """Get ready to run: what batches need of the session, kernels, and the end of a round that was begun."""
        spark.conf.set("spark.sql.adaptive.enabled", "false")
        spark.conf.set("spark.sql.shuffle.partitions", "1")
        if not self._is_warm:
            self._warm(spark)
        if self._begun is not None:
            self.repair_round(spark, self._begun)

    def _warm(self, spark: SparkSession) -> None:
        """Compile the kernels of the query; workers on other machines get them, those of this one share the cache. A
        repair that is the first of its kind takes Spark far longer than others: one of nothing is run now.
        """
        warm(self.setting.program(self.plan))
        if not re.fullmatch(r"local(\[.*\])?", str(spark.sparkContext.master)):
            names, files = ship.packed()
            self._kernels = Kernels(names, spark.sparkContext.broadcast(files))
        if self.setting.repairs:
            last = self._state
            slices = self.plan.slices.count
            plan: dict[str, Any] = {"now_us": 0, "last": False, "order": None, "tasks": slices, "merges": {}}
            job = self._job(last.batch, 0, (None, None), plan, self._entrance(), {})
            with described(spark.sparkContext, last.batch + 1, "a repair of nothing, to get ready"):
                for by_slice in (False, True):
                    run_repair(spark, job, self.program, by_slice=by_slice)
        self._is_warm = True

    def _joined(
        self, frame: DataFrame, batch: int, plan: Mapping[str, Any], watch: Stopwatch
    ) -> tuple[Told, Entry, Live]:
        """Run the parts of a batch, one after the other; each sees what those before it stored."""
        told, entry, live = Told(), self._entrance(), self._state.live
        edges = [None, *plan["cuts"], None]
        for part in range(len(edges) - 1):
            job = self._job(batch, part, (edges[part], edges[part + 1]), plan, entry, live)
            with watch.phase("join"), described(frame.sparkSession.sparkContext, batch, shown(job, len(edges) - 1)):
                rows = self._ran(frame, job, entry) if plan["rows"] or entry.row_windowed else []
            live = self._settled(job, entry, live, rows, told)
        return told, entry, live

    def _repaired(
        self,
        spark: SparkSession,
        batch: int,
        plan: dict[str, Any],
        told: Told,
        entry: Entry,
        live: Live,
        watch: Stopwatch,
    ) -> dict[str, Any]:
        """Run the pieces that the plan of a batch names, in the last batch all that are open; the plan that holds."""
        repairing = self.repairing
        if repairing is None:
            return plan
        if plan["last"]:
            repairing.take_all()
        elif self._is_new and repairing.is_overdue(watch.elapsed_s):
            repairing.put_off()
            plan = self.journal.write_plan(batch, {**plan, "repair": []}, attempt=2)
        if repairing.chosen:
            job = self._job(batch, len(plan["cuts"]) + 1, (None, None), plan, entry, live)
            if not plan["last"]:
                job = replace(job, live=self._state.live)
            late = Told()
            with watch.phase("repair"):
                self._mended(spark, job, entry, late)
            told.join(late, repairing.took(late, watch.seconds["repair_s"]))
        return plan

    def _mended(self, spark: SparkSession, job: Job, entry: Entry, late: Told) -> None:
        """Run the pieces that are chosen over the windows of a job."""
        repairing = self.repairing
        if repairing is None:
            return
        small = repairing.expected_s() / self.setting.pace <= ONE_TASK_SECONDS
        job = replace(job, tasks=self.plan.slices.count, written=repairing.written, thinning=None)
        for asked in jobs_of(job, repairing.chosen):
            with described(spark.sparkContext, job.batch, shown(asked, 1)):
                late.take_in(run_repair(spark, asked, self.program, by_slice=not small), entry, job.now_us)

    def repair_round(self, spark: SparkSession, pieces: tuple[Piece, ...]) -> None:
        """Run some pieces between two batches (`windrow.run.spark.rounds`)."""
        repairing, last, number = self.repairing, self._state, self._rounds + 1
        if repairing is None:
            return
        repairing.back()
        repairing.take(write_plan(self.setting.storage, last.batch, number, pieces))
        plan: dict[str, Any] = {"now_us": last.now_us, "last": False, "order": None, "tasks": 1, "merges": {}}
        watch, late, entry = Stopwatch(), Told(), self._entrance()
        with watch.phase("repair"):
            job = self._job(last.batch, MOST_PARTS - number, (None, None), plan, entry, last.live)
            self._mended(spark, job, entry, late)
        with described(spark.sparkContext, last.batch, f"results of repair round {number} to the sink"):
            results = Results(spark, self.setting.output, self.schema, tuple(late.files), tuple(late.inline))
            self.setting.sink(results, -repairing.rounds - 1)
        repairing.took(late, watch.seconds["repair_s"])
        repairing.rounds += 1
        done = replace(last, ledger=repairing.to_values(), results=last.results + late.results)
        write_round(self.setting.storage, last.batch, number, done.ledger, done.results)
        repairing.committed()
        self.last, self._rounds, self._begun = done, number, None

    def prepare(self, spark: SparkSession, batch: int) -> None:
        """Get ready for rounds after a batch that is committed."""
        self._is_done(batch)
        self._settle_in(spark)

    def _is_done(self, batch: int) -> bool:
        if self.last is None:
            self.last = self.journal.last(batch) or Commit(-1, self.question)
            check_same(self.last.question, self.question)
            if self.last.slices is not None:  # stored rows lie where the plan of their time put them
                self._take_plan(replace(self.plan, slices=Slices.from_values(self.last.slices)))
            self.steering.restore(self.last.controller)
            if self.repairing is not None:
                found = standing(self.setting.storage, self.last)
                self.last, self._rounds, self._begun = found.commit, found.rounds, found.begun
                self.repairing.backlog.program = self.program
                self.repairing.restore(self.last.ledger)
            if self.promises is not None:
                self.promises.restore(self.last)
            self.journal.sweep(self.last)
        return is_done(self.last, batch, self.query)

    def _planned(self, batch: int, frame: DataFrame, arrived: Arrived) -> dict[str, Any]:
        """The plan that was written for a batch, or one that is written now."""
        plan = self.journal.plan(batch)
        self._is_new = plan is None
        if plan is None:
            last = self._state
            now_us = int(self.setting.clock() * 1_000_000) if arrived.now_us is None else arrived.now_us
            taken = sum(arrived.rows.values())
            small = taken * self._seconds_a_row <= ONE_TASK_SECONDS
            now_us = max(last.now_us, now_us)
            if self.promises is not None:
                self.promises.expect(batch, now_us, last.live)
            plan = {
                "now_us": now_us,
                "last": arrived.last,
                "rows": taken,
                "order": order_of(self.setting.spec, self.plan.policy, last, arrived.rows, batch, self.steering),
                "tasks": 1 if small else self.plan.slices.count,
                "cuts": cuts_of(self.setting, frame, taken),
                "shedding": self.steering.decide(now_us / 1e6).to_values(),
                **upkeep_of(self.keeping, last.live, self.setting.spec, arrived.rows),
            }
            if self.repairing is not None:
                plan["repair"] = self.repairing.planned(taken, arrived.last)
            plan = self.journal.write_plan(batch, plan)
        else:
            plan = self.journal.plan(batch, attempt=2) or plan
        if self.repairing is not None:
            self.repairing.begin(plan)
        self.steering.follow(Shedding.from_values(plan["shedding"]))
        return plan

    def _job(
        self,
        batch: int,
        part: int,
        span: tuple[int | None, int | None],
        plan: Mapping[str, Any],
        entry: Entry,
        live: Live,
    ) -> Job:
        merges = plan["merges"] if part == 0 else {}
        return Job(
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
            repairs=self.setting.repairs,
            shedding=self.steering.shedding,
            bins=self.steering.bins,
            learns=self.steering.controller is not None,
            kernels=self._kernels,
            thinning=Thinning.from_values(plan.get("memory")),
        )

    @property
    def query_id(self) -> str:
        """Spark's id of the query that the state belongs to."""
        return self._state.query

    @property
    def schema(self) -> pa.Schema:
        """The schema of results: the SELECT list, and whether a row was repaired if rows may be; or of what they add up
        to.
        """
        if self.sums is not None:
            return self.sums.schema
        return marked_schema(self.program.schema) if self.setting.repairs else self.program.schema

    @property
    def _state(self) -> Commit:
        return self.last or Commit(-1, self.question)

    def _entrance(self) -> Entry:
        return opened(self.program, self.setting.max_ahead_us, self._state, self.journal)

    def _ran(self, frame: DataFrame, job: Job, entry: Entry) -> list[Row]:
        return run_job(frame, job, entry, self.program)

    def _settled(self, job: Job, entry: Entry, live: Live, rows: Sequence[Row], told: Told) -> Live:
        """Take in what tasks tell: results to `told`, counts to the entrances; the segments that are live now."""
        kept = told.take_in(rows, entry, job.now_us)
        entry.advance(job.now_us)
        gone = job.thinning.dying if job.thinning is not None else frozenset()
        expiry: Callable[[str], tuple[int, int]] = entry.expiry
        if self.repairing is not None:
            came, told.came = told.came, {}
            self.repairing.left_out(job.number, job.shedding, job.order, came, live)
            expiry = self.repairing.needed_from(entry)
        after, dying = after_batch(replace(self._state, live=live), kept, expiry, gone)
        told.dying.update(dying)
        return after

    def _tell(self, entry: Entry, watch: Stopwatch, live: Live, last: bool) -> None:
        """Write the event of the batch that was observed last."""
        if self.steering.observation is not None:
            kept = () if self.keeping is None else self.keeping.spans
            plan = replace(self.plan, shedding=self.steering.shedding, kept=kept)
            durations_s = {name.removesuffix("_s"): seconds for name, seconds in watch.seconds.items()}
            steering = self.steering
            held = (steering.recall, durations_s, steering.bins, steering.controller)
            ledger = None if self.repairing is None else self.repairing.ledger
            slices, kept_to = bytes_by_slice(live), None if self.promises is None else self.promises.report()
            around = Scene(self.setting.spec, entry.gates, *held, ledger, slices, last)
            beside = {} if self.keeping is None else self.keeping.beside
            scene = replace(around, freshness=kept_to, **beside)
            self.events.write(event_of(self.steering.observation, plan, scene))

    def _commit(self, batch: int, plan: Mapping[str, Any], entry: Entry, live: Live, told: Told) -> None:
        last = self._state
        if self.setting.output.storage is self.setting.storage:
            told.dying.update(file.name for file in told.files)
        commit = Commit(
            batch,
            self.question,
            self.query,
            self.run_name,
            plan["now_us"],
            last.results + told.results,
            gates_of(entry),
            live,
            tuple(sorted(told.dying)),
            slices=asdict(self.plan.slices),
            controller=self.steering.to_values(),
            memory=None if self.keeping is None else self.keeping.to_values(),
            ledger=None if self.repairing is None else self.repairing.to_values(),
            freshness=None if self.promises is None else self.promises.to_values(),
        )
        for name, gate in entry.gates.items():
            for rows in gate.waiting[:1]:
                self.journal.write_waiting(batch, name, rows)
        if self.repairing is not None:
            check_alone(self.setting.storage, last.batch, self._rounds)
        self.journal.write_commit(commit)
        self._rounds = 0
        if self.repairing is not None:
            self.repairing.committed()
        self.journal.forget(batch - 2, tuple(entry.gates) if entry.row_windowed else (), last.dying)
        if batch % SWEEP_EVERY == SWEEP_EVERY - 1:
            self.journal.sweep(commit)
        self.last = commit
