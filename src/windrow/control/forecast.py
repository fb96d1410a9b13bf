"""What a join will take and give at some rates, before it runs: from what a look at some of its rows has learned.

    a look at rows ─▶ Controller: selectivities, lags ─┐
                              WorkCosts: seconds a unit ─┼─▶ Forecast: load, saturation, memory, recall under overload
                             rates: measured or wished ─┘

The load is the seconds of work that a second of input brings to one processor: rows let in and indexed, probes of all
drivers (grubjoin's C), results, and what a batch costs whatever is in it. Probing grows faster than the rates do (a
window holds more rows, too), so the rates at which the load is 1 are found by bisection. Beyond them the throttle is
what is left of the time, and recall is what the best harvest at that throttle finds (`windrow.control.choice`).

A forecast is as good as the look: average rates, the same selectivities everywhere, and costs that were measured or
built in. It takes in none of what Spark itself takes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from windrow.control.choice import Steps, choose, full_cost
from windrow.plan.cost import CostModel, Statistics, StreamStatistics
from windrow.plan.work import WorkCosts

SAMPLE = 0.1
TRIGGER_S = 1.0
OVERLOADS = (2.0, 4.0, 8.0)
"""Times the rates at which the machine saturates."""
_MOST_TIMES = 1e9
_ROUNDS = 60


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a join: the names of its streams, how fast they are and how long their rows stay, the steps of
    each path of each driver, bytes of a stored row with its indexes, and which streams' windows are so many rows. What
    steps cost was learned with `costs`, which say what all else costs.
    """

    names: tuple[str, ...]
    streams: tuple[StreamStatistics, ...]
    options: tuple[tuple[Steps, ...], ...]
    row_bytes: Mapping[str, float]
    costs: WorkCosts
    by_rows: frozenset[str] = frozenset()
    is_indexed: bool = False

    def at(self, rates_hz: Mapping[str, float]) -> Known:
        """The same at other rates, of the streams that are named."""
        pairs = zip(self.names, self.streams, strict=True)
        return replace(self, streams=tuple(self._at(name, held, rates_hz.get(name)) for name, held in pairs))

    def times(self, factor: float) -> Known:
        """The same with all rates so many times as high."""
        pairs = zip(self.names, self.streams, strict=True)
        return self.at({name: factor * held.rate_hz for name, held in pairs})

    def _at(self, name: str, held: StreamStatistics, rate_hz: float | None) -> StreamStatistics:
        if rate_hz is None:
            return held
        window_s = held.rows / max(rate_hz, 1e-9) if name in self.by_rows else held.window_s
        return StreamStatistics(rate_hz, max(window_s, 1e-9))


@dataclass(frozen=True, slots=True)
class StreamForecast:
    """One stream: its rate, and what its window holds when it is full."""

    rate_hz: float
    window_rows: float
    window_bytes: float


@dataclass(frozen=True, slots=True)
class StepForecast:
    """One step, for each row of the driver: how often the store is probed, which of its rows are in reach of a probe,
    how many of these are looked at one by one, and how many match.
    """

    stream: str
    probes: float
    reach: float
    candidates: float
    matches: float


@dataclass(frozen=True, slots=True)
class Overload:
    """Rates so many times as high: the share of the work there is time for, and the recall to expect."""

    times: float
    throttle: float
    recall: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a join is predicted to take and give. `load` is seconds of work a second, by part in `parts`; at
    `saturation` times the rates it is 1; `recall` is what to expect at the rates themselves.
    """

    streams: Mapping[str, StreamForecast]
    paths: Mapping[str, tuple[StepForecast, ...]]
    load: float
    parts: Mapping[str, float]
    results_hz: float
    saturation: float | None
    recall: float
    overloads: tuple[Overload, ...] = field(default=())

    @property
    def memory_bytes(self) -> float:
        """What all windows hold when they are full, indexes included."""
        return sum(stream.window_bytes for stream in self.streams.values())

    def to_values(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return {**asdict(self), "memory_bytes": self.memory_bytes}


def forecast(known: Known, trigger_s: float = TRIGGER_S) -> Forecast:
    """What a join takes and gives at its rates, in batches of `trigger_s`."""
    model = CostModel.of(Statistics(known.streams, _firsts(known.options)))
    parts = _parts(known, trigger_s)
    load = math.fsum(parts.values())
    saturation = _saturation(known, trigger_s)
    pairs = list(zip(known.names, known.streams, strict=True))
    return Forecast(
        streams={
            name: StreamForecast(held.rate_hz, held.rows, held.rows * known.row_bytes.get(name, 0.0))
            for name, held in pairs
        },
        paths={
            name: _steps(known.streams, found[0], known.names)
            for name, found in zip(known.names, known.options, strict=True)
        },
        load=load,
        parts=parts,
        results_hz=model.tally(model.bins)[1],
        saturation=saturation,
        recall=_overload(known, trigger_s, 1.0).recall if load > 1 else 1.0,
        overloads=()
        if saturation is None
        else tuple(_overload(known, trigger_s, times * saturation) for times in OVERLOADS),
    )


def _parts(known: Known, trigger_s: float) -> dict[str, float]:
    costs, rows_hz = known.costs, sum(stream.rate_hz for stream in known.streams)
    model = CostModel.of(Statistics(known.streams, _firsts(known.options)))
    return {
        "batches": costs.batch_s / trigger_s,
        "rows": (costs.row_s + (costs.index_row_s if known.is_indexed else 0.0)) * rows_hz,
        "probing": full_cost(known.streams, known.options),
        "results": costs.result_s * model.tally(model.bins)[1],
    }


def _saturation(known: Known, trigger_s: float) -> float | None:
    """How many times the rates may grow until the load is 1; None where even next to nothing is too much."""

    def load(times: float) -> float:
        return math.fsum(_parts(known.times(times), trigger_s).values())

    low, high = 1e-6, 1.0
    if load(low) >= 1:
        return None
    while load(high) < 1 and high < _MOST_TIMES:
        low, high = high, 2 * high
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        low, high = (middle, high) if load(middle) < 1 else (low, middle)
    return low


def _overload(known: Known, trigger_s: float, times: float) -> Overload:
    there = known.times(times)
    parts = _parts(there, trigger_s)
    fixed, variable = parts["batches"] + parts["rows"], parts["probing"] + parts["results"]
    throttle = min(1.0, max(0.0, 1.0 - fixed) / variable) if variable > 0 else 1.0
    if throttle <= 0 or throttle >= 1:
        return Overload(times, throttle, throttle)
    chosen = choose(there.streams, there.options, throttle, sample=SAMPLE)
    return Overload(times, throttle, float((1 - SAMPLE) * chosen.bins.recall + SAMPLE * throttle))


def _steps(streams: Sequence[StreamStatistics], steps: Steps, names: Sequence[str]) -> tuple[StepForecast, ...]:
    found, probes = [], 1.0
    for step in steps:
        rows = streams[step.stream].rows
        matches = rows * step.selectivity
        candidates = step.candidates(rows, 1.0, matches)
        found.append(StepForecast(names[step.stream], probes, probes * rows, probes * candidates, probes * matches))
        probes *= matches
    return tuple(found)


def _firsts(options: Sequence[Sequence[Steps]]) -> tuple[Steps, ...]:
    return tuple(found[0] for found in options)
