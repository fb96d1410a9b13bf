"""GrubJoin's greedy settings: forward, in reverse, and double-sided, with its three metrics.

    forward        from no bins: of all settings with one bin more in one step, take the one with the best metric
    reverse        from all bins: of all settings with one bin less in one step, take the one with the best metric
    double-sided   forward where little of the work can be done (z <= 0.5 ** ((m - 1) / 2)), else reverse

    metric                               forward takes the highest       reverse takes
    best_output                          O                               the highest O left
    best_output_per_cost                 O / C                           the highest O / C left
    best_delta_output_per_delta_cost     gain in O / rise of C           the lowest loss of O / fall of C

A direction finds nothing unless all its steps search something: forward, its steps get their first bins together; in
reverse, a step that loses its last bin takes its direction with it. Forward, a step that could not afford one more bin
is frozen for good. From the paper's sections V-A and VI-A (Figures 5, 6, 10); where its listing is misprinted, it is z
that the budget is made of, and the chosen direction's own counts that are raised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from windrow.errors import PlanError
from windrow.plan.cost import CostModel, Counts, Floats, tally_direction
from windrow.probe.jit import compiled

METRICS = ("best_output", "best_output_per_cost", "best_delta_output_per_delta_cost")
DEFAULT_METRIC = METRICS[2]


@dataclass(frozen=True, slots=True)
class Ascent:
    """Where a forward search ended, and on its way there, step by step, how many settings it looked at."""

    counts: Counts
    considered: tuple[int, ...]


def ascend(
    model: CostModel, budget: float, metric: str = DEFAULT_METRIC, start: Sequence[Sequence[int]] | None = None
) -> Ascent:
    """Search forward, from no bins or from a setting within the budget."""
    counts = np.zeros_like(model.bins) if start is None else np.array(start, np.int64)
    considered = np.zeros(most_rounds(model.bins), np.int64)
    steps = climb(
        model.driver_hz, model.bins, (model.seconds, model.results), budget, _number(metric), counts, considered
    )
    return Ascent(counts, tuple(considered[:steps].tolist()))


def forward(model: CostModel, budget: float, metric: str = DEFAULT_METRIC) -> Counts:
    """The greedy setting, found from below."""
    return ascend(model, budget, metric).counts


def reverse(model: CostModel, budget: float, metric: str = DEFAULT_METRIC) -> Counts:
    """The greedy setting, found from above."""
    counts = np.array(model.bins)
    _descend(model.driver_hz, (model.seconds, model.results), budget, _number(metric), counts)
    return counts


def double_sided(model: CostModel, budget: float, metric: str = DEFAULT_METRIC) -> Counts:
    """The greedy setting, found from the nearer side."""
    from_below = budget <= switch_throttle(len(model.driver_hz)) * model.full_cost
    return (forward if from_below else reverse)(model, budget, metric)


def switch_throttle(streams: int) -> float:
    """Up to which z the forward search is the faster one.

    >>> [round(switch_throttle(streams), 7) for streams in (3, 4, 5)]
    [0.5, 0.3535534, 0.25]
    """
    return float(0.5 ** ((streams - 1) / 2))


def _number(metric: str) -> int:
    if metric not in METRICS:
        raise PlanError(f"there is no metric '{metric}'", hint=f"choose one of {', '.join(METRICS)}")
    return METRICS.index(metric)


@compiled
def climb(
    driver_hz: Floats,
    bins: Counts,
    prefix: tuple[Floats, Floats],
    budget: float,
    metric: int,
    counts: Counts,
    considered: Counts,
) -> int:
    """Raise `counts` in place while something fits; returns the rounds, each with the settings it considered.

    A step that could not afford one more bin never will: what it costs only grows with the counts of the others.
    """
    seconds, results = prefix
    directions, steps = bins.shape
    frozen_steps = np.zeros((directions, steps), np.bool_)
    trial = np.empty(steps, np.int64)
    cost_of, output_of = _tallies(driver_hz, seconds, results, counts)
    round_number = 0
    while True:
        cost, output = _sum(cost_of), _sum(output_of)
        best, best_direction, best_step = 0.0, -1, -1
        for i in range(directions):
            for j in range(steps):
                if frozen_steps[i, j]:
                    continue
                _copy(counts[i], trial)
                if not _advance(bins[i], trial, j):
                    continue
                considered[round_number] += 1
                spent, found = tally_direction(seconds[i], results[i], trial)
                rise, gain = driver_hz[i] * spent - cost_of[i], driver_hz[i] * found - output_of[i]
                if cost + rise > budget:
                    frozen_steps[i, j] = counts[i, j] > 0
                    continue
                score = _score(metric, cost + rise, output + gain, rise, gain)
                if score > best:
                    best, best_direction, best_step = score, i, j
        if considered[round_number] > 0:
            round_number += 1
        if best_direction < 0:
            return round_number
        i = best_direction
        _advance(bins[i], counts[i], best_step)
        spent, found = tally_direction(seconds[i], results[i], counts[i])
        cost_of[i], output_of[i] = driver_hz[i] * spent, driver_hz[i] * found


@compiled
def _descend(driver_hz: Floats, prefix: tuple[Floats, Floats], budget: float, metric: int, counts: Counts) -> None:
    seconds, results = prefix
    directions, steps = counts.shape
    trial = np.empty(steps, np.int64)
    cost_of, output_of = _tallies(driver_hz, seconds, results, counts)
    while _sum(cost_of) > budget:
        cost, output = _sum(cost_of), _sum(output_of)
        best, best_direction, best_step = -np.inf, -1, -1
        for i in range(directions):
            for j in range(steps):
                _copy(counts[i], trial)
                if not _retreat(trial, j):
                    continue
                spent, found = tally_direction(seconds[i], results[i], trial)
                rise, gain = driver_hz[i] * spent - cost_of[i], driver_hz[i] * found - output_of[i]
                score = _score(metric, cost + rise, output + gain, rise, gain)
                if metric == 2:
                    score = -score
                if best_direction < 0 or score > best:
                    best, best_direction, best_step = score, i, j
        if best_direction < 0:
            return
        i = best_direction
        _retreat(counts[i], best_step)
        spent, found = tally_direction(seconds[i], results[i], counts[i])
        cost_of[i], output_of[i] = driver_hz[i] * spent, driver_hz[i] * found


@compiled
def _score(metric: int, cost: float, output: float, rise: float, gain: float) -> float:
    if metric == 0:
        return output
    above, below = (output, cost) if metric == 1 else (gain, rise)
    if below != 0.0:
        return above / below
    return np.inf if above > 0.0 else 0.0


@compiled
def most_rounds(bins: Counts) -> int:
    """Each round but the last raises at least one count."""
    rounds = 1
    for i in range(bins.shape[0]):
        for j in range(bins.shape[1]):
            rounds += bins[i, j]
    return rounds


@compiled
def _advance(bins: Counts, counts: Counts, step: int) -> bool:
    """One bin more in a step, or the first bin of every step of a direction that has none; False if there is none."""
    if counts[step] == 0:
        if step > 0:
            return False
        for j in range(len(counts)):
            counts[j] = 1
        return True
    if counts[step] == bins[step]:
        return False
    counts[step] += 1
    return True


@compiled
def _retreat(counts: Counts, step: int) -> bool:
    """One bin less in a step; its last bin takes the direction with it. False if there is none."""
    if counts[step] == 0:
        return False
    if counts[step] == 1:
        for j in range(len(counts)):
            counts[j] = 0
    else:
        counts[step] -= 1
    return True


@compiled
def _tallies(driver_hz: Floats, seconds: Floats, results: Floats, counts: Counts) -> tuple[Floats, Floats]:
    cost, output = np.empty(len(driver_hz)), np.empty(len(driver_hz))
    for i in range(len(driver_hz)):
        spent, found = tally_direction(seconds[i], results[i], counts[i])
        cost[i], output[i] = driver_hz[i] * spent, driver_hz[i] * found
    return cost, output


@compiled
def _copy(source: Counts, target: Counts) -> None:
    """Element by element, because NumPy's assignment of slices takes seconds to compile."""
    for j in range(len(source)):
        target[j] = source[j]


@compiled
def _sum(values: Floats) -> float:
    total = 0.0
    for value in values:
        total += value
    return total
