"""Paths and bins together: within the budget, as good as trying all paths, and not changed for little."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from windrow.control.choice import HYSTERESIS, Steps, choose, full_cost, path_statistics, row_cost
from windrow.control.lags import Learned
from windrow.control.observation import PathTally, StepTally
from windrow.plan.cost import COMPARISONS, CostModel, Statistics, StepCost, StepStatistics, StreamStatistics
from windrow.plan.harvest import mixture

BINS = 6
SPENDING = StepCost(per_probe=1e-6, per_candidate=1e-7, per_result=1e-6)

Options = tuple[tuple[Steps, ...], ...]


def drawn(seed: int, streams: int = 3) -> tuple[tuple[StreamStatistics, ...], Options]:
    """Streams, and two paths of each driver, whose stores let pass what they let pass in any order."""
    random = np.random.default_rng(seed)
    rates = tuple(StreamStatistics(float(random.uniform(20, 60)), 10.0) for _ in range(streams))
    options = []
    for driver in range(streams):
        steps = []
        for store in (other for other in range(streams) if other != driver):
            scores = np.exp(-0.5 * ((np.arange(BINS) - random.uniform(0, BINS)) / random.uniform(0.3, 3)) ** 2) + 1e-6
            selectivity = float(10 ** random.uniform(-3, -1.5))
            steps.append(StepStatistics(store, selectivity, tuple(scores.tolist()), cost=SPENDING))
        options.append((tuple(steps), tuple(reversed(steps))))
    return rates, tuple(options)


def output_of(streams: tuple[StreamStatistics, ...], steps: tuple[Steps, ...], budget: float) -> float:
    model = CostModel.of(Statistics(streams, steps))
    return mixture(model, budget / model.full_cost).output


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("throttle", [0.05, 0.3, 0.7])
def test_nearly_as_good_as_the_best_of_all_paths(seed: int, throttle: float) -> None:
    streams, options = drawn(seed)
    choice = choose(streams, options, throttle)
    budget = throttle * full_cost(streams, options)
    assert choice.full_cost == pytest.approx(full_cost(streams, options))
    assert choice.bins.cost <= budget * (1 + 1e-6)
    best = max(
        output_of(streams, tuple(found[k] for found, k in zip(options, picks, strict=True)), budget)
        for picks in product(range(2), repeat=3)
    )
    assert choice.bins.output >= 0.9 * best


def test_a_full_throttle_takes_everything_on_the_cheapest_paths() -> None:
    streams, options = drawn(3)
    choice = choose(streams, options, 1.0, sample=0.1)
    assert choice.bins.recall == 1.0
    assert choice.bins.settings[0].counts == ((BINS,) * 2,) * 3
    assert choice.statistics.directions == tuple(found[k] for found, k in zip(options, choice.paths, strict=True))
    costs = [[row_cost(streams, steps, (None, None)) for steps in found] for found in options]
    assert np.array(choice.costs) == pytest.approx(np.array(costs))
    held = choose(streams, options, 1.0, current=tuple(1 - k for k in choice.paths))
    assert held.full_cost <= sum(streams[i].rate_hz * max(costs[i]) for i in range(3))


@pytest.mark.parametrize("sample", [0.0, 0.1, 0.5])
def test_sampled_rows_are_paid_for(sample: float) -> None:
    streams, options = drawn(5)
    choice = choose(streams, options, 0.3, sample=sample)
    model = CostModel.of(choice.statistics)
    spent = (1 - sample) * choice.bins.cost + sample * 0.3 * model.full_cost
    assert spent == pytest.approx(0.3 * choice.full_cost, rel=1e-6)


def test_a_path_is_kept_unless_another_is_clearly_better() -> None:
    streams, options = drawn(1)
    alike = tuple((one, one) for one, _ in options)
    for current in product(range(2), repeat=3):
        assert choose(streams, alike, 0.4, current=current).paths == current
        found = choose(streams, options, 0.4, current=current).paths
        assert found == choose(streams, options, 0.4, current=found).paths
    assert 0 < HYSTERESIS < 0.2


def test_what_a_row_costs_is_what_the_model_says() -> None:
    streams, options = drawn(2)
    steps = tuple(found[0] for found in options)
    model = CostModel.of(Statistics(streams, steps))
    for counts in product((1, 3, BINS), repeat=2):
        chosen = [tuple(model.ranking[0, step, :count].tolist()) for step, count in enumerate(counts)]
        expected = model.tally([list(counts), [0, 0], [0, 0]])[0] / streams[0].rate_hz
        assert row_cost(streams, steps[0], chosen) == pytest.approx(expected)
    assert row_cost(streams, steps[0], ((), (1,))) == 0.0


def learned_of(scouts: int) -> Learned:
    """Path a: 10 of 100 rows pass the first step. Path a/1 was taken by some rows that happened to match nothing."""
    paths = {"a": ("b", "c"), "a/1": ("c", "b")}
    sample = {
        "a": PathTally(200, 400, (StepTally(200, 20_000, 20_000, 2_000), StepTally(2_000, 200_000, 200_000, 400)))
    }
    if scouts:
        sample["a/1"] = PathTally(scouts, 0, (StepTally(scouts, 100 * scouts, 100 * scouts, 0), StepTally()))
    bins = {"b": (200.0, 200.0), "c": (200.0, 200.0)}
    lags = {path: tuple(bins[target] for target in targets) for path, targets in paths.items()}
    tallies = {
        path: PathTally(tally.drivers, tally.results, tally.steps, lags[path] if tally.results else ((0.0,) * 2,) * 2)
        for path, tally in sample.items()
    }
    return Learned.empty(paths, {"b": 2, "c": 2}).after(tallies, {}, 1.0, 1.0)


@pytest.mark.parametrize(("scouts", "least", "most"), [(0, 5.0, 1e3), (1, 5.0, 10.0), (200, 0.0, 0.2)])
def test_a_path_that_was_hardly_tried_looks_usual(scouts: int, least: float, most: float) -> None:
    rows, widths = {"b": 100.0, "c": 100.0}, {"b": (0.5, 0.5), "c": (0.5, 0.5)}
    scores = learned_of(scouts).scores(widths)
    steps = path_statistics(learned_of(scouts), "a/1", ["a", "b", "c"], rows, widths, scores, [COMPARISONS] * 2)
    assert least <= steps[0].selectivity * 100 <= most
    results = steps[0].selectivity * steps[1].selectivity * 1e4
    assert results == pytest.approx(learned_of(scouts).results_a_row, rel=0.05)


def test_matches_cost_what_candidates_cost_wherever_they_lie() -> None:
    """An index that proposes nothing but matches: looking where they are saves nothing."""
    rows, widths = {"b": 100.0, "c": 100.0}, {"b": (0.5, 0.5), "c": (0.5, 0.5)}
    paths = {"a": ("b", "c")}
    first, second = StepTally(100, 10_000, 1_000, 1_000), StepTally(1_000, 100_000, 1_000, 1_000)
    found = PathTally(100, 1_000, (first, second), ((1_000.0, 0.0), (0.0, 1_000.0)))
    learned = Learned.empty(paths, {"b": 2, "c": 2}).after({"a": found}, {}, 1.0, 1.0)
    scores = learned.scores(widths)
    steps = path_statistics(learned, "a", ["a", "b", "c"], rows, widths, scores, [COMPARISONS] * 2)
    streams = tuple(StreamStatistics(10.0, 10.0) for _ in range(3))
    everything, there = row_cost(streams, steps, (None, None)), row_cost(streams, steps, ((0,), (1,)))
    assert there == pytest.approx(everything, rel=0.05)
    assert row_cost(streams, steps, ((1,), (0,))) < 0.05 * everything
