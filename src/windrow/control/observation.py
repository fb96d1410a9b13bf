"""What a batch did, in numbers: all that decisions about the next ones are made from.

    run ── Observation, one a batch ──▶ control ── plan ──▶ run

Counts add up: over the blocks of a batch, over the slices of a cluster, over batches. They have a JSON form, in which
tasks tell them to the driver program.

>>> one = StepTally(probes=10, searched=1000, candidates=50, matches=5, seconds=0.001)
>>> (one + one).matches
10
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import zip_longest
from typing import Any, TypeVar

from windrow.control.sample import NO_SAMPLE, Sample, Sketch
from windrow.control.sift import Sift, added

T = TypeVar("T")
A = TypeVar("A", "PathTally", Sample, Sketch)


@dataclass(frozen=True, slots=True)
class StepTally:
    """One step of a path: `probes` partial rows met `searched` stored rows within their reach, of which a method looked
    at `candidates` one by one and found `matches`. In `index_s`, which is no part of `seconds`, indexes were made.
    """

    probes: int = 0
    searched: int = 0
    candidates: int = 0
    matches: int = 0
    seconds: float = 0.0
    index_s: float = 0.0

    def __add__(self, other: StepTally) -> StepTally:
        return StepTally(
            self.probes + other.probes,
            self.searched + other.searched,
            self.candidates + other.candidates,
            self.matches + other.matches,
            self.seconds + other.seconds,
            self.index_s + other.index_s,
        )

    def slowed(self, factor: float) -> StepTally:
        """As if it had taken `factor` times as long."""
        return replace(self, seconds=factor * self.seconds, index_s=factor * self.index_s)


@dataclass(frozen=True, slots=True)
class PathTally:
    """What some of a driver's rows did: `drivers` rows, their steps, and where the members of `results` lay.

    `lags` holds for each step the number of results by lag bin (`windrow.plan.bins`) of the member that step found. Of
    many results only some are looked at, each standing for `1 / share` of them, so the numbers need not be whole. Of
    the results of sampled rows, `missed` would have escaped the driver's other rows, `missed_lags` says where.
    `behind` counts for each step stored rows newer than the driver's. Where rows were let go for memory, `exposed`
    adds up for each step and lag bin the share of the store's rows that each driver could still find there, and `lost`
    estimates the results that were not found because of that.
    """

    drivers: int = 0
    results: int = 0
    steps: tuple[StepTally, ...] = ()
    lags: tuple[tuple[float, ...], ...] = ()
    missed: float = 0.0
    missed_lags: tuple[tuple[float, ...], ...] = ()
    behind: tuple[int, ...] = ()
    exposed: tuple[tuple[float, ...], ...] = ()
    lost: float = 0.0

    def __add__(self, other: PathTally) -> PathTally:
        return PathTally(
            self.drivers + other.drivers,
            self.results + other.results,
            tuple(one + two for one, two in _paired(self.steps, other.steps, StepTally())),
            _by_bin(self.lags, other.lags),
            self.missed + other.missed,
            _by_bin(self.missed_lags, other.missed_lags),
            tuple(one + two for one, two in _paired(self.behind, other.behind, 0)),
            _by_bin(self.exposed, other.exposed),
            self.lost + other.lost,
        )

    def slowed(self, factor: float) -> PathTally:
        """As if the steps had taken `factor` times as long."""
        return replace(self, steps=tuple(step.slowed(factor) for step in self.steps))


NO_PATH = PathTally()


@dataclass(frozen=True, slots=True)
class Joined:
    """What probing did: for each path (by its name) the rows that were sampled, and all others.

    For each driver of which something was left out, `samples` say how much; while the parts of a batch are still being
    added up, its `sketches` do, which `settled` turns into samples. `sifts` say for each step of a path which
    conditions turn pairs away, if anyone watches.
    """

    sampled: Mapping[str, PathTally] = field(default_factory=dict)
    others: Mapping[str, PathTally] = field(default_factory=dict)
    sketches: Mapping[str, Sketch] = field(default_factory=dict)
    samples: Mapping[str, Sample] = field(default_factory=dict)
    sifts: Mapping[str, tuple[Sift, ...]] = field(default_factory=dict)

    def __add__(self, other: Joined) -> Joined:
        return Joined(
            _added(self.sampled, other.sampled, NO_PATH),
            _added(self.others, other.others, NO_PATH),
            _added(self.sketches, other.sketches, Sketch()),
            _added(self.samples, other.samples, NO_SAMPLE),
            {
                path: added(self.sifts.get(path, ()), other.sifts.get(path, ()))
                for path in {**self.sifts, **other.sifts}
            },
        )

    def settled(self) -> Joined:
        """The same when all parts of a batch have been added up."""
        done = {driver: sketch.settled() for driver, sketch in self.sketches.items()}
        return replace(self, sketches={}, samples=_added(self.samples, done, NO_SAMPLE))

    def to_values(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return asdict(self)

    @staticmethod
    def from_values(values: Mapping[str, Any]) -> Joined:
        """What `to_values` gave, after a way through JSON or not."""
        return Joined(
            _paths(values["sampled"]),
            _paths(values["others"]),
            {driver: Sketch.from_values(held) for driver, held in values.get("sketches", {}).items()},
            {driver: Sample.from_values(held) for driver, held in values.get("samples", {}).items()},
            {path: tuple(map(Sift.from_values, held)) for path, held in values.get("sifts", {}).items()},
        )


@dataclass(frozen=True, slots=True)
class Arrival:
    """One stream in a batch: `rows` came in, `late` ones among them; `stored` are in its window, in `stored_bytes`;
    `watermark_us` is where it stands. Since the batch before, `dropped` found no room in the input buffer.
    """

    rows: int
    late: int = 0
    stored: int = 0
    stored_bytes: int = 0
    watermark_us: int | None = None
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a batch made up for besides its own work: so many pieces, or parts of some, gave `results` in `seconds`."""

    pieces: int = 0
    results: int = 0
    seconds: float = 0.0


