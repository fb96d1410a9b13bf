"""Fronts of cost and output: all settings of a direction that are worth a thought, and how directions share a budget.

A setting is worth a thought if none is cheaper and yields as much. Such settings, by rising cost, are a *front*. The
front of a direction is built from its last step to its first, because a step multiplies what comes after it:

    front of steps j …:   for each count c, each point (A, Y) of steps j+1 …:    ( a(c) + y(c) * A,  y(c) * Y )

For one c these points are in order already, so the lists of all counts are merged like sorted lists. A join's setting
is one point of each direction's front. Directions are added one after the other into a front of sums; for the last one
only the best pair within the budget is looked for, with one finger on each front.

Three things keep fronts small. Points above the budget go. So does a point whose *loss* is too large: at the price that
gave the bound, a setting's output is the bound less the losses of its points (what they are worth less than the best
point of their direction), less the price of unspent budget; losses that add up to more than `slack`, the room between
the bound and what is already found, cannot lead to anything better. And a front may be thinned, where a point stands
for the slightly better ones after it.

`search` does all of this. What is asked of it is a setting that yields more than `1 / (1 - precision)` times what is
already found, or else nothing; half of the precision goes into thinning the fronts of directions, half into the sums.

A point's `code` is its setting: the counts of the steps, first step in the lowest place, to the base of bins + 1.
"""

from __future__ import annotations

import numpy as np

from windrow.plan.cost import Counts, Floats
from windrow.plan.harvest.price import step_values
from windrow.probe.jit import compiled

Front = tuple[Floats, Floats, Counts]

ROUNDING = 1e-9


@compiled
def search(
    driver_hz: Floats,
    bins: Counts,
    prefix: tuple[Floats, Floats],
    budget: float,
    price_and_bound: tuple[float, float],
    found: float,
    precision: float,
) -> Counts:
    """A setting within a precision of the best, if the best is better than `found` by more than that; else, any."""
    (seconds, results), (price, bound) = prefix, price_and_bound
    directions = len(driver_hz)
    wanted = found / (1.0 - precision)
    slack = bound - wanted + (precision + ROUNDING) * bound
    counts = np.zeros(bins.shape, np.int64)
    fronts = [_nothing() for _ in range(0)]
    sizes, worth = np.empty(directions, np.int64), np.empty(directions)
    one_alone = 0.0
    for i in range(directions):
        hz = driver_hz[i]
        front = _nothing()
        if hz > 0.0:
            front = direction_front(bins[i], seconds[i], results[i], budget / hz, price, slack / hz, precision / 2)
        if len(front[0]) == 0:
            return counts
        worth[i] = _scale(front, hz, price)
        one_alone = max(one_alone, front[1][-1])
        sizes[i] = len(front[0])
        fronts.append(front)
    order = np.argsort(sizes)
    grain = precision / 2 * max(wanted, one_alone) / max(1, directions - 2)
    total, floor = fronts[order[0]], worth[order[0]] - slack
    trail = [_nothing()[2] for _ in range(0)]
    for step in range(1, directions - 1):
        i = order[step]
        floor += worth[i]
        total = _sum_of_fronts(total, fronts[i], budget, price, floor, grain)
        if len(total[0]) == 0:
            return counts
        trail.append(total[2])
    best, place, last_place = best_pair(total, fronts[order[-1]], budget)
    if best < 0.0:
        return counts
    _decode(bins, counts, order[-1], fronts[order[-1]][2][last_place])
    for step in range(directions - 2, 0, -1):
        code = trail[step - 1][place]
        place = code // sizes[order[step]]
        _decode(bins, counts, order[step], fronts[order[step]][2][code % sizes[order[step]]])
    _decode(bins, counts, order[0], fronts[order[0]][2][place])
    return counts


