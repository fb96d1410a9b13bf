"""Prospects from what batches did."""

from __future__ import annotations

import pytest

from windrow.control.foresight import CALL_S, MOST_OFF, Foresight
from windrow.control.observation import Joined, Observation, PathTally, StepTally
from windrow.plan.plan import Path, Plan, Step
from windrow.plan.work import REFERENCE

PLAN = Plan(
    "auto_total",
    tuple(Path(d, (Step(t, m, (0,), (), (), ""),)) for d, t, m in (("a", "b", "hashed"), ("b", "a", "loop"))),
)


def batch(number: int, a: StepTally, b: StepTally | None = None) -> Observation:
    paths = {"a": PathTally(a.probes, a.matches, (a,))}
    if b is not None:
        paths["b"] = PathTally(b.probes, b.matches, (b,))
    return Observation(number, float(number), 1.0, 0.1, {}, Joined(others=paths))


def test_nothing_is_expected_before_all_have_probed() -> None:
    tally = StepTally(10, 1000, 20, 10, 1e-3)
    once = Foresight.of(REFERENCE, PLAN).observe(batch(0, tally))
    assert once.prospects() is None
    twice = once.observe(batch(1, StepTally(), tally)).prospects()
    assert twice is not None
    assert (twice["a"][0].target, twice["a"][0].found, twice["a"][0].looked_at) == ("b", 0.01, 0.02)


@pytest.mark.parametrize("slow", [1.0, 3.0])
def test_costs_are_those_of_the_table_times_a_factor(slow: float) -> None:
    foresight = Foresight.of(REFERENCE, PLAN)
    for number in range(30):
        probes = 10**5 * (1 + number % 3)
        tallies = []
        for method in ("hashed", "loop"):
            seconds = slow * (CALL_S + REFERENCE.step(method).seconds(probes, 2 * probes, probes))
            tallies.append(StepTally(probes, 10 * probes, 2 * probes, probes, seconds))
        foresight = foresight.observe(batch(number, *tallies))
    found = foresight.prospects()
    assert found is not None
    guess = REFERENCE.step("hashed")
    assert found["a"][0].cost.per_probe == pytest.approx(slow * guess.per_probe)
    assert found["a"][0].cost.per_result == pytest.approx(slow * guess.per_result)


def test_a_first_time_that_compiles_is_not_believed() -> None:
    tally = StepTally(10, 1000, 20, 10, seconds=5.0)
    found = Foresight.of(REFERENCE, PLAN).observe(batch(0, tally, tally)).prospects()
    assert found is not None
    assert found["a"][0].cost.per_probe == pytest.approx(MOST_OFF * REFERENCE.step("hashed").per_probe)
