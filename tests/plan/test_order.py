"""In which order a path visits the stores."""

from __future__ import annotations

import pytest

from tests.plan.queries import spec_of
from windrow.errors import PlanError
from windrow.plan.order import plan_query
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
