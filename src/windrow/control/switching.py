"""By which method each step is probed, as it pays: what it has taken, and what it would take by another.

    a batch: probes P, pairs in reach R, matches M, new rows N of the target, merged rows

    loop      what comes on top + P · probe + R · candidate + M · match
    an index  what comes on top + P · probe + R · share · candidate + M · match + a build + (N + merged) · a row indexed

`share` is how many of the pairs in reach an index proposes: few where keys are many, half where there are two. It is
known once an index has been in use; before, the share of matches is the best guess, which makes indexes look good, so
that one is tried. What comes on top of the table's costs (a call, each segment) has been seen with a method, or is
taken to be what it is with the present one; so has how much longer than that an index takes to be made. Indexes cost
new rows, not probes, and a batch of few rows not much less than one of many: where many rows come that few probe, a
loop is the better one. That is the asymmetric join of window-joins (section 4.1), decided step by step.

A method is changed when another is predicted to take a tenth less, at most every few batches. Results do not depend on
the method, and nothing is rebuilt: a segment makes its index when it is first asked for.

>>> from windrow.plan.work import REFERENCE
>>> known = Known(probes=10, pairs=1e6, matches=100, rows=1e5, merged=1e5)
>>> known.predicted_s("loop", REFERENCE) < known.predicted_s("hashed", REFERENCE)         # ten probes of many new rows
True
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from windrow.control.observation import Observation, StepTally
from windrow.plan.plan import Plan, Step
from windrow.plan.work import WorkCosts

INDEXED = ("hashed", "sorted")
COMPARED = ("loop", *INDEXED)
"""The methods that are weighed against each other; a step that is probed by another one stays as it is."""
FADING = 0.7
CALL_S, MOST_OFF = 1e-4, 5.0
BUILD_S = 4e-5
"""What a batch's index takes whatever is in it."""
SLOWLY = 0.05
GAIN = 0.9
SURE_GAIN, SURE_S = 0.5, 5e-3
"""When nobody asked for changes: half the time, and so many seconds a batch."""

Place = tuple[str, int]
"""A step: its path's name, and its number."""


@dataclass(frozen=True, slots=True)
class InUse:
    """What is known of a method on a step: pairs in reach and candidates while it was in use, the seconds of a batch
    beyond those of the table, and how many times as long as by the table its index takes.
    """

    pairs: float = 0.0
    candidates: float = 0.0
    over_s: float = 0.0
    slowness: float = 1.0


@dataclass(frozen=True)
class Known:
    """What a step does in a batch, the latest weighing most, and what is known of its methods."""

    probes: float = 0.0
    pairs: float = 0.0
    matches: float = 0.0
    rows: float = 0.0
    merged: float = 0.0
    methods: Mapping[str, InUse] = field(default_factory=dict)
    current: str = ""

    def after(self, method: str, tally: StepTally, rows: float, merged: float, costs: WorkCosts) -> Known:
        """With one more batch, which ran by a method."""
        table_s = costs.step(method).seconds(tally.probes, tally.candidates, tally.matches)
        spent_s = min(tally.seconds, MOST_OFF * (CALL_S + table_s))
        held = self.methods.get(method, InUse())
        over_s = spent_s - table_s if tally.seconds > 0 else CALL_S
        slowness = tally.index_s / _indexing_s(rows + merged, costs) if tally.index_s > 0 else 1.0
        known = method in self.methods
        used = InUse(
            FADING * held.pairs + tally.searched,
            FADING * held.candidates + tally.candidates,
            _quick(held.over_s, over_s) if known else over_s,
            _quick(held.slowness, slowness) if known else min(MOST_OFF, slowness),
        )
        return Known(
            _faded(self.probes, tally.probes),
            _faded(self.pairs, tally.searched),
            _faded(self.matches, tally.matches),
            _faded(self.rows, rows),
            _faded(self.merged, merged),
            {**self.methods, method: used},
            method,
        )

    def predicted_s(self, method: str, costs: WorkCosts) -> float:
        """What a batch like the last ones would take by a method."""
        held = self.methods.get(method)
        over_s = max(CALL_S, self.methods.get(self.current, InUse()).over_s) if held is None else held.over_s
        candidates, index_s = self.pairs, 0.0
        if method != "loop":
            like = self._like(method)
            candidates = self.matches if like is None else like.candidates / like.pairs * self.pairs
            index_s = _indexing_s(self.rows + self.merged, costs) * (1.0 if like is None else like.slowness)
        table_s = costs.step(method).seconds(self.probes, candidates, self.matches)
        return max(0.0, over_s + table_s) + index_s

    def _like(self, method: str) -> InUse | None:
        """What is known of an index: of this one, or else of another one."""
        known = (self.methods.get(name) for name in (method, *INDEXED))
        return next((held for held in known if held is not None and held.pairs), None)


@dataclass(frozen=True)
class Switching:
    """Watches the steps of a plan and says by which methods the next batches should run: a value.

    `options` are the steps there are at each place, by method. A step changes to one that is predicted to take at most
    `gain` times as long, if that saves `least_s` a batch.
    """

    options: Mapping[Place, Mapping[str, Step]]
    costs: WorkCosts
    known: Mapping[Place, Known] = field(default_factory=dict)
    gain: float = GAIN
    least_s: float = 0.0

    def observe(self, observation: Observation, plan: Plan) -> Switching:
        """What is known after a batch that ran by a plan."""
        known = dict(self.known)
        arrived = sum(arrival.rows for arrival in observation.arrivals.values())
        for path in plan.paths:
            for k, step in enumerate(path.steps):
                tallies = [
                    done[path.name].steps[k]
                    for done in (observation.joined.sampled, observation.joined.others)
                    if path.name in done
                ]
                if (path.name, k) in self.options and tallies:
                    rows = observation.arrivals[step.stream].rows
                    merged = observation.merged * rows / arrived if arrived else 0.0
                    held = known.get((path.name, k), Known())
                    known[path.name, k] = held.after(step.method, sum(tallies, StepTally()), rows, merged, self.costs)
        return replace(self, known=known)

    def decide(self, plan: Plan) -> Plan:
        """The plan with the methods that are predicted to pay; itself if none is worth a change."""
        paths = tuple(
            replace(path, steps=tuple(self._best(path.name, k, step) for k, step in enumerate(path.steps)))
            for path in plan.paths
        )
        return plan if paths == plan.paths else replace(plan, paths=paths)

    def _best(self, path: str, number: int, step: Step) -> Step:
        place = (path, number)
        if place not in self.known:
            return step
        predicted = {method: self.known[place].predicted_s(method, self.costs) for method in self.options[place]}
        best = min(predicted, key=lambda method: predicted[method])
        now_s = predicted[step.method]
        pays = predicted[best] < min(self.gain * now_s, now_s - self.least_s)
        return self.options[place][best] if pays else step


def _indexing_s(rows: float, costs: WorkCosts) -> float:
    return BUILD_S + costs.index_row_s * rows


def _quick(before: float, now: float) -> float:
    """A shorter time is believed at once, a longer one slowly: other work on the machine only adds to it."""
    return now if now < before else before + SLOWLY * (now - before)


def _faded(before: float, now: float) -> float:
    return FADING * before + (1 - FADING) * now if before else float(now)
