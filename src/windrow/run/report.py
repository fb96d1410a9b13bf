"""The report: what a run took in, left out, found, and needed.

Times are seconds of the process' clock, sizes bytes. `steps` says for each driver what its path searches by, and the
pairs it looked at. `busy_share` is the part of the batches' own time, from the first batch to the last, that joining
took: in a replay, of the time that was recorded. Where it is small, the processor may sleep between batches. `recall`
is the share of results that was delivered, in the whole run, `recent` in its last batches; `unjoined` counts the rows
that are not in it, because they reached no window or not for all of their time (`windrow.run.unjoined`).
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from windrow.control.recall import Recall, RecallMeter, Recent
from windrow.run.admit import NEVER_US, Gate
from windrow.run.backlog import RepairReport
from windrow.run.freshness import FreshnessReport
from windrow.run.history import Moment
from windrow.run.keeper import Keeper
from windrow.run.program import Program
from windrow.run.tree import NodeReport
from windrow.run.unjoined import Unjoined
from windrow.store.window import Store


@dataclass(frozen=True, slots=True)
class StreamReport:
    """One stream: rows by what became of them, and what its window holds now; `let_go` were given up for memory."""

    rows: int
    late: int
    bad: int
    too_far_ahead: int
    filtered: int
    dropped: int
    waiting: int
    stored: int
    stored_bytes: int
    let_go: int
    segments: int
    watermark_us: int | None


@dataclass(frozen=True, slots=True)
class StepReport:
    """One step of a driver's path."""

    driver: str
    store: str
    method: str
    why: str
    compared: int
    proposed: int
    matched: int


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """Windows under a limit: bytes of rows and indexes now, and the most there were after a batch; rows let go before
    their time, and about how many results they would have given. `crowded` batches alone were larger than the limit.
    """

    limit_bytes: int
    held_bytes: int
    largest_bytes: int
    let_go: int
    lost_results: float
    crowded: int


@dataclass(frozen=True, slots=True)
class Clocked:
    """How long batches took, and how far the batch clock went meanwhile; the first batch only starts the clock.

    >>> Clocked().after(0.0, 5.0).after(1.0, 0.25).after(1.0, 0.5).busy_share
    0.375
    """

    span_s: float = 0.0
    busy_s: float = 0.0

    def after(self, span_s: float, busy_s: float) -> Clocked:
        """With one more batch, so long after the one before."""
        return self if span_s <= 0 else Clocked(self.span_s + span_s, self.busy_s + busy_s)

    @property
    def busy_share(self) -> float | None:
        """The part of the time that was busy; above 1 the batches do not keep up."""
        return self.busy_s / self.span_s if self.span_s else None


