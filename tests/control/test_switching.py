"""Which method pays: predictions, and what is decided from them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from windrow.control.observation import Arrival, Joined, Observation, PathTally, StepTally
from windrow.control.switching import BUILD_S, COMPARED, GAIN, Known, Switching
from windrow.plan.plan import Path, Plan, Step
from windrow.plan.work import REFERENCE

STEPS = {method: Step("b", method, (0,), (), (), "") for method in COMPARED}
PLACE = ("a", 0)


def plan_with(method: str) -> Plan:
    return Plan("timestamp", (Path("a", (STEPS[method],)), Path("b", (Step("a", "matrix", (0,), (0,), (), ""),))))


def batch(tally: StepTally, rows: int, merged: int = 0) -> Observation:
    joined = Joined(others={"a": PathTally(tally.probes, tally.matches, (tally,)), "b": PathTally(1, 0, (tally,))})
    return Observation(0, 0.0, 1.0, 0.1, {"a": Arrival(10), "b": Arrival(rows)}, joined, merged=merged)


def tally(method: str, probes: int, window: int, keys: int, slow: float = 1.0) -> StepTally:
    """What a step does with a window of so many rows and keys, of which one in a hundred candidates matches."""
    pairs = probes * window
    candidates = pairs if method == "loop" else pairs // keys
    matches = pairs // keys // 100
    seconds = slow * (1e-4 + REFERENCE.step(method).seconds(probes, candidates, matches))
    return StepTally(probes, pairs, candidates, matches, seconds)


def settled(method: str, probes: int, window: int, keys: int, rows: int) -> str:
    """The method that is in use after a while."""
    watching = Switching({PLACE: STEPS}, REFERENCE)
    for _ in range(60):
        plan = plan_with(method)
        watching = watching.observe(batch(tally(method, probes, window, keys), rows), plan)
        method = watching.decide(plan).path("a").steps[0].method
    return method


@pytest.mark.parametrize("begins", ["loop", "hashed"])
@pytest.mark.parametrize(
    ("probes", "window", "keys", "rows", "expected"),
    [
        (1000, 100_000, 2, 1000, "loop"),
        (1000, 100_000, 10_000, 1000, "hashed"),
        (10, 1000, 100, 100_000, "loop"),
        (10_000, 1000, 1000, 100, "hashed"),
    ],
)
def test_the_method_that_pays_is_found_from_any_other(
    begins: str, probes: int, window: int, keys: int, rows: int, expected: str
) -> None:
    assert settled(begins, probes, window, keys, rows) == expected


def test_an_index_is_predicted_by_its_rows_and_its_share() -> None:
    known = Known()
    for _ in range(30):
        known = known.after("hashed", tally("hashed", 100, 1000, 10), rows=500, merged=1500, costs=REFERENCE)
    step = REFERENCE.step("hashed")
    rows_s = BUILD_S + 2000 * REFERENCE.index_row_s
    assert known.predicted_s("hashed", REFERENCE) == pytest.approx(1e-4 + step.seconds(100, 1e4, 100) + rows_s)
    assert known.predicted_s("loop", REFERENCE) == pytest.approx(1e-4 + REFERENCE.step("loop").seconds(100, 1e5, 100))
    other = 1e-4 + REFERENCE.step("sorted").seconds(100, 1e4, 100) + rows_s
    assert known.predicted_s("sorted", REFERENCE) == pytest.approx(other)


def test_an_index_that_was_never_in_use_looks_good() -> None:
    known = Known().after("loop", tally("loop", 100, 1000, 10), rows=0, merged=0, costs=REFERENCE)
    best = 1e-4 + REFERENCE.step("hashed").seconds(100, 100, 100) + BUILD_S
    assert known.predicted_s("hashed", REFERENCE) == pytest.approx(best)


def test_what_comes_on_top_does_not_count_for_one_method_alone() -> None:
    """A step that takes longer than by the table, because of its many segments, would do so by any method."""
    quick, slow = (
        Known().after("hashed", tally("hashed", 1000, 1000, 10, factor), 0, 0, REFERENCE) for factor in (1.0, 3.0)
    )
    more = [slow.predicted_s(method, REFERENCE) - quick.predicted_s(method, REFERENCE) for method in COMPARED]
    assert more == pytest.approx([more[0]] * 3)
    assert more[0] > 0


def test_a_time_that_something_else_took_is_hardly_believed() -> None:
    usual, late = tally("loop", 1000, 1000, 10), tally("loop", 1000, 1000, 10, 20.0)
    known = Known().after("loop", usual, 0, 0, REFERENCE)
    off = known.after("loop", late, 0, 0, REFERENCE)
    before, after = (each.predicted_s("loop", REFERENCE) for each in (known, off))
    assert before < after < 1.3 * before
    assert off.after("loop", usual, 0, 0, REFERENCE).predicted_s("loop", REFERENCE) == pytest.approx(before)


def test_a_small_gain_is_no_reason_to_change() -> None:
    watching = Switching({PLACE: STEPS}, REFERENCE)
    plan = plan_with("hashed")
    watching = watching.observe(batch(tally("hashed", 1000, 1000, 40), 0), plan)
    known = watching.known[PLACE]
    costs = sorted(known.predicted_s(method, REFERENCE) for method in COMPARED)
    chosen = watching.decide(plan).path("a").steps[0].method
    assert (chosen == "hashed") == (costs[0] >= GAIN * known.predicted_s("hashed", REFERENCE))
    assert watching.decide(plan).path("b") == plan.path("b")
    assert Switching({PLACE: STEPS}, REFERENCE).decide(plan) is plan


def test_how_long_indexes_really_take_is_learned() -> None:
    usual = tally("hashed", 100, 1000, 10)
    table_s = BUILD_S + 500 * REFERENCE.index_row_s
    known, slow = (
        Known().after("hashed", replace(usual, index_s=factor * table_s), 500, 0, REFERENCE) for factor in (1.0, 3.0)
    )
    for method in ("hashed", "sorted"):
        more_s = slow.predicted_s(method, REFERENCE) - known.predicted_s(method, REFERENCE)
        assert more_s == pytest.approx(2 * table_s)
    assert slow.predicted_s("loop", REFERENCE) == known.predicted_s("loop", REFERENCE)


def test_unasked_only_sure_gains_are_taken() -> None:
    """Twice as fast is not enough where it saves little."""
    plan, seen = plan_with("hashed"), batch(tally("hashed", 1000, 100_000, 2), 1000)
    sure, dear = Switching({PLACE: STEPS}, REFERENCE, gain=0.5, least_s=5e-3), 1e9
    assert sure.observe(seen, plan).decide(plan).path("a").steps[0].method == "loop"
    assert replace(sure, least_s=dear).observe(seen, plan).decide(plan) is plan
    little = batch(tally("hashed", 10, 10_000, 2), 10)
    assert Switching({PLACE: STEPS}, REFERENCE).observe(little, plan).decide(plan).path("a").steps[0].method == "loop"
    assert sure.observe(little, plan).decide(plan) is plan
