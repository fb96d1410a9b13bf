"""The choice of paths and bins: in which order each driver visits the stores, and what it searches there.

    learned ─▶ what each path would cost and find ─▶ at a price on cost, the best path of each direction ─┐
                                    ▲                                                                      │
                                    └── the price at which the chosen paths' best setting fits the budget ◀┘

Orders matter more to a harvest than to a full join. Two stores with the same selectivity are the same to a full join;
but if the matches in one of them lie close together, it should come last, where most probes are made, because only few
of its bins have to be searched. At a price the directions do not depend on each other
(`windrow.plan.harvest.price`), so the best path of each is found by itself, and a few rounds settle the price.

How many rows pass the first steps of a path depends on which stores were visited, not on their order: paths lend each
other what was measured.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from windrow.control.lags import Learned
from windrow.plan.cost import CostModel, Floats, Statistics, StepCost, StepStatistics, StreamStatistics
from windrow.plan.harvest import Mixture, Setting, mixture, optimise
from windrow.plan.harvest.price import enclosed, step_values

ROUNDS = 4
HYSTERESIS = 0.05
LEAST = 1e-9
USUAL_PROBES = 2.0
"""So many probes of a whole window count what is usual."""

Steps = tuple[StepStatistics, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """For each driver the number of its path; what is searched on these; `full_cost` is that of doing everything on the
    cheapest paths, `costs` says what a row costs on each path of each driver when it may look everywhere.
    """

    paths: tuple[int, ...]
    bins: Mixture
    statistics: Statistics
    full_cost: float
    costs: tuple[tuple[float, ...], ...]

    @property
    def found(self) -> tuple[float, ...]:
        """The results that a row of each driver is expected to give."""
        model = CostModel.of(self.statistics)
        low, high = (model.probes(setting.counts)[:, -1] for setting in self.bins.settings)
        return tuple((low + self.bins.share * (high - low)).tolist())

    def recall(self, throttle: float, sample: float) -> float:
        """The share of all results that is promised: sampled rows find that of the throttle, the others what was chosen
        for them.
        """
        return (1 - sample) * self.bins.recall + sample * throttle


def path_statistics(
    learned: Learned,
    path: str,
    names: Sequence[str],
    rows: Mapping[str, float],
    widths: Mapping[str, tuple[float, ...]],
    scores: Mapping[str, Floats],
    costs: Sequence[StepCost],
) -> Steps:
    """What is known of a path's steps, whose costs are given, as are the scores of the stores' bins."""
    passed = _passed(learned, rows, float(np.mean([line.sum() for line in scores.values()])))
    steps, reached, before = [], frozenset[str](), 1.0
    for number, target in enumerate(learned.paths[path]):
        reached |= {target}
        after = passed[reached]
        steps.append(
            StepStatistics(
                names.index(target),
                after / before / max(rows[target], LEAST),
                tuple(scores[target].tolist()),
                widths[target],
                learned.false_share(path, number),
                _with_candidate(costs[number]),
            )
        )
        before = max(after, LEAST)
    return tuple(steps)


def _with_candidate(cost: StepCost) -> StepCost:
    """The cost of a step whose matches are candidates too: these lie where the scores say, all others anywhere.

    An index that proposes little but matches makes them the whole cost, wherever in the window one looks.
    """
    return replace(cost, per_result=cost.per_result + cost.per_candidate)


def choose(
    streams: Sequence[StreamStatistics],
    options: Sequence[Sequence[Steps]],
    throttle: float,
    *,
    sample: float = 0.0,
    current: Sequence[int] = (),
    optimiser: str = "mixture",
) -> Choice:
    """The best paths, one of the `options` of each driver, and bins, for `throttle` times the full work.

    A share `sample` of the rows is looked at otherwise, at `throttle` times the full work of its paths.
    """
    models = _models(streams, options)
    costs = tuple(tuple(_full(models[k], i) for k in range(len(found))) for i, found in enumerate(options))
    hz = models[0].driver_hz
    full_cost = float(sum(hz[i] * min(found) for i, found in enumerate(costs)))
    budget = throttle * full_cost
    cheapest = tuple(int(np.argmin(found)) for found in costs)
    chosen = tuple(current) if len(current) == len(options) else cheapest
    best: tuple[float, tuple[int, ...]] | None = None
    for _ in range(ROUNDS):
        model = CostModel.of(Statistics(tuple(streams), _picked(options, chosen)))
        _, _, bound, price = enclosed(model.driver_hz, model.bins, model.seconds, model.results, budget, 0.0)
        if best is None or bound > best[0]:
            best = (bound, chosen)
        better = tuple(_best_path(models, i, found, chosen[i], price) for i, found in enumerate(options))
        if better == chosen:
            break
        chosen = better
    chosen = best[1] if best is not None else chosen
    statistics = Statistics(tuple(streams), _picked(options, chosen))
    model = CostModel.of(statistics)
    share = throttle * full_cost / model.full_cost if model.full_cost > 0 else 1.0
    spent = sum(hz[i] * costs[i][k] for i, k in enumerate(chosen)) * throttle * sample
    if throttle >= 1:
        share = 1.0
    elif sample < 1 and model.full_cost > 0:
        share = max(0.0, (budget - spent) / (1 - sample) / model.full_cost)
    return Choice(chosen, _bins(model, share, optimiser), statistics, full_cost, costs)


def full_cost(streams: Sequence[StreamStatistics], options: Sequence[Sequence[Steps]]) -> float:
    """What a second's worth of everything costs, on the cheapest paths."""
    models = _models(streams, options)
    hz = models[0].driver_hz
    return float(sum(hz[i] * min(_full(models[k], i) for k in range(len(found))) for i, found in enumerate(options)))