@dataclass(frozen=True, slots=True)
class Done:
    """What a run did in all."""

    batches: int
    results: int
    seconds: float
    busy_share: float | None
    spilled_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """A run so far; `throttle` is the share of the full work done of late, None where all is; `repair` says what became
    of the rest, where it comes later; `freshness` how promises were kept, where there are any; `nodes` what the inner
    nodes of a tree of joins hold; `history` has the last batches, for `plot`; `spilled_bytes` are results that were too
    many for memory and lie in files.
    """

    policy: str
    batches: int
    results: int
    seconds: float
    faults: int
    peak_memory_bytes: int
    streams: dict[str, StreamReport]
    steps: tuple[StepReport, ...] = field(default=())
    throttle: float | None = None
    busy_share: float | None = None
    memory: MemoryReport | None = None
    recall: Recall | None = None
    recent: Recent | None = None
    repair: RepairReport | None = None
    freshness: FreshnessReport | None = None
    spilled_bytes: int = 0
    history: tuple[Moment, ...] = field(default=(), repr=False)
    nodes: dict[str, NodeReport] = field(default_factory=dict)

    @property
    def unjoined(self) -> Unjoined:
        """The rows that recall does not count."""
        late, bad, ahead, dropped, let_go = (
            sum(getattr(stream, name) for stream in self.streams.values())
            for name in ("late", "bad", "too_far_ahead", "dropped", "let_go")
        )
        return Unjoined(late, bad, ahead, dropped, let_go, 0.0 if self.memory is None else self.memory.lost_results)

    def with_recall(self, meter: RecallMeter, overflowed: Mapping[str, int]) -> Report:
        """The report with what a meter says, and rows that found no room before they reached the join."""
        streams = {name: replace(s, dropped=s.dropped + overflowed[name]) for name, s in self.streams.items()}
        return replace(self, streams=streams, recall=meter.whole, recent=meter.recent)

    def to_dict(self) -> dict[str, Any]:
        """As plain values, without the history."""
        values = {name: value for name, value in asdict(replace(self, history=())).items() if name != "history"}
        return {**values, "unjoined": self.unjoined.to_values()}

    def plot(self) -> Any:
        """The run's last batches as a Plotly figure: rows, results, how busy it was, what the windows held."""
        from windrow.run.drawing import figure

        return figure(self.history)

    def _repr_html_(self) -> str:
        from windrow.query.markup import table, titled

        columns = ("rows", "late", "bad", "too_far_ahead", "filtered", "dropped", "let_go", "stored", "stored_bytes")
        streams = [(name, *(getattr(stream, column) for column in columns)) for name, stream in self.streams.items()]
        steps = [(step.driver, step.store, step.method, step.compared, step.proposed, step.matched, step.why)
                 for step in self.steps]  # fmt: skip
        head = ("a new row of", "probed", "by", "compared", "proposed", "matched", "because")
        return titled(str(self), table(("stream", *columns), streams), table(head, steps))

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)

    def __str__(self) -> str:
        rows = sum(stream.rows for stream in self.streams.values())
        late = sum(stream.late for stream in self.streams.values())
        bad = sum(stream.bad + stream.too_far_ahead for stream in self.streams.values())
        taken = f"{rows:,} rows in ({late:,} late, {bad:,} bad)"
        busy = "" if self.busy_share is None else f", busy {100 * self.busy_share:.2g} % of the time"
        done = f"{taken}, {self.batches:,} batches, {self.results:,} results, {self.seconds:.1f} s{busy}"
        if self.freshness is not None and self.freshness.suppressed:
            done += f", {self.freshness.suppressed:,} suppressed as stale"
        if self.spilled_bytes:
            done += f", {self.spilled_bytes / 1e6:,.1f} MB of results spilled"
        unjoined = self.unjoined
        shed = "" if self.recall is None or self.recall.is_exact else f", recall {self.recall}"
        beside = f"; not counting {unjoined}" if shed or unjoined.dropped or unjoined.let_go else ""
        return f"{done}{shed}{beside}" if unjoined.rows else f"{done}{shed}"


def make_report(program: Program, gates: Mapping[str, Gate], stores: Mapping[str, Store], done: Done) -> Report:
    """The report of a run from its parts."""
    streams = {}
    for name, gate in gates.items():
        counts, store = gate.counts, stores[name]
        streams[name] = StreamReport(
            rows=counts.rows,
            late=counts.late,
            bad=counts.bad,
            too_far_ahead=counts.ahead,
            filtered=counts.filtered,
            dropped=counts.dropped,
            waiting=sum(len(table) for table in gate.waiting),
            stored=len(store),
            stored_bytes=store.nbytes,
            let_go=store.let_go,
            segments=len(store.segments),
            watermark_us=None if gate.watermark_us == NEVER_US else gate.watermark_us,
        )
    steps = []
    for path in program.plan.paths:
        probes = program.steps[path.name]
        if path.alternative and not any(probe.work.compared + probe.work.proposed for probe in probes):
            continue
        for planned, probe in zip(path.steps, probes, strict=True):
            work = probe.work
            steps.append(
                StepReport(
                    path.name, planned.stream, planned.method, planned.why, work.compared, work.proposed, work.matched
                )
            )
    faults = int(program.evaluator.faults[0])
    return Report(
        policy=program.plan.policy,
        batches=done.batches,
        results=done.results,
        seconds=done.seconds,
        faults=faults,
        peak_memory_bytes=peak_memory_bytes(),
        streams=streams,
        steps=tuple(steps),
        busy_share=done.busy_share,
        spilled_bytes=done.spilled_bytes,
    )


def memory_report(keeper: Keeper, stores: Mapping[str, Store], lost_results: float) -> MemoryReport:
    """How a memory limit was kept."""
    return MemoryReport(
        keeper.limit_bytes,
        sum(store.memory_bytes for store in stores.values()),
        keeper.largest_bytes,
        sum(store.let_go for store in stores.values()),
        round(lost_results, 1),
        keeper.crowded,
    )


def peak_memory_bytes() -> int:
    """The largest resident size of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
