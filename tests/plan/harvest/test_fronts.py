"""Fronts: what every setting and every sum says, without what something else makes useless."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plan.joins import joins
from windrow.plan.cost import CostModel, Statistics, tally_direction
from windrow.plan.harvest.fronts import Front, best_pair, direction_front, exact_sum_of_fronts, sum_of_fronts

ROUNDING = 1e-12

Points = list[tuple[float, float]]

fronts = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=12)


def useful(points: Points) -> Points:
    """The points that none other is at least as good as."""
    found: Points = []
    for cost, output in sorted(points, key=lambda point: (point[0], -point[1])):
        if not found or output > found[-1][1]:
            found.append((cost, output))
    return found


def arrays(points: Points) -> Front:
    front = np.array(useful(points), np.float64)
    return front[:, 0].copy(), front[:, 1].copy(), np.arange(len(front))


@given(joins(most_streams=3, most_bins=4))
def test_a_front_holds_every_useful_setting(statistics: Statistics) -> None:
    model = CostModel.of(statistics)
    settings = product(*(range(1, bins + 1) for bins in model.bins[0].tolist()))
    every = [(0.0, 0.0)]
    every += [tally_direction(model.seconds[0], model.results[0], np.array(counts)) for counts in settings]
    cost, output, code = direction_front(model.bins[0], model.seconds[0], model.results[0], np.inf, 0.0, np.inf, 0.0)
    assert (np.diff(cost) >= 0).all()
    assert (np.diff(output) > 0).all()
    for spent, found in every:
        assert output[cost <= spent * (1 + ROUNDING)].max() >= found * (1 - ROUNDING)
    base = int(model.bins[0].max()) + 1
    for place, number in enumerate(code.tolist()):
        counts_of = np.array([number // base**j % base for j in range(model.bins.shape[1])])
        assert tally_direction(model.seconds[0], model.results[0], counts_of) == pytest.approx(
            (cost[place], output[place]), rel=ROUNDING
        )


@given(joins(most_streams=4, most_bins=5), st.sampled_from((0.01, 0.1, 0.5)))
def test_a_thinned_front_has_a_stand_in_for_every_point(statistics: Statistics, thinning: float) -> None:
    model = CostModel.of(statistics)
    direction = model.bins[0], model.seconds[0], model.results[0], np.inf, 0.0, np.inf
    full, thin = (direction_front(*direction, share) for share in (0.0, thinning))
    for cost, output in zip(full[0], full[1], strict=True):
        affordable = thin[1][thin[0] <= cost * (1 + ROUNDING)]
        assert affordable.max() >= output * (1 - thinning) * (1 - ROUNDING)


@given(fronts, fronts, st.integers(0, 80), st.sampled_from((0.0, 0.5, 1.0)))
def test_a_sum_holds_every_useful_pair(one: Points, other: Points, budget: int, price: float) -> None:
    first, second = arrays(one), arrays(other)
    floor = 5.0
    pairs = [
        (p_cost + q_cost, p_output + q_output)
        for p_cost, p_output in zip(*first[:2], strict=True)
        for q_cost, q_output in zip(*second[:2], strict=True)
        if p_cost + q_cost <= budget and p_output + q_output - price * (p_cost + q_cost) >= floor
    ]
    cost, output, code = exact_sum_of_fronts(first, second, float(budget), price, floor)
    assert list(zip(cost.tolist(), output.tolist(), strict=True)) == useful(pairs)
    width = len(second[0])
    assert [first[0][c // width] + second[0][c % width] for c in code] == cost.tolist()
    grain = 3.0
    coarse_cost, coarse_output, _ = sum_of_fronts(first, second, float(budget), price, floor, grain)
    assert set(zip(coarse_cost.tolist(), coarse_output.tolist(), strict=True)) <= set(pairs)
    for point_cost, point_output in pairs:
        assert coarse_output[coarse_cost <= point_cost].max() >= point_output - grain


@given(fronts, fronts, st.integers(0, 80))
def test_the_best_pair_is_the_best_that_fits(one: Points, other: Points, budget: int) -> None:
    first, second = arrays(one), arrays(other)
    fitting = [
        p_output + q_output
        for p_cost, p_output in zip(*first[:2], strict=True)
        for q_cost, q_output in zip(*second[:2], strict=True)
        if p_cost + q_cost <= budget
    ]
    best, p, q = best_pair(first, second, float(budget))
    assert best == (max(fitting) if fitting else -1.0)
    if fitting:
        assert first[0][p] + second[0][q] <= budget
        assert first[1][p] + second[1][q] == best
