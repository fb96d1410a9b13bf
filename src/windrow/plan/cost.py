"""What a plan costs and what it yields: GrubJoin's C and O, in seconds, with the costs of the methods in use.

    step j of direction i: N partial results probe the c best bins of a window

        results of a probe        y(c) = sigma * S * (scores of the c best bins / all scores)
        seconds of a probe        a(c) = cost.seconds(1, candidates, results)                     0 for no bins
        next step's probes        N * y(c)

    direction:  C_i = sum of N * a        O_i = N after the last step           join: C = sum rate_i * C_i, O alike

Bins are ranked by score per row, the best first, ties by their place; with bins of one width that is the paper's order
of scores. Selectivity is one number a direction and step, not one a pair of streams: scores are shares, so that only
the selectivity says how many results a direction can give at all, and with a symmetric one a direction whose matches
have not arrived yet would look as good as the one they have arrived for. The paper's own cost, comparisons, is the
special case of `COMPARISONS`.

In the paper (sections IV-B, IV-C): `rate_hz` lambda_i, `window_s` w_i, `rows` S, `selectivity` sigma_{i,j}, `stream`
r_{i,j}, `scores` p^k_{i,j}, a ranking s^v_{i,j}, counts n * z_{i,j}, shares P_{i,j}, probes N_{i,j}.

>>> streams = (StreamStatistics(rate_hz=10, window_s=4), StreamStatistics(rate_hz=20, window_s=4))
>>> to_b = StepStatistics(stream=1, selectivity=0.01, scores=(0.1, 0.6, 0.3, 0.0))
>>> to_a = StepStatistics(stream=0, selectivity=0.01, scores=(0.25, 0.25, 0.25, 0.25))
>>> model = CostModel.of(Statistics(streams, ((to_b,), (to_a,))))
>>> model.ranking[0, 0].tolist()
[1, 2, 0, 3]
>>> cost, output = model.tally([[2], [4]])                   # 10 * 2 * 20 + 20 * 4 * 10 comparisons a second
>>> float(cost), round(float(output), 6)                     # 10 * 0.8 * 0.9 + 20 * 0.4 results a second
(1200.0, 15.2)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windrow.errors import PlanError
from windrow.probe.jit import compiled, frozen

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class StepCost:
    """Work → seconds, for one method on one step; fitted while running.

    >>> StepCost(per_probe=1e-6, per_candidate=2e-9, per_result=5e-8).seconds(probes=10, candidates=1000, results=0)
    1.2e-05
    """

    per_probe: float
    per_candidate: float
    per_result: float

    def seconds(self, probes: float, candidates: float, results: float) -> float:
        """The seconds some work takes."""
        return self.per_probe * probes + self.per_candidate * candidates + self.per_result * results


COMPARISONS = StepCost(per_probe=0.0, per_candidate=1.0, per_result=0.0)
"""The paper's cost: one unit a comparison, nothing else."""


@dataclass(frozen=True, slots=True)
class StreamStatistics:
    """How fast a stream is and how long its rows stay."""

    rate_hz: float
    window_s: float

    @property
    def rows(self) -> float:
        """Rows in the window."""
        return self.rate_hz * self.window_s


@dataclass(frozen=True, slots=True)
class StepStatistics:
    """What is known of one step of one direction: whom it probes, how much it finds, where, at what cost.

    `stream` is the number of the probed stream. A probe of all bins finds `selectivity` times the window's rows, spread
    over the bins in proportion to `scores`; scores that are all zero say nothing is known, and are taken as flat. Bin k
    holds the share `widths[k]` of the window's rows (equal shares where left out); bins of negative lags come on top of
    these. `candidate_share` of the rows searched are candidates: all of them in a loop, few with an index. As
    measured it is the share of those that match nothing; matches are candidates besides.
    """

    stream: int
    selectivity: float
    scores: tuple[float, ...]
    widths: tuple[float, ...] = ()
    candidate_share: float = 1.0
    cost: StepCost = COMPARISONS

    def __post_init__(self) -> None:
        if self.widths and len(self.widths) != len(self.scores):
            raise PlanError(f"{len(self.scores)} scores for {len(self.widths)} bins", hint="give one score a bin")
        if not self.scores or min(self.scores) < 0 or not math.isfinite(sum(self.scores)):
            raise PlanError(f"scores are shares of a bin's matches, not {self.scores}", hint="give them as 0 or more")
        if self.widths and not 0 < min(self.widths) <= sum(self.widths) < math.inf:
            raise PlanError(f"bins cannot have the widths {self.widths}", hint="give each a share above 0")
        rest = (self.selectivity, self.candidate_share, *_parts(self.cost))
        if min(rest) < 0 or not math.isfinite(sum(rest)):
            raise PlanError(f"selectivity, shares and costs are numbers from 0 on, not {rest}")

    def candidates(self, rows: float, width: float, matches: float) -> float:
        """How many of a window's rows a probe looks at that searches a share of it and finds so many there."""
        return min(rows, rows * self.candidate_share * width + matches)


@dataclass(frozen=True, slots=True)
class Statistics:
    """All an optimiser has to know: the streams, and for each of them as driver its steps in order."""

    streams: tuple[StreamStatistics, ...]
    directions: tuple[tuple[StepStatistics, ...], ...]

    def __post_init__(self) -> None:
        count = len(self.streams)
        if count < 2 or len(self.directions) != count:
            raise PlanError(
                f"{count} streams with {len(self.directions)} directions", hint="give one a stream, two or more"
            )
        for driver, steps in enumerate(self.directions):
            order = [step.stream for step in steps]
            if sorted((driver, *order)) != list(range(count)):
                raise PlanError(f"direction {driver} visits {order}", hint="each other stream is visited once")
        for stream in self.streams:
            if not (0 <= stream.rate_hz < math.inf and 0 < stream.window_s < math.inf):
                raise PlanError(f"a stream cannot have {stream}", hint="rates are 0 or more, windows longer than 0")


