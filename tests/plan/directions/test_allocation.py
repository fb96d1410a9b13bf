"""Allocations of random trees against slow twins, each other and what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.plan.directions.naive import best_by_nodes, best_on_grid, grid_step, ways
from windrow.errors import PlanError
from windrow.plan.directions import (
    HEURISTICS,
    Join,
    Model,
    State,
    allocate,
    freshest_output,
    greedy_cover,
    grepp,
    is_fresh,
    jaqpot,
    joins,
    least_cover,
    least_freshness,
    least_resources,
    most_output,
    refresh_rates,
    stored_by,
    stream,
)
from windrow.plan.directions.instances import FRESHNESS, SHAPES, random_model, times_window
from windrow.plan.directions.program import LARGEST

CLOSE = 1e-4
"""Where nearly all resources go into freshness, a millionth of an age is more of what is left."""


@st.composite
def cases(draw: st.DrawFn, most_streams: int = 8) -> tuple[Model, float, float]:
    """A random tree in the paper's ranges, a budget, a freshness in windows."""
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    model = random_model(random, draw(st.integers(3, most_streams)), draw(st.sampled_from(sorted(SHAPES))))
    share = 10 ** draw(st.floats(-2.5, 0.0))
    return model, share * model.saturation, draw(st.sampled_from(FRESHNESS))


@settings(max_examples=60)
@given(cases())
def test_the_joint_optimum_equals_an_independent_program(case: tuple[Model, float, float]) -> None:
    model, budget, factor = case
    refresh_hz = refresh_rates(model, model.per_stream(times_window(model, factor)))
    by_nodes = best_by_nodes(model.tree, budget, dict(zip(map(str, model.states), refresh_hz, strict=True)))
    drivers_hz = most_output(model, budget, refresh_hz)
    assert (drivers_hz is None) == (by_nodes is None)
    if drivers_hz is not None:
        assert model.output @ drivers_hz == pytest.approx(by_nodes, rel=CLOSE)
        assert model.cost @ drivers_hz <= budget * (1 + 1e-6)


@pytest.mark.parametrize("shape", sorted(SHAPES))
@pytest.mark.parametrize(("streams", "rounds"), [(3, 6), (4, 1)])
def test_the_joint_optimum_equals_a_search_over_a_grid(shape: str, streams: int, rounds: int) -> None:
    random = np.random.default_rng(streams)
    feasible = 0
    for number in range(rounds):
        model = random_model(random, streams, shape)
        budget = float(model.saturation * random.uniform(0.02, 0.6))
        wanted_s = times_window(model, FRESHNESS[number % 3])
        kept = allocate(model, budget, wanted_s)
        on_grid = best_on_grid(model.tree, budget, wanted_s)
        if kept.infeasible is not None:
            assert on_grid == -math.inf
            continue
        feasible += 1
        assert on_grid <= kept.output_hz * (1 + CLOSE)
        assert kept.output_hz <= best_on_grid(model.tree, budget + grid_step(model.tree), wanted_s) * (1 + CLOSE)
    assert feasible > 0


@settings(max_examples=100)
@given(cases())
def test_what_is_feasible_is_kept(case: tuple[Model, float, float]) -> None:
    """JQ-24, and no allocation is above the joint optimum."""
    model, budget, factor = case
    wanted = times_window(model, factor)
    freshness_s = model.per_stream(wanted)
    kept = allocate(model, budget, wanted)
    assert kept.spent <= budget * (1 + 1e-6)
    covered_hz = jaqpot(model, budget, freshness_s)
    if kept.infeasible is not None:
        assert covered_hz is None
        assert most_output(model, budget, refresh_rates(model, freshness_s)) is None
        return
    assert is_fresh(model, np.array([kept.stored_hz[str(state)] for state in model.states]), freshness_s)
    assert all(kept.age_s[name] <= span_s * (1 + 1e-6) for name, span_s in wanted.items())
    stopping = allocate(model.tree, budget, wanted, stops=True)
    for heuristic in HEURISTICS:
        flow = heuristic.flow(model.tree, budget)
        if is_fresh(model, stored_by(model, flow), freshness_s):
            assert flow.output_hz <= stopping.output_hz * (1 + CLOSE)
    if covered_hz is not None:
        assert is_fresh(model, model.inflow @ covered_hz, freshness_s)
        assert model.cost @ covered_hz <= budget * (1 + 1e-6)
        assert model.output @ covered_hz <= kept.output_hz * (1 + CLOSE)


