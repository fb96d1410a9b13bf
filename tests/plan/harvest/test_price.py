"""The price: every price bounds the output, the one that is found does so best."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plan.joins import joins
from windrow.plan.cost import CostModel, Statistics
from windrow.plan.harvest.price import choose_all, priced

ROUNDING = 1e-9


@given(joins(most_streams=4, most_bins=4), st.floats(1e-6, 1e6), st.data())
def test_no_setting_is_worth_more_than_the_one_of_a_price(
    statistics: Statistics, share: float, data: st.DataObject
) -> None:
    model = CostModel.of(statistics)
    cost, output = model.tally(model.bins)
    price = share * output / cost if cost else 0.0
    counts = np.zeros_like(model.bins)
    worth = choose_all(model.driver_hz, model.bins, model.seconds, model.results, price, counts)
    spent, found = model.tally(counts)
    scale = output + price * cost
    assert found - price * spent == pytest.approx(worth, rel=ROUNDING, abs=ROUNDING * scale)
    other = [[data.draw(st.integers(0, bins)) for bins in row] for row in model.bins.tolist()]
    spent, found = model.tally(other)
    assert found - price * spent <= worth + ROUNDING * scale


@given(joins(), st.floats(0.01, 0.99), st.floats(1e-3, 1e3))
def test_no_other_price_gives_a_lower_bound(statistics: Statistics, throttle: float, factor: float) -> None:
    model = CostModel.of(statistics)
    cost, output = model.tally(model.bins)
    if cost == 0:
        return
    budget = throttle * cost
    arrays = model.driver_hz, model.bins, model.seconds, model.results
    counts, found, bound, price = priced(*arrays, budget, 0.0)
    other = price * factor
    assert choose_all(*arrays, other, np.zeros_like(model.bins)) + other * budget >= bound - ROUNDING * output
    assert model.tally(counts)[0] <= budget * (1 + ROUNDING)
    assert model.tally(counts)[1] == pytest.approx(found, rel=ROUNDING, abs=ROUNDING * output)
    assert found <= bound * (1 + ROUNDING)