@compiled
def direction_front(
    bins: Counts, seconds: Floats, results: Floats, budget: float, price: float, slack: float, thinning: float
) -> Front:
    """The front of one direction for one driver tuple, with the setting of no bins as its first point.

    A thinned front keeps for each point one that is no dearer and yields at least `1 - thinning` of it.
    """
    steps = len(bins)
    base = 1
    for count in bins:
        base = max(base, count + 1)
    values = np.empty(steps + 1)
    step_values(bins, seconds, results, price, values, np.empty(steps, np.int64))
    cost, output, code = np.zeros(1), np.ones(1), np.zeros(1, np.int64)
    each = 1.0 - (1.0 - thinning) ** (1.0 / max(1, steps - 1))
    for j in range(steps - 1, -1, -1):
        merged_cost, merged_output, merged_code = np.empty(0), np.empty(0), np.empty(0, np.int64)
        for c in range(1, bins[j] + 1):
            if j == 0 and values[0] - (results[j, c] * values[1] - price * seconds[j, c]) > slack:
                continue
            merged_cost, merged_output, merged_code = _merged(
                (merged_cost, merged_output, merged_code),
                (seconds[j, c] + results[j, c] * cost, results[j, c] * output, c + base * code),
            )
        cost, output, code = merged_cost, merged_output, merged_code
        if j > 0 and thinning > 0.0:
            cost, output, code = _thinned(cost, output, code, each)
    return _worth_keeping((cost, output, code), budget, price, values[0], slack)


@compiled
def _sum_of_fronts(first: Front, second: Front, budget: float, price: float, floor: float, grain: float) -> Front:
    if grain > 0.0:
        return sum_of_fronts(first, second, budget, price, floor, grain)
    return exact_sum_of_fronts(first, second, budget, price, floor)


@compiled
def sum_of_fronts(first: Front, second: Front, budget: float, price: float, floor: float, grain: float) -> Front:
    """The front of sums of two fronts; a point's code is its place in the first, times the second's length, plus there.

    Points worth less than `floor` at the price go. Of the points whose outputs lie in one `grain` the cheapest is kept.
    """
    (first_cost, first_output, _), (second_cost, second_output, _) = first, second
    width = len(second_cost)
    grains = int((first_output[-1] + second_output[-1]) / grain) + 1
    cost, output, code = np.empty(grains), np.empty(grains), np.empty(grains, np.int64)
    for place in range(grains):
        cost[place] = np.inf
    for p in range(len(first_cost)):
        for q in range(width):
            total = first_cost[p] + second_cost[q]
            if total > budget:
                break
            found = first_output[p] + second_output[q]
            if found - price * total >= floor:
                place = int(found / grain)
                if total < cost[place]:
                    cost[place], output[place], code[place] = total, found, p * width + q
    return _cheaper_downwards(cost, output, code)


@compiled
def exact_sum_of_fronts(first: Front, second: Front, budget: float, price: float, floor: float) -> Front:
    """As `sum_of_fronts`, with every point that no other one makes useless."""
    (first_cost, first_output, _), (second_cost, second_output, _) = first, second
    width = len(second_cost)
    front = np.empty(0), np.empty(0), np.empty(0, np.int64)
    for p in range(len(first_cost)):
        cost, output, code = np.empty(width), np.empty(width), np.empty(width, np.int64)
        kept = 0
        for q in range(width):
            total, found = first_cost[p] + second_cost[q], first_output[p] + second_output[q]
            if total <= budget and found - price * total >= floor:
                cost[kept], output[kept], code[kept] = total, found, p * width + q
                kept += 1
        front = _merged(front, (cost[:kept], output[:kept], code[:kept]))
    return front