@settings(max_examples=100)
@given(cases())
def test_cover_and_greedy_are_near_the_optimum_for_the_same_refresh_rates(case: tuple[Model, float, float]) -> None:
    """At least .9 of it; JQ-22: a cover costs at most 1 + 1/2 + … + 1/m times the least."""
    model, budget, factor = case
    freshness_s = model.per_stream(times_window(model, factor))
    refresh_hz = refresh_rates(model, freshness_s)
    cheapest, greedy = least_cover(model, refresh_hz), greedy_cover(model, refresh_hz)
    assert (cheapest is None) == (greedy is None)
    if cheapest is not None and greedy is not None:
        bound = sum(1 / number for number in range(1, len(model.states) + 1))
        assert 1 - CLOSE <= (model.cost @ greedy) / (model.cost @ cheapest) <= bound * (1 + CLOSE)
        assert (model.inflow @ greedy >= refresh_hz * (1 - 1e-6)).all()
    covered_hz, best_hz = jaqpot(model, budget, freshness_s), most_output(model, budget, refresh_hz)
    if covered_hz is not None:
        assert best_hz is not None
        assert model.output @ covered_hz >= 0.9 * (model.output @ best_hz)


@settings(max_examples=60)
@given(cases())
def test_without_freshness_nothing_beats_the_most_productive_paths(case: tuple[Model, float, float]) -> None:
    """JQ-11, JQ-26."""
    model, budget, _ = case
    kept = allocate(model, budget)
    assert kept.output_hz == pytest.approx(float(model.output @ grepp(model, budget)))
    assert kept.output_hz == pytest.approx(best_by_nodes(model.tree, budget, {}), rel=CLOSE)
    for heuristic in HEURISTICS:
        assert heuristic.flow(model.tree, budget).output_hz <= kept.output_hz * (1 + 1e-7)


@settings(max_examples=60)
@given(cases())
def test_what_is_infeasible_is_said_with_what_would_do(case: tuple[Model, float, float]) -> None:
    model, budget, factor = case
    wanted = times_window(model, factor)
    freshness_s = model.per_stream(wanted)
    needed = least_resources(model, freshness_s)
    kept = allocate(model, budget, wanted)
    if kept.infeasible is None:
        assert needed is not None
        assert needed <= budget * (1 + CLOSE)
        return
    assert kept.infeasible.needed == needed
    if needed is not None:
        assert needed > budget * (1 - CLOSE)
        assert freshest_output(model, needed * (1 + CLOSE), freshness_s) is not None
    nearest = least_freshness(model, budget, freshness_s)
    assert nearest is not None
    drivers_hz, least_s = nearest
    assert model.cost @ drivers_hz <= budget * (1 + 1e-6)
    assert is_fresh(model, model.inflow @ drivers_hz, least_s)
    stretch = float((least_s / freshness_s).max())
    assert stretch > 1 - 1e-6
    assert freshest_output(model, budget, freshness_s * (1 + (stretch - 1) * 0.98 - 1e-4)) is None
    assert freshest_output(model, budget, least_s * (1 + CLOSE)) is not None


@settings(max_examples=60)
@given(cases())
def test_rows_that_may_end_in_a_state_are_never_worse(case: tuple[Model, float, float]) -> None:
    model, budget, factor = case
    wanted = times_window(model, factor)
    through, stopping = allocate(model, budget, wanted), allocate(model.tree, budget, wanted, stops=True)
    assert stopping.spent <= budget * (1 + 1e-6)
    if through.infeasible is None:
        assert stopping.infeasible is None
        assert stopping.output_hz >= through.output_hz * (1 - CLOSE)
    assert all(rate <= model.rate_hz[model.names.index(name)] * (1 + 1e-6) for name, rate in stopping.driver_hz.items())


