"""In which order a path visits the stores."""

from __future__ import annotations

import pytest

from tests.plan.queries import spec_of
from windrow.errors import PlanError
from windrow.plan.order import join_graph, low_selectivity_first, plan_query
from windrow.plan.plan import Plan

THREE, FOUR = ("a", "b", "c"), ("a", "b", "c", "d")

ORDERS: dict[tuple[str, tuple[str, ...]], list[str]] = {
    ("a.i = b.i AND b.i = c.i", THREE): ["a: b c", "b: a c", "c: b a"],
    ("abs(a.x - b.x) < 1 AND a.i = c.i", THREE): ["a: c b", "b: a c", "c: a b"],
    ("a.x < b.x AND cosine(a.v, c.v) > 0.5", THREE): ["a: c b", "b: a c", "c: a b"],
    ("a.x > 0", THREE): ["a: b c", "b: a c", "c: a b"],
    ("a.i = b.i AND c.i = d.i", FOUR): ["a: b c d", "b: a c d", "c: d a b", "d: c a b"],
    ("a.i = d.i AND near(a.x, b.x) AND b.x < c.x", FOUR): ["a: d b c", "b: c a d", "c: b a d", "d: a b c"],
    ("a.x + b.x = c.x", THREE): ["a: b c", "b: a c", "c: a b"],
}


@pytest.mark.parametrize(("where", "streams"), ORDERS)
def test_the_most_selective_search_comes_first(where: str, streams: tuple[str, ...]) -> None:
    plan = plan_query(spec_of(where, streams))
    shown = [f"{path.driver}: {' '.join(step.stream for step in path.steps)}" for path in plan.paths]
    assert shown == ORDERS[where, streams]


@pytest.mark.parametrize(("where", "streams"), ORDERS)
def test_each_condition_is_decided_once_on_each_path(where: str, streams: tuple[str, ...]) -> None:
    spec = spec_of(where, streams)
    joining = [n for n, conjunct in enumerate(spec.conjuncts) if str(conjunct) not in ("a.x > 0.0", "a.x > 0")]
    for path in plan_query(spec).paths:
        assert sorted(number for step in path.steps for number in step.conjuncts) == joining
        for step in path.steps:
            assert {*step.leading, *step.narrowing} <= set(step.conjuncts)


SIGMA = {frozenset("ab"): 0.0045, frozenset("ac"): 0.006, frozenset("bc"): 0.003}
CHAIN = {frozenset("ab"): 0.5, frozenset("bc"): 0.1, frozenset("cd"): 0.01}


def test_low_selectivity_goes_first() -> None:
    """GJ-17: the orders of Figure 4."""
    assert [low_selectivity_first(driver, "abc", SIGMA) for driver in "abc"] == [("b", "c"), ("c", "a"), ("b", "a")]


def test_only_what_the_graph_connects_comes_next() -> None:
    orders = {driver: "".join(low_selectivity_first(driver, "abcd", CHAIN)) for driver in "abcd"}
    assert orders == {"a": "bcd", "b": "cda", "c": "dba", "d": "cba"}


def test_what_nothing_connects_comes_last() -> None:
    assert low_selectivity_first("a", "abcd", {frozenset("ac"): 0.9}) == ("c", "b", "d")
    assert low_selectivity_first("b", "abcd", {frozenset("ac"): 0.9}) == ("a", "c", "d")


def test_a_condition_on_three_streams_counts_when_its_last_one_comes() -> None:
    sigma = {frozenset("ab"): 0.3, frozenset("ac"): 0.2, frozenset("ad"): 0.1, frozenset("acd"): 1e-4}
    assert low_selectivity_first("a", "abcd", sigma) == ("d", "c", "b")
    assert low_selectivity_first("a", "abcd", {frozenset("abc"): 1e-4, frozenset("ad"): 0.5}) == ("d", "b", "c")


@pytest.mark.parametrize(("measured", "order"), [(0.0055, "bc"), (0.0074, "bc"), (0.0076, "cb")])
def test_an_order_is_kept_until_another_is_clearly_better(measured: float, order: str) -> None:
    sigma = {**SIGMA, frozenset("ab"): measured}
    assert "".join(low_selectivity_first("a", "abc", sigma, current="bc", hysteresis=0.25)) == order


def test_with_hysteresis_a_wavering_measure_changes_nothing() -> None:
    current: tuple[str, ...] = ()
    seen = set()
    for turn in range(10):
        sigma = {**SIGMA, frozenset("ac"): 0.0045 * (1.1 if turn % 2 else 0.9)}
        current = low_selectivity_first("a", "abc", sigma, current)
        seen.add(current)
    assert len(seen) == 1


def test_given_orders_are_planned() -> None:
    spec = spec_of("a.i = b.i AND abs(b.x - c.x) < 1 AND a.x > 0", THREE)
    plan = plan_query(spec, orders={"a": ("c", "b")})
    shown = [f"{path.driver}: {' '.join(step.stream for step in path.steps)}" for path in plan.paths]
    assert shown == ["a: c b", "b: a c", "c: b a"]
    assert [step.method for step in plan.path("a").steps] == ["loop", "hashed"]
    assert sorted(n for step in plan.path("a").steps for n in step.conjuncts) == [0, 1]
    assert join_graph(spec) == (frozenset("ab"), frozenset("bc"))


def test_orders_that_leave_someone_out_are_refused() -> None:
    with pytest.raises(PlanError, match=r"the order \('c',\) does not visit each of \('b', 'c'\) once"):
        plan_query(spec_of("a.i = b.i", THREE), orders={"a": ("c",)})
    with pytest.raises(PlanError, match="does not visit each"):
        low_selectivity_first("a", "abc", SIGMA, current="b")


def test_plans_carry_policy_and_restriction_through_text() -> None:
    spec = spec_of("a.i = b.i AND abs(b.x - c.x) < 1", THREE)
    plan = plan_query(spec, policy="output_rate", methods=("sorted",))
    assert plan.policy == "output_rate"
    assert {step.method for path in plan.paths for step in path.steps} == {"sorted"}
    assert Plan.from_json(plan.to_json()) == plan
    assert plan_query(spec, policy="output_rate", methods=("sorted",)) == plan


def test_unknown_policies_and_methods_are_refused() -> None:
    spec = spec_of("a.i = b.i")
    with pytest.raises(PlanError, match="no driver policy 'x'"):
        plan_query(spec, policy="x")
    with pytest.raises(PlanError, match="no method 'x'"):
        plan_query(spec, methods=("x",))
