"""Whose turn it is: predictions against a slow and obvious count, and choices that follow from them."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import PlanError
from windrow.plan.cost import StepCost
from windrow.plan.drivers import AUTO, order_of_drivers, policy_named
from windrow.plan.turns import Load, Prospect, favoured, forecast, guessed

COST = StepCost(1e-7, 1e-8, 5e-8)
NAMES = ("a", "b", "c")
LOADS = st.tuples(*[st.builds(Load, st.integers(0, 500), st.integers(0, 500), st.integers(1, 1000)) for _ in NAMES])


def prospects(found: float = 0.01) -> dict[str, tuple[Prospect, ...]]:
    return {d: tuple(Prospect(t, found, 2 * found, COST) for t in NAMES if t != d) for d in NAMES}


@given(LOADS, st.permutations(NAMES))
def test_a_forecast_is_what_a_count_of_rows_gives(held: tuple[Load, ...], order: list[str]) -> None:
    """With one segment each, and rows that are seen where they are stored or drove before."""
    loads = dict(zip(NAMES, held, strict=True))
    seconds = results = 0.0
    stored = {name: load.stored for name, load in loads.items()}
    for driver in order:
        probes = float(loads[driver].buffered)
        for target in (name for name in NAMES if name != driver):
            segments = 2 if order.index(target) < order.index(driver) else 1
            pairs = probes * stored[target]
            seconds += 1e-7 * probes * segments / 2 + 1e-8 * 0.02 * pairs + 5e-8 * 0.01 * pairs
            probes = 0.01 * pairs
        results += probes
        stored[driver] += loads[driver].buffered
    predicted = forecast(tuple(order), loads, prospects())
    assert predicted.total_s == pytest.approx(seconds)
    assert predicted.results == pytest.approx(results)
    assert predicted.wait_s <= predicted.total_s * (1 + 1e-9)


@given(LOADS)
def test_results_do_not_depend_on_the_order(held: tuple[Load, ...]) -> None:
    loads = dict(zip(NAMES, held, strict=True))
    counts = {round(forecast(order, loads, prospects()).results, 6) for order in permutations(NAMES)}
    assert len(counts) == 1


@given(LOADS)
def test_nothing_else_is_predicted_to_be_better(held: tuple[Load, ...]) -> None:
    loads = dict(zip(NAMES, held, strict=True))
    by_time = forecast(None, loads, prospects())
    all_orders = [forecast(order, loads, prospects()) for order in permutations(NAMES)]
    least = forecast(favoured("total", loads, prospects()), loads, prospects())
    assert least.total_s <= by_time.total_s
    assert least.total_s <= min(each.total_s for each in all_orders) / 0.99 * (1 + 1e-9)
    first = forecast(favoured("early", loads, prospects()), loads, prospects())
    assert first.total_s <= 1.05 * by_time.total_s * (1 + 1e-9)
    assert first.wait_s <= by_time.wait_s


def test_many_streams_choose_among_the_simple_orders() -> None:
    names = "abcde"
    loads = {name: Load(10 * place, 1000, 1000) for place, name in enumerate(names, start=1)}
    held = guessed(loads, 10**6, COST)
    simple = [tuple("edcba"), tuple("abcde")]
    assert favoured("early", loads, held, simple) in (*simple, None)
    assert favoured("total", loads, held, []) is None


def test_where_nothing_is_known() -> None:
    """Before the first result: output size for early results, event time for the least work; then counts alone."""
    loads = {"a": Load(1, 10, 10), "b": Load(5, 10, 10)}
    assert order_of_drivers("auto_early", loads, 0, 0) == ("b", "a")
    assert order_of_drivers("auto_total", loads, 0, 0) is None
    assert order_of_drivers("auto_early", loads, 10, 3) in (("a", "b"), ("b", "a"), None)
    chances = [
        step.found for steps in guessed({"a": Load(0, 0, 10), "b": Load(0, 0, 20)}, 20, COST).values() for step in steps
    ]
    assert chances == [0.1, 0.1]


def test_names() -> None:
    assert {policy_named("auto", favour) for favour in AUTO} == set(AUTO.values())
    for policy, favour in (("auto", "late"), ("timestamp", "early")):
        with pytest.raises(PlanError, match="favour"):
            policy_named(policy, favour)
    with pytest.raises(PlanError, match="nothing is favoured by 'late'"):
        favoured("late", {"a": Load(1, 1, 1), "b": Load(1, 1, 1)}, {"a": (), "b": ()})
