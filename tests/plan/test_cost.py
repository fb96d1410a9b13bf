"""The cost model: its sums against every combination of bins, and the paper's numbers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plan.joins import joins
from tests.plan.naive_cost import best_bins, cost_and_output
from windrow.errors import PlanError
from windrow.plan.cost import CostModel, Statistics, StepCost, StepStatistics, StreamStatistics, bins_of
from windrow.plan.harvest import chosen_bins

TEN_ROWS = StreamStatistics(rate_hz=1.0, window_s=10.0)


def pair(scores: tuple[float, ...], selectivity: float = 0.1) -> CostModel:
    """Two streams of ten rows each."""
    steps = tuple((StepStatistics(other, selectivity, scores),) for other in (1, 0))
    return CostModel.of(Statistics((TEN_ROWS, TEN_ROWS), steps))


@given(joins(most_streams=4, most_bins=3), st.data())
def test_cost_and_output_are_sums_over_all_combinations_of_bins(statistics: Statistics, data: st.DataObject) -> None:
    model = CostModel.of(statistics)
    counts = [[data.draw(st.integers(0, bins)) for bins in row] for row in model.bins.tolist()]
    assert model.tally(counts) == pytest.approx(cost_and_output(statistics, counts), rel=1e-9)
    output = float((model.driver_hz * model.probes(counts)[:, -1]).sum())
    assert output == pytest.approx(model.tally(counts)[1], rel=1e-9)


@given(joins())
def test_bins_are_ranked_by_score_per_row(statistics: Statistics) -> None:
    model = CostModel.of(statistics)
    for i, steps in enumerate(statistics.directions):
        for j, step in enumerate(steps):
            assert model.ranking[i, j, : len(step.scores)].tolist() == best_bins(step, len(step.scores))


@pytest.mark.parametrize(("window_s", "bin_s", "bins"), [(20, 2, 10), (10, 2, 5), (10, 1, 10), (7, 2, 4)])
def test_a_window_has_as_many_basic_windows_as_it_takes_to_cover_it(window_s: float, bin_s: float, bins: int) -> None:
    """GJ-01."""
    assert bins_of(window_s, bin_s) == bins


def test_the_best_bins_are_searched_first() -> None:
    """GJ-07 and GJ-09: the example of Figure 3, and a ranking; bins are numbered from 1 in the paper."""
    assert (pair((0.1, 0.4, 0.2, 0.3)).ranking[0, 0] + 1).tolist() == [2, 4, 3, 1]
    ranked_4_3_5, ranked_3_2 = (0.1, 0.1, 0.2, 0.4, 0.15), (0.0, 0.3, 0.6, 0.05, 0.05)
    steps = (
        (StepStatistics(2, 0.1, ranked_4_3_5), StepStatistics(1, 0.1, ranked_3_2)),
        (StepStatistics(2, 0.1, ranked_4_3_5), StepStatistics(0, 0.1, ranked_3_2)),
        (StepStatistics(0, 0.1, ranked_4_3_5), StepStatistics(1, 0.1, ranked_3_2)),
    )
    model = CostModel.of(Statistics((TEN_ROWS,) * 3, steps))
    searched = chosen_bins(model, np.array([[3, 2]] * 3))
    assert [[k + 1 for k in bins] for bins in searched[0]] == [[3, 4, 5], [2, 3]]


def test_flat_lags_yield_what_is_searched() -> None:
    """GJ-11."""
    probes = pair((0.2,) * 5).probes([[3], [3]])
    assert probes[0].tolist() == pytest.approx([1.0, 0.6])


@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=20))
def test_the_best_bins_yield_at_least_their_share(scores: list[float]) -> None:
    """GJ-12: P >= z where bins are taken in order of rank."""
    model = pair(tuple(scores))
    shares = model.results[0, 0] / model.results[0, 0, -1]
    assert (shares >= np.linspace(0, 1, len(scores) + 1) - 1e-12).all()


@pytest.mark.parametrize(("streams", "fractions"), [(3, 6), (4, 12), (5, 20)])
def test_there_is_one_harvest_fraction_a_direction_and_step(streams: int, fractions: int) -> None:
    """GJ-08."""
    steps = tuple(
        tuple(StepStatistics(other, 0.1, (1.0,)) for other in range(streams) if other != driver)
        for driver in range(streams)
    )
    assert CostModel.of(Statistics((TEN_ROWS,) * streams, steps)).bins.size == fractions


@pytest.mark.parametrize("throttle", [0.1, 0.5, 1.0])
def test_shredding_costs_the_throttle(throttle: float) -> None:
    """GJ-22: the share z of the first window, spread evenly, then all of the others."""
    steps = tuple(
        tuple(StepStatistics(other, 0.3, (0.1,) * 10) for other in range(3) if other != driver) for driver in range(3)
    )
    model = CostModel.of(Statistics((TEN_ROWS, StreamStatistics(5.0, 10.0), TEN_ROWS), steps))
    counts = [[round(throttle * 10), 10]] * 3
    assert model.tally(counts)[0] == pytest.approx(throttle * model.full_cost, abs=1e-9)


def test_costs_are_those_of_the_method() -> None:
    cost = StepCost(per_probe=1e-6, per_candidate=1e-8, per_result=1e-7)
    step = StepStatistics(1, 0.2, (0.5, 0.5), candidate_share=0.5, cost=cost)
    model = CostModel.of(Statistics((TEN_ROWS, TEN_ROWS), ((step,), (StepStatistics(0, 0.0, (1.0,)),))))
    assert model.seconds[0, 0].tolist() == pytest.approx([0.0, 1e-6 + 2.5e-8 + 1e-7, 1e-6 + 5e-8 + 2e-7])
    assert cost.seconds(probes=1, candidates=5, results=2) == pytest.approx(model.seconds[0, 0, 2])


def test_bins_of_negative_lags_are_bins_like_others() -> None:
    """Two bins of rows newer than the driver come on top of the window's own four."""
    widths, scores = (0.25,) * 6, (0.0, 0.4, 0.3, 0.2, 0.1, 0.0)
    steps = tuple((StepStatistics(other, 0.1, scores, widths),) for other in (1, 0))
    model = CostModel.of(Statistics((TEN_ROWS, TEN_ROWS), steps))
    assert model.full_cost == pytest.approx(2 * 15.0)
    assert model.ranking[0, 0].tolist() == [1, 2, 3, 4, 0, 5]


