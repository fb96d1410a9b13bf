"""Who may probe in trees of joins: how long an analysis takes, and what the paper's way yields beside the optimum."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.measure import Row, Value, in_child, main, smaller
from windrow.plan.directions import (
    Model,
    allocate,
    greedy_cover,
    jaqpot,
    least_cover,
    most_output,
    refresh_rates,
    settle,
)
from windrow.plan.directions.instances import FRESHNESS, SHAPES, random_model, times_window

DESCRIPTION = "Allocations for random trees of 3 to 8 streams: the time of an analysis, and what it yields of the best"
STREAMS = range(3, 9)
LOWEST_SHARE, HIGHEST_SHARE = 0.01, 1.0
MEDIAN_MS, WORST_MS = 2.0, 20.0
PAPERS_MEAN, PAPERS_WORST = 11.0, 19.0
REPEATS = 3


@dataclass(frozen=True, slots=True)
class Sizes:
    """Random trees for each shape, number of streams and freshness."""

    rounds: int


QUICK = Sizes(rounds=2)
FULL = Sizes(rounds=8)


def run(quick: bool) -> list[Row]:
    """The rows of this bench."""
    return in_child("benchmarks.bench_directions", quick)


def measure(sizes: Sizes) -> list[Row]:
    """Measure in this process; of each analysis the shortest of its repeats."""
    random = np.random.default_rng(1)
    spent_ms: dict[bool, list[float]] = {True: [], False: []}
    with_stops_ms: list[float] = []
    settled_ms: list[float] = []
    rescued = 0
    shortfalls: list[float] = []
    covers: list[float] = []
    allocate(random_model(random, 3, "linear"), 1.0, {"a": 1e3})
    for shape in SHAPES:
        for factor in FRESHNESS:
            for streams in STREAMS:
                for _ in range(sizes.rounds):
                    model = random_model(random, streams, shape)
                    share = LOWEST_SHARE * (HIGHEST_SHARE / LOWEST_SHARE) ** float(random.uniform())
                    budget, wanted = share * model.saturation, times_window(model, factor)
                    took_ms, found = _shortest_ms(partial(allocate, model.tree, budget, wanted))
                    spent_ms[found.infeasible is None].append(took_ms)
                    took_ms, stopping = _shortest_ms(partial(allocate, model.tree, budget, wanted, stops=True))
                    with_stops_ms.append(took_ms)
                    rescued += found.infeasible is not None and stopping.infeasible is None
                    settled_ms.append(_shortest_ms(partial(settle, model.tree, _lives(model), budget))[0])
                    _compare(model, budget, factor, shortfalls, covers)
    everything = spent_ms[True] + spent_ms[False]
    note = (
        f"{len(everything)} trees, resources of {LOWEST_SHARE:.0%} to {HIGHEST_SHARE:.0%} of saturation;"
        f" {len(spent_ms[False])} infeasible ones: median {_median(spent_ms[False]):.3g} ms"
    )
    ended = f"median {_median(with_stops_ms):.3g} ms, worst {max(with_stops_ms):.3g} ms where rows may end in states:"
    ended += f" {rescued} of the {len(spent_ms[False])} infeasible ones are feasible then"
    settling = f"states as full as what is let in; worst {max(settled_ms):.3g} ms"
    same = (
        f"mean {statistics.mean(shortfalls):.2g} %, {len(shortfalls)} feasible trees, the same refresh rates for both"
    )
    dearer = f"mean {statistics.mean(covers):.2g} %; the paper: mean {PAPERS_MEAN:g} %, largest {PAPERS_WORST:g} %"
    return [
        smaller("an analysis, median", ours=_median(everything), peer=None, unit="ms", goal=MEDIAN_MS, note=note),
        smaller("an analysis, worst", ours=max(everything), peer=None, unit="ms", goal=WORST_MS, note=ended),
        smaller("time windows, median", ours=_median(settled_ms), peer=None, unit="ms", goal=WORST_MS, note=settling),
        smaller("JAQPOT below the optimum, largest", ours=max(shortfalls), peer=None, unit="%", goal=10.0, note=same),
        smaller("its cover above the cheapest, largest", ours=max(covers), peer=None, unit="%", goal=19.0, note=dearer),
    ]


def _lives(model: Model) -> dict[str, float]:
    """How long rows live in states that are as large as the model says when all rows may probe."""
    entering = model.inflow @ model.rate_hz
    return {str(state): float(state.state.rows / hz) for state, hz in zip(model.states, entering, strict=True)}


def _compare(model: Model, budget: float, factor: float, shortfalls: list[float], covers: list[float]) -> None:
    """What JAQPOT and its cover lose, in percent, where they exist."""
    wanted = model.per_stream(times_window(model, factor))
    refresh_hz = refresh_rates(model, wanted)
    best, covered = most_output(model, budget, refresh_hz), jaqpot(model, budget, wanted)
    if best is not None and covered is not None:
        shortfalls.append(100 * max(0.0, 1 - float(model.output @ covered) / float(model.output @ best)))
    cheapest, greedy = least_cover(model, refresh_hz), greedy_cover(model, refresh_hz)
    if cheapest is not None and greedy is not None:
        covers.append(100 * max(0.0, float(model.cost @ greedy) / float(model.cost @ cheapest) - 1))


def _shortest_ms(work: Callable[[], Value]) -> tuple[float, Value]:
    """Processor time: an analysis runs beside the join, and what it takes of the machine is what counts."""
    spent: list[float] = []
    for _ in range(REPEATS):
        started = time.process_time()
        value = work()
        spent.append(time.process_time() - started)
    return min(spent) * 1e3, value


def _median(values: list[float]) -> float:
    return statistics.median(values) if values else 0.0


if __name__ == "__main__":
    main(DESCRIPTION, run)
