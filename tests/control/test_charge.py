"""Charging a batch: every count ends in the part it belongs to."""

from __future__ import annotations

import pytest

from windrow.control.charge import work_of
from windrow.control.observation import Arrival, Joined, Observation, PathTally, StepTally
from windrow.plan.plan import Path, Plan, Step
from windrow.plan.work import REFERENCE, StepWork


def step(stream: str, method: str) -> Step:
    return Step(stream, method, (0,), (0,), (), "")


PLAN = Plan(
    "timestamp",
    (
        Path("a", (step("b", "hashed"), step("c", "loop"))),
        Path("b", (step("a", "hashed"), step("c", "loop"))),
        Path("c", (step("a", "sorted"), step("b", "hashed"))),
    ),
)


def test_steps_are_summed_by_method_over_drivers_and_portions() -> None:
    two = (StepTally(10, 100, 20, 5), StepTally(5, 50, 50, 1))
    joined = Joined(
        sampled={"a": PathTally(10, 1, two), "b": PathTally()},
        others={"a": PathTally(10, 1, two), "c": PathTally(10, 1, two)},
    )
    arrivals = {"a": Arrival(70), "b": Arrival(20), "c": Arrival(10)}
    work = work_of(Observation(3, 3.0, 1.0, 0.2, arrivals, joined, results=3), PLAN, indexed_rows=100, decisions=1)
    assert set(work.steps) == {
        StepWork("hashed", 25, 90, 11),
        StepWork("loop", 10, 100, 2),
        StepWork("sorted", 10, 20, 5),
    }
    assert (work.batches, work.rows, work.merged_rows, work.indexed_rows) == (1, 100, 0, 100)
    assert (work.results, work.decisions) == (3, 1)
    expected = sum(REFERENCE.step(s.method).seconds(s.probes, s.candidates, s.matches) for s in work.steps)
    assert REFERENCE.seconds_of(work).step_s == pytest.approx(expected)
