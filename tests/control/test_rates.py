"""Rates: rows a second, followed within two intervals; what a window holds, of time or of rows."""

from __future__ import annotations

import json

import pytest

from tests.plan.queries import SCHEMA
from windrow.control.observation import Arrival, Joined, Observation
from windrow.control.rates import LEAST_HZ, Rates
from windrow.query.sql import parse

SPEC = parse("SELECT a.x AS out FROM t AS a, t AS b WHERE a.x = b.x WINDOW a 10 SECONDS, b ROWS 40", {"t": SCHEMA})


def batch(number: int, rows: dict[str, int], span_s: float = 1.0) -> Observation:
    arrivals = {name: Arrival(count, stored=7) for name, count in rows.items()}
    return Observation(number, number * span_s, span_s, 0.1, arrivals, Joined())


def after(*batches: Observation) -> Rates:
    rates = Rates()
    for one in batches:
        rates = rates.after(one, interval_s=5.0)
    return rates


def test_a_steady_rate_is_known_from_the_first_batch_on() -> None:
    assert after(batch(1, {"a": 30})).hz == {"a": 30.0}
    assert after(*(batch(k, {"a": 30}) for k in range(1, 20))).hz == {"a": pytest.approx(30.0)}


@pytest.mark.parametrize("span_s", [0.2, 1.0, 5.0])
def test_a_step_is_followed_within_two_intervals_however_long_batches_are(span_s: float) -> None:
    before = [batch(k, {"a": round(30 * span_s)}, span_s) for k in range(1, 100)]
    later = [batch(k, {"a": round(90 * span_s)}, span_s) for k in range(100, 100 + round(10 / span_s))]
    assert 85 < after(*before, *later).hz["a"] <= 90


def test_windows_of_time_and_of_rows() -> None:
    filled = after(batch(1, {"a": 30, "b": 5}))
    rates = Rates(filled.hz)
    a, b = (rates.stream(SPEC.stream(name)) for name in ("a", "b"))
    assert (a.rate_hz, a.window_s, a.rows) == (30.0, 10.0, 300.0)
    assert (b.rate_hz, b.window_s, b.rows) == (5.0, 8.0, 40.0)
    assert Rates().stream(SPEC.stream("a")).rate_hz == LEAST_HZ


def test_a_window_is_taken_to_fill_up_and_holds_what_it_holds_when_rates_fall() -> None:
    filling = after(batch(1, {"a": 30, "b": 5}))
    assert filling.stream(SPEC.stream("a")).rows == pytest.approx(300)
    fallen = Rates({"a": 1.0, "b": 1.0}, {"a": 250, "b": 40})
    assert fallen.stream(SPEC.stream("a")).rows == pytest.approx(250)
    assert fallen.stream(SPEC.stream("b")).rows == pytest.approx(40)


def test_a_batch_without_a_span_says_nothing_and_the_state_comes_back() -> None:
    rates = after(batch(1, {"a": 30}))
    assert rates.after(batch(2, {"a": 100}, span_s=0.0), 5.0) == rates
    assert Rates.from_values(json.loads(json.dumps(rates.to_values()))) == rates
