"""The optimiser with a known distance: never far from the best of all settings, never above its own bound."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plan.joins import joins
from windrow.plan.cost import CostModel, Statistics, StepCost, StepStatistics, StreamStatistics
from windrow.plan.harvest import mixture, optimise, output_bound
from windrow.plan.harvest.bounded import MOST_CODES, PRECISION, within
from windrow.plan.harvest.instances import LAGS, random_statistics

THROTTLES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9)
REQUIRED = 0.99
ROUNDING = 1e-8


@given(joins(most_streams=3, most_bins=4), st.floats(0.0, 1.0))
def test_it_is_close_to_the_best_of_all_settings(statistics: Statistics, throttle: float) -> None:
    model = CostModel.of(statistics)
    best = optimise(model, throttle, "exhaustive").output
    ours = optimise(model, throttle)
    assert ours.output >= REQUIRED * best
    assert ours.output <= best * (1 + ROUNDING)
    assert optimise(model, throttle, "exact").output == pytest.approx(best, rel=ROUNDING)


@given(joins(most_streams=5, most_bins=6), st.floats(0.0, 1.0))
def test_it_keeps_within_budget_and_bound(statistics: Statistics, throttle: float) -> None:
    model = CostModel.of(statistics)
    setting = optimise(model, throttle)
    assert setting.cost <= throttle * model.full_cost * (1 + ROUNDING)
    assert setting.output <= output_bound(model, throttle) * (1 + ROUNDING)
    assert 0.0 <= setting.recall <= 1.0 + ROUNDING
    for row, bins in zip(setting.counts, model.bins.tolist(), strict=True):
        assert all(0 <= count <= most for count, most in zip(row, bins, strict=True))
        assert all(row) or not any(row)


@given(joins(most_streams=4, most_bins=6), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_more_work_never_yields_less(statistics: Statistics, one: float, other: float) -> None:
    model = CostModel.of(statistics)
    less, more = (optimise(model, throttle).output for throttle in sorted((one, other)))
    assert more >= less * (1 - PRECISION)
    bounds = [output_bound(model, throttle) for throttle in sorted((one, other))]
    assert bounds[0] <= bounds[1] * (1 + ROUNDING)


@given(joins(), st.floats(1.0, 4.0))
def test_with_all_the_work_everything_is_searched(statistics: Statistics, throttle: float) -> None:
    model = CostModel.of(statistics)
    setting = optimise(model, throttle)
    assert setting.counts == tuple(map(tuple, model.bins.tolist()))
    assert setting.recall == 1.0


@pytest.mark.parametrize("lags", LAGS)
@pytest.mark.parametrize("selectivities", [(1e-5, 1e-3), (1e-4, 1e-2), (1e-3, 1e-1)])
def test_it_is_close_to_the_optimum_at_the_size_of_the_paper(lags: str, selectivities: tuple[float, float]) -> None:
    """m = 3, n = 10, as in Figure 7, where the paper's own search falls to .65 in single cases."""
    random = np.random.default_rng(3)
    found = []
    for throttle in THROTTLES:
        for _ in range(25):
            statistics = random_statistics(random, streams=3, bins=10, lags=lags, selectivities=selectivities)
            model = CostModel.of(statistics)
            found.append(optimise(model, throttle).output / optimise(model, throttle, "exact").output)
    assert min(found) >= 1 - PRECISION
    assert max(found) <= 1 + ROUNDING


@pytest.mark.parametrize(("streams", "bins"), [(2, 10), (3, 10), (4, 3), (5, 2)])
def test_the_exact_optimum_is_that_of_all_settings(streams: int, bins: int) -> None:
    random = np.random.default_rng(4)
    for throttle in THROTTLES:
        model = CostModel.of(random_statistics(random, streams=streams, bins=bins))
        every, exact = (optimise(model, throttle, method) for method in ("exhaustive", "exact"))
        assert exact.output == pytest.approx(every.output, rel=ROUNDING)
        assert exact.output <= output_bound(model, throttle) * (1 + ROUNDING)


