"""Dropping input at random, at its best: the keep rates that give the most output for a share of the work.

The other way to shed load: each stream keeps a random share k of its rows, and what is kept is joined in full. All m
rows of a result have to be kept, and the work of a step grows with the shares of the streams it involves, so

    output = k_1 * k_2 * … * k_m * O(1)                      cost = sum of terms:  w * product of some streams' k

Keeping a row may cost something by itself (`rows_s`: what all rows of a stream take a second besides probing); these
are terms with one k each, and where they are all there is, the optimum is that of `windrow.plan.regulation`.

With x = log k the output is linear and the logarithm of the cost convex, so that maximising one with a limit on the
other has a single optimum. It is found by an interior-point method: Newton's steps on

    - sum of x  -  (sum of log(-x)  +  log(log limit - log cost)) / t          for t growing until the gap is gone

At the end, the gap to the optimum is at most (m + 1) / t in the logarithm of the output: one part in a million. What
the method leaves between itself and the limit is used up by raising all rates alike. This is the comparison of
GrubJoin's section VI-B, with keep rates as good as they can be.

>>> from windrow.plan.cost import Statistics, StepStatistics, StreamStatistics
>>> streams = (StreamStatistics(10, 4), StreamStatistics(20, 4))
>>> steps = (StepStatistics(1, 0.01, (1.0,)),), (StepStatistics(0, 0.01, (1.0,)),)
>>> drop = keep_rates(Statistics(streams, steps), throttle=0.25)
>>> round(drop.keep[0] * drop.keep[1], 6), round(drop.recall, 6)
(0.25, 0.25)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from windrow.errors import PlanError
from windrow.plan.cost import Floats, Statistics

GAP = 1e-6
NEWTON_STEPS = 60
BISECTIONS = 50


@dataclass(frozen=True, slots=True)
class RandomDrop:
    """The share of rows each stream keeps; a second's cost and output; the share of the output that is kept. Of the
    cost, `probing` is that of the steps.
    """

    keep: tuple[float, ...]
    cost: float
    output: float
    recall: float
    probing: float


@dataclass(frozen=True, slots=True, eq=False)
class _Terms:
    """The cost as a sum: a term's weight, and which streams' keep rates it is multiplied by."""

    weights: Floats
    streams: Floats

    def cost(self, keep: Floats) -> float:
        return float(self.weights @ np.prod(np.where(self.streams > 0, keep, 1.0), axis=1))


def keep_rates(statistics: Statistics, throttle: float, rows_s: Sequence[float] = ()) -> RandomDrop:
    """The best keep rates whose work is at most `throttle` times that of keeping everything."""
    if not throttle > 0:
        raise PlanError(f"the throttle is a share of the full work above 0, not {throttle}", hint="give 0 to 1")
    if len(rows_s) not in (0, len(statistics.streams)):
        raise PlanError(f"{len(rows_s)} costs of rows for {len(statistics.streams)} streams", hint="give one a stream")
    terms, full_output = _terms(statistics, rows_s)
    everything = np.ones(len(statistics.streams))
    full_cost = terms.cost(everything)
    keep = everything if throttle >= 1 or full_cost == 0.0 else _optimal(terms, throttle * full_cost)
    recall, cost = float(np.prod(keep)), terms.cost(keep)
    probing = cost - float(np.dot(rows_s, keep)) if rows_s else cost
    return RandomDrop(tuple(keep.tolist()), cost, full_output * recall, recall, probing)


def _terms(statistics: Statistics, rows_s: Sequence[float]) -> tuple[_Terms, float]:
    """The cost of the full join taken apart by the streams whose rows it takes, and the full output."""
    weights: dict[frozenset[int], float] = {frozenset({stream}): spent for stream, spent in enumerate(rows_s)}
    full_output = 0.0
    for driver, steps in enumerate(statistics.directions):
        involved = frozenset({driver})
        probes = statistics.streams[driver].rate_hz
        for step in steps:
            rows = statistics.streams[step.stream].rows
            candidates = rows * (sum(step.widths) if step.widths else 1.0) * step.candidate_share
            found = rows * step.selectivity
            weights[involved] = weights.get(involved, 0.0) + step.cost.seconds(probes, 0, 0)
            involved |= {step.stream}
            weights[involved] = weights.get(involved, 0.0) + step.cost.seconds(0, probes * candidates, probes * found)
            probes *= found
        full_output += probes
    known = [(group, weight) for group, weight in weights.items() if weight > 0]
    involves = [float(stream in group) for group, _ in known for stream in range(len(statistics.streams))]
    streams = np.array(involves).reshape(len(known), len(statistics.streams))
    return _Terms(np.array([weight for _, weight in known]), streams), full_output


def _optimal(terms: _Terms, limit: float) -> Floats:
    count = terms.streams.shape[1]
    log_weights = np.log(terms.weights / limit)
    x = np.full(count, -1.0 - max(0.0, float(np.log(terms.weights.sum() / limit))))
    sharpness = 1.0
    while (count + 1) / sharpness > GAP:
        sharpness *= 8.0
        for _ in range(NEWTON_STEPS):
            step, decrement = _newton_step(terms.streams, log_weights, x, sharpness)
            if decrement < 1e-9:
                break
            x = _line_search(terms.streams, log_weights, x, step, sharpness)
    return np.exp(_raised(terms.streams, log_weights, x))


def _raised(streams: Floats, log_weights: Floats, x: Floats) -> Floats:
    """All rates raised alike, none above 1, until the limit is reached."""
    low, high = 0.0, float(-x.min())
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if _log_cost(streams, log_weights, np.minimum(0.0, x + middle))[0] <= 0.0:
            low = middle
        else:
            high = middle
    return np.minimum(0.0, x + low)


def _newton_step(streams: Floats, log_weights: Floats, x: Floats, sharpness: float) -> tuple[Floats, float]:
    """The step, and how much lower the quadratic model says it ends."""
    log_cost, shares = _log_cost(streams, log_weights, x)
    slope = shares @ streams
    curvature = (streams.T * shares) @ streams - np.outer(slope, slope)
    gradient = -sharpness - 1.0 / x - slope / log_cost
    hessian = np.diag(1.0 / x**2) - curvature / log_cost + np.outer(slope, slope) / log_cost**2
    step = np.asarray(np.linalg.solve(hessian, -gradient), np.float64)
    return step, float(-gradient @ step) / 2


def _line_search(streams: Floats, log_weights: Floats, x: Floats, step: Floats, sharpness: float) -> Floats:
    before, length = _barrier(streams, log_weights, x, sharpness), 1.0
    while length > 1e-12:
        trial = x + length * step
        if _barrier(streams, log_weights, trial, sharpness) < before:
            return trial
        length /= 2
    return x


def _barrier(streams: Floats, log_weights: Floats, x: Floats, sharpness: float) -> float:
    log_cost, _ = _log_cost(streams, log_weights, x)
    if log_cost >= 0 or (x >= 0).any():
        return float("inf")
    return float(-sharpness * x.sum() - np.log(-x).sum() - np.log(-log_cost))


def _log_cost(streams: Floats, log_weights: Floats, x: Floats) -> tuple[float, Floats]:
    """The logarithm of cost / limit, and each term's share of the cost."""
    exponents = streams @ x + log_weights
    highest = exponents.max()
    parts = np.exp(exponents - highest)
    return float(highest + np.log(parts.sum())), parts / parts.sum()