def row_cost(streams: Sequence[StreamStatistics], steps: Steps, chosen: Sequence[Collection[int] | None]) -> float:
    """What a driver's row costs that looks at some bins of each step (None: at all)."""
    spent, probes = 0.0, 1.0
    for step, bins in zip(steps, chosen, strict=True):
        rows, count = streams[step.stream].rows, len(step.scores)
        widths, scores = step.widths or (1 / count,) * count, step.scores if any(step.scores) else (1.0,) * count
        looked = range(count) if bins is None else bins
        if not looked:
            break
        candidates = rows * sum(widths[k] for k in looked) * step.candidate_share
        found = rows * step.selectivity * sum(scores[k] for k in looked) / sum(scores)
        spent += probes * step.cost.seconds(1, candidates, found)
        probes *= found
    return spent


def _bins(model: CostModel, throttle: float, optimiser: str) -> Mixture:
    if optimiser == "mixture":
        return mixture(model, throttle)
    setting: Setting = optimise(model, throttle, optimiser)
    return Mixture((setting, setting), 0.0)


def _picked(options: Sequence[Sequence[Steps]], chosen: Sequence[int]) -> tuple[Steps, ...]:
    return tuple(found[k] for found, k in zip(options, chosen, strict=True))


def _models(streams: Sequence[StreamStatistics], options: Sequence[Sequence[Steps]]) -> list[CostModel]:
    """Models that have each direction's path k, as far as it has so many."""
    most = max(len(found) for found in options)
    picks = ([min(k, len(found) - 1) for found in options] for k in range(most))
    return [CostModel.of(Statistics(tuple(streams), _picked(options, pick))) for pick in picks]


def _full(model: CostModel, direction: int) -> float:
    """What a row of a direction costs when it may look everywhere."""
    spent, probes = 0.0, 1.0
    for step, count in enumerate(model.bins[direction]):
        spent += probes * float(model.seconds[direction, step, count])
        probes *= float(model.results[direction, step, count])
    return spent


def _best_path(models: Sequence[CostModel], direction: int, found: Sequence[Steps], held: int, price: float) -> int:
    """The path that is worth most at a price; the one taken now, unless another one is clearly better."""
    worth = []
    for model in models[: len(found)]:
        steps = len(model.bins[direction])
        values, counts = np.empty(steps + 1), np.empty(steps, np.int64)
        worth.append(
            step_values(
                model.bins[direction], model.seconds[direction], model.results[direction], price, values, counts
            )
        )
    best = int(np.argmax(worth))
    return best if worth[best] > worth[held] * (1 + HYSTERESIS) else held


def _passed(learned: Learned, rows: Mapping[str, float], results: float) -> dict[frozenset[str], float]:
    """For each set of stores that a path begins with, how many partial results a driver row gives there; of all stores,
    that many `results`.

    Of sets that few probes told about, it is taken to be about what sets of that size give otherwise: a path that was
    hardly tried may neither look free nor be given up. Where none of that size gave any, they are taken to lie between
    one, which is the driver's row, and the results.
    """
    everything = frozenset(next(iter(learned.paths.values())))
    sums: dict[frozenset[str], tuple[float, float]] = {}
    for path, targets in learned.paths.items():
        reached, passed = frozenset[str](), 1.0
        for step, target in enumerate(targets[:-1]):
            share = learned.passing(path, step)
            if share is None:
                break
            reached, passed = reached | {target}, passed * share * rows[target]
            told, probes = sums.get(reached, (0.0, 0.0)), learned.steps[path][step][1] / max(rows[target], LEAST)
            sums[reached] = (told[0] + probes * passed, told[1] + probes)
    found = {}
    for reached, (total, probes) in sums.items():
        alike = [held for other, held in sums.items() if len(other) == len(reached)]
        between = results ** (len(reached) / len(everything))
        usual = (sum(held[0] for held in alike) + USUAL_PROBES * between) / (
            sum(held[1] for held in alike) + USUAL_PROBES
        )
        found[reached] = max((total + USUAL_PROBES * usual) / (probes + USUAL_PROBES), LEAST)
    found[everything] = max(results, LEAST)
    for targets in learned.paths.values():
        for count in range(1, len(targets)):
            found.setdefault(frozenset(targets[:count]), _guessed(targets[:count], found, rows))
    return found


def _guessed(targets: Sequence[str], found: Mapping[frozenset[str], float], rows: Mapping[str, float]) -> float:
    """Where nothing was measured: as if each further store let pass what it lets pass alone, or everything."""
    before = found.get(frozenset(targets[:-1]), 1.0)
    return before * found.get(frozenset(targets[-1:]), rows[targets[-1]])