def bins_of(window_s: float, bin_s: float) -> int:
    """Into how many basic windows a window is divided: n = ceil(w / b).

    >>> [bins_of(20, 2), bins_of(10, 2), bins_of(10, 1), bins_of(7, 2)]
    [10, 5, 10, 4]
    """
    return math.ceil(window_s / bin_s)


@dataclass(frozen=True, slots=True, eq=False)
class CostModel:
    """Statistics made ready: for each direction and step what a probe of the c best bins costs and finds.

    `seconds[i, j, c]` and `results[i, j, c]` run over c = 0 … `bins[i, j]`; `ranking[i, j]` lists bins, the best first.
    Shorter steps are padded: nothing beyond their last bin is ever read.
    """

    driver_hz: Floats
    bins: Counts
    seconds: Floats
    results: Floats
    ranking: Counts

    @classmethod
    def of(cls, statistics: Statistics) -> CostModel:
        """Rank the bins and sum them up."""
        steps = [step for direction in statistics.directions for step in direction]
        streams = len(statistics.streams)
        bins = np.array([len(step.scores) for step in steps], np.int64)
        scores = _padded([step.scores for step in steps], bins)
        widths = _padded([step.widths or (1.0 / len(step.scores),) * len(step.scores) for step in steps], bins)
        rows = [stream.rows for stream in statistics.streams]
        known = np.array(
            [(rows[step.stream], step.selectivity, step.candidate_share, *_parts(step.cost)) for step in steps]
        )
        seconds, results, ranking = _summed_up(bins, scores, widths, known)
        shape = (streams, streams - 1)
        return cls(
            frozen([stream.rate_hz for stream in statistics.streams], np.float64),
            frozen(bins.reshape(shape), np.int64),
            frozen(seconds.reshape(*shape, -1), np.float64),
            frozen(results.reshape(*shape, -1), np.float64),
            frozen(ranking.reshape(*shape, -1), np.int64),
        )

    @property
    def full_cost(self) -> float:
        """C(1): seconds of work that arrive a second when nothing is left out."""
        return self.tally(self.bins)[0]

    def tally(self, counts: ArrayLike) -> tuple[float, float]:
        """C and O: seconds of work and results, a second, when each step searches that many of its best bins."""
        return tally(self.driver_hz, self.seconds, self.results, frozen(counts, np.int64))

    def probes(self, counts: ArrayLike) -> Floats:
        """N: for each direction and step how often it is probed for one driver tuple, and last the results."""
        chosen = np.asarray(counts, np.int64)[:, :, None]
        probes = np.ones((len(self.driver_hz), chosen.shape[1] + 1))
        probes[:, 1:] = np.take_along_axis(self.results, chosen, axis=2)[:, :, 0].cumprod(axis=1)
        return probes


@compiled
def tally(driver_hz: Floats, seconds: Floats, results: Floats, counts: Counts) -> tuple[float, float]:
    """C and O of all directions."""
    cost = output = 0.0
    for i in range(len(driver_hz)):
        spent, found = tally_direction(seconds[i], results[i], counts[i])
        cost += driver_hz[i] * spent
        output += driver_hz[i] * found
    return cost, output


@compiled
def tally_direction(seconds: Floats, results: Floats, counts: Counts) -> tuple[float, float]:
    """C_i and O_i of one direction, for one driver tuple."""
    spent = 0.0
    probes = 1.0
    for j in range(len(counts)):
        spent += probes * seconds[j, counts[j]]
        probes *= results[j, counts[j]]
    return spent, probes


@compiled
def _summed_up(bins: Counts, scores: Floats, widths: Floats, known: Floats) -> tuple[Floats, Floats, Counts]:
    """Rank each step's bins by score per row and sum cost and results over the best 0, 1, 2 … of them."""
    steps, most = scores.shape
    seconds = np.zeros((steps, most + 1))
    results = np.zeros((steps, most + 1))
    ranking = np.zeros((steps, most), np.int64)
    density = np.empty(most)
    for step in range(steps):
        rows, selectivity, candidate_share = known[step, 0], known[step, 1], known[step, 2]
        per_probe, per_candidate, per_result = known[step, 3], known[step, 4], known[step, 5]
        total = 0.0
        for k in range(bins[step]):
            total += scores[step, k]
        total_width = 0.0
        for k in range(bins[step]):
            total_width += widths[step, k]
            density[k] = scores[step, k] / widths[step, k] if total > 0 else 1.0
            place = k
            while place > 0 and density[ranking[step, place - 1]] < density[k]:
                ranking[step, place] = ranking[step, place - 1]
                place -= 1
            ranking[step, place] = k
        searched = found = 0.0
        for rank in range(bins[step]):
            k = ranking[step, rank]
            share = scores[step, k] / total if total > 0 else widths[step, k] / total_width
            searched += rows * widths[step, k] * candidate_share
            found += rows * selectivity * share
            seconds[step, rank + 1] = per_probe + per_candidate * searched + per_result * found
            results[step, rank + 1] = found
    return seconds, results, ranking


def _padded(rows: Sequence[Sequence[float]], lengths: Counts) -> Floats:
    longest = int(lengths.max())
    if longest == lengths.min():
        return np.array(rows, np.float64)
    filled = np.zeros((len(rows), longest))
    for row, values in enumerate(rows):
        filled[row, : len(values)] = values
    return filled


def _parts(cost: StepCost) -> tuple[float, float, float]:
    return cost.per_probe, cost.per_candidate, cost.per_result