@compiled
def best_pair(first: Front, second: Front, budget: float) -> tuple[float, int, int]:
    """The most output of a point of each front within the budget, and the two places; -1.0 if none fits."""
    (first_cost, first_output, _), (second_cost, second_output, _) = first, second
    best, best_p, best_q = -1.0, 0, 0
    q = len(second_cost) - 1
    for p in range(len(first_cost)):
        while q >= 0 and first_cost[p] + second_cost[q] > budget:
            q -= 1
        if q < 0:
            break
        if first_output[p] + second_output[q] > best:
            best, best_p, best_q = first_output[p] + second_output[q], p, q
    return best, best_p, best_q


@compiled
def _merged(one: Front, other: Front) -> Front:
    """The front of two fronts."""
    (one_cost, one_output, one_code), (other_cost, other_output, other_code) = one, other
    size = len(one_cost) + len(other_cost)
    cost, output, code = np.empty(size), np.empty(size), np.empty(size, np.int64)
    p = q = kept = 0
    best = -1.0
    while p < len(one_cost) or q < len(other_cost):
        from_one = q == len(other_cost) or (
            p < len(one_cost)
            and (one_cost[p] < other_cost[q] or (one_cost[p] == other_cost[q] and one_output[p] >= other_output[q]))
        )
        if from_one:
            new_cost, new_output, new_code = one_cost[p], one_output[p], one_code[p]
            p += 1
        else:
            new_cost, new_output, new_code = other_cost[q], other_output[q], other_code[q]
            q += 1
        if new_output > best:
            cost[kept], output[kept], code[kept] = new_cost, new_output, new_code
            best = new_output
            kept += 1
    return cost[:kept], output[:kept], code[:kept]


@compiled
def _thinned(cost: Floats, output: Floats, code: Counts, share: float) -> Front:
    kept = 0
    for p in range(len(cost)):
        if kept == 0 or output[p] * (1.0 - share) > output[kept - 1]:
            cost[kept], output[kept], code[kept] = cost[p], output[p], code[p]
            kept += 1
    return cost[:kept], output[:kept], code[:kept]


@compiled
def _cheaper_downwards(cost: Floats, output: Floats, code: Counts) -> Front:
    """Of points by rising output, those that are cheaper than every better one."""
    kept = len(cost)
    cheapest = np.inf
    for p in range(len(cost) - 1, -1, -1):
        if cost[p] < cheapest:
            cheapest = cost[p]
            kept -= 1
            cost[kept], output[kept], code[kept] = cost[p], output[p], code[p]
    return cost[kept:], output[kept:], code[kept:]


@compiled
def _worth_keeping(front: Front, budget: float, price: float, value: float, slack: float) -> Front:
    cost, output, code = front
    keep_cost, keep_output, keep_code = (
        np.empty(len(cost) + 1),
        np.empty(len(cost) + 1),
        np.empty(len(cost) + 1, np.int64),
    )
    kept = 0
    if value <= slack:
        keep_cost[0] = keep_output[0] = 0.0
        keep_code[0] = 0
        kept = 1
    for p in range(len(cost)):
        if output[p] > 0.0 and cost[p] <= budget and value - (output[p] - price * cost[p]) <= slack:
            keep_cost[kept], keep_output[kept], keep_code[kept] = cost[p], output[p], code[p]
            kept += 1
    return keep_cost[:kept], keep_output[:kept], keep_code[:kept]


@compiled
def _nothing() -> Front:
    """The front of a direction that is left out."""
    return np.zeros(1), np.zeros(1), np.zeros(1, np.int64)


@compiled
def _scale(front: Front, factor: float, price: float) -> float:
    """Turn cost and output of a driver tuple into a second's, in place; returns the most a point is worth."""
    cost, output, _ = front
    best = 0.0
    for p in range(len(cost)):
        cost[p] *= factor
        output[p] *= factor
        best = max(best, output[p] - price * cost[p])
    return best


@compiled
def _decode(bins: Counts, counts: Counts, direction: int, code: int) -> None:
    base = 1
    for count in bins[direction]:
        base = max(base, count + 1)
    for j in range(bins.shape[1]):
        counts[direction, j] = code % base
        code //= base