NO_REPAIR = Repaired()


@dataclass(frozen=True, slots=True)
class Observation:
    """One batch: what arrived, what was joined, how long it took, and what waits.

    `now_s` is the batch clock, `span_s` the time since the batch before: what the batch had to keep up with. It kept
    the processor busy for `busy_s`. `waiting` counts rows that had arrived but are not in it, stream by stream;
    `merged` rows were copied into merged segments. What it `repaired` is in none of the other numbers.
    """

    batch: int
    now_s: float
    span_s: float
    busy_s: float
    arrivals: Mapping[str, Arrival]
    joined: Joined
    waiting: Mapping[str, int] = field(default_factory=dict)
    results: int = 0
    merged: int = 0
    repaired: Repaired = NO_REPAIR

    @property
    def fixed_s(self) -> float:
        """What of a batch's time is not spent on probing, so that it does not change with the throttle."""
        paths = (*self.joined.sampled.values(), *self.joined.others.values())
        return max(0.0, self.busy_s - sum(step.seconds for path in paths for step in path.steps))

    def slowed(self, factor: float, steps: float | None = None) -> Observation:
        """As if all had taken `factor` times as long, and the steps `steps` times."""
        sampled, others = (
            {path: tally.slowed(factor if steps is None else steps) for path, tally in held.items()}
            for held in (self.joined.sampled, self.joined.others)
        )
        return replace(self, busy_s=self.busy_s * factor, joined=replace(self.joined, sampled=sampled, others=others))

    def to_values(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return asdict(self)

    @staticmethod
    def from_values(values: Mapping[str, Any]) -> Observation:
        """What `to_values` gave, after a way through JSON or not."""
        rest = {name: values[name] for name in ("batch", "now_s", "span_s", "busy_s", "results", "merged")}
        arrivals = {name: Arrival(**held) for name, held in values["arrivals"].items()}
        return Observation(
            **rest,
            arrivals=arrivals,
            joined=Joined.from_values(values["joined"]),
            waiting=dict(values["waiting"]),
            repaired=Repaired(**values.get("repaired", {})),
        )


def summed(parts: Iterable[Joined]) -> Joined:
    """All of some batches', or some slices', work."""
    total = Joined()
    for part in parts:
        total += part
    return total


def _added(one: Mapping[str, A], two: Mapping[str, A], nothing: A) -> dict[str, A]:
    names = dict.fromkeys((*one, *two))
    return {name: one.get(name, nothing) + two.get(name, nothing) for name in names}


def _paired(one: Sequence[T], two: Sequence[T], nothing: T) -> Iterator[tuple[T, T]]:
    return zip_longest(one, two, fillvalue=nothing)


def _by_bin(one: Sequence[Sequence[float]], two: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
    pairs = _paired(one, two, ())
    return tuple(tuple(a + b for a, b in _paired(first, second, 0.0)) for first, second in pairs)


def _paths(values: Mapping[str, Any]) -> dict[str, PathTally]:
    return {
        name: PathTally(
            held["drivers"],
            held["results"],
            tuple(StepTally(**step) for step in held["steps"]),
            tuple(tuple(found) for found in held["lags"]),
            held["missed"],
            tuple(tuple(found) for found in held["missed_lags"]),
            tuple(held["behind"]),
            tuple(tuple(held_there) for held_there in held["exposed"]),
            held["lost"],
        )
        for name, held in values.items()
    }
