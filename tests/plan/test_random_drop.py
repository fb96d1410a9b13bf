"""Random dropping at its best, and what harvesting gains over it in the cost model."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plan.correlated import ALIGNED, KAPPAS, NONALIGNED, correlated
from tests.plan.joins import joins
from windrow.errors import PlanError
from windrow.plan.cost import CostModel, Statistics, StepStatistics, StreamStatistics
from windrow.plan.harvest import mixture, optimise
from windrow.plan.harvest.instances import random_statistics
from windrow.plan.random_drop import keep_rates

NEAR = 1e-5


def thinned(statistics: Statistics, keep: tuple[float, ...]) -> CostModel:
    """The join of what is left when each stream keeps a share of its rows."""
    streams = tuple(
        StreamStatistics(stream.rate_hz * share, stream.window_s)
        for stream, share in zip(statistics.streams, keep, strict=True)
    )
    return CostModel.of(Statistics(streams, statistics.directions))


@given(joins(most_streams=4, most_bins=3), st.floats(0.01, 1.5))
def test_cost_and_output_are_those_of_the_thinner_streams(statistics: Statistics, throttle: float) -> None:
    full = CostModel.of(statistics)
    drop = keep_rates(statistics, throttle)
    assert all(0.0 <= share <= 1.0 for share in drop.keep)
    assert thinned(statistics, drop.keep).tally(full.bins) == pytest.approx((drop.cost, drop.output), rel=1e-9)
    assert drop.cost <= throttle * full.full_cost * (1 + 1e-9)
    assert drop.recall == pytest.approx(math.prod(drop.keep))


@given(joins(most_streams=4, most_bins=3), st.floats(0.01, 0.99), st.data())
def test_no_other_rates_give_more(statistics: Statistics, throttle: float, data: st.DataObject) -> None:
    drop = keep_rates(statistics, throttle)
    model = CostModel.of(statistics)
    other = [data.draw(st.floats(0.01, 1.0)) for _ in drop.keep]
    scale, limit = 1.0, throttle * model.full_cost
    while thinned(statistics, tuple(scale * share for share in other)).tally(model.bins)[0] > limit:
        scale *= 0.99
    assert math.prod(scale * share for share in other) <= drop.recall * (1 + NEAR)


@pytest.mark.parametrize("streams", [2, 3])
def test_a_grid_of_rates_finds_nothing_better(streams: int) -> None:
    random = np.random.default_rng(9)
    shares = np.linspace(0.02, 1.0, 50)
    for throttle in (0.1, 0.4, 0.8):
        statistics = random_statistics(random, streams=streams, bins=1)
        model = CostModel.of(statistics)
        drop = keep_rates(statistics, throttle)
        best = 0.0
        for first in shares:
            rest = [(float(first), float(share)) for share in shares] if streams == 3 else [(float(first),)]
            for fixed in rest:
                low, high = 0.0, 1.0
                for _ in range(12):
                    middle = (low + high) / 2
                    cost = thinned(statistics, (*fixed, middle)).tally(model.bins)[0]
                    low, high = (middle, high) if cost <= throttle * model.full_cost else (low, middle)
                best = max(best, math.prod((*fixed, low)))
        assert best <= drop.recall * (1 + NEAR)
        assert best >= drop.recall * 0.93


def test_two_alike_streams_share_the_loss() -> None:
    streams = (StreamStatistics(10.0, 10.0), StreamStatistics(10.0, 10.0))
    steps = tuple((StepStatistics(other, 0.01, (1.0,)),) for other in (1, 0))
    assert keep_rates(Statistics(streams, steps), 0.25).keep == pytest.approx((0.5, 0.5), rel=1e-4)


def test_with_all_the_work_everything_is_kept() -> None:
    statistics = random_statistics(np.random.default_rng(1), streams=3, bins=2)
    assert keep_rates(statistics, 1.0).keep == (1.0, 1.0, 1.0)


def test_a_throttle_that_means_nothing_is_refused() -> None:
    statistics = random_statistics(np.random.default_rng(1), streams=2, bins=2)
    with pytest.raises(PlanError, match="not 0"):
        keep_rates(statistics, 0.0)


def gain(statistics: Statistics, capacity: float, *, by_lot: bool = False) -> float:
    """By how much harvesting beats dropping when that much work can be done a second."""
    model = CostModel.of(statistics)
    throttle = capacity / model.full_cost
    output = mixture(model, throttle).output if by_lot else optimise(model, throttle).output
    return output / keep_rates(statistics, min(1.0, throttle)).output - 1


@pytest.mark.parametrize("taus", [ALIGNED, NONALIGNED])
def test_harvesting_gains_more_the_higher_the_rates(taus: tuple[float, ...]) -> None:
    """GJ-39: nothing below the capacity, above it at least the paper's 65 % aligned, 150 % nonaligned."""
    capacity = CostModel.of(correlated(100.0, taus, KAPPAS)).full_cost
    gains = [gain(correlated(rate, taus, KAPPAS), capacity) for rate in (50.0, 100.0, 125.0, 150.0, 200.0)]
    assert gains[:2] == pytest.approx([0.0, 0.0], abs=1e-6)
    assert gains == sorted(gains)
    assert gains[-1] >= (0.65 if taus == ALIGNED else 1.5)