@settings(max_examples=40)
@given(cases(most_streams=6))
def test_the_numbers_of_a_tree_are_those_found_by_walking_up(case: tuple[Model, float, float]) -> None:
    """JQ-20: k - 2 susceptible states, whatever the shape."""
    model, *_ = case
    assert len(model.states) == len(model.names) - 2 == len(joins(model.tree)) - 1
    for number, way in enumerate(ways(model.tree)):
        assert model.names[number] == way.stream.name
        assert (model.cost[number], model.output[number]) == pytest.approx((way.cost, way.rows))
        entering = dict(zip(map(str, model.states), model.inflow[:, number], strict=True))
        assert {state: rows for state, rows in entering.items() if rows > 0} == pytest.approx(way.entering)


def test_rows_ended_early_refresh_for_less() -> None:
    """A state of 1000 rows is filled at once; what fills it would find next to nothing, and that for a lot."""
    pair = Join(stream("a", 100, 100, 0.1), stream("b", 100, 100, 0.1), State(1000, 0.01))
    tree = Join(pair, stream("c", 100, 10, 1e-6, probe_cost=50.0))
    through, stopping = allocate(tree, 50_150, {"a": 2.0}), allocate(tree, 50_150, {"a": 2.0}, stops=True)
    assert (through.infeasible, stopping.infeasible) == (None, None)
    assert min(through.stored_hz["(a b)"], stopping.stored_hz["(a b)"]) >= 1000 * (1 - CLOSE)
    assert through.probing_hz["(a b)"] == pytest.approx(1000, rel=CLOSE)
    assert through.probing_hz["c"] < stopping.probing_hz["c"] == pytest.approx(100)
    assert stopping.probing_hz["(a b)"] < 1000
    assert through.output_hz == pytest.approx(500, rel=0.01)
    assert stopping.output_hz == pytest.approx(1000, rel=0.01)


def test_no_freshness_is_free_of_any() -> None:
    model = random_model(np.random.default_rng(1), 4, "linear")
    assert allocate(model, 0).output_hz == 0
    assert allocate(model, model.saturation).output_hz == pytest.approx(model.full_output)
    assert allocate(model, 0, times_window(model, 5)).infeasible is not None


def test_a_freshness_of_the_window_leaves_no_slack() -> None:
    model = random_model(np.random.default_rng(1), 3, "linear")
    exact = {name: float(span_s) for name, span_s in zip(model.names, model.window_s, strict=True)}
    kept = allocate(model, model.saturation, exact)
    assert kept.infeasible is not None
    assert kept.infeasible.needed is None
    assert "no resources are enough" in str(kept.infeasible)
    only_last = {"c": exact["c"]}
    assert allocate(model, 1.0, only_last).infeasible is None


def test_states_that_nothing_can_refresh() -> None:
    tree = Join(
        Join(stream("a", 10, 100, 0.0), stream("b", 10, 100, 0.0), stream("x", 1, 10, 0.1).state),
        stream("c", 10, 100, 0.1),
    )
    kept = allocate(tree, 100, {"a": 1000.0})
    assert kept.infeasible is not None
    assert kept.infeasible.needed is None
    assert math.isinf(kept.infeasible.least_s["a"])
    assert kept.output_hz == allocate(tree, 100).output_hz


def test_very_different_sizes_are_told_apart() -> None:
    """A path whose full work is beyond what a solver sees needs only a sliver of it."""
    random = np.random.default_rng(5)
    model = max((random_model(random, 8, "linear") for _ in range(20)), key=lambda model: model.saturation)
    assert model.saturation > LARGEST
    wanted = times_window(model, 5.0)
    budget = 2 * float(least_resources(model, model.per_stream(wanted)) or 0)
    kept = allocate(model, budget, wanted)
    assert kept.infeasible is None
    assert 0 < kept.spent <= budget * (1 + 1e-6)


@pytest.mark.parametrize(
    ("budget", "freshness_s", "method", "message"),
    [
        (100.0, {"z": 1.0}, "auto", "no stream 'z'"),
        (100.0, {"a": 0.0}, "auto", "a span above 0"),
        (-1.0, {}, "auto", "cannot be given"),
        (float("nan"), {}, "auto", "cannot be given"),
        (100.0, {}, "best", "no allocation 'best'"),
    ],
)
def test_what_has_no_meaning_is_refused(
    budget: float, freshness_s: dict[str, float], method: str, message: str
) -> None:
    with pytest.raises(PlanError, match=message):
        allocate(random_model(np.random.default_rng(1), 3, "linear"), budget, freshness_s, method)
