"""Optimisers of window harvesting: how long ours takes, how far from the optimum it ends, beside the paper's greedy."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.measure import Row, Timing, faster, in_child, main, smaller, timed
from windrow.plan.cost import CostModel
from windrow.plan.harvest import optimise
from windrow.plan.harvest.bounded import within
from windrow.plan.harvest.exhaustive import number_of_settings
from windrow.plan.harvest.instances import LAGS, random_statistics

DESCRIPTION = "Harvest settings of random joins: the time to find one, and what it yields of the best there is"
GREEDY = "best_delta_output_per_delta_cost"
THROTTLES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
MOST_TRIED = 10**6
FINE = 2e-4


@dataclass(frozen=True, slots=True)
class Shape:
    """Streams, basic windows a window, and the goal for the median time."""

    streams: int
    bins: int
    goal_ms: float


@dataclass(frozen=True, slots=True)
class Sizes:
    """The shapes of joins, and how many random ones of each kind of lag and each throttle."""

    shapes: tuple[Shape, ...]
    rounds: int


SHAPES = (Shape(3, 10, 0.1), Shape(4, 10, 0.2), Shape(5, 20, 2.0))
QUICK = Sizes(SHAPES, rounds=4)
FULL = Sizes(SHAPES, rounds=25)


def run(quick: bool) -> list[Row]:
    """The rows of this bench."""
    return in_child("benchmarks.bench_harvest", quick)


def measure(sizes: Sizes) -> list[Row]:
    """Measure in this process; medians, because a busy machine takes the time away in pieces."""
    return [row for shape in sizes.shapes for row in _rows(shape, sizes.rounds)]


def _rows(shape: Shape, rounds: int) -> list[Row]:
    random = np.random.default_rng(shape.streams)
    times: dict[str, list[float]] = {"auto": [], GREEDY: [], "optimum": [], "model": []}
    shortfalls: dict[str, list[float]] = {"auto": [], GREEDY: []}
    for lags in LAGS[:3]:
        for throttle in THROTTLES:
            for number in range(rounds):
                drawn = random_statistics(random, streams=shape.streams, bins=shape.bins, lags=lags)
                spent, model = timed(partial(CostModel.of, drawn))
                times["model"].append(spent)
                spent, best = timed(_optimum(model, throttle, tried=number == 0))
                times["optimum"].append(spent)
                for method, found in shortfalls.items():
                    spent, setting = timed(partial(optimise, model, throttle, method))
                    times[method].append(spent)
                    found.append(100 * (1 - setting.output / best))
    medians_ms = {name: statistics.median(found) * 1e3 for name, found in times.items()}
    name = f"m = {shape.streams}, n = {shape.bins}"
    worst, greedy = shortfalls["auto"], shortfalls[GREEDY]
    return [
        smaller(
            f"{name}: time of a setting",
            ours=medians_ms["auto"],
            peer=None,
            unit="ms",
            goal=shape.goal_ms,
            note=f"median of {len(worst)}, 99 in 100 below {np.quantile(times['auto'], 0.99) * 1e3:.3g} ms;"
            f" making the model takes {medians_ms['model']:.3g} ms, the paper's greedy {medians_ms[GREEDY]:.3g} ms",
        ),
        smaller(
            f"{name}: largest shortfall from the optimum",
            ours=max(0.0, *worst),
            peer=None,
            unit="%",
            goal=1.0,
            note=f"mean {statistics.mean(worst):.2g} %; the paper's greedy: largest {max(greedy):.3g} %,"
            f" mean {statistics.mean(greedy):.2g} %",
        ),
        *_beside_brute_force(shape, random, medians_ms[GREEDY]),
    ]


def _optimum(model: CostModel, throttle: float, *, tried: bool) -> Callable[[], float]:
    """All settings tried where asked and possible, else found by a search that is ten times as fine as ours."""
    if tried and number_of_settings(model) <= MOST_TRIED:
        return lambda: optimise(model, throttle, "exhaustive").output
    return lambda: float(model.tally(within(model, throttle * model.full_cost * (1 + 1e-9), FINE))[1])


def _beside_brute_force(shape: Shape, random: np.random.Generator, greedy_ms: float) -> list[Row]:
    model = CostModel.of(random_statistics(random, streams=shape.streams, bins=shape.bins))
    if number_of_settings(model) > MOST_TRIED:
        return []
    spent = [timed(partial(optimise, model, 0.25, "exhaustive"))[0] for _ in range(5)]
    timing = Timing(greedy_ms / 1e3, statistics.median(spent), "brute force")
    note = f"z = 0.25, {number_of_settings(model):,} settings (Figure 8: seconds against milliseconds)"
    return [faster(f"m = {shape.streams}, n = {shape.bins}: the paper's greedy", timing, None, note)]


if __name__ == "__main__":
    main(DESCRIPTION, run)
