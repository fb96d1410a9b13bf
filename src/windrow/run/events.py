"""Events: what each batch did, one small JSON file a batch, for whoever watches a join while it runs or afterwards.

    batch k done ── event_of ──▶ events/000000012.json ──▶ read_events: reports, pages, tests; by number, one stream

A batch that is run again replaces its event, so the stream tells each batch once. Times ending in `_s` are seconds,
those ending in `_us` microseconds of event time since 1970, `bytes` are bytes.

    batch, now_s, span_s, busy_s     its number, the clock it began at, seconds since the one before, seconds it took
    durations_s                      of that, by phase
    streams                          of each: rows, late, bad, ahead, filtered, dropped so far; stored, stored_bytes,
                                     watermark_us, rows_per_s
    results, merged                  results found, rows copied into merged segments
    kept                             what of the windows stays in memory (`windrow.plan.kept`); empty: everything
    repaired                         what it made up for besides: pieces, their results, the seconds they took
    shedding                         what was left out (`windrow.plan.shedding`); `throttle` is its share of the work
    work                             what probing did, path by path (`windrow.control.observation.Joined`)
    learned                          for each driver and store: edges of the lag bins, results a row by bin
    plan                             the plan, where it is another than the event before tells; else None

An event holds counts, times, names of streams and columns, and the conditions of the query; values of rows it does not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from windrow.control.controller import Controller
from windrow.control.observation import Observation
from windrow.errors import StateError
from windrow.plan.plan import Plan
from windrow.run.admit import Counts
from windrow.store.storage import Storage

FORMAT_VERSION = 1
FOLDER = "events"

Event = dict[str, Any]


def event_of(
    done: Observation,
    plan: Plan,
    counts: Mapping[str, Counts],
    durations_s: Mapping[str, float],
    controller: Controller | None = None,
) -> Event:
    """The event of a batch that ran by `plan`; `counts` say what became of the rows of each stream so far."""
    streams = {
        name: {
            **vars(counts[name]),
            "stored": arrival.stored,
            "stored_bytes": arrival.stored_bytes,
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
        "durations_s": dict(durations_s),
        "streams": streams,
        "results": done.results,
        "merged": done.merged,
        "repaired": asdict(done.repaired),
        "throttle": plan.shedding.throttle,
        "shedding": plan.shedding.to_values(),
        "work": done.joined.to_values(),
        "learned": None if controller is None else _learned(controller),
        "kept": [span.to_values() for span in plan.kept],
        "plan": {name: value for name, value in asdict(plan).items() if name not in ("shedding", "kept")},
    }


class EventLog:
    """Writes the events of one run below a storage's address."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._plan: Any = None

    def write(self, event: Event) -> None:
        """Write an event, in the place of an earlier one of the same batch; a plan told before is not told again."""
        told = {**event, "plan": None if event["plan"] == self._plan else event["plan"]}
        self._plan = event["plan"]
        self.storage.put(event_name(event["batch"]), json.dumps(told, separators=(",", ":")).encode())


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
    except (ValueError, KeyError, TypeError) as error:
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


def _learned(controller: Controller) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for driver, held in controller.learned.items():
        edges = dict(zip(controller.paths[driver], controller.bins[driver], strict=True))
        found[driver] = {
            target: {"edges": edges[target].edges.tolist(), "results_a_row": scores.tolist()}
            for target, scores in held.scores().items()
        }
    return found
