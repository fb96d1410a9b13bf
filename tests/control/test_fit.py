"""Fitted costs: known ones are found under noise and outliers, alike rows stay sane, without rows the guess holds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import astuple, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.control.fit import ANY, CostFit, Key, StepFit
from windrow.control.observation import Joined, Observation, PathTally, StepTally
from windrow.errors import StateError
from windrow.plan.cost import StepCost
from windrow.plan.plan import Path, Plan, Step
from windrow.plan.work import REFERENCE

GUESS = StepCost(per_probe=1e-7, per_candidate=1e-8, per_result=1e-8)
OTHERS = [
    StepCost(3e-7, 5e-9, 2e-8),
    StepCost(1e-7, 1e-8, 1e-8),
    StepCost(2e-8, 3e-8, 0.0),
    StepCost(1e-6, 1e-7, 1e-7),
    StepCost(0.0, 1e-8, 0.0),
]


def step(stream: str, method: str) -> Step:
    return Step(stream, method, (0,), (0,), (), "")


PLAN = Plan("timestamp", (Path("a", (step("b", "hashed"),)), Path("b", (step("a", "loop"),))))


def tallies(
    cost: StepCost, count: int, *, noise: float = 0.0, outliers: float = 0.0, seed: int = 0
) -> Iterator[StepTally]:
    """Batches of all shapes; some of them took twenty times as long as they should have."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        probes = int(10 ** random.uniform(3.5, 5))
        candidates = int(probes * 10 ** random.uniform(0, 2))
        matches = int(candidates * 10 ** random.uniform(-2, 0))
        seconds = cost.seconds(probes, candidates, matches) * float(np.exp(noise * random.normal()))
        seconds *= 20 if random.uniform() < outliers else 1
        yield StepTally(probes, 3 * candidates, candidates, matches, seconds)


def fitted(rows: Iterator[StepTally], fit: StepFit | None = None) -> StepFit:
    found = fit or StepFit()
    for row in rows:
        found = found.observe(GUESS, row)
    return found


def worst_error(found: StepCost, cost: StepCost) -> float:
    """How far seconds are off at most, over work of many shapes."""
    ratios = [
        found.seconds(row.probes, row.candidates, row.matches) / row.seconds for row in tallies(cost, 200, seed=99)
    ]
    return max(abs(ratio - 1) for ratio in ratios)


@pytest.mark.parametrize("cost", OTHERS)
def test_known_costs_are_recovered(cost: StepCost) -> None:
    found = fitted(tallies(cost, 100)).cost(GUESS)
    assert worst_error(found, cost) < 0.05


@pytest.mark.parametrize("cost", OTHERS)
@pytest.mark.parametrize("seed", range(3))
def test_noise_and_outliers_do_little(cost: StepCost, seed: int) -> None:
    found = fitted(tallies(cost, 150, noise=0.05, outliers=0.05, seed=seed)).cost(GUESS)
    assert worst_error(found, cost) < 0.2
    assert found.per_candidate == pytest.approx(cost.per_candidate, rel=0.2)


@given(
    st.lists(
        st.builds(
            StepTally,
            st.integers(0, 10**6),
            st.integers(0, 10**9),
            st.integers(0, 10**8),
            st.integers(0, 10**7),
            st.floats(0, 1000),
        ),
        max_size=30,
    )
)
def test_no_cost_is_ever_negative_or_endless(rows: list[StepTally]) -> None:
    found = astuple(fitted(iter(rows)).cost(GUESS))
    assert all(0 <= part < np.inf for part in found)


def test_rows_that_are_all_alike_keep_the_proportions_of_the_guess() -> None:
    row = StepTally(1000, 10**6, 10**6, 10**4, seconds=3 * GUESS.seconds(1000, 10**6, 10**4))
    found = fitted(iter([row] * 50)).cost(GUESS)
    assert found.seconds(1000, 10**6, 10**4) == pytest.approx(row.seconds, rel=0.02)
    for part, guessed in zip(astuple(found), astuple(GUESS), strict=True):
        assert 2 * guessed < part < 4 * guessed


def test_one_row_moves_the_costs_part_of_the_way() -> None:
    row = StepTally(1000, 10**6, 10**6, 10**4, seconds=2 * GUESS.seconds(1000, 10**6, 10**4))
    found = fitted(iter([row])).cost(GUESS).seconds(1000, 10**6, 10**4)
    assert row.seconds / 2 < found < row.seconds


