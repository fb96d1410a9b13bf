"""Events: what each batch did, one small JSON file a batch, for whoever watches a join while it runs or afterwards.

    batch k done ── event_of ──▶ events/000000012.json ──▶ read_events: reports, pages, tests; by number, one stream

A batch that is run again replaces its event, so the stream tells each batch once. Times ending in `_s` are seconds,
those ending in `_us` microseconds of event time since 1970, `bytes` are bytes.

    batch, now_s, span_s, busy_s     its number, the clock it began at, seconds since the one before, seconds it took
    written_s, last                  the time of day it was written at; whether the input ends with it
    durations_s                      of `busy_s`, by phase
    streams                          of each: rows, late, bad, ahead, filtered, dropped, let_go so far; stored,
                                     stored_bytes, newest_us, watermark_us, rows_per_s
    slices                           of each, where windows are sliced: slice and bytes, the largest `MOST_SLICES`
    results, merged                  results found, rows copied into merged segments
    kept                             what of the windows stays in memory (`windrow.plan.kept`); empty: everything
    repaired                         what it made up for besides: pieces, their results, the seconds they took
    ledger                           what waits to be made up for, what was, what was forgotten; None if nothing is
    recall                           what was delivered of all results (`windrow.control.recall`), `whole` and `recent`
    unjoined                         rows so far that recall does not count (`windrow.run.unjoined`)
    shedding                         what was left out (`windrow.plan.shedding`); `throttle` is its share of the work
    work                             what probing did, path by path (`windrow.control.observation.Joined`)
    freshness                        how promises were kept so far (`windrow.run.freshness`); None where there are none
    learned                          for each driver and store: edges of the lag bins, results a row by bin, and for how
                                     many rows that is known
    totals                           all events so far, added up (`windrow.run.totals`)
    query, plan                      what is asked, and how it is done, where they are others than the event before
                                     tells, and every `TOLD_EVERY` batches; else None

An event holds counts, times, names of streams and columns, and the conditions of the query; values of rows it does not.
Its size depends on the query alone, not on how long the join runs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from windrow.control.controller import Controller
from windrow.control.ledger import Ledger
from windrow.control.observation import Observation
from windrow.control.recall import RecallMeter
from windrow.errors import StateError, WindrowError
from windrow.plan.bins import MOST_BINS, Bins, lag_bins
from windrow.plan.plan import Plan, path_name
from windrow.query.expression import streams_of
from windrow.query.spec import UNBOUNDED, QuerySpec
from windrow.run.admit import NEVER_US, Gate
from windrow.run.freshness import FreshnessReport
from windrow.run.totals import totals_after
from windrow.run.unjoined import Unjoined
from windrow.store.storage import Storage

FORMAT_VERSION = 2
FOLDER = "events"
TOLD_EVERY = 64
MOST_SLICES = 64

Event = dict[str, Any]


@dataclass(frozen=True)
class Scene:
    """The join around a batch, as its event tells it; `bins` are the lag bins of each path, `slices` the bytes of each
    stream's window by slice. So far `overflowed` rows of each stream found no room in its buffer, and a memory limit
    let others go, with about `lost_results`.
    """

    spec: QuerySpec
    gates: Mapping[str, Gate]
    recall: RecallMeter
    durations_s: Mapping[str, float]
    bins: Mapping[str, Sequence[Bins]] = field(default_factory=dict)
    controller: Controller | None = None
    ledger: Ledger | None = None
    slices: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    last: bool = False
    freshness: FreshnessReport | None = None
    overflowed: Mapping[str, int] = field(default_factory=dict)
    let_go: Mapping[str, int] = field(default_factory=dict)
    lost_results: float = 0.0

    @property
    def unjoined(self) -> Unjoined:
        """The rows so far that recall does not count."""
        counts = (vars(gate.counts) for gate in self.gates.values())
        return Unjoined.of(counts, sum(self.overflowed.values()), sum(self.let_go.values()), self.lost_results)


def event_of(done: Observation, plan: Plan, scene: Scene) -> Event:
    """The event of a batch that ran by `plan`."""
    streams = {
        name: {
            **vars(scene.gates[name].counts),
            "dropped": scene.gates[name].counts.dropped + scene.overflowed.get(name, 0),
            "let_go": scene.let_go.get(name, 0),
            "stored": arrival.stored,
            "stored_bytes": arrival.stored_bytes,
            "newest_us": _known(scene.gates[name].newest_us),
            "watermark_us": arrival.watermark_us,
            "rows_per_s": arrival.rows / done.span_s if done.span_s > 0 else None,
        }
        for name, arrival in done.arrivals.items()
    }
    return {
        "version": FORMAT_VERSION,
        "batch": done.batch,
        "now_s": done.now_s,
        "span_s": done.span_s,
        "busy_s": done.busy_s,
        "last": scene.last,
        "durations_s": dict(scene.durations_s),
        "streams": streams,
        "slices": {name: _largest(held) for name, held in scene.slices.items()},
        "results": done.results,
        "merged": done.merged,
        "repaired": asdict(done.repaired),
        "ledger": None if scene.ledger is None else _ledger(scene.ledger),
        "recall": {
            "whole": scene.recall.whole.to_values(),
            "recent": scene.recall.recent.to_values(),
        },
        "unjoined": scene.unjoined.to_values(),
        "throttle": plan.shedding.work,
        "shedding": plan.shedding.to_values(),
        "work": done.joined.to_values(),
        "freshness": None if scene.freshness is None else asdict(scene.freshness),
        "learned": None if scene.controller is None else _learned(scene.controller),
        "kept": [span.to_values() for span in plan.kept],
        "query": _query(scene.spec, scene.bins),
        "plan": {name: value for name, value in asdict(plan).items() if name not in ("shedding", "kept")},
    }


def told_bins(spec: QuerySpec, plan: Plan) -> dict[str, tuple[Bins, ...]]:
    """The lag bins by which results are counted where no controller asks for any."""
    behind = plan.policy != "timestamp" or any(stream.lateness_us > 0 for stream in spec.streams)
    return {path.name: lag_bins(spec, path.driver, path.targets, MOST_BINS, behind) for path in plan.paths}


class EventLog:
    """Writes the events of one run below a storage's address, and keeps their totals."""

    def __init__(self, storage: Storage, clock: Callable[[], float] = time.time) -> None:
        self.storage = storage
        self._clock = clock
        self._told: dict[str, Any] = {"query": None, "plan": None}
        self._batch: int | None = None
        self._before: Mapping[str, Any] | None = None
        self._totals: Mapping[str, Any] | None = None

    def write(self, event: Event) -> None:
        """Write an event, in the place of an earlier one of the same batch; a query or plan told before is not told
        again.
        """
        again = event["batch"] % TOLD_EVERY == 0
        told = {name: None if event[name] == held and not again else event[name] for name, held in self._told.items()}
        whole = {**event, **told, "written_s": self._clock(), "totals": self._added(event)}
        self._told = {name: event[name] for name in self._told}
        self.storage.put(event_name(event["batch"]), json.dumps(whole, separators=(",", ":")).encode())

    def _added(self, event: Event) -> dict[str, Any]:
        """The totals with this event: after those of the batch before, also where another process wrote them."""
        batch = event["batch"]
        if self._batch is None:
            self._before = self._written_totals(batch - 1)
        elif batch != self._batch:
            self._before = self._totals if batch == self._batch + 1 else None
        targets = {
            path_name(path["driver"], path["alternative"]): [step["stream"] for step in path["steps"]]
            for path in event["plan"]["paths"]
        }
        totals = totals_after(self._before, event, targets)
        self._batch, self._totals = batch, totals
        return totals

    def _written_totals(self, batch: int) -> Mapping[str, Any] | None:
        if batch < 0:
            return None
        try:
            totals: Mapping[str, Any] = read_event(self.storage, event_name(batch))["totals"]
        except (WindrowError, KeyError):
            return None
        return totals


