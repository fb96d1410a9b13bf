"""The paper's greedy search: its listing word by word, its examples, its figures."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plan.joins import joins
from tests.plan.naive_cost import greedy_pick
from windrow.errors import PlanError
from windrow.plan.cost import CostModel, Statistics, StepStatistics, StreamStatistics
from windrow.plan.harvest import METHODS, optimise
from windrow.plan.harvest.exhaustive import exhaustive, number_of_settings
from windrow.plan.harvest.greedy import METRICS, ascend, double_sided, forward, reverse, switch_throttle
from windrow.plan.harvest.instances import random_statistics


def model_of(seed: int, streams: int = 3, bins: int = 10, lags: str = "mixed") -> CostModel:
    """A random join."""
    return CostModel.of(random_statistics(np.random.default_rng(seed), streams=streams, bins=bins, lags=lags))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("streams", "bins"), [(2, 6), (3, 4), (4, 2)])
def test_it_does_what_the_listing_says(metric: str, streams: int, bins: int) -> None:
    """GJ-20: Figure 6; first bins together, and what could not be afforded once stays as it is."""
    random = np.random.default_rng(streams)
    for throttle in (0.02, 0.1, 0.3, 0.6, 0.95):
        statistics = random_statistics(random, streams=streams, bins=bins)
        model = CostModel.of(statistics)
        budget = throttle * model.full_cost
        assert forward(model, budget, metric).tolist() == greedy_pick(statistics, budget, metric)


@given(joins(most_streams=4, most_bins=4), st.floats(0.0, 1.0), st.sampled_from(sorted(METHODS)))
def test_every_optimiser_keeps_within_the_budget(statistics: Statistics, throttle: float, method: str) -> None:
    model = CostModel.of(statistics)
    if method == "exhaustive" and number_of_settings(model) > 10**5:
        return
    setting = optimise(model, throttle, method)
    assert setting.cost <= throttle * model.full_cost * (1 + 1e-8)
    assert all(all(row) or not any(row) for row in setting.counts)


@pytest.mark.parametrize(("streams", "bins"), [(3, 5), (3, 10), (4, 5), (4, 10)])
def test_it_looks_at_few_settings(streams: int, bins: int) -> None:
    """GJ-18, GJ-30: at most m (m-1)^2 sum n settings, and a thousandth of all there are at m = 3, n = 10."""
    for seed in range(5):
        model = model_of(seed, streams, bins)
        for throttle in (0.1, 0.5, 0.99):
            considered = ascend(model, throttle * model.full_cost).considered
            total_bins = streams * bins
            assert len(considered) <= (streams - 1) * total_bins + 1
            assert max(considered) <= streams * (streams - 1)
            assert sum(considered) <= streams * (streams - 1) ** 2 * total_bins
            if (streams, bins) == (3, 10):
                assert 1000 * sum(considered) < number_of_settings(model)


@pytest.mark.parametrize(("bins", "settings"), [(5, 15_625), (10, 1_000_000), (20, 64_000_000)])
def test_brute_force_tries_every_setting(bins: int, settings: int) -> None:
    """GJ-13."""
    assert number_of_settings(model_of(0, bins=bins)) == settings


def test_brute_force_refuses_what_it_cannot_finish() -> None:
    with pytest.raises(PlanError, match="settings are too many"):
        exhaustive(model_of(0, streams=4, bins=10), 1.0)


def test_brute_force_finds_the_optimum_of_small_joins() -> None:
    """GJ-14: m = 3, n = 2; with too little work for one bin a step, nothing is chosen."""
    for seed in range(20):
        model = model_of(seed, bins=2)
        every = [(0, 0), (1, 1), (1, 2), (2, 1), (2, 2)]
        settings = [[one, two, three] for one in every for two in every for three in every]
        for throttle in (0.001, 0.2, 0.5, 0.8):
            budget = throttle * model.full_cost
            best = max(output for cost, output in map(model.tally, settings) if cost <= budget)
            assert model.tally(exhaustive(model, budget))[1] == pytest.approx(best, abs=1e-6)
            assert model.tally(forward(model, budget))[1] <= best * (1 + 1e-9)
        cheapest = min(
            model.tally([row if i == d else (0, 0) for i, row in enumerate([(1, 1)] * 3)])[0] for d in range(3)
        )
        for method in ("exhaustive", METRICS[2], "auto"):
            assert optimise(model, 0.99 * cheapest / model.full_cost, method).output == 0.0


def test_the_walk_of_figure_5() -> None:
    """GJ-21: from 0.2 everywhere in tenths; z31 and z32 are frozen, z21 chosen; the figure's inputs are not given."""
    flat, steep = (0.1,) * 10, tuple(0.5**k for k in range(10))
    steps = (
        (StepStatistics(1, 0.01, flat), StepStatistics(2, 0.003, flat)),
        (StepStatistics(0, 0.003, flat), StepStatistics(2, 0.01, steep)),
        (StepStatistics(0, 0.03, flat), StepStatistics(1, 0.03, flat)),
    )
    rates = tuple(StreamStatistics(hz, 10.0) for hz in (10.0, 100.0, 100.0))
    model = CostModel.of(Statistics(rates, steps))
    start = [[2, 2], [2, 2], [2, 2]]
    budget = 1.15 * model.tally(start)[0]
    infeasible = [(i, j) for i in range(3) for j in range(2) if model.tally(one_more(start, i, j))[0] > budget]
    assert infeasible == [(2, 0), (2, 1)]
    walk = ascend(model, budget, start=start)
    assert walk.considered == (6, 4, 2)
    assert walk.counts.tolist() == [[2, 2], [4, 2], [2, 2]]