def test_the_first_batch_may_compile() -> None:
    row = StepTally(1000, 10**6, 10**6, 10**4, seconds=GUESS.seconds(1000, 10**6, 10**4))
    compiling = replace(row, seconds=row.seconds * 1000)
    assert worst_error(fitted(iter([compiling])).cost(GUESS), GUESS) < 1.5
    assert worst_error(fitted(iter([compiling, *[row] * 20])).cost(GUESS), GUESS) < 0.15


@pytest.mark.parametrize("factor", [0.1, 10.0])
def test_a_change_is_followed(factor: float) -> None:
    later = StepCost(*(factor * part for part in astuple(GUESS)))
    before = fitted(tallies(GUESS, 200, noise=0.03))
    found = fitted(tallies(later, 60, noise=0.03, seed=1), before)
    assert worst_error(found.cost(GUESS), later) < 0.3


@pytest.mark.parametrize("factor", [1e3, 1e6])
def test_a_guess_that_is_much_too_low_is_given_up_soon(factor: float) -> None:
    """Much work, so that what a call costs by itself does not hide it."""
    cost = StepCost(*(factor * part for part in astuple(GUESS)))
    many = ((10**4 * row.probes, 10**4 * row.candidates, 10**4 * row.matches) for row in tallies(GUESS, 8))
    rows = [
        StepTally(probes, 0, candidates, matches, cost.seconds(probes, candidates, matches))
        for probes, candidates, matches in many
    ]
    assert worst_error(fitted(iter(rows)).cost(GUESS), cost) < 0.3


def test_a_cost_that_was_taken_to_be_free_can_be_learned() -> None:
    guess, cost = StepCost(0.0, 1e-8, 0.0), StepCost(2e-6, 1e-8, 0.0)
    found = StepFit()
    for row in tallies(cost, 200):
        found = found.observe(guess, row)
    assert worst_error(found.cost(guess), cost) < 0.1


def test_nothing_seen_says_nothing() -> None:
    assert fitted(iter([])).cost(GUESS) == GUESS
    assert fitted(iter([StepTally(0, 0, 0, 0, 1.0), StepTally(10, 10, 10, 1, 0.0)])) == StepFit()
    assert CostFit.of(REFERENCE, PLAN).cost("b", 0) == REFERENCE.step("loop")


def observed(fit: CostFit, cost: StepCost, count: int = 60) -> CostFit:
    for batch, row in enumerate(tallies(cost, count)):
        sample, other = PathTally(1, 0, (row,)), PathTally(9, 0, (row,))
        joined = Joined(sampled={"a": sample, "b": PathTally()}, others={"a": other})
        fit = fit.observe(Observation(batch, 1.0 * batch, 1.0, 0.5, {}, joined))
    return fit


def test_each_driver_and_method_has_a_fit_of_its_own() -> None:
    cost = StepCost(1e-6, 1e-7, 1e-7)
    empty = CostFit.of(REFERENCE, PLAN)
    fit = observed(empty, cost)
    assert worst_error(fit.cost("a", 0), cost) < 0.05
    assert fit.cost("b", 0) == REFERENCE.step("loop")
    assert set(fit.fits) == {Key("a", "b", "hashed"), Key(ANY, ANY, "hashed")}
    assert worst_error(fit.cost_to("c", "d", "hashed"), cost) < 0.05  # what is new costs what others cost
    assert empty.fits == {}  # it is a value
    other = fit.under(Plan("timestamp", (Path("a", (step("b", "loop"),)), Path("b", (step("a", "loop"),)))))
    assert other.cost("a", 0) == REFERENCE.step("loop")
    assert other.cost_to("a", "b", "hashed") == other.under(PLAN).cost("a", 0) == fit.cost("a", 0)


def test_json_form_goes_on_where_it_was() -> None:
    fit = observed(CostFit.of(REFERENCE, PLAN), OTHERS[0], 10)
    values = json.loads(json.dumps(fit.to_values()))
    again = CostFit.from_values(values)
    assert again == fit
    assert observed(again, OTHERS[0], 5) == observed(fit, OTHERS[0], 5)


@pytest.mark.parametrize(("change", "says"), [({"version": 99}, "version 99"), ({"fits": [{}]}, "no fitted costs")])
def test_what_cannot_be_read(change: dict[str, object], says: str) -> None:
    with pytest.raises(StateError, match=says):
        CostFit.from_values({**CostFit.of(REFERENCE, PLAN).to_values(), **change})
