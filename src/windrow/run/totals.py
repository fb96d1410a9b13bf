"""Totals: what all events of a run so far add up to, so that whoever comes late need not read them all.

    totals of event k-1 ── totals_after(event k) ──▶ totals of event k, told in it

    since, batches      the batch they begin with, and how many there are
    results, repaired   results found, and among them those that were made up for
    busy_s, lost        seconds that batches took; results missed because rows were let go for memory, about
    first_us            of each stream, the newest event time after the first batch that brought any rows
    paths               of each path: its targets, drivers, results; for each step the counts of
                        `windrow.control.observation.StepTally` and `windrow.control.sift.Sift`, and results by lag bin

They begin anew with a query that is another than before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

Values = Mapping[str, Any]
COUNTS = ("probes", "searched", "candidates", "matches")
SIFTED = ("passed", "through", "alone")


def totals_after(before: Values | None, event: Values, targets: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The totals with one more event; `targets` are the streams that the steps of each path visit."""
    held: Values = before or {"since": event["batch"], "first_us": {}, "paths": {}}
    work = event["work"]
    tallies = {path: [part[path] for part in (work["sampled"], work["others"]) if path in part] for path in targets}
    paths = {path: _path(held["paths"].get(path), targets[path], parts) for path, parts in tallies.items() if parts}
    for path, sifts in work["sifts"].items():
        _sift(paths[path]["steps"], sifts)
    repaired = event["repaired"]["results"]
    first_us = {name: s["newest_us"] for name, s in event["streams"].items() if s["newest_us"] is not None}
    return {
        "since": held["since"],
        "batches": held.get("batches", 0) + 1,
        "results": held.get("results", 0) + event["results"] + repaired,
        "repaired": held.get("repaired", 0) + repaired,
        "busy_s": held.get("busy_s", 0.0) + event["busy_s"],
        "lost": held.get("lost", 0.0) + sum(part["lost"] for parts in tallies.values() for part in parts),
        "first_us": {**first_us, **held["first_us"]},
        "paths": {**held["paths"], **paths},
    }


def _path(before: Values | None, targets: Sequence[str], parts: Sequence[Values]) -> dict[str, Any]:
    """A path's totals with what a batch did on it; those of other steps than now are left behind."""
    old = before if before is not None and list(before["targets"]) == list(targets) else None
    steps = [dict(step) for step in old["steps"]] if old else [_nothing() for _ in targets]
    for part in parts:
        for step, counts in zip(steps, part["steps"], strict=False):
            step.update({name: step[name] + counts[name] for name in COUNTS})
        for step, lags in zip(steps, part["lags"], strict=False):
            step["lags"] = _added(step["lags"], lags)
    return {
        "targets": list(targets),
        "drivers": (old["drivers"] if old else 0) + sum(part["drivers"] for part in parts),
        "results": (old["results"] if old else 0) + sum(part["results"] for part in parts),
        "steps": steps,
    }


def _sift(steps: Sequence[dict[str, Any]], sifts: Sequence[Values]) -> None:
    for step, sift in zip(steps, sifts, strict=False):
        step["met"] += sift["met"]
        step["pairs"] += sift["pairs"]
        step.update({name: _added(step[name], sift[name]) for name in SIFTED})


def _nothing() -> dict[str, Any]:
    return {**dict.fromkeys(COUNTS, 0), "lags": [], "met": 0, "pairs": 0, **{name: [] for name in SIFTED}}


def _added(one: Sequence[float], two: Sequence[float]) -> list[float]:
    return [round(a + b, 3) for a, b in zip_longest(one, two, fillvalue=0)]
