"""Regulated rates: the examples of window-joins, and that no other rates give more."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import PlanError
from windrow.plan.cost import Statistics, StepCost, StepStatistics, StreamStatistics
from windrow.plan.random_drop import keep_rates
from windrow.plan.regulation import keep_shares, output_hz, regulated_hz

RATES = st.lists(st.floats(0.1, 1e3), min_size=2, max_size=5)


@given(st.floats(0.1, 1e3), st.floats(0.1, 1e3), st.floats(0.01, 1.0))
def test_two_streams_share_alike(a_hz: float, b_hz: float, share: float) -> None:
    """KN-15: half each; what the slower one leaves goes to the other."""
    service = share * (a_hz + b_hz)
    slower = min(a_hz, b_hz)
    expected = (service / 2, service / 2) if slower >= service / 2 else (slower, service - slower)
    assert sorted(regulated_hz((a_hz, b_hz), service)) == pytest.approx(sorted(expected))


def test_the_strategies_of_figure_8() -> None:
    """KN-16."""
    splits = ((5, 5), (8, 2), (2, 8), (9, 1), (1, 9))
    assert [output_hz(0.02, split, (9, 1)) for split in splits] == pytest.approx([5.0, 3.2, 3.2, 1.8, 1.8])
    assert regulated_hz((80, 20), 10) == (5, 5)


def test_a_slow_stream_is_left_alone() -> None:
    """KN-17."""
    assert regulated_hz((5, 100), 50) == (5, 45)


@given(RATES, st.floats(0.01, 1.5), st.data())
def test_no_other_rates_give_more(rates: list[float], share: float, data: st.DataObject) -> None:
    service = share * sum(rates)
    best = regulated_hz(rates, service)
    assert sum(best) <= service * (1 + 1e-9)
    assert all(kept <= rate for kept, rate in zip(best, rates, strict=True))
    windows = [data.draw(st.floats(0.1, 100)) for _ in rates]
    other = np.array([data.draw(st.floats(0.01, 1.0)) for _ in rates]) * rates
    other *= min(1.0, service / other.sum())
    assert output_hz(1.0, other.tolist(), windows) <= output_hz(1.0, best, windows) * (1 + 1e-9)


@pytest.mark.parametrize("rates", [(80.0, 20.0), (5.0, 100.0), (5.0, 100.0, 60.0), (10.0, 10.0, 10.0, 2.0)])
@pytest.mark.parametrize("throttle", [0.1, 0.4, 0.8])
def test_the_general_optimum_is_the_same_where_rows_cost_the_same(rates: tuple[float, ...], throttle: float) -> None:
    """`keep_rates` with a cost of one a row that probes, and nothing for what it finds."""
    a_row = StepCost(per_probe=1.0, per_candidate=0.0, per_result=0.0)
    others = [[k for k in range(len(rates)) if k != driver] for driver in range(len(rates))]
    directions = tuple(
        tuple(
            StepStatistics(target, 0.01, (1.0,), cost=a_row if number == 0 else StepCost(0, 0, 0))
            for number, target in enumerate(order)
        )
        for order in others
    )
    statistics = Statistics(tuple(StreamStatistics(rate, 10.0) for rate in rates), directions)
    service = throttle * sum(rates)
    shares = keep_shares(rates, service)
    assert keep_rates(statistics, throttle).keep == pytest.approx(shares, rel=2e-3)
    assert keep_rates(statistics, throttle).recall == pytest.approx(math.prod(shares), rel=1e-4)


def test_streams_without_rows_are_kept() -> None:
    assert keep_shares((0.0, 10.0), 5.0) == (1.0, 0.5)


@pytest.mark.parametrize(
    ("rates", "service", "says"),
    [((1.0,), 1.0, "cannot come"), ((1.0, -1.0), 1.0, "cannot come"), ((1.0, 1.0), math.nan, "says nothing")],
)
def test_what_makes_no_sense_is_refused(rates: tuple[float, ...], service: float, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        regulated_hz(rates, service)
    with pytest.raises(PlanError, match="3 rates for 2 windows"):
        output_hz(1.0, (1, 1, 1), (1, 1))