WRONG: dict[str, Callable[[], object]] = {
    "2 scores for 3 bins": lambda: StepStatistics(1, 0.1, (0.5, 0.5), (0.1, 0.2, 0.7)),
    "scores are shares": lambda: StepStatistics(1, 0.1, (0.5, -0.5)),
    "bins cannot have the widths": lambda: StepStatistics(1, 0.1, (0.5, 0.5), (0.0, 1.0)),
    "are numbers from 0 on": lambda: StepStatistics(1, float("nan"), (1.0,)),
    "2 streams with 1 directions": lambda: Statistics((TEN_ROWS,) * 2, ((StepStatistics(1, 0.1, (1.0,)),),)),
    "a stream cannot have": lambda: Statistics(
        (TEN_ROWS, StreamStatistics(1.0, 0.0)), tuple((StepStatistics(other, 0.1, (1.0,)),) for other in (1, 0))
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_statistics_that_mean_nothing_are_refused(message: str) -> None:
    with pytest.raises(PlanError, match=message):
        WRONG[message]()


def test_an_order_visits_every_other_stream_once() -> None:
    """GJ-05."""
    for first, second in product(range(3), repeat=2):
        steps = (StepStatistics(first, 0.1, (1.0,)), StepStatistics(second, 0.1, (1.0,)))
        others = tuple(
            tuple(StepStatistics(other, 0.1, (1.0,)) for other in range(3) if other != driver) for driver in (1, 2)
        )
        if {first, second} == {1, 2}:
            assert Statistics((TEN_ROWS,) * 3, (steps, *others)).directions[0] == steps
        else:
            with pytest.raises(PlanError, match="direction 0 visits"):
                Statistics((TEN_ROWS,) * 3, (steps, *others))