def read_events(storage: Storage, from_batch: int = 0) -> Iterator[Event]:
    """The events of batches from a number on, in their order."""
    for name in storage.list(FOLDER):
        number = name.rpartition("/")[2].removesuffix(".json")
        if number.isdecimal() and int(number) >= from_batch:
            yield read_event(storage, name)


def read_event(storage: Storage, name: str) -> Event:
    """One event by its name; a damaged one, or one of another version, is refused."""
    try:
        event = json.loads(storage.get(name))
        version = event["version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        message = f"the event is damaged: {type(error).__name__} {error}"
        raise StateError(message, place=storage.place(name), hint="remove the file; the others are whole") from error
    if version != FORMAT_VERSION:
        message = f"the event has format version {version}, this is {FORMAT_VERSION}"
        raise StateError(message, place=storage.place(name), hint="read it with the version that wrote it")
    return dict(event)


def event_name(batch: int) -> str:
    """Where the event of a batch is.

    >>> event_name(12)
    'events/000000012.json'
    """
    return f"{FOLDER}/{batch:09d}.json"


def _known(time_us: int) -> int | None:
    return None if time_us == NEVER_US else time_us


def _largest(held: Mapping[int, int]) -> list[list[int]]:
    chosen = sorted(held, key=lambda place: -held[place])[:MOST_SLICES]
    return [[place, held[place]] for place in sorted(chosen)]


def _ledger(ledger: Ledger) -> dict[str, Any]:
    named = {"open": ledger.open, "done": ledger.repaired, "forgotten": ledger.forgotten}
    return {**{name: asdict(tally) for name, tally in named.items()}, "oldest_us": ledger.oldest_us}


def _query(spec: QuerySpec, bins: Mapping[str, Sequence[Bins]]) -> dict[str, Any]:
    """What is asked: streams with their windows, conditions, result columns, and how lags are counted."""
    return {
        "streams": {
            stream.name: {
                "source": stream.source,
                "time": stream.time,
                "window_us": None if stream.window.span_us == UNBOUNDED else stream.window.span_us,
                "window_rows": stream.window.rows,
                "lateness_us": stream.lateness_us,
                "idle_us": stream.idle_us,
                "freshness_us": stream.freshness_us,
            }
            for stream in spec.streams
        },
        "conjuncts": [{"text": str(each), "streams": sorted(streams_of(each))} for each in spec.conjuncts],
        "outputs": [output.name for output in spec.outputs],
        "edges": {path: [each.edges.tolist() for each in held] for path, held in bins.items()},
    }


def _learned(controller: Controller) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for driver, held in controller.learned.items():
        edges = dict(zip(controller.paths[driver], controller.bins[driver], strict=True))
        found[driver] = {
            target: {
                "edges": edges[target].edges.tolist(),
                "results_a_row": scores.tolist(),
                "rows": held.drivers,
            }
            for target, scores in held.scores({name: cut.widths.tolist() for name, cut in edges.items()}).items()
        }
    return found