@pytest.mark.parametrize(("streams", "bins", "rounds"), [(4, 10, 20), (5, 20, 4), (6, 8, 3)])
def test_it_is_close_to_the_optimum_of_larger_joins(streams: int, bins: int, rounds: int) -> None:
    random = np.random.default_rng(5)
    for throttle in THROTTLES:
        for _ in range(rounds):
            model = CostModel.of(random_statistics(random, streams=streams, bins=bins))
            finer = within(model, throttle * model.full_cost, PRECISION / 5)
            assert optimise(model, throttle).output >= (1 - PRECISION) * model.tally(finer)[1] * (1 - ROUNDING)


@pytest.mark.parametrize("throttle", THROTTLES)
def test_costs_of_an_index_change_what_is_chosen_not_how_well(throttle: float) -> None:
    random = np.random.default_rng(6)
    cost = StepCost(per_probe=1e-5, per_candidate=1e-9, per_result=1e-7)
    for _ in range(10):
        model = CostModel.of(random_statistics(random, streams=3, bins=8, cost=cost))
        best = optimise(model, throttle, "exhaustive").output
        assert best * REQUIRED <= optimise(model, throttle).output <= best * (1 + ROUNDING)


@given(joins(most_streams=4, most_bins=6), st.floats(0.0, 1.2))
def test_drawing_lots_yields_the_bound(statistics: Statistics, throttle: float) -> None:
    model = CostModel.of(statistics)
    lots = mixture(model, throttle)
    assert 0.0 <= lots.share <= 1.0
    # Below the smallest normal number floats have few digits left, so that shares of 5e-324 are far off.
    assert lots.cost <= throttle * model.full_cost * (1 + ROUNDING) + sys.float_info.min
    bound = output_bound(model, throttle)
    assert lots.output == pytest.approx(bound, rel=1e-6, abs=ROUNDING * model.tally(model.bins)[1])
    assert lots.output >= optimise(model, throttle).output * (1 - ROUNDING)


def test_a_setting_that_costs_the_budget_to_the_last_bit_is_within_it() -> None:
    """Two directions alike, half of the work: one of them in full, although ten tenths are not one in floats."""
    streams = (StreamStatistics(0.1, 10.0), StreamStatistics(0.1, 10.0))
    steps = tuple((StepStatistics(other, 0.1, (0.1,) * 10),) for other in (1, 0))
    setting = optimise(CostModel.of(Statistics(streams, steps)), 0.5)
    assert sum(count for (count,) in setting.counts) == 10


def test_bins_that_yield_nothing_are_left_out() -> None:
    streams = (StreamStatistics(1.0, 10.0), StreamStatistics(1.0, 10.0))
    steps = tuple((StepStatistics(other, 0.1, (0.5, 0.0, 0.5, 0.0)),) for other in (1, 0))
    assert optimise(CostModel.of(Statistics(streams, steps)), 0.9).chosen == (((0, 2),), ((0, 2),))


def test_a_stream_at_rest_takes_no_budget() -> None:
    streams = (StreamStatistics(0.0, 10.0), StreamStatistics(1.0, 10.0))
    steps = tuple((StepStatistics(other, 0.1, (0.5, 0.5)),) for other in (1, 0))
    setting = optimise(CostModel.of(Statistics(streams, steps)), 0.5)
    assert (setting.cost, setting.output, setting.recall) == (0.0, 0.0, 1.0)


def test_joins_too_large_to_number_get_a_feasible_setting() -> None:
    model = CostModel.of(random_statistics(np.random.default_rng(8), streams=13, bins=40))
    assert MOST_CODES < 41**12
    setting = optimise(model, 0.1)
    assert 0 < setting.output <= output_bound(model, 0.1)
    assert setting.cost <= 0.1 * model.full_cost * (1 + ROUNDING)