def test_harvesting_gains_less_the_weaker_the_correlation() -> None:
    """GJ-40: at the same overload; without any correlation whole bins lose a little, which drawing lots puts right."""
    gains = []
    for weakest in (25.0, 50.0, 75.0, 150.0):
        statistics = correlated(100.0, NONALIGNED, (2.0, 2.0, weakest))
        gains.append(gain(statistics, CostModel.of(statistics).full_cost / 8))
    assert gains == sorted(gains, reverse=True)
    assert gains[0] >= 2.5
    statistics = correlated(100.0, NONALIGNED, (4000.0, 4000.0, 4000.0))
    capacity = CostModel.of(statistics).full_cost / 4
    assert -0.1 < gain(statistics, capacity) <= 0.001
    assert gain(statistics, capacity, by_lot=True) == pytest.approx(0.0, abs=0.01)


def test_harvesting_gains_more_the_more_streams_there_are() -> None:
    """GJ-41: at one capacity, which fewer streams overload less."""
    taus, kappas = (0.0, 5.0, 15.0, 9.0, 3.0), (2.0, 2.0, 2.0, 2.0, 2.0)
    capacity = CostModel.of(correlated(90.0, taus[:3], kappas[:3])).full_cost
    gains = [gain(correlated(100.0, taus[:m], kappas[:m]), capacity, by_lot=True) for m in (3, 4, 5)]
    assert gains == sorted(gains)
    assert gains[0] > 0
    assert gains[2] > 7.0


def test_a_dearer_condition_and_a_higher_rate_both_raise_the_gain() -> None:
    """GJ-44: Table II's multipliers at 75 rows a second, just above the capacity; as much on the rate gains more."""
    statistics = correlated(75.0, NONALIGNED, KAPPAS)
    capacity = CostModel.of(statistics).full_cost / 1.06
    multipliers = (1, 2, 4, 6, 8, 10)
    gains = [gain(statistics, capacity / multiplier) for multiplier in multipliers]
    assert gains == sorted(gains)
    assert gains[0] > 0
    for multiplier, dearer in zip(multipliers[1:3], gains[1:3], strict=True):
        assert gain(correlated(75.0 * multiplier, NONALIGNED, KAPPAS), capacity, by_lot=True) > dearer


@given(joins(most_streams=4, most_bins=3), st.floats(0.01, 0.99), st.data())
def test_rows_that_cost_by_themselves_are_paid_for_too(
    statistics: Statistics, throttle: float, data: st.DataObject
) -> None:
    model = CostModel.of(statistics)
    rows_s = tuple(data.draw(st.floats(0.0, 2.0)) * model.full_cost for _ in statistics.streams)
    drop = keep_rates(statistics, throttle, rows_s)
    probing = thinned(statistics, drop.keep).tally(model.bins)[0]
    assert drop.probing == pytest.approx(probing, rel=1e-6, abs=1e-9 * model.full_cost)
    assert drop.cost <= throttle * (model.full_cost + sum(rows_s)) * (1 + 1e-9)
    assert drop.cost >= throttle * (model.full_cost + sum(rows_s)) * (1 - 1e-3)
    with pytest.raises(PlanError, match="costs of rows"):
        keep_rates(statistics, throttle, (1.0,) * 9)
