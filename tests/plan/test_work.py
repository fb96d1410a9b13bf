"""Work in seconds: sums by hand, the JSON form, and what is refused."""

from __future__ import annotations

import json
import pickle
from dataclasses import astuple, replace

import pytest

from windrow.errors import PlanError
from windrow.plan.cost import StepCost
from windrow.plan.methods import METHODS
from windrow.plan.work import REFERENCE, StepWork, Work, WorkCosts

PLAIN = WorkCosts(1.0, 0.1, 0.01, 0.02, 0.5, 3.0, {method: StepCost(0.2, 0.03, 0.004) for method in METHODS})


def test_every_count_has_its_part() -> None:
    steps = (StepWork("loop", 10, 100, 5), StepWork("hashed", 1, 2, 3))
    spent = PLAIN.seconds_of(Work(2, 30, 40, 50, 6, 7, steps))
    assert (spent.batch_s, spent.row_s, spent.merge_row_s, spent.index_row_s) == pytest.approx((2.0, 3.0, 0.4, 1.0))
    assert (spent.result_s, spent.decision_s) == pytest.approx((3.0, 21.0))
    assert spent.step_s == pytest.approx(10 * 0.2 + 100 * 0.03 + 5 * 0.004 + 0.2 + 2 * 0.03 + 3 * 0.004)
    assert spent.total_s == pytest.approx(2 + 3 + 0.4 + 1 + 3 + 21 + spent.step_s)
    assert spent.fixed_s == pytest.approx(2 + 3 + 0.4 + 1 + 21)
    assert PLAIN.seconds_of(Work()).total_s == 0.0


def test_expensive_conditions_cost_more_a_candidate_and_nothing_else() -> None:
    scaled = PLAIN.scaled(8)
    assert scaled.step("sorted") == StepCost(0.2, 8 * 0.03, 0.004)
    assert replace(scaled, steps=PLAIN.steps) == PLAIN


def test_a_slower_machine_takes_longer_for_everything() -> None:
    work = Work(1, 10, 20, 30, 40, 50, (StepWork("loop", 5, 6, 7),))
    assert PLAIN.slowed(3).seconds_of(work).total_s == pytest.approx(3 * PLAIN.seconds_of(work).total_s)
    assert PLAIN.slowed(3).step("sorted") == StepCost(*(3 * part for part in astuple(PLAIN.step("sorted"))))


def test_json_form() -> None:
    assert WorkCosts.from_json(PLAIN.to_json()) == PLAIN
    assert WorkCosts.from_values(json.loads(json.dumps(REFERENCE.to_values()))) == REFERENCE
    assert pickle.loads(pickle.dumps(PLAIN)) == PLAIN


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"version": 99}, "version 99"),
        ({"row_s": -1.0}, "row_s cannot take -1.0 seconds"),
        ({"row_s": "x"}, "these are no costs"),
        ({"steps": {}}, "no cost of loop"),
        ({"steps": []}, "these are no costs"),
        ({"steps": {"loop": {"per_probe": 1}}}, "these are no costs"),
    ],
)
def test_what_cannot_be_read(change: dict[str, object], says: str) -> None:
    with pytest.raises(PlanError, match=says):
        WorkCosts.from_values({**PLAIN.to_values(), **change})


def test_what_is_not_there() -> None:
    with pytest.raises(PlanError, match="these are no costs"):
        WorkCosts.from_json("{")
    with pytest.raises(PlanError, match="no cost of method 'guess'"):
        PLAIN.step("guess")


def test_the_reference_has_every_method_and_no_free_work() -> None:
    assert set(REFERENCE.steps) == set(METHODS)
    assert all(cost.per_candidate > 0 and cost.per_probe > 0 for cost in REFERENCE.steps.values())
