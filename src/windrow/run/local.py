"""The in-process runtime: push Arrow rows, step, get results.

    push ──▶ waiting rows ──step──▶ entrance ──▶ one batch ──▶ results           state stays in this process' memory

A batch is what was pushed since the last step. The multiset of all results does not depend on how rows are cut into
batches, nor on the policy or the methods. `stream_step` lets the results of a batch's first drivers leave before its
last ones have run.

>>> import pyarrow as pa, windrow
>>> rows = pa.table({"ts": pa.array([0, 1_000_000], pa.timestamp("us")), "x": [1.0, 2.0]})
>>> text = "SELECT a.x AS ax, b.x AS bx FROM a, b WHERE a.x < b.x WINDOW 5 SECONDS"
>>> query = windrow.sql(text, streams={"a": rows, "b": rows})
>>> with windrow.local(query) as join:
...     join.push("a", rows)
...     join.push("b", rows)
...     join.step().to_pylist()
[{'ax': 1.0, 'bx': 2.0}]
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any

import pyarrow as pa

from windrow.control.controller import Controller
from windrow.control.foresight import Foresight, pays
from windrow.control.observation import Arrival, Observation
from windrow.control.recall import RecallMeter
from windrow.errors import InputError, UsageError
from windrow.plan.bins import Bins
from windrow.plan.drivers import AUTO, order_of_drivers, policy_named
from windrow.plan.order import plan_query, with_alternatives
from windrow.plan.plan import Plan
from windrow.plan.shedding import ALL
from windrow.plan.turns import Load, Order
from windrow.query.builder import Join
from windrow.query.clauses import span_us
from windrow.query.spec import QuerySpec
from windrow.run.adapting import Adapting
from windrow.run.admit import NEVER_US, Entry, conform
from windrow.run.backlog import Backlog, RepairSettings, check_repairable, marked
from windrow.run.batch import run_batch
from windrow.run.buffer import Buffer
from windrow.run.counting import Clerk
from windrow.run.events import EventLog, Scene, event_of, told_bins
from windrow.run.freshness import Freshness
from windrow.run.history import History
from windrow.run.keeper import Keeper, with_memory
from windrow.run.options import SHEDS, LocalOptions, settings_of
from windrow.run.program import Program, arrow_types_of
from windrow.run.report import Clocked, Done, Report, make_report, memory_report
from windrow.run.results import result_table
from windrow.run.running import Running
from windrow.run.sifting import Sifters
from windrow.run.spill import Spill
from windrow.run.summing import Summing
from windrow.run.tally import Tallying
from windrow.run.tree import Tree, allowances_of, bound_to_mway, check_free
from windrow.run.unjoined import beside
from windrow.store.segment import Segment
from windrow.store.storage import open_storage
from windrow.store.window import LIMITED_SHARE, SPAN_SHARE, Store
from windrow.streams.replay import ReplayBatch

Inputs = Iterable[Mapping[str, Any] | ReplayBatch]


class LocalJoin:
    """A running join in this process. Made by `windrow.local`; see there for the options.

    `observation` is what the last batch did, `order` that of its drivers (None: by event time, interleaved).
    """

    def __init__(self, query: Join | QuerySpec, inputs: Inputs | None = None, **options: Any) -> None:
        asked = LocalOptions.of(options)
        spec = query.spec() if isinstance(query, Join) else query
        self.spec = spec
        policy = policy_named(asked.policy, asked.favour)
        self.plan = asked.plan or plan_query(spec, policy=policy, methods=asked.methods, shape=asked.shape)
        self._bound = bound_to_mway(asked, self.plan.policy, self.plan.is_tree)
        if self.plan.is_tree:
            check_free(self._bound)
        settings = settings_of(asked.throttle, asked.control, spec, self.plan.policy, asked.shed, SHEDS)
        if settings is not None and not self.plan.is_tree:
            self.plan = with_alternatives(spec, self.plan, asked.methods)
        self._sheds = settings is not None
        repairs = asked.shed == "repair"
        check_repairable(spec, self.plan, settings, repairs, asked.repair)
        sheds = repairs or self._sheds or self.plan.shedding != ALL
        settings = with_memory(settings, asked.memory, spec)
        self.program = Program(spec, self.plan, arrow_types_of(query, spec), sheds=sheds, repairs=repairs)
        self.allowances = allowances_of(spec, self.plan, settings, asked)
        learns = settings is not None and not self.plan.is_tree
        self.controller = Controller(spec, self.plan, settings, asked.costs) if settings and learns else None
        rest = asked.repair or RepairSettings()
        self.backlog = Backlog(self.program, rest, self.controller, asked.costs, asked.charge) if repairs else None
        self.adapting = Adapting.of(asked, self.program)
        self.foresight = Foresight.of(asked.costs, self.plan) if self.plan.policy in AUTO.values() else None
        lateness_us = max(stream.lateness_us for stream in spec.streams)
        layouts = self.program.layouts
        self.keeper = Keeper.of(spec, settings, self.controller)
        share = SPAN_SHARE if self.keeper is None else LIMITED_SHARE
        self.stores = {s.name: Store(s.name, layouts[s.name], s.window, lateness_us, share) for s in spec.streams}
        self.tree = Tree(self.program)
        self.entry = Entry(self.program, None if asked.max_ahead is None else span_us(asked.max_ahead), asked.set_aside)
        self.observation: Observation | None = None
        self.order: Order | None = None
        self.recall = RecallMeter()
        self.history = History()
        self.summing = None if spec.summary is None else Summing(spec.summary, self.program.schema, self.stores)
        self._clock, self._charge, self._methods = asked.clock, asked.charge, asked.methods
        self._spill = Spill.of(asked.result_memory)
        self._events = None if asked.events is None else EventLog(open_storage(str(asked.events)))
        self._inputs = inputs
        self._buffers = {stream.name: Buffer(asked.buffer_rows) for stream in spec.streams}
        if asked.batch_rows is not None and asked.batch_rows < 1:
            raise UsageError(f"a batch cannot take {asked.batch_rows} rows", hint="give 1 or more, or no limit")
        self._batch_rows = asked.batch_rows
        self._dropped_before = dict.fromkeys(self._buffers, 0)
        if asked.period is not None and inputs is None:
            raise UsageError("a period needs inputs", hint="give inputs, or call step when it is time")
        self._period_s = 0.0 if asked.period is None else span_us(asked.period) / 1_000_000
        trigger_s = 0.0 if asked.trigger is None else span_us(asked.trigger) / 1_000_000
        self.freshness = Freshness.of(spec, asked.stale, max(self._period_s, trigger_s))
        self._is_told = False
        self._now_s: float | None = None
        self._batches = self._results = 0
        self._seconds = self._lost = 0.0
        self._clocked = Clocked()
        self._finished = self._is_read = False

    @property
    def dropped(self) -> int:
        """Rows that found no room in a full buffer."""
        return sum(buffer.dropped for buffer in self._buffers.values())

    @property
    def schema(self) -> pa.Schema:
        """The schema of results: the SELECT list, and whether a row was repaired if rows may be."""
        return self._leave(self.program.schema.empty_table()).schema if self.summing is None else self.summing.schema

    @property
    def report(self) -> Report:
        """What the run took in, left out and found so far."""
        done = Done(self._batches, self._results, self._seconds, self._clocked.busy_share, self._spill.spilled_bytes)
        made = make_report(self.program, self.entry.gates, self.stores, done)
        dropped = {name: buffer.dropped for name, buffer in self._buffers.items()}
        made = replace(made.with_recall(self.recall, dropped), history=self.history.moments)
        if self.keeper is not None:
            made = replace(made, memory=memory_report(self.keeper, self.stores, self._lost))
        if self.backlog is not None:
            made = replace(made, repair=self.backlog.report(self.dropped))
        if self.freshness is not None:
            made = replace(made, freshness=self.freshness.report())
        made = replace(made, nodes=self.tree.report())
        if self.allowances is not None:  # what was not looked for is not sampled
            made = replace(made, recall=None, recent=None)
        return replace(made, throttle=self.plan.shedding.work) if self._sheds else made

    def push(self, stream: str, rows: pa.Table | pa.RecordBatch) -> None:
        """Give rows to a stream, to wait for the next `step`; the name of a source feeds all streams that read it."""
        self._check_open()
        table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
        if not isinstance(table, pa.Table):
            raise InputError(
                f"cannot push {type(rows).__name__}",
                place=f"stream {stream}",
                hint="push a pyarrow Table or RecordBatch",
            )
        names = [s.name for s in self.spec.streams if s.name == stream] or [
            s.name for s in self.spec.streams if s.source == stream
        ]
        if not names:
            self.spec.stream(stream)
        for name in names:
            self._buffers[name].push(conform(self.entry.gates[name], table))

    def step(self, now_s: float | None = None) -> pa.Table:
        """Join what was pushed since the last step and return the new results; `now_s` sets the batch clock."""
        self._check_read()
        return self._run(last=False, now_s=now_s)

    def reshape(self, shape: str) -> None:
        """Go on with another tree of joins, or `mway` without one, from the next step on; the results are the same."""
        self._check_read()
        check_free(self._bound or (None if self.allowances is None else "throttle"))
        plan = plan_query(self.spec, policy=self.plan.policy, methods=self._methods, shape=shape)
        self.plan = replace(plan, epoch=self.plan.epoch + 1)
        self.program = self.program.reshaped(self.plan)
        self.tree = Tree.built(self.program, {name: store.segments for name, store in self.stores.items()})

    def stream_step(self, now_s: float | None = None) -> Iterator[pa.Table]:
        """As `step`, but results leave as they are found: those of the first drivers before the last ones have run.

        The batch begins at once. It has to be read to its end before the next one; rows may be pushed meanwhile.
        """
        self._check_read()
        self._is_read = True
        return self._leaving(self._begin(last=False, now_s=now_s))

    def finish(self) -> pa.Table:
        """End of input: join what was pushed and what row windows held back; the join is closed after it."""
        self._check_read()
        results = self._run(last=True, now_s=self._now_s if self._is_told else None)
        self._finished = True
        return results

    def __iter__(self) -> Iterator[pa.Table]:
        """Results of each batch of `inputs`, then of `finish`; empty ones are left out. A replayed batch brings its own
        clock. With a period, what comes waits until one is over since the last step.
        """
        stepped_s: float | None = None
        for batch in self._inputs or ():
            for stream, rows in (self._replayed(batch) if isinstance(batch, ReplayBatch) else batch).items():
                self.push(stream, rows)
            now_s = batch.end_us / 1_000_000 if isinstance(batch, ReplayBatch) else self._clock()
            if self._period_s:
                stepped_s = now_s if stepped_s is None else stepped_s
                if now_s - stepped_s < self._period_s:
                    continue
                stepped_s = now_s
            results = self.step(now_s=now_s)
            if len(results):
                yield results
        results = self.finish()
        if len(results):
            yield results

    def _replayed(self, batch: ReplayBatch) -> dict[str, pa.Table]:
        """The rows of each stream: those of its source, which another stream may have the name of."""
        tables = batch.tables
        names = {s.name: s.source if s.source in tables else s.name for s in self.spec.streams}
        return {stream: tables[name] for stream, name in names.items() if name in tables}

    def __enter__(self) -> LocalJoin:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._finished = True

    def _run(self, last: bool, now_s: float | None) -> pa.Table:
        batch = self._begin(last, now_s)
        if self.summing is None or batch.tallying is None:
            results = self._spill.table(self.program, batch.blocks)
            repaired = self._end(batch, len(results))
            return pa.concat_tables([self._leave(results), *(self._leave(rows, True) for rows in repaired)])
        final = self._summed(self.summing, batch, batch.tallying)
        self._end(batch, batch.tallying.results)
        return final

    def _summed(self, summing: Summing, batch: Running, tallying: Tallying) -> pa.Table:
        """The aggregates that have become final; each block of results has come to `tallying` when it is here."""
        for _ in batch.blocks:
            continue
        shedding, gates = self.plan.shedding, self.entry.gates.values()
        firsts = [int(segment.time_us[0]) for segment in batch.fresh.values() if len(segment)]
        lets_go = self.keeper is not None and self.keeper.retained.lets_go
        summing.begin(min(firsts, default=None), max(gate.newest_us for gate in gates), shedding, lets_go)
        summing.take((tallying.done(),), shedding)
        return summing.final(None if batch.last else min(gate.watermark_us for gate in gates))

    def _leaving(self, batch: Running) -> Iterator[pa.Table]:
        found = 0
        if self.summing is not None and batch.tallying is not None:
            yield self._summed(self.summing, batch, batch.tallying)
            found = batch.tallying.results
        for block in batch.blocks:
            results = result_table(self.program, (block,))
            found += len(results)
            handed_s = time.perf_counter()
            yield self._leave(results)
            batch.waited_s += time.perf_counter() - handed_s
        self._is_read = False
        for rows in self._end(batch, found):
            yield self._leave(rows, True)

    def _leave(self, results: pa.Table, repaired: bool = False) -> pa.Table:
        return results if self.backlog is None else marked(results, repaired)

    def _begin(self, last: bool, now_s: float | None) -> Running:
        """Let the pushed rows in and plan the batch; nothing is probed yet."""
        started_s = time.perf_counter()
        self._is_told = now_s is not None
        now_s = self._clock() if now_s is None else now_s
        decider = self.controller or self.allowances
        if decider is not None:
            self.plan = replace(self.plan, shedding=decider.decide(now_s))
        shedding = self.plan.shedding
        before = {name: gate.counts.rows for name, gate in self.entry.gates.items()}
        most_rows = None if last else self._batch_rows
        pushed = {name: buffer.take(most_rows) for name, buffer in self._buffers.items()}
        fresh = self.entry.admit(pushed, int(now_s * 1_000_000), last, shedding=shedding, batch=self._batches)
        stored = {name: tuple(store.segments) for name, store in self.stores.items()}
        loads = {
            name: Load(len(fresh[name]), len(store), self.entry.gates[name].counts.rows, len(stored[name]))
            for name, store in self.stores.items()
        }
        self.order = self._order(loads)
        retained = None if self.keeper is None else self.keeper.retained
        sifters = None if self._events is None or self.plan.is_tree else Sifters(self.program, self._batches)
        learns = self.controller is not None
        tallying = None if self.spec.summary is None else Tallying(self.program, self.spec.summary)
        clerk = Clerk(self.plan.paths, self._bins(), shedding, retained, tallying, sifters, learns)
        made: dict[str, Segment] = {}
        blocks = run_batch(self.program, {**stored, **self.tree.stored}, fresh, self.order, shedding, clerk, made)
        if self.freshness is None:
            return Running(now_s, started_s, before, fresh, clerk, blocks, made, last, tallying)
        delivered = self.freshness.begin(self._batches, now_s, fresh, self.stores)
        return Running(now_s, started_s, before, fresh, clerk, delivered.of(blocks), made, last, tallying, delivered)

    def _bins(self) -> Mapping[str, tuple[Bins, ...]]:
        """By which bins the lags of results are counted: those of the controller, or of whoever watches."""
        if self.controller is not None:
            return self.controller.bins
        return {} if self._events is None or self.plan.is_tree else told_bins(self.spec, self.plan)

    def _order(self, loads: Mapping[str, Load]) -> Order | None:
        if self.foresight is None:
            return order_of_drivers(self.plan.policy, loads, self._results, self._batches)
        before = self.observation
        if before is not None and not pays(before.batch, before.busy_s):
            return self.order
        prospects = self.foresight.prospects()
        return order_of_drivers(self.plan.policy, loads, self._results, self._batches, prospects)

    def _end(self, batch: Running, results: int) -> tuple[pa.Table, ...]:
        """Store the new rows, let go of the old ones, and write down what the batch did; returns what was repaired."""
        if self.backlog is not None:
            stored = {name: len(store) for name, store in self.stores.items()}
            self.backlog.enter(self._batches, self.plan.shedding, self.order, batch.fresh, stored)
        merged = sum(store.merged_rows for store in self.stores.values())
        self._remember(batch.fresh)
        self.tree.keep(batch.made, self.entry)
        merged = sum(store.merged_rows for store in self.stores.values()) - merged
        repaired = self._observe(batch, results, merged)
        self._batches += 1
        self._results += results
        self._seconds += batch.busy_s
        return repaired

    def _remember(self, fresh: Mapping[str, Segment]) -> None:
        """What is needed later stays: the new rows and those still in their windows, as far as there is memory."""
        ends = {name: self.entry.expiry(name) for name in self.stores}
        for name, store in self.stores.items():
            store.expire(*(ends[name] if self.backlog is None else self.backlog.needed_from(name, *ends[name])))
            store.add(fresh[name] if self.keeper is None else self.keeper.compact(fresh[name]))
        if self.keeper is not None:
            self.plan = replace(self.plan, kept=self.keeper.settle(self.stores, fresh, ends))

    def _observe(self, batch: Running, results: int, merged: int) -> tuple[pa.Table, ...]:
        """Write down what the batch did, tell the controller, and repair what there is time for."""
        now_s, busy_s = batch.now_s, batch.busy_s
        arrivals = {
            name: Arrival(
                rows=gate.counts.rows - batch.before[name],
                late=gate.counts.late,
                stored=len(self.stores[name]),
                stored_bytes=self.stores[name].nbytes,
                watermark_us=None if gate.watermark_us == NEVER_US else gate.watermark_us,
                dropped=self._buffers[name].dropped - self._dropped_before[name],
            )
            for name, gate in self.entry.gates.items()
        }
        self._dropped_before = {name: buffer.dropped for name, buffer in self._buffers.items()}
        span_s = 0.0 if self._now_s is None else now_s - self._now_s
        self._now_s = now_s
        waiting = {} if self._batch_rows is None else {name: len(buffer) for name, buffer in self._buffers.items()}
        joined = batch.clerk.joined().settled()
        self._lost += sum(tally.lost for held in (joined.sampled, joined.others) for tally in held.values())
        done = Observation(self._batches, now_s, span_s, busy_s, arrivals, joined, waiting, results, merged)
        self.observation = done if self._charge is None else self._charge(done)
        repaired: tuple[pa.Table, ...] = ()
        if self.backlog is not None:
            held = {name: store.segments for name, store in self.stores.items()}
            rows, self.observation = self.backlog.work_off(self.observation, held, batch.last)
            self._results += len(rows)
            repaired = (rows,)
        self.recall.observe(self.observation)
        if self.freshness is not None and batch.delivered is not None:
            # Where somebody else's clock is told, and work is not charged to it, a batch takes no time of it.
            took_s = 0.0 if self._is_told and self._charge is None else self.observation.busy_s
            newest_us = max(gate.newest_us for gate in self.entry.gates.values())
            self.freshness.observe(self._batches, now_s, took_s, newest_us, batch.delivered)
        self.history.add(self.observation, self.plan.shedding.work)
        if not batch.last:
            self._clocked = self._clocked.after(span_s, self.observation.busy_s)
        decider = self.controller or self.allowances
        if decider is not None:
            decider.observe(self.observation)
        if self._events is not None:
            ledger = None if self.backlog is None else self.backlog.ledger
            known = (self.entry.gates, self.recall, {"join": busy_s}, self._bins(), self.controller, ledger)
            promised = None if self.freshness is None else self.freshness.report()
            rest = {**beside(self._buffers, self.stores, self._lost), "last": batch.last, "freshness": promised}
            self._events.write(event_of(self.observation, self.plan, Scene(self.spec, *known, **rest)))
        if self.adapting is not None:
            self._use(self.adapting.after(self.observation, self.plan))
        if self.foresight is not None and pays(self.observation.batch, self.observation.busy_s):
            self.foresight = self.foresight.observe(self.observation)
        return repaired

    def _use(self, plan: Plan) -> None:
        """Go on under a plan with other methods."""
        if plan is not self.plan:
            self.plan, self.program = plan, self.program.under(plan)
            if self.backlog is not None:
                self.backlog.program = self.program
            if self.controller is not None:
                self.controller.use_methods(plan)

    def _check_open(self) -> None:
        if self._finished:
            raise UsageError("this join is finished", hint="make a new one with windrow.local(query)")

    def _check_read(self) -> None:
        self._check_open()
        if self._is_read:
            raise UsageError("a batch is still being read", hint="read what stream_step gave to its end first")


def local(query: Join | QuerySpec, inputs: Inputs | None = None, **options: Any) -> LocalJoin:
    """A join in this process.

    `inputs` (optional) is an iterable of batches, each a mapping from stream to rows, such as
    `windrow.streams.replay.Replay` gives; with it the join itself is an iterable of results. The options, such as
    `throttle="auto"` or `memory="500MB"`, are those of `windrow.run.options.LocalOptions`.
    """
    return LocalJoin(query, inputs, **options)
