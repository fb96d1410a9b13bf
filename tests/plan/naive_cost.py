"""Slow and obvious twins: C and O by going through every combination of bins, GrubJoin's listing word by word."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from windrow.plan.cost import Statistics, StepStatistics

Counts = Sequence[Sequence[int]]


def best_bins(step: StepStatistics, count: int) -> list[int]:
    """The bins with the highest scores per row, earlier ones first where they are alike."""
    widths = step.widths or (1.0,) * len(step.scores)
    scores = step.scores if any(step.scores) else widths
    return sorted(range(len(scores)), key=lambda k: (-scores[k] / widths[k], k))[:count]


def cost_and_output(statistics: Statistics, counts: Counts) -> tuple[float, float]:
    """C and O, a second: what each combination of searched bins costs and finds, added up."""
    cost = output = 0.0
    for stream, steps, row in zip(statistics.streams, statistics.directions, counts, strict=True):
        searched = [best_bins(step, count) for step, count in zip(steps, row, strict=True)]
        for depth, step in enumerate(steps):
            probes = sum(_found(statistics, steps, bins) for bins in product(*searched[:depth]))
            candidates = sum(_candidates(statistics, step, k) for k in searched[depth])
            results = sum(_matches(statistics, step, k) for k in searched[depth])
            once = 1 if searched[depth] else 0
            cost += stream.rate_hz * probes * step.cost.seconds(once, candidates, results)
        output += stream.rate_hz * sum(_found(statistics, steps, bins) for bins in product(*searched))
    return cost, output


def _found(statistics: Statistics, steps: Sequence[StepStatistics], bins: Sequence[int]) -> float:
    """Partial results of one driver tuple whose members lie in these bins."""
    found = 1.0
    for step, k in zip(steps, bins, strict=False):
        found *= _matches(statistics, step, k)
    return found


def _matches(statistics: Statistics, step: StepStatistics, k: int) -> float:
    widths = step.widths or (1.0 / len(step.scores),) * len(step.scores)
    scores = step.scores if any(step.scores) else widths
    return statistics.streams[step.stream].rows * step.selectivity * scores[k] / sum(scores)


def _candidates(statistics: Statistics, step: StepStatistics, k: int) -> float:
    width = step.widths[k] if step.widths else 1.0 / len(step.scores)
    return statistics.streams[step.stream].rows * width * step.candidate_share


def greedy_pick(statistics: Statistics, budget: float, metric: str) -> list[list[int]]:
    """GREEDYPICK and EVAL of the paper's Figure 6, its misprints put right."""
    bins = [[len(step.scores) for step in steps] for steps in statistics.directions]
    directions, steps = len(bins), len(bins) - 1
    counts = [[0] * steps for _ in range(directions)]
    started = [False] * directions
    frozen = [[False] * steps for _ in range(directions)]
    cost = output = 0.0
    while True:
        best, chosen = 0.0, (-1, -1)
        for i in range(directions):
            for j in range(steps if started[i] else 1):
                if started[i] and (counts[i][j] == bins[i][j] or frozen[i][j]):
                    continue
                score = _evaluate(statistics, _raised(counts, i, j), (cost, output, budget), metric)
                if score > best:
                    best, chosen = score, (i, j)
                elif score < 0 and started[i]:
                    frozen[i][j] = True
        if chosen == (-1, -1):
            return counts
        started[chosen[0]] = True
        counts = _raised(counts, *chosen)
        cost, output = cost_and_output(statistics, counts)


def _raised(counts: list[list[int]], i: int, j: int) -> list[list[int]]:
    new = [list(row) for row in counts]
    if new[i][j] == 0:
        new[i] = [1] * len(new[i])
    else:
        new[i][j] += 1
    return new


def _evaluate(statistics: Statistics, counts: Counts, now: tuple[float, float, float], metric: str) -> float:
    old_cost, old_output, budget = now
    cost, output = cost_and_output(statistics, counts)
    if cost > budget:
        return -1.0
    if metric == "best_output":
        return output
    if metric == "best_output_per_cost":
        return output / cost
    return (output - old_output) / (cost - old_cost)