def one_more(counts: list[list[int]], direction: int, step: int) -> list[list[int]]:
    """The setting with one bin more in one step."""
    return [[n + ((i, j) == (direction, step)) for j, n in enumerate(row)] for i, row in enumerate(counts)]


@pytest.mark.parametrize(("streams", "throttle"), [(3, 0.5), (4, 0.3535534), (5, 0.25)])
def test_double_sided_changes_sides(streams: int, throttle: float) -> None:
    """GJ-32."""
    assert switch_throttle(streams) == pytest.approx(throttle, rel=1e-6)
    model = model_of(1, streams, 6)
    below, above = 0.98 * throttle * model.full_cost, 1.02 * throttle * model.full_cost
    assert (double_sided(model, below) == forward(model, below)).all()
    assert (double_sided(model, above) == reverse(model, above)).all()


@pytest.mark.parametrize("streams", [3, 4, 5])
def test_steps_grow_with_the_throttle_from_below_and_shrink_from_above(streams: int) -> None:
    """GJ-31: a step changes one count, or one direction's first ones."""
    upward, downward = [], []
    for throttle in (0.05, 0.3, 0.95):
        models = [model_of(seed, streams, 8) for seed in range(8)]
        upward.append(sum(len(ascend(model, throttle * model.full_cost).considered) for model in models))
        downward.append(sum(int((model.bins - reverse(model, throttle * model.full_cost)).sum()) for model in models))
    assert upward == sorted(upward)
    assert downward == sorted(downward, reverse=True)


Setting = tuple[str, tuple[float, float]]

SETTINGS: dict[str, Setting] = {
    "flat": ("flat", (1e-4, 1e-2)),
    "one peak": ("gaussian", (1e-4, 1e-2)),
    "two peaks": ("two-peaked", (1e-4, 1e-2)),
    "few matches": ("gaussian", (1e-4, 1e-3)),
    "many matches": ("gaussian", (1e-3, 1e-2)),
}


@cache
def optimality(setting: str, throttle: float, rounds: int = 40) -> dict[str, float]:
    """Mean share of the optimum that each metric reaches."""
    lags, selectivities = SETTINGS[setting]
    random = np.random.default_rng(11)
    shares: dict[str, list[float]] = {metric: [] for metric in (*METRICS, "auto")}
    for _ in range(rounds):
        statistics = random_statistics(random, streams=3, bins=10, lags=lags, selectivities=selectivities)
        model = CostModel.of(statistics)
        best = optimise(model, throttle, "exact").output
        for metric, found in shares.items():
            found.append(optimise(model, throttle, metric).output / best)
    return {metric: float(np.mean(found)) for metric, found in shares.items()}


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("throttle", [0.1, 0.25, 0.4, 0.6, 0.8])
def test_the_best_metric_is_good_and_auto_is_better(setting: str, throttle: float) -> None:
    """GJ-27, 28, 28b, 29: Figure 7's .98 and 1.0 hold for some selectivities only; these thresholds are fair."""
    mean = optimality(setting, throttle)
    assert mean[METRICS[2]] >= (0.88 if throttle < 0.5 else 0.96)
    assert mean[METRICS[2]] >= max(mean[METRICS[0]], mean[METRICS[1]]) - 0.1
    assert mean["auto"] >= max(1.0, *(mean[metric] for metric in METRICS)) - 0.002


def test_the_figures_of_the_paper_hold_for_one_peak_and_many_matches() -> None:
    """GJ-27, GJ-29b: the last metric within .98, output per cost good below z = .2 only, output from .4 on only."""
    little, some, half, much = (optimality("many matches", throttle) for throttle in (0.1, 0.25, 0.4, 0.8))
    last, output, output_per_cost = METRICS[2], METRICS[0], METRICS[1]
    assert min(mean[last] for mean in (little, some, half, much)) >= 0.97
    assert little[output_per_cost] > max(some[output_per_cost], half[output_per_cost])
    assert little[output] < half[output] < much[output]
    assert half[output] > half[output_per_cost]


def test_unknown_names_are_refused() -> None:
    model = model_of(0, bins=2)
    with pytest.raises(PlanError, match="no optimiser 'x'"):
        optimise(model, 0.5, "x")
    with pytest.raises(PlanError, match="no metric 'x'"):
        forward(model, 1.0, "x")
    with pytest.raises(PlanError, match="a share of the full work, not nan"):
        optimise(model, float("nan"))
