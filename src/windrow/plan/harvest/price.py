"""A price on cost: from it an upper bound on the output, and a setting that is feasible.

With a price mu (results given up a second of work) the directions no longer compete for the budget, and the steps of
one direction fall apart too, from the last to the first:

    value of a partial result before step j    V_j = max(0, max over c of  y_j(c) * V_{j+1} - mu * a_j(c))    V_last = 1

`sum of rate_i * V_i + mu * budget` bounds the output of every feasible setting, whatever mu is. The best mu is where
the cheaper and the dearer of two settings that are optimal at that price lie on both sides of the budget. It is found
by letting two settings, one within the budget and one above, close in on each other: the price of each round is the
slope of the line between them, and it ends when no setting lies above that line.

The setting within the budget is then filled up with bins by the greedy search of `windrow.plan.harvest.greedy`, which
starts there instead of at nothing. That often is within the asked precision of the bound; where it is not,
`windrow.plan.harvest.fronts` goes on.
"""

from __future__ import annotations

import numpy as np

from windrow.plan.cost import Counts, Floats, tally
from windrow.plan.harvest.greedy import METRICS, climb, most_rounds
from windrow.probe.jit import compiled

ROUNDS = 200
MOST_GAIN = METRICS.index("best_delta_output_per_delta_cost")
ROUNDING = 1e-12


@compiled
def priced(
    driver_hz: Floats, bins: Counts, seconds: Floats, results: Floats, budget: float, precision: float
) -> tuple[Counts, float, float, float]:
    """A feasible setting with its output, an upper bound on all, and the price; ends early where the two are close."""
    counts, _, bound, price = enclosed(driver_hz, bins, seconds, results, budget, precision)
    output = tally(driver_hz, seconds, results, counts)[1]
    if output < (1.0 - precision) * bound:
        rounds = np.zeros(most_rounds(bins), np.int64)
        climb(driver_hz, bins, (seconds, results), budget, MOST_GAIN, counts, rounds)
        output = tally(driver_hz, seconds, results, counts)[1]
    return counts, output, bound, price


@compiled
def enclosed(
    driver_hz: Floats, bins: Counts, seconds: Floats, results: Floats, budget: float, precision: float
) -> tuple[Counts, Counts, float, float]:
    """The two settings that close in on the budget, from within and from above, the bound and the price."""
    within, above, trial = (
        np.zeros(bins.shape, np.int64),
        np.empty(bins.shape, np.int64),
        np.empty(bins.shape, np.int64),
    )
    _copy(bins, above)
    low_cost = low_output = 0.0
    high_cost, high_output = tally(driver_hz, seconds, results, bins)
    bound = high_output
    best_price = 0.0
    for _ in range(ROUNDS):
        price = (high_output - low_output) / (high_cost - low_cost)
        value = choose_all(driver_hz, bins, seconds, results, price, trial)
        cost, output = tally(driver_hz, seconds, results, trial)
        if value + price * budget < bound:
            bound = value + price * budget
            best_price = price
        if value <= (low_output - price * low_cost) + ROUNDING * high_output:
            break
        if cost <= budget:
            low_cost, low_output = cost, output
            _copy(trial, within)
        else:
            high_cost, high_output = cost, output
            _copy(trial, above)
        if low_output >= (1.0 - precision) * bound:
            break
    return within, above, bound, best_price


@compiled
def choose_all(
    driver_hz: Floats, bins: Counts, seconds: Floats, results: Floats, price: float, counts: Counts
) -> float:
    """Write the best setting at a price into `counts` and return what it is worth."""
    worth = 0.0
    values = np.empty(bins.shape[1] + 1)
    for i in range(len(driver_hz)):
        worth += driver_hz[i] * step_values(bins[i], seconds[i], results[i], price, values, counts[i])
    return worth


@compiled
def step_values(bins: Counts, seconds: Floats, results: Floats, price: float, values: Floats, counts: Counts) -> float:
    """V of each step of one direction into `values`, the counts that reach them into `counts`; returns V of the first.

    A direction whose steps are not all worth their price is left out as a whole.
    """
    steps = len(bins)
    values[steps] = 1.0
    for j in range(steps - 1, -1, -1):
        best = 0.0
        counts[j] = 0
        for c in range(1, bins[j] + 1):
            value = results[j, c] * values[j + 1] - price * seconds[j, c]
            if value > best:
                best = value
                counts[j] = c
        values[j] = best
    if values[0] == 0.0:
        for j in range(steps):
            counts[j] = 0
    return float(values[0])


@compiled
def _copy(source: Counts, target: Counts) -> None:
    """Element by element, because NumPy's assignment of slices takes seconds to compile."""
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]
