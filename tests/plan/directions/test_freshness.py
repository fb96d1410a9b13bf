"""Ages and refresh rates; and a small simulation of what they say: rows pushed out by those that come after them."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

from windrow.plan.directions import Join, Model, State, ages_s, is_fresh, paths, refresh_rates, stream
from windrow.plan.directions.instances import random_model, times_window


def oldest_leaving_s(rows: int, rate_hz: float, entering_ages_s: float) -> float:
    """The age at which rows leave a state of so many rows, if they come evenly and are of this age when they do."""
    state: deque[float] = deque(maxlen=rows)
    for number in range(3 * rows):
        if len(state) == rows:
            left = state[0]
        state.append(number / rate_hz - entering_ages_s)
    return (3 * rows - 1) / rate_hz - left


def test_a_row_leaves_a_state_after_it_was_refreshed_once() -> None:
    assert oldest_leaving_s(50, 10.0, entering_ages_s=3.0) == pytest.approx(50 / 10 + 3.0)


def test_ages_are_sums_over_all_own_states() -> None:
    """JQ-19: the leaf's window and every state above it, the last one included."""
    model = random_model(np.random.default_rng(2), 5, "linear")
    stored_hz = np.array([100.0, 200.0, 400.0])
    kept_s = {str(state): state.state.rows / rate for state, rate in zip(model.states, stored_hz, strict=True)}
    for age, path in zip(ages_s(model, stored_hz), paths(model.tree), strict=True):
        leaf, *above = [step.node for step in path.steps]
        wanted = path.driver.state.rows / path.driver.rate_hz + sum(kept_s[str(node)] for node in above)
        assert str(leaf) == path.driver.name
        assert age == pytest.approx(wanted)
    assert len(paths(model.tree)[0].steps) == 4


@pytest.mark.parametrize("shape", ["linear", "bushy", "mixed"])
def test_refresh_rates_keep_what_is_asked(shape: str) -> None:
    for seed in range(20):
        model = random_model(np.random.default_rng(seed), 3 + seed % 6, shape)
        wanted_s = model.per_stream(times_window(model, 1.5 + seed % 4))
        refresh_hz = refresh_rates(model, wanted_s)
        assert is_fresh(model, refresh_hz, wanted_s)
        for state in range(len(refresh_hz)):
            slower = refresh_hz.copy()
            slower[state] *= 0.2
            assert not is_fresh(model, slower, wanted_s)


def test_only_streams_that_ask_count() -> None:
    model = random_model(np.random.default_rng(2), 4, "linear")
    assert refresh_rates(model, model.per_stream({})).tolist() == [0.0, 0.0]
    asked = refresh_rates(model, model.per_stream({"c": 1e3}))
    assert asked[0] == 0
    assert asked[1] == pytest.approx(model.state_rows[1] / (1e3 - model.window_s[2]))
    assert refresh_rates(model, model.window_s.copy()).tolist() == [np.inf, np.inf]


def test_an_empty_state_is_always_fresh() -> None:
    pair = Join(stream("a", 10, 20, 0.1), stream("b", 10, 30, 0.1), State(0, 0.1))
    model = Model.of(Join(pair, stream("c", 10, 40, 0.1)))
    assert ages_s(model, np.zeros(1)).tolist() == [2.0, 3.0, 4.0]
    assert refresh_rates(model, model.per_stream({"a": 3.0})).tolist() == [0.0]
